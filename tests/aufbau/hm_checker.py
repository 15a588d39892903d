"""Hindley-Milner inference for the language of `cases/schemes.txt`, by hand and without any engine code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random


class Rejected(Exception):
    """The text is not a well-typed program."""


class Unknown:
    """A type that inference has not found yet; `found` is set once."""

    def __init__(self) -> None:
        self.found: Type | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A type made of others: an arrow, a pair, or an atom without parts."""

    name: str
    parts: tuple[Type, ...] = ()


Type = Made | Unknown


@dataclass(frozen=True, slots=True)
class Scheme:
    """A type with the unknowns that each use renews."""

    body: Type
    bound: tuple[Unknown, ...] = field(default=())


Scope = Mapping[str, Scheme]
INT, BOOL = Made("int"), Made("bool")
_WORDS = frozenset(("fn", "let", "rec", "mono", "in", "true"))
_LEXEME = re.compile(r"\s+|[a-z]+|[0-9]+|=>|[()<>,=+]")


def resolved(found: Type) -> Type:
    """The type without found unknowns at its head."""
    while isinstance(found, Unknown) and found.found is not None:
        found = found.found
    return found


def unknowns(found: Type) -> Iterator[Unknown]:
    """What a type leaves open, from left to right."""
    found = resolved(found)
    if isinstance(found, Unknown):
        yield found
    else:
        for part in found.parts:
            yield from unknowns(part)


def unify(left: Type, right: Type) -> None:
    """Make two types equal. Raises `Rejected`."""
    left, right = resolved(left), resolved(right)
    if left is right:
        return
    if isinstance(left, Unknown):
        if left in unknowns(right):
            raise Rejected("the type would contain itself")
        left.found = right
    elif isinstance(right, Unknown):
        unify(right, left)
    elif left.name != right.name:
        raise Rejected(f"{left.name} is not {right.name}")
    else:
        for one, other in zip(left.parts, right.parts, strict=True):
            unify(one, other)


def generalised(found: Type, scope: Scope) -> Scheme:
    """The type, for all values of what it leaves open and the scope does not."""
    free = {unknown for known in scope.values() for unknown in unknowns(known.body)}
    free -= {unknown for known in scope.values() for unknown in known.bound}
    return Scheme(found, tuple(dict.fromkeys(unknown for unknown in unknowns(found) if unknown not in free)))


def instance(scheme: Scheme) -> Type:
    """The body with unknowns of its own for those that are bound."""
    fresh: dict[Unknown, Type] = {unknown: Unknown() for unknown in scheme.bound}

    def copied(found: Type) -> Type:
        found = resolved(found)
        if isinstance(found, Unknown):
            return fresh.get(found, found)
        return Made(found.name, tuple(copied(part) for part in found.parts))

    return copied(scheme.body)


def shown(found: Type, letters: dict[Unknown, str] | None = None, nested: bool = False) -> str:
    """The type as the grammar spells it, with ?A, ?B, … in order of appearance."""
    letters = {} if letters is None else letters
    found = resolved(found)
    if isinstance(found, Unknown):
        return letters.setdefault(found, f"?{chr(65 + len(letters))}")
    if found.name == "<>":
        left, right = (shown(part, letters) for part in found.parts)
        return f"< {left}, {right} >"
    if found.name == "->":
        left, right = shown(found.parts[0], letters, nested=True), shown(found.parts[1], letters)
        return f"({left} -> {right})" if nested else f"{left} -> {right}"
    return found.name


class Inference:
    """One text, read by recursive descent."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            found = _LEXEME.match(text, at)
            if found is None:
                raise Rejected(f"no lexeme at {at}")
            if not found.group().isspace():
                self.tokens.append(found.group())
            at = found.end()
        self.tokens.reverse()

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, token: str = "") -> str:
        if not self.tokens or (token and self.peek() != token):
            raise Rejected(f"{self.peek()!r} instead of {token!r}")
        return self.tokens.pop()

    def name(self) -> str:
        if not self.peek().isalpha() or self.peek() in _WORDS:
            raise Rejected(f"{self.peek()!r} is no name")
        return self.take()

    def expression(self, scope: Scope) -> Type:
        word = self.peek()
        if word == "fn":
            self.take()
            name, bound = self.name(), Unknown()
            self.take("=>")
            return Made("->", (bound, self.expression({**scope, name: Scheme(bound)})))
        if word not in ("let", "rec", "mono"):
            return self._sum(scope)
        self.take()
        name, own = self.name(), Unknown()
        self.take("=")
        value = self.expression({**scope, name: Scheme(own)} if word == "rec" else scope)
        unify(own, value)
        self.take("in")
        return self.expression({**scope, name: Scheme(value) if word == "mono" else generalised(value, scope)})

    def _sum(self, scope: Scope) -> Type:
        found = self._applied(scope)
        while self.peek() == "+":
            self.take()
            unify(found, INT)
            unify(self._applied(scope), INT)
            found = INT
        return found

    def _applied(self, scope: Scope) -> Type:
        found = self._atom(scope)
        while self.peek() in ("(", "<", "true") or (self.peek().isalnum() and self.peek() not in _WORDS):
            argument, result = self._atom(scope), Unknown()
            unify(found, Made("->", (argument, result)))
            found = result
        return found

    def _atom(self, scope: Scope) -> Type:
        token = self.take()
        if token == "(":
            found = self.expression(scope)
            self.take(")")
            return found
        if token == "<":
            left = self.expression(scope)
            self.take(",")
            right = self.expression(scope)
            self.take(">")
            return Made("<>", (left, right))
        if token == "true" or token.isdigit():
            return BOOL if token == "true" else INT
        if token in scope and token not in _WORDS:
            return instance(scope[token])
        raise Rejected(f"{token!r} is no atom here")


def judge(text: str, scope: Scope) -> str | None:
    """The type of a program as text, or None when it is rejected."""
    try:
        reader = Inference(text)
        found = reader.expression(scope)
        if reader.tokens:
            raise Rejected(f"{reader.peek()!r} after the end")
        return shown(found)
    except Rejected:
        return None


def scheme(*parts: Type) -> Scheme:
    """`a -> b -> …` for all values of its unknowns."""
    found = parts[-1]
    for part in reversed(parts[:-1]):
        found = Made("->", (part, found))
    return generalised(found, {})


def program(random: Random, names: tuple[str, ...], depth: int) -> str:
    """A random term, well typed by luck; most bind and use, since that is what schemes are about."""
    leaf = random.choice((*names, *names, "1", "true"))
    if depth == 0:
        return leaf
    kind = random.randrange(10)
    name = random.choice("fgxy")
    if kind < 4:
        value = program(random, names, depth - 1)
        if random.random() < 0.6:
            value = f"fn {name} => {program(random, (*names, name), depth - 1)}"
        word = random.choice(("let", "let", "let", "rec", "mono"))
        return f"{word} {name} = {value} in {program(random, (*names, name), depth - 1)}"
    if kind < 6:
        return f"fn {name} => {program(random, (*names, name), depth - 1)}"
    left, right = (program(random, names, depth - 1) for _ in range(2))
    if kind == 6:
        return f"< {left} , {right} >"
    if kind == 7:
        return f"< {leaf} 1 , {leaf} true >"
    if kind == 8:
        return f"{leaf} ({right})" if random.random() < 0.7 else f"({left}) ({right})"
    return f"({left}) + {leaf}" if random.random() < 0.5 else leaf
