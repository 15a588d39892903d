"""The classification of grammars: which have no dead ends, by what proof, and an example where they have."""

from __future__ import annotations

import pytest

from aufbau import Grammar, Oracle, Outcome, Verdict
from aufbau.classify import Cover

# The simply typed lambda calculus with the universe of base types closed: each has a literal.
RESTRICTED = """
Identifier ::= /[a-z][a-z0-9]*/
Base ::= 'A' | 'B' | '(' Type ')'
Arrow(arrow) ::= Base '->' Type
Type* ::= Base | Arrow
Variable(var) ::= Identifier[x]
LiteralA(a) ::= 'α'
LiteralB(b) ::= 'β'
Lambda(lambda) ::= 'λ' Identifier[x] ':' Type[τ] '.' Expression[e]
Atom ::= Variable | LiteralA | LiteralB | '(' Expression ')'
Application(app) ::= Applied[l] Atom[r]
Applied ::= Atom | Application
Expression ::= Applied | Lambda

x ∈ Γ
----- (var)
Γ(x)

--- (a)
'A'

--- (b)
'B'

Γ[x:τ] ⊢ e : ?B
--------------- (lambda)
τ -> ?B

Γ ⊢ l : ?A -> ?B, Γ ⊢ r : ?A
---------------------------- (app)
?B
"""

# A little ML: lists and functions, and `assert false` of every type.
ASSERT_FALSE = """
Identifier ::= /[a-z][a-z0-9]*/
Simple ::= Identifier | '(' Type ')' | List
List(list) ::= Simple 'list'
Arrow(arrow) ::= Simple '->' Type
Type* ::= Simple | Arrow
Variable(var) ::= Identifier[x]
Nil(nil) ::= '[' ']'
Assert(assert) ::= 'assert' 'false'
Atom ::= Variable | Nil | Assert | '(' Expression ')'
Call(call) ::= Applied[f] Atom[a]
Applied ::= Atom | Call
Cons(cons) ::= Applied[h] '::' Consing[t]
Consing ::= Applied | Cons
Fun(fun) ::= 'fun' Identifier[x] '->' Expression[e]
Let(let) ::= 'let' Identifier[x] ':' Type[τ] '=' Expression[e] 'in' Expression[b]
Expression ::= Consing | Fun | Let

x ∈ Γ
----- (var)
Γ(x)

--- (nil)
?A list

--- (assert)
?A

Γ ⊢ f : ?A -> ?B, Γ ⊢ a : ?A
---------------------------- (call)
?B

Γ ⊢ h : ?A, Γ ⊢ t : ?A list
--------------------------- (cons)
?A list

Γ[x:?A] ⊢ e : ?B
---------------- (fun)
?A -> ?B

Γ ⊢ e : τ, Γ[x:τ] ⊢ b : ?B
-------------------------- (let)
?B
"""

# A little C: scalars have literals, pointers come from casts.
CASTS = """
Identifier ::= /[a-z][a-z0-9]*/
Scalar ::= 'int' | 'char'
Pointer(pointer) ::= Type '*'
Type* ::= Scalar | Pointer
Number(number) ::= /[0-9]+/
Letter(letter) ::= /'[a-z]'/
Variable(var) ::= Identifier[x]
Cast(cast) ::= '(' Type[t] ')' Number
Deref(deref) ::= '*' Unary[e]
Unary ::= Number | Letter | Variable | Cast | Deref
Declaration(declare) ::= Type[t] Identifier[x] '=' Unary[e] ';'
Program ::= Declaration | Program Declaration

x ∈ Γ
----- (var)
Γ(x)

--- (number)
'int'

--- (letter)
'char'

--- (cast)
t

Γ ⊢ e : ?A *
------------ (deref)
?A

Γ ⊢ e : t
-------------- (declare)
Γ → Γ[x:t] ⊢ ⊤
"""

