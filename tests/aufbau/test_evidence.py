"""What the oracle tells people: expectations, explanations, and typed trees with their renderings."""

from __future__ import annotations

import json

import pytest

from aufbau import Grammar, Node, Oracle, Verdict

FUN = Oracle(Grammar.load("fun"))
STLC = Oracle(Grammar.load("stlc"))
STEPS = Oracle(
    Grammar.parse(
        """Name ::= /[a-z]+/
Type* ::= 'int' | 'docs'
Num(num) ::= /[0-9]+/
Var(var) ::= Name[x]
Value ::= Num | Var
Call(count) ::= 'count' '(' Value[of] ')'
Let(let) ::= 'let' Name[x] '=' Call[value] ';'
Steps ::= ε | Steps Let

--- (num)
'int'

x ∈ Γ
--- (var)
Γ(x)

Γ ⊢ of : 'docs'
--- (count)
'int'

x ∉ Γ, Γ ⊢ value : ?A
--- (let)
Γ → Γ[x:?A] ⊢ ⊤
"""
    )
)
SCOPE = {"number": "Int", "nothing": "Bool", "is": "Int -> Bool"}


# Expectations

EXPECTED = [
    ("names-that-fit", "let x : Int = ", ["number : Int", "/[0-9]+/ : Int", "'('", "'let'"], ["nothing", "true", "is"]),
    ("rest-of-a-name", "let x : Int = n", ["number : Int"], ["nothing", "true", "'('"]),
    ("after-a-name", "let x : Int = number", ["';'", "'+'"], ["'+.'", "'let'", "':'"]),
    ("types", "let x : ", ["'Int'", "'Float'", "'Bool'", "'('"], ["number", "'let'"]),
    ("argument", "is(", ["number : Int", "/[0-9]+/ : Int"], ["nothing", "'true'", "is"]),
    ("a-binder", "let ", ["/[a-z][A-Za-z0-9_]*/"], ["number", "'('"]),
    (
        "booleans",
        "let b : Bool = ",
        ["'true' : Bool", "'false' : Bool", "nothing : Bool", "is : Int -> Bool"],
        ["number"],
    ),
    ("keyword-or-name", "let b : Bool = t", ["'true' : Bool"], ["'false'", "nothing"]),
    ("the-end", "true", [], ["'+'", "number"]),
]


@pytest.mark.parametrize(("text", "there", "absent"), [pytest.param(*c[1:], id=c[0]) for c in EXPECTED])
def test_expected(text: str, there: list[str], absent: list[str]) -> None:
    shown = [str(expected) for expected in FUN.start(context=SCOPE).feed(text).expected()]
    assert set(there) <= set(shown)
    for word in absent:
        assert not any(entry.split(" : ")[0] == word for entry in shown), f"{word} in {shown}"
    assert len(shown) == len(set(shown))


def test_a_fresh_binder_is_told_from_a_name_in_scope() -> None:
    expected = STEPS.start(context={"d": "docs"}).feed("let ").expected()
    assert [str(e) for e in expected] == ["a fresh name /[a-z]+/"]
    expected = STEPS.start(context={"d": "docs", "n": "int"}).feed("let a = count(").expected()
    assert [str(e) for e in expected] == ["d : docs"]


# Explanations

EXPLAINED = [
    ("clash", "let x : Int = nothing;", 1, 15, ("nothing has type Bool", "Int is demanded", "rule (var)"), ()),
    ("literal", "let x : Int = true;", 1, 15, ("Bool", "Int is demanded", "rule (bool)"), ()),
    ("unbound", "let x : Int =\n  numbr + 1", 2, 3, ("numbr is not in scope", "rule (var)", "x ∈ Γ"), ("number",)),
    ("argument", "is(nothing)", 1, 4, ("nothing has type Bool", "Int"), ()),
    ("operand", "1 + true", 1, 5, ("Bool", "Int is demanded"), ()),
    ("no-function", "number(1)", 1, 7, ("'('",), ()),
    ("syntax", "let x Int", 1, 7, ("'Int'",), ()),
    ("keyword", "let true : Int", 1, 5, ("true",), ()),
    ("type-word", "let x : Intt = 1", 1, 12, ("'t'", "'->'"), ()),
    ("column-in-characters", "1 +\t+", 1, 5, ("'+'",), ()),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "parts", "near"), [pytest.param(*c[1:], id=c[0]) for c in EXPLAINED]
)
def test_explanations(text: str, line: int, column: int, parts: tuple[str, ...], near: tuple[str, ...]) -> None:
    prefix = FUN.start(context=SCOPE).feed(text)
    assert prefix.verdict is Verdict.LOST
    explanation = prefix.explain()
    shown = str(explanation)
    assert (explanation.line, explanation.column) == (line, column), shown
    assert explanation.lost_at == prefix.lost_at
    assert all(part in shown for part in parts), shown
    assert set(near) <= set(explanation.near), shown
    assert f"line {line}, column {column}" in shown and "^" in shown


