"""First-order unification with the occurs check (Robinson 1965), on hash-consed terms."""

from __future__ import annotations

from typing import final

from aufbau.typesystem.terms import Term, Terms


@final
class Substitution:
    """Bindings of variables found while unifying; variables are numbers, unbound ones are absent."""

    __slots__ = ("_terms", "bindings")

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.bindings: dict[int, Term] = {}

    def walk(self, term: Term) -> Term:
        """Follow bound variables to a variable that is free or to a head."""
        while term.index >= 0:
            bound = self.bindings.get(term.index)
            if bound is None:
                return term
            term = bound
        return term

    def unify(self, left: Term, right: Term) -> bool:
        """Extend the bindings so that both terms are equal; False (bindings then useless) when they can't be."""
        stack = [(left, right)]
        while stack:
            a, b = stack.pop()
            a, b = self.walk(a), self.walk(b)
            if a is b:
                continue
            if a.index >= 0:
                if not b.ground and self.occurs(a.index, b):
                    return False
                self.bindings[a.index] = b
            elif b.index >= 0:
                if not a.ground and self.occurs(b.index, a):
                    return False
                self.bindings[b.index] = a
            elif a.head != b.head or len(a.args) != len(b.args) or (a.ground and b.ground):
                return False
            else:
                stack.extend(zip(a.args, b.args, strict=True))
        return True

    def occurs(self, index: int, term: Term) -> bool:
        """Whether a variable is part of a term under the bindings."""
        stack = [term]
        while stack:
            current = self.walk(stack.pop())
            if current.index == index and current.index >= 0:
                return True
            if not current.ground:
                stack.extend(current.args)
        return False

    def resolve(self, term: Term) -> Term:
        """The term with every bound variable replaced."""
        return self._terms.substitute(term, self.bindings.get)


def matches(terms: Terms, left: Term, right: Term) -> bool:
    """Whether two terms have a common instance; their variables are taken as shared."""
    if left is right:
        return True
    if left.ground and right.ground:
        return False
    return Substitution(terms).unify(left, right)