FINITE = """
Type* ::= 'int' | 'text'
Count(count) ::= 'count' '(' Value[a] ')'
Number(number) ::= /[0-9]+/
Text(text) ::= /"[a-z]*"/
Value ::= Number | Text | Count

Γ ⊢ a : 'text'
-------------- (count)
'int'

--- (number)
'int'

--- (text)
'text'
"""

UNTYPED = "Pair ::= '(' Pair ',' Pair ')' | 'x'\n"


@pytest.mark.parametrize(
    ("source", "cover"),
    [(RESTRICTED, Cover.DISTRIBUTED), (CASTS, Cover.DISTRIBUTED), (FINITE, Cover.FINITE), (UNTYPED, Cover.UNTYPED)],
    ids=["restricted stlc", "casts", "finite", "untyped"],
)
def test_covered(source: str, cover: Cover) -> None:
    report = Grammar.parse(source).check()
    assert report.dead_end_free is True, str(report)
    assert (report.cover, report.uncovered, report.example) == (cover, (), None)
    assert report.productivity.holds and report.coverage.holds and report.flow.holds
    assert "no dead ends" in str(report)


def test_fun_is_covered_by_its_literals() -> None:
    report = Grammar.load("fun").check()
    assert report.dead_end_free is True and report.cover is Cover.DISTRIBUTED
    shown = "\n".join(report.coverage.evidence)
    for piece in ("Int (Integer)", "Float (Decimal)", "Bool (Boolean)", "?A -> ?B (Lambda)"):
        assert piece in shown


def test_assert_false_covers_expressions() -> None:
    report = Grammar.parse(ASSERT_FALSE).check()
    assert report.dead_end_free is True, str(report)
    assert any("Expression" in line and "every type (Assert)" in line for line in report.coverage.evidence)


def test_reading_without_demands_makes_no_promise() -> None:
    report = Grammar.parse("%bottom-up Applied\n" + RESTRICTED).check()
    assert report.coverage.holds and report.dead_end_free is None and "%bottom-up" in report.reason


def dropped(source: str, *lines: str) -> str:
    """A grammar without some of its pieces."""
    for line in lines:
        assert line in source
        source = source.replace(line, "")
    return source


@pytest.mark.parametrize(
    ("source", "uncovered"),
    [
        (dropped(RESTRICTED, "LiteralB(b) ::= 'β'\n", " | LiteralB", "\n--- (b)\n'B'\n"), "B"),
        (dropped(FINITE, 'Text(text) ::= /"[a-z]*"/\n', " | Text", "\n--- (text)\n'text'\n"), "text"),
        (dropped(CASTS, "Letter(letter) ::= /'[a-z]'/\n", " | Letter", "\n--- (letter)\n'char'\n"), None),
        (dropped(CASTS, "Cast(cast) ::= '(' Type[t] ')' Number\n", " | Cast", "\n--- (cast)\nt\n"), "?A *"),
    ],
    ids=["no literal of B", "no text", "casts make chars too", "no casts"],
)
def test_what_lacks_a_literal_is_not_covered(source: str, uncovered: str | None) -> None:
    report = Grammar.parse(source).check()
    if uncovered is None:
        assert report.dead_end_free is True, str(report)
    else:
        assert report.dead_end_free is not True and uncovered in report.uncovered, str(report)


@pytest.mark.parametrize("name", ["stlc", "minimal", "dialects/grammars/tool.auf"])
def test_not_covered_with_an_example(name: str) -> None:
    report = Grammar.load(name).check()
    assert report.dead_end_free is False and report.coverage.holds is False
    assert report.example is not None and report.uncovered
    assert "dead end: " + report.example in str(report)


def test_the_example_is_a_dead_end() -> None:
    report = Grammar.load("stlc").check()
    assert report.example is not None
    prefix = Oracle(Grammar.load("stlc")).start().feed(report.example)
    assert prefix.verdict is Verdict.LIVE
    assert prefix.witness().outcome is Outcome.NONE


