"""Terms as nested tuples, unification with the occurs check, and type schemes (paper, section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

# A hole is a number, or in what a rule writes a name; everything else is a head with arguments.
Term: TypeAlias = "int | str | tuple[str, tuple[Term, ...]]"
# What the holes solved so far stand for. Never changed, only extended by copies.
Solution: TypeAlias = Mapping[int, Term]

TOP: Term = ("⊤", ())


def leaf(text: str) -> Term:
    """The term that a lexeme spells."""
    return (text, ())


@dataclass(frozen=True, slots=True)
class Scheme:
    """A type whose quantified holes have an instance of their own at each use."""

    quantified: frozenset[int]
    body: Term


Bound: TypeAlias = "Term | Scheme"


def walk(term: Term, solution: Solution) -> Term:
    """The term, or what a solved hole stands for."""
    while isinstance(term, int) and term in solution:
        term = solution[term]
    return term


def resolve(term: Term, solution: Solution) -> Term:
    """The term with every solved hole replaced."""
    term = walk(term, solution)
    if isinstance(term, tuple):
        return term[0], tuple(resolve(part, solution) for part in term[1])
    return term


def unify(pairs: Iterable[tuple[Term, Term]], solution: Solution) -> Solution | None:
    """The most general extension under which the sides of each pair are equal; None for a clash."""
    extended = dict(solution)
    pending = list(pairs)
    while pending:
        left, right = pending.pop()
        left, right = walk(left, extended), walk(right, extended)
        if left == right:
            continue
        if isinstance(left, tuple) and isinstance(right, tuple):
            if left[0] != right[0] or len(left[1]) != len(right[1]):
                return None
            pending += zip(left[1], right[1], strict=True)
            continue
        hole, other = (left, right) if isinstance(left, int) else (right, left)
        if not isinstance(hole, int):
            raise TypeError(f"the hole {hole!r} of a rule has no number")
        if hole in holes(other, extended):
            return None
        extended[hole] = other
    return extended


def holes(term: Term, solution: Solution) -> list[int]:
    """The unsolved holes of a term, in order of appearance."""
    term = walk(term, solution)
    if isinstance(term, int):
        return [term]
    found: list[int] = []
    for part in term[1] if isinstance(term, tuple) else ():
        found += [hole for hole in holes(part, solution) if hole not in found]
    return found


def replace(term: Term, image: Callable[[int | str], Term]) -> Term:
    """The term with an image in place of each hole."""
    if isinstance(term, tuple):
        return term[0], tuple(replace(part, image) for part in term[1])
    return image(term)


def generalise(term: Term, fixed: Iterable[int], solution: Solution) -> Bound:
    """The scheme over the unsolved holes that are not `fixed`."""
    quantified = frozenset(holes(term, solution)) - frozenset(fixed)
    return Scheme(quantified, resolve(term, solution)) if quantified else term


def instance(bound: Bound, solution: Solution, fresh: Callable[[], int]) -> Term:
    """What one use of a name has as its type."""
    if not isinstance(bound, Scheme):
        return bound
    own: dict[int | str, Term] = {hole: fresh() for hole in bound.quantified}
    return replace(resolve(bound.body, solution), lambda hole: own.get(hole, hole))


def free(bound: Bound, solution: Solution) -> list[int]:
    """The unsolved holes that a name's type leaves open."""
    if isinstance(bound, Scheme):
        return [hole for hole in holes(bound.body, solution) if hole not in bound.quantified]
    return holes(bound, solution)


def canonical(types: Iterable[Bound], solution: Solution) -> tuple[Term, ...]:
    """The solved types with their holes numbered by first appearance, so that equal ones are equal."""
    numbers: dict[int | str, int] = {}
    found: list[Term] = []
    for bound in types:
        quantified: dict[int | str, Term] = {}

        def image(hole: int | str, bound: Bound = bound, quantified: dict[int | str, Term] = quantified) -> Term:
            if isinstance(bound, Scheme) and hole in bound.quantified:
                return quantified.setdefault(hole, (f"∀{len(quantified)}", ()))
            return numbers.setdefault(hole, len(numbers))

        found.append(replace(resolve(bound.body if isinstance(bound, Scheme) else bound, solution), image))
    return tuple(found)
