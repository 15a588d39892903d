"""Terms over the grammar's own constructors, hash-consed so that equality is identity (paper, section 2.2).

A term is a variable (a hole), or a head with arguments. A leaf's head is its text, whether it was written by the
grammar or by the program. The kernel knows no arrow and no list: heads come from the type fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

TOP_HEAD: Final = "⊤"
# A scheme is a ground term with this head around a type whose quantified variables are the leaves ∀0, ∀1, …
SCHEME_HEAD: Final = "∀"
# Variables of an answer are moved by this much before they meet those of an item, which are numbered from 0.
APART: Final = 1 << 20


@final
class Term:
    """A hash-consed term; build it with `Terms`, compare it with `is`."""

    __slots__ = ("args", "depth", "ground", "head", "index")

    def __init__(self, head: str, args: tuple[Term, ...], index: int) -> None:
        self.head: Final = head
        self.args: Final = args
        self.index: Final = index  # the number of a variable, -1 for everything else
        self.ground: Final[bool] = index < 0 and all(arg.ground for arg in args)
        self.depth: Final[int] = 1 + max((arg.depth for arg in args), default=0)

    def __repr__(self) -> str:
        if self.index >= 0:
            return f"?{self.index}"
        return f"{self.head}({', '.join(map(repr, self.args))})" if self.args else self.head


@final
class Terms:
    """The table in which terms are shared. A fork sees the terms made before it and keeps its own to itself."""

    __slots__ = ("_canonical", "_cons", "_opened", "_vars", "top")

    def __init__(self, base: Terms | None = None) -> None:
        if base is None:
            self._cons: dict[tuple[str, tuple[Term, ...]], Term] = {}
            self._vars: dict[int, Term] = {}
        else:
            self._cons = dict(base._cons)
            self._vars = dict(base._vars)
        self._opened: dict[Term, Term] = {}
        self._canonical: dict[Term, tuple[Term, int]] = {}
        self.top: Final = self.con(TOP_HEAD)

    def fork(self) -> Terms:
        """A table that starts with these terms."""
        return Terms(self)

    def __len__(self) -> int:
        """How many terms there are."""
        return len(self._cons)

    def con(self, head: str, args: tuple[Term, ...] = ()) -> Term:
        """The term with this head and these arguments."""
        key = (head, args)
        found = self._cons.get(key)
        if found is None:
            # setdefault is atomic, so two threads get one term.
            found = self._cons.setdefault(key, Term(head, args, -1))
        return found

    def all(self) -> list[Term]:
        """All terms, each after its arguments."""
        return [*self._vars.values(), *self._cons.values()]

    def leaves(self) -> list[str]:
        """The texts of all terms without arguments."""
        return [head for head, args in self._cons if not args]

    def var(self, index: int) -> Term:
        """The variable with this number."""
        found = self._vars.get(index)
        if found is None:
            found = self._vars.setdefault(index, Term("?", (), index))
        return found

    def substitute(self, term: Term, image: Callable[[int], Term | None]) -> Term:
        """Replace variables by their image, again in what replaces them; None leaves a variable alone.

        Iterative, like all that walks terms: programs may nest deeper than the interpreter's stack.
        """
        if term.ground:
            return term
        done: dict[Term, Term] = {}
        stack = [term]
        while stack:
            current = stack[-1]
            if current in done:
                stack.pop()
            elif current.ground:
                done[stack.pop()] = current
            elif current.index >= 0:
                new = image(current.index)
                if new is None or new is current:
                    done[stack.pop()] = current
                elif new in done:
                    done[stack.pop()] = done[new]
                else:
                    stack.append(new)
            else:
                pending = [arg for arg in current.args if arg not in done]
                if pending:
                    pending.reverse()  # so that variables are met from left to right
                    stack += pending
                else:
                    done[stack.pop()] = self.con(current.head, tuple([done[arg] for arg in current.args]))
        return done[term]

    def _mapped(self, term: Term, image: Callable[[int], Term]) -> Term:
        """Replace variables by their image, once."""
        if term.index >= 0:
            return image(term.index)
        done: dict[Term, Term] = {}
        stack = [term]
        while stack:
            current = stack[-1]
            if current in done:
                stack.pop()
            elif current.ground:
                done[stack.pop()] = current
            elif current.index >= 0:
                done[stack.pop()] = image(current.index)
            else:
                pending = [arg for arg in current.args if arg not in done]
                if pending:
                    pending.reverse()
                    stack += pending
                else:
                    done[stack.pop()] = self.con(current.head, tuple([done[arg] for arg in current.args]))
        return done[term]

    def instance(self, term: Term, values: tuple[Term, ...]) -> Term:
        """Replace variable number i by `values[i]`."""
        return term if term.ground else self._mapped(term, values.__getitem__)

    def rename(self, term: Term, names: dict[int, int]) -> Term:
        """Number variables by first appearance, continuing `names`."""
        if term.ground:
            return term
        return self._mapped(term, lambda index: self.var(names.setdefault(index, len(names))))

    def canonical(self, term: Term) -> tuple[Term, int]:
        """The term with its variables numbered by first appearance, and how many there are; remembered."""
        if term.ground:
            return term, 0
        found = self._canonical.get(term)
        if found is None:
            names: dict[int, int] = {}
            renamed = self.rename(term, names)
            found = self._canonical[term] = (renamed, len(names))
        return found

    def generalise(self, term: Term, fixed: frozenset[int] = frozenset()) -> Term:
        """The scheme that quantifies a type's variables but the `fixed` ones; the type itself if there are none."""
        names: dict[int, int] = {}

        def quantified(index: int) -> Term:
            if index in fixed:
                return self.var(index)
            return self.con(f"{SCHEME_HEAD}{names.setdefault(index, len(names))}")

        body = term if term.ground else self._mapped(term, quantified)
        return self.con(SCHEME_HEAD, (body,)) if names else term

    def open(self, scheme: Term) -> Term:
        """A fresh instance of a scheme. Its quantified variables are numbered from 0, or from `APART` where variables
        that are not quantified remain."""
        found = self._opened.get(scheme)
        if found is None:
            first = 0 if scheme.ground else APART
            done: dict[Term, Term] = {}
            stack = [scheme.args[0]]
            while stack:
                current = stack[-1]
                if current in done:
                    stack.pop()
                elif current.index >= 0:
                    done[stack.pop()] = current
                elif current.head.startswith(SCHEME_HEAD) and not current.args:
                    done[stack.pop()] = self.var(first + int(current.head[len(SCHEME_HEAD) :]))
                else:
                    pending = [arg for arg in current.args if arg not in done]
                    stack += pending
                    if not pending:
                        done[stack.pop()] = self.con(current.head, tuple([done[arg] for arg in current.args]))
            found = self._opened[scheme] = done[scheme.args[0]]
        return found

    def shift(self, term: Term, by: int) -> Term:
        """Move the numbers of all variables."""
        if term.ground or by == 0:
            return term
        return self._mapped(term, lambda index: self.var(index + by))

    def cut(self, term: Term, depth: int, fresh: list[int]) -> Term:
        """Replace what lies deeper than `depth` by fresh variables; `fresh` holds the next number."""
        if term.depth <= depth:
            return term
        if depth <= 0:
            fresh[0] += 1
            return self.var(fresh[0] - 1)
        return self.con(term.head, tuple([self.cut(arg, depth - 1, fresh) for arg in term.args]))


def variables(terms: Iterable[Term]) -> list[int]:
    """Numbers of the variables, in order of first appearance."""
    found: dict[int, None] = {}
    stack = [term for term in terms if not term.ground]
    stack.reverse()
    while stack:
        term = stack.pop()
        if term.index >= 0:
            found.setdefault(term.index)
        elif not term.ground:
            stack.extend(reversed(term.args))
    return list(found)
