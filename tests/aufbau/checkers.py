"""Type checkers for `fun` and `stlc`, written by hand and without any engine code, and generators of their programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

# A type is the text of an atom, or the pair of an arrow.
Type = str | tuple["Type", "Type"]
Scope = Mapping[str, Type]


class Rejected(Exception):
    """The text is not a well-typed program."""


def shown(bound: Type) -> str:
    """A type as people write it: arrows associate to the right."""
    if isinstance(bound, str):
        return bound
    left = shown(bound[0])
    return f"{left if isinstance(bound[0], str) else f'({left})'} -> {shown(bound[1])}"


class _Checker:
    """A cursor over the lexemes of a text; subclasses add one language."""

    pattern: re.Pattern[str]
    words: frozenset[str] = frozenset()

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            found = self.pattern.match(text, at)
            if found is None:
                raise Rejected(f"no lexeme at {at}")
            if not found.group().isspace():
                self.tokens.append(found.group())
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, token: str = "") -> str:
        found = self.peek()
        if not found or (token and found != token):
            raise Rejected(f"{found!r} instead of {token!r}")
        self.at += 1
        return found

    def name(self) -> str:
        if not self.is_name(self.peek()):
            raise Rejected(f"{self.peek()!r} is no name")
        return self.take()

    def is_name(self, token: str) -> bool:
        return bool(re.match(r"[A-Za-z_]", token)) and token not in self.words

    def whole(self, scope: Scope) -> Type:
        """The type of the whole text."""
        found = self.expression(scope)
        if self.peek():
            raise Rejected(f"{self.peek()!r} after the end")
        return found

    def expression(self, scope: Scope) -> Type:
        raise NotImplementedError

    def type(self, arrows: tuple[str, ...], atom: Callable[[], Type]) -> Type:
        if self.peek() == "(":
            self.take()
            left = self.type(arrows, atom)
            self.take(")")
        else:
            left = atom()
        if self.peek() in arrows:
            self.take()
            return left, self.type(arrows, atom)
        return left


def applied(function: Type, argument: Type) -> Type:
    """The type of an application."""
    if isinstance(function, str) or function[0] != argument:
        raise Rejected(f"{shown(function)} is not applied to {shown(argument)}")
    return function[1]


class Fun(_Checker):
    """The finite lambda language of `languages/fun.auf`."""

    pattern = re.compile(
        r"[ \t\r\n]+|[a-z][A-Za-z0-9_]*|Int|Float|Bool|[0-9]+\.[0-9]+|[0-9]+|=>|->|[-+*/]\.|[-+*/():=;]"
    )
    words = frozenset(("let", "true", "false", "Int", "Float", "Bool"))
    _levels: tuple[dict[str, Type], ...] = (
        {"+": "Int", "-": "Int", "+.": "Float", "-.": "Float"},
        {"*": "Int", "/": "Int", "*.": "Float", "/.": "Float"},
    )

    def annotation(self) -> Type:
        return self.type(("->",), self._atom_type)

    def _atom_type(self) -> Type:
        if self.peek() not in ("Int", "Float", "Bool"):
            raise Rejected("no type")
        return self.take()

    def expression(self, scope: Scope) -> Type:
        if self.peek() == "let":
            self.take()
            name = self.name()
            self.take(":")
            bound = self.annotation()
            self.take("=")
            if self.expression(scope) != bound:
                raise Rejected(f"{name} is annotated otherwise")
            self.take(";")
            return self.expression({**scope, name: bound})
        if self.peek() == "(" and self.is_name(self.peek(1)) and self.peek(2) == ":":
            self.take()
            name = self.name()
            self.take(":")
            bound = self.annotation()
            self.take(")")
            self.take("=>")
            return bound, self.expression({**scope, name: bound})
        return self._operators(scope, 0)

    def _operators(self, scope: Scope, level: int) -> Type:
        if level == len(self._levels):
            return self._application(scope)
        left = self._operators(scope, level + 1)
        while self.peek() in self._levels[level]:
            wanted = self._levels[level][self.take()]
            if left != wanted or self._operators(scope, level + 1) != wanted:
                raise Rejected("operands do not fit")
        return left

    def _application(self, scope: Scope) -> Type:
        found = self._atom(scope)
        while self.peek() == "(":
            self.take()
            found = applied(found, self.expression(scope))
            self.take(")")
        return found

    def _atom(self, scope: Scope) -> Type:
        token = self.take()
        if token == "(":
            found = self.expression(scope)
            self.take(")")
            return found
        if token in ("true", "false"):
            return "Bool"
        if token[0].isdigit():
            return "Float" if "." in token else "Int"
        if self.is_name(token) and token in scope:
            return scope[token]
        raise Rejected(f"{token!r} is no atom here")


class Stlc(_Checker):
    """The simply typed lambda calculus of `languages/stlc.auf`."""

    pattern = re.compile(r"[ \t\r\n]+|[A-Za-z_][A-Za-z0-9_]*|λ|\\|->|→|[():.]")

    def expression(self, scope: Scope) -> Type:
        if self.peek() in ("λ", "\\"):
            return self._lambda(scope)
        found = self._atom(scope)
        while self.peek() == "(" or self.is_name(self.peek()):
            found = applied(found, self._atom(scope))
        if self.peek() in ("λ", "\\"):
            found = applied(found, self._lambda(scope))
        return found

    def _lambda(self, scope: Scope) -> Type:
        self.take()
        name = self.name()
        self.take(":")
        bound = self.type(("->", "→"), self.name)
        self.take(".")
        return bound, self.expression({**scope, name: bound})

    def _atom(self, scope: Scope) -> Type:
        if self.peek() == "(":
            self.take()
            found = self.expression(scope)
            self.take(")")
            return found
        name = self.name()
        if name not in scope:
            raise Rejected(f"{name} is not in scope")
        return scope[name]


class Unknown:
    """A type that inference has not found yet; `found` is set once."""

    def __init__(self) -> None:
        self.found: Inferred | None = None


Inferred = str | tuple["Inferred", "Inferred"] | Unknown


def resolved(bound: Inferred) -> Inferred:
    """A type without found unknowns at its head."""
    while isinstance(bound, Unknown) and bound.found is not None:
        bound = bound.found
    return bound


def unify(left: Inferred, right: Inferred) -> None:
    """Make two types equal."""
    left, right = resolved(left), resolved(right)
    if left is right or (isinstance(left, str) and left == right):
        return
    if isinstance(left, Unknown):
        if _inside(left, right):
            raise Rejected("the type would contain itself")
        left.found = right
    elif isinstance(right, Unknown):
        unify(right, left)
    elif isinstance(left, str) or isinstance(right, str):
        raise Rejected(f"{left} is not {right}")
    else:
        unify(left[0], right[0])
        unify(left[1], right[1])


def _inside(unknown: Unknown, bound: Inferred) -> bool:
    bound = resolved(bound)
    if isinstance(bound, tuple):
        return _inside(unknown, bound[0]) or _inside(unknown, bound[1])
    return bound is unknown


def lettered(bound: Inferred, names: dict[Unknown, str]) -> Type:
    """The type with ?A, ?B, … for what stays unknown, in order of appearance."""
    bound = resolved(bound)
    if isinstance(bound, tuple):
        left = lettered(bound[0], names)
        return left, lettered(bound[1], names)
    return names.setdefault(bound, f"?{chr(65 + len(names))}") if isinstance(bound, Unknown) else bound


class Inference(_Checker):
    """Lambdas without annotations and a monomorphic let: the grammar of `cases/inference.txt`."""

    pattern = re.compile(r"[ \t\r\n]+|[a-z]+|[0-9]+|=>|[()=+]")
    words = frozenset(("fn", "let", "in", "true"))

    def infer(self, scope: Mapping[str, Inferred]) -> Inferred:
        """The type of an expression."""
        if self.peek() == "fn":
            self.take()
            name, bound = self.name(), Unknown()
            self.take("=>")
            return bound, self.infer({**scope, name: bound})
        if self.peek() == "let":
            self.take()
            name = self.name()
            self.take("=")
            value = self.infer(scope)
            self.take("in")
            return self.infer({**scope, name: value})
        found = self._applied(scope)
        while self.peek() == "+":
            self.take()
            unify(found, "int")
            unify(self._applied(scope), "int")
            found = "int"
        return found

    def _applied(self, scope: Mapping[str, Inferred]) -> Inferred:
        found = self._single(scope)
        while self.peek() in ("(", "true") or self.peek().isdigit() or self.is_name(self.peek()):
            argument, result = self._single(scope), Unknown()
            unify(found, (argument, result))
            found = result
        return found

    def _single(self, scope: Mapping[str, Inferred]) -> Inferred:
        token = self.take()
        if token == "(":
            found = self.infer(scope)
            self.take(")")
            return found
        if token == "true" or token.isdigit():
            return "bool" if token == "true" else "int"
        if self.is_name(token) and token in scope:
            return scope[token]
        raise Rejected(f"{token!r} is no atom here")

    def expression(self, scope: Scope) -> Type:
        return lettered(self.infer(scope), {})


def inference_program(random: Random, names: tuple[str, ...], depth: int) -> str:
    """A random term, well typed by luck."""
    leaf = random.choice((*names, *names, "1", "true"))
    if depth == 0:
        return leaf
    kind = random.randrange(6)
    inner = [inference_program(random, names, depth - 1) for _ in range(2)]
    if kind == 0:
        return leaf
    if kind <= 2:
        name = random.choice("fgxy")
        return f"fn {name} => {inference_program(random, (*names, name), depth - 1)}"
    if kind == 3:
        return f"({inner[0]}) + ({inner[1]})" if random.random() < 0.5 else f"{leaf} + ({inner[1]})"
    if kind == 4:
        return f"{leaf} ({inner[0]})" if random.random() < 0.5 else f"({inner[0]}) ({inner[1]})"
    name = random.choice("fgx")
    return f"let {name} = {inner[0]} in {inference_program(random, (*names, name), depth - 1)}"


def judge(language: type[_Checker], text: str, scope: Scope) -> str | None:
    """The type of a program as text, or None when it is rejected."""
    try:
        return shown(language(text).whole(scope))
    except Rejected:
        return None


# Programs


def some_type(random: Random, atoms: tuple[str, ...], depth: int) -> Type:
    """A random type."""
    if depth == 0 or random.random() < 0.6:
        return random.choice(atoms)
    return some_type(random, atoms, depth - 1), some_type(random, atoms, depth - 1)


def fun_program(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    """A random well-typed program of `fun` in the position of an expression."""
    names = [name for name, bound in scope.items() if bound == wanted]
    makers: list[Callable[[], str]] = []
    if names:
        makers += [lambda: random.choice(names)] * 2
    if isinstance(wanted, str):
        literal = {"Int": "7", "Float": "2.5", "Bool": "true"}[wanted]
        makers.append(lambda: literal)
    else:
        makers.append(lambda: _fun_lambda(random, wanted, scope, depth - 1))
    if depth > 0:
        makers += [lambda: _fun_let(random, wanted, scope, depth - 1)]
        makers += [lambda: _fun_call(random, wanted, scope, depth - 1)]
        makers += [lambda: f"({fun_program(random, wanted, scope, depth - 1)})"]
        if wanted in ("Int", "Float"):
            makers += [lambda: _fun_sum(random, wanted, scope, depth - 1)] * 2
    return random.choice(makers)()


def _fresh(random: Random) -> str:
    return random.choice(("a", "b", "f", "fo", "foo", "x", "lets", "tru"))


def _fun_lambda(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    assert not isinstance(wanted, str)
    name = _fresh(random)
    body = fun_program(random, wanted[1], {**scope, name: wanted[0]}, max(depth, 0))
    return f"({name} : {shown(wanted[0])}) => {body}"


def _fun_let(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    name, bound = _fresh(random), some_type(random, ("Int", "Float", "Bool"), 1)
    value = fun_program(random, bound, scope, depth)
    return f"let {name} : {shown(bound)} = {value}; {fun_program(random, wanted, {**scope, name: bound}, depth)}"


def _fun_call(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    known = [(name, bound) for name, bound in scope.items() if not isinstance(bound, str) and bound[1] == wanted]
    if known and random.random() < 0.7:
        name, bound = random.choice(known)
        assert not isinstance(bound, str)
        return f"{name}({fun_program(random, bound[0], scope, depth)})"
    argument = some_type(random, ("Int", "Float", "Bool"), 1)
    function = fun_program(random, (argument, wanted), scope, depth)
    return f"({function})({fun_program(random, argument, scope, depth)})"


def _fun_sum(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    operator = random.choice("+-*/") + ("." if wanted == "Float" else "")
    left, right = (fun_program(random, wanted, scope, depth) for _ in range(2))
    return f"({left}) {operator} ({right})" if random.random() < 0.7 else f"{literal(wanted)}{operator}({right})"


def literal(wanted: Type) -> str:
    """A literal of a base type of `fun`."""
    return {"Int": "10", "Float": "0.5"}.get(str(wanted), "false")


def stlc_program(random: Random, wanted: Type, scope: Scope, depth: int) -> str:
    """A random program of `stlc`, well typed where the scope allows it."""
    names = [name for name, bound in scope.items() if bound == wanted]
    if depth > 0 and not isinstance(wanted, str) and (not names or random.random() < 0.7):
        name = _fresh(random)
        body = stlc_program(random, wanted[1], {**scope, name: wanted[0]}, depth - 1)
        return f"{random.choice(('λ', chr(92)))}{name}:{shown(wanted[0])}.{body}"
    calls = [(name, bound) for name, bound in scope.items() if not isinstance(bound, str) and bound[1] == wanted]
    if calls and depth > 0 and (not names or random.random() < 0.5):
        name, bound = random.choice(calls)
        assert not isinstance(bound, str)
        argument = stlc_program(random, bound[0], scope, depth - 1)
        return f"{name} ({argument})" if random.random() < 0.7 else f"{name} {argument}"
    if names:
        found = random.choice(names)
        return f"({found})" if random.random() < 0.2 else found
    return random.choice(sorted(scope) or ["x"])


def mutated(random: Random, language: type[_Checker], text: str) -> str:
    """The text with a few lexemes deleted, doubled, exchanged or replaced by others of it."""
    tokens = language(text).tokens
    for _ in range(random.randint(1, 3)):
        if not tokens:
            break
        at = random.randrange(len(tokens))
        action = random.randrange(4)
        if action == 0:
            del tokens[at]
        elif action == 1:
            tokens.insert(at, random.choice(tokens))
        elif action == 2:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = random.choice(tokens)
    return random.choice((" ", " ", "")).join(tokens)