def test_an_explanation_names_rule_premise_and_types() -> None:
    explanation = FUN.start(context=SCOPE).feed("is(nothing)").explain()
    clash = explanation.clashes[0]
    assert (clash.rule, clash.wanted, clash.found) == ("var", "Int", "Bool")
    fresh = STEPS.start(context={"d": "docs"}).feed("let d =").explain()
    assert "in scope already" in fresh.message and fresh.clashes[0].premise == "x ∉ Γ"
    assert [str(e) for e in fresh.expected] == ["a fresh name /[a-z]+/"]


def test_columns_count_characters_not_bytes() -> None:
    explanation = STLC.start().feed("λé").explain()
    assert (explanation.line, explanation.column, explanation.lost_at) == (1, 2, 2)
    later = STLC.start().feed("λx:A→B.λy:A.\n→").explain()
    assert (later.line, later.column) == (2, 1)


def test_what_is_not_lost_explains_what_may_follow() -> None:
    shown = str(FUN.start().feed("let x : ").explain())
    assert shown.startswith("not lost") and "'Int'" in shown


# Trees


def program_tree() -> Node:
    """The tree of a small program with white space around it."""
    tree = FUN.start().feed("  let f : Int -> Int = (a : Int) => a * 2 ;\n f( 1 )  ").tree()
    assert tree is not None
    return tree


def test_nodes_carry_symbols_rules_bindings_types_and_text() -> None:
    tree = program_tree()
    let = tree.children[0]
    assert (tree.symbol, tree.type, let.symbol, let.rule) == ("Expression", "Int", "Let", "let")
    assert let.child("name").text == "f" and let.child("name").is_lexeme
    assert let.child("τ").text == "Int -> Int"
    assert let.child("value").type == "Int -> Int" and let.child("value").text == "(a : Int) => a * 2"
    assert let.child("body").text == "f( 1 )" and let.child("body").type == "Int"
    assert [child.text for child in let.children if child.binding is None] == ["let", ":", "=", ";"]
    assert let.find("missing") is None
    with pytest.raises(KeyError, match="name"):
        let.child("missing")


def test_spans_are_byte_offsets_of_the_text() -> None:
    text = "λx : A→B .\n x"
    tree = STLC.start().feed(text).tree()
    assert tree is not None
    data = text.encode()
    for node in tree.postorder():
        assert node.text.encode() == data[node.start : node.end]
        assert all(node.start <= child.start <= child.end <= node.end for child in node.children)
        ends = [child.end for child in node.children]
        assert ends == sorted(ends) and not (node.is_lexeme and node.children)
    leaves = [node.text for node in tree.postorder() if node.is_lexeme]
    assert sorted(leaves) == sorted(["λ", "x", ":", "A", "→", "B", ".", "x"])


def test_json() -> None:
    def check(data: dict[str, object], node: Node) -> None:
        assert (data["symbol"], data["span"]) == (node.symbol, [node.start, node.end])
        assert data.get("text") == (node.text if node.is_lexeme else None)
        assert (data.get("type"), data.get("rule"), data.get("binding")) == (node.type, node.rule, node.binding)
        children = data.get("children", [])
        assert isinstance(children, list) and len(children) == len(node.children)
        for inner, child in zip(children, node.children, strict=True):
            check(inner, child)

    tree = program_tree()
    check(json.loads(tree.to_json()), tree)


def test_dot_and_text() -> None:
    tree = program_tree()
    nodes = tree.postorder()
    dot = tree.to_dot()
    assert dot.startswith("digraph") and dot.endswith("}")
    assert dot.count(" -> n") == len(nodes) - 1
    assert 'label="Let : Int"' in dot and '[label="body"]' in dot
    lines = str(tree).split("\n")
    assert len(lines) == len(nodes)
    assert lines[0] == "Expression : Int" and "name: 'f'" in str(tree)
    quoted = STEPS.start(context={"d": "docs"}).feed("let a = count(d);").tree()
    assert quoted is not None and 'label="(\\"' not in quoted.to_dot()


def test_a_checked_node_has_no_type() -> None:
    prefix = STEPS.start(context={"d": "docs"}).feed("let a = count(d);")
    tree = prefix.tree()
    assert tree is not None and tree.type is None and prefix.type is None and prefix.types == ()
    assert prefix.context == {"a": "int", "d": "docs"}
    call = tree.children[1].child("value")
    assert (call.rule, call.type, call.child("of").text) == ("count", "int", "d")


def test_unsatisfied_prefixes_have_no_tree() -> None:
    for text in ("let x", "let x : Int = true", ""):
        assert FUN.start().feed(text).tree() is None
