"""A slow second opinion on normal forms: β and η step by step on de Bruijn terms, with substitution spelled out."""

from __future__ import annotations

from agentkit.synthesis.terms import Apply, Bound, Free, Lambda, Term


def shifted(term: Term, by: int, above: int = 0) -> Term:
    """The term with its free indices raised."""
    match term:
        case Bound(index):
            return Bound(index + by) if index >= above else term
        case Lambda(annotation, body):
            return Lambda(annotation, shifted(body, by, above + 1))
        case Apply(function, argument):
            return Apply(shifted(function, by, above), shifted(argument, by, above))
        case _:
            return term


def substituted(term: Term, value: Term, at: int = 0) -> Term:
    """The body of a β-redex with the argument put in."""
    match term:
        case Bound(index):
            return shifted(value, at) if index == at else Bound(index - 1) if index > at else term
        case Lambda(annotation, body):
            return Lambda(annotation, substituted(body, value, at + 1))
        case Apply(function, argument):
            return Apply(substituted(function, value, at), substituted(argument, value, at))
        case _:
            return term


def occurs(term: Term, index: int) -> bool:
    """Whether a bound variable occurs."""
    match term:
        case Bound(found):
            return found == index
        case Lambda(_, body):
            return occurs(body, index + 1)
        case Apply(function, argument):
            return occurs(function, index) or occurs(argument, index)
        case _:
            return False


def reduced(term: Term) -> Term:
    """The βη-normal form, in which no λ is only an argument handed on."""
    match term:
        case Lambda(annotation, body):
            inner = reduced(body)
            if isinstance(inner, Apply) and inner.argument == Bound(0) and not occurs(inner.function, 0):
                return reduced(shifted(inner.function, -1))
            return Lambda(annotation, inner)
        case Apply(function, argument):
            head = reduced(function)
            if isinstance(head, Lambda):
                return reduced(substituted(head.body, argument))
            return Apply(head, reduced(argument))
        case Bound() | Free():
            return term
        case _:
            raise AssertionError(f"no term of STLC: {term}")
