"""Normal forms of typed terms, by evaluation: β-normal, η-long, with arithmetic done; no code of the engine.

A normal form is a text in which bound variables are de Bruijn indices (`#0` the innermost), so two terms of one type
are equal up to α, β and η exactly when their normal forms are the same text. `let` is unfolded. Arithmetic of
integers, which have no bounds here, is normalised as polynomials, so `x + x` and `2 * x` are equal too; a division is
done between literals (towards zero) and is else opaque. Floating arithmetic is done between literals, as in IEEE 754,
and obeys no other law. What divides by zero stays as it stands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agentkit.synthesis.errors import FuelSpent
from agentkit.synthesis.terms import (
    FLOAT,
    INT,
    Apply,
    Arrow,
    Bound,
    Free,
    Lambda,
    Let,
    Literal,
    Operation,
    Scope,
    Term,
    Type,
)

FUEL: Final = 200_000
"""Steps of evaluation and of writing down; a typed term always ends, but may take a tower of exponents to do so."""

_INTEGER_BITS: Final = 4096

_FLOATING: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+.": operator.add,
    "-.": operator.sub,
    "*.": operator.mul,
    "/.": operator.truediv,
}


def _divided(left: int, right: int) -> int:
    """Division towards zero."""
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


_WHOLE: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}

# Products of atoms, each a sorted row of them, with their coefficients; none of which is 0.
_Polynomial = dict[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A variable applied to arguments: a bound one by its level, counted from the outermost, or a name."""

    head: int | str
    arguments: tuple[tuple[_Value, Type], ...] = ()


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """An operation that waits for a variable."""

    operator: str
    left: _Value
    right: _Value


_Function = Callable[["_Value"], "_Value"]
_Value = bool | int | float | _Stuck | _Arithmetic | _Function


def normal_form(term: Term, bound: Type, scope: Scope, *, fuel: int = FUEL) -> str:
    """The normal form of a term of a type, with the types of its free names. Raises `FuelSpent`."""
    machine = _Machine(scope, fuel)
    try:
        return machine.written(machine.value(term, ()), bound, 0)
    except RecursionError as error:
        raise FuelSpent("the term or its normal form is nested too deeply") from error


class _Machine:
    """Evaluates and writes down, while there is fuel."""

    def __init__(self, scope: Scope, fuel: int) -> None:
        self._scope = scope
        self._fuel = fuel

    def _burn(self, amount: int = 1) -> None:
        self._fuel -= amount
        if self._fuel < 0:
            raise FuelSpent("the normal form was not reached within the budget")

    # Evaluation

    def value(self, term: Term, bound: tuple[_Value, ...]) -> _Value:
        """What a term means under the values of its bound variables, innermost first."""
        self._burn()
        match term:
            case Bound(index):
                return bound[index]
            case Free(name):
                return self._waiting(_Stuck(name), self._scope[name])
            case Literal(value):
                return value
            case Lambda(_, body):
                return lambda argument: self.value(body, (argument, *bound))
            case Apply(function, argument):
                return self._applied(self.value(function, bound), self.value(argument, bound))
            case Let(_, value, body):
                return self.value(body, (self.value(value, bound), *bound))
            case Operation(sign, left, right):
                return _computed(sign, self.value(left, bound), self.value(right, bound))

    def _applied(self, function: _Value, argument: _Value) -> _Value:
        assert callable(function), "only typed terms are evaluated"
        return function(argument)

    def _waiting(self, stuck: _Stuck, bound: Type) -> _Value:
        """A variable with its arguments, as a function where its type is one: that is η."""
        if isinstance(bound, str):
            return stuck
        left, right = bound.left, bound.right
        return lambda argument: self._waiting(_Stuck(stuck.head, (*stuck.arguments, (argument, left))), right)

    # Writing down

    def written(self, value: _Value, bound: Type, depth: int) -> str:
        """The normal form of a value of a type, under so many binders."""
        self._burn()
        if isinstance(bound, Arrow):
            result = self._applied(value, self._waiting(_Stuck(depth), bound.left))
            return f"λ.{self.written(result, bound.right, depth + 1)}"
        if bound == INT:
            return _written_polynomial(self._polynomial(value, depth))
        if isinstance(value, _Arithmetic):
            left, right = (self.written(operand, FLOAT, depth) for operand in (value.left, value.right))
            return f"({left} {value.operator} {right})"
        if isinstance(value, bool):
            return str(value).lower()
        return value.hex() if isinstance(value, float) else self._variable(value, depth)

    def _variable(self, value: _Value, depth: int) -> str:
        assert isinstance(value, _Stuck), "a value of a base type is a literal or waits for a variable"
        head = value.head if isinstance(value.head, str) else f"#{depth - value.head - 1}"
        if not value.arguments:
            return head
        return f"({' '.join([head, *(self.written(argument, bound, depth) for argument, bound in value.arguments)])})"

    # Polynomials

    def _polynomial(self, value: _Value, depth: int) -> _Polynomial:
        self._burn()
        if isinstance(value, int):
            return {(): value} if value else {}
        if not isinstance(value, _Arithmetic):
            return {(self._variable(value, depth),): 1}
        left, right = self._polynomial(value.left, depth), self._polynomial(value.right, depth)
        match value.operator:
            case "+":
                return self._sum(left, right, 1)
            case "-":
                return self._sum(left, right, -1)
            case "*":
                return self._product(left, right)
            case _:
                return self._quotient(left, right)

    def _sum(self, left: _Polynomial, right: _Polynomial, factor: int) -> _Polynomial:
        self._burn(len(right))
        found = dict(left)
        for atoms, coefficient in right.items():
            found[atoms] = _bounded(found.get(atoms, 0) + factor * coefficient)
        return {atoms: coefficient for atoms, coefficient in found.items() if coefficient}

    def _product(self, left: _Polynomial, right: _Polynomial) -> _Polynomial:
        found: _Polynomial = {}
        for one, first in left.items():
            for other, second in right.items():
                self._burn(1 + len(one) + len(other))
                atoms = tuple(sorted((*one, *other)))
                found[atoms] = _bounded(found.get(atoms, 0) + first * second)
        return {atoms: coefficient for atoms, coefficient in found.items() if coefficient}

    def _quotient(self, left: _Polynomial, right: _Polynomial) -> _Polynomial:
        """A number where both are numbers and it exists, else one atom."""
        if set(left) <= {()} and set(right) == {()}:
            found = _divided(left.get((), 0), right[()])
            return {(): found} if found else {}
        return {(f"({_written_polynomial(left)} / {_written_polynomial(right)})",): 1}


def _computed(sign: str, left: _Value, right: _Value) -> _Value:
    """An operation, done where both sides are known and it has a result."""
    if isinstance(left, float) and isinstance(right, float) and (sign != "/." or right):
        return _FLOATING[sign](left, right)
    if isinstance(left, int) and isinstance(right, int) and (sign != "/" or right):
        return _bounded(_WHOLE[sign](left, right))
    return _Arithmetic(sign, left, right)


def _bounded(number: int) -> int:
    if number.bit_length() > _INTEGER_BITS:
        raise FuelSpent(f"a number grew beyond {_INTEGER_BITS} bits")
    return number


def _written_polynomial(polynomial: _Polynomial) -> str:
    """A sum of products in a fixed order; a single variable or number as it is alone."""
    products = ["*".join([str(c), *atoms] if c != 1 or not atoms else atoms) for atoms, c in sorted(polynomial.items())]
    return f"({' + '.join(products)})" if len(products) > 1 else products[0] if products else "0"