def test_tools_say_which_types_a_context_has() -> None:
    grammar = Grammar.load("dialects/grammars/tool.auf")
    assert grammar.check().uncovered == ("docs",)
    assert any("int, string in this" in line for line in grammar.check().coverage.evidence)
    assert any("docs" in line for line in grammar.check({"d": "docs"}).coverage.evidence)


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("Γ ⊢ a : ?A, Γ(f) = ?A -> ?B", "(F) left-to-right flow: not decided"),
        ("Γ ⊢ a : 'Int', Γ(f) = 'Int' -> ?B", "whether a name fits is up to Γ"),
    ],
)
def test_a_name_that_decides_what_was_read_is_told(rule: str, lines: str) -> None:
    source = f"""
Name ::= /[a-z]+/
Type* ::= 'Int' | Arrow
Arrow(arrow) ::= 'Int' '->' Type
Number(number) ::= /[0-9]+/
Pipe(pipe) ::= Value[a] '|' Name[f]
Value ::= Number | Pipe

--- (number)
'Int'

{rule}
--- (pipe)
?B
"""
    source = source.replace("Arrow(arrow) ::= 'Int' '->' Type", "Arrow(arrow) ::= Base '->' Type\nBase ::= 'Int'")
    report = Grammar.parse(source.replace("Type* ::= 'Int' | Arrow", "Type* ::= Base | Arrow")).check()
    assert report.dead_end_free is not True
    assert lines in str(report)


# A number, or a name after a word: the word is promised before it is known whether there is a name.
WORD = """
Name ::= /[a-z]+/
Number ::= /[0-9]+/
Use(use) ::= 'use' Name[x]
Start ::= Number | Use

x ∈ Γ
----- (use)
⊤
"""


def test_a_name_after_a_word_is_no_cover() -> None:
    report = Grammar.parse(WORD).check()
    assert report.dead_end_free is not True and "whether a name fits is up to Γ" in str(report)
    prefix = Oracle(Grammar.parse(WORD)).start().feed("us")
    assert prefix.verdict is Verdict.LIVE and prefix.witness().outcome is Outcome.NONE


def test_what_needs_a_key_is_a_cover_where_the_key_is_set() -> None:
    keyed = "%ambient 'b'\n" + RESTRICTED.replace("\n--- (b)", "\n'b' ∈ Γ\n------- (b)")
    report = Grammar.parse(keyed).check()
    assert report.dead_end_free is True and report.reason.endswith("where the caller sets b")
    assert "where" not in Grammar.parse("%ambient 'b'\n" + RESTRICTED).check().reason


def test_lists_of_parameters_are_no_types_of_expressions() -> None:
    """Arguments follow a list of types, for which no expression needs a text."""
    source = """
Name ::= /[a-z]+/
Type* ::= 'int' | Function | List
Function(function) ::= '(' List ')'
List ::= 'none' | More
More(more) ::= 'int' ',' List
Number(number) ::= /[0-9]+/
Call(call) ::= Name[f] '(' Arguments[a] ')'
NoArguments(none) ::= '.'
MoreArguments(more_arguments) ::= Expression[e] ',' Arguments[a]
Arguments ::= NoArguments | MoreArguments
Expression ::= Number | Call

--- (number)
'int'

Γ(f) = (?P), Γ ⊢ a : ?P
----------------------- (call)
'int'

--- (none)
none

Γ ⊢ e : 'int', Γ ⊢ a : ?R
------------------------- (more_arguments)
int , ?R
"""
    report = Grammar.parse(source).check()
    assert report.dead_end_free is True, str(report)
    shown = next(line for line in report.coverage.evidence if line.startswith("Arguments"))
    assert shown == "Arguments: none (NoArguments), int, ?A (MoreArguments)"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("ml", ""), ("c", "int f(void *q) { return 2 * q")])
def test_large_languages_are_not_covered(name: str, text: str) -> None:
    """In ml the names that a pattern must bind again may not fit what is left of it; in c operands have no demand."""
    oracle = Oracle(Grammar.load(name))
    report = oracle.grammar.check()
    assert report.dead_end_free is not True and report.coverage.against
    for dead in (text, report.example or ""):
        prefix = oracle.start().feed(dead)
        assert not dead or prefix.witness().outcome is Outcome.NONE
