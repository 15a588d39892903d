"""Proofs that a prefix has no continuation, by finite models: types are read as truth values.

Give every type a value out of two, constructors being functions on them, and run the rules on values: what a
nonterminal can yield under a set of values in Γ is a least fixed point over finitely many facts. Each real derivation
has its image there, so a type whose value can't be had has no term. Reading arrows as implications, say, refutes
`A` under `f : A -> B` in the simply typed lambda calculus: A false, B false makes f true and A false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, final

from aufbau.earley.chart import Record
from aufbau.earley.machine import NO_SLOT, RESULT, Machine, Position, Production
from aufbau.reading import Reading
from aufbau.typesystem.terms import SCHEME_HEAD, Term, Terms

_VALUES: Final = (0, 1)
_PRODUCTIONS: Final = 300  # of a grammar; beyond it no model is tried
_MODELS: Final = 96  # models tried for one text
_WORK: Final = 20_000  # runs of productions in all of them, about half a second
# What a constructor may mean: its first arguments imply the last, it is its last, all are true, it is true.
_MEANINGS: Final = ("implication", "last", "conjunction", "truth")

_Env = dict[int, int]
_Outcome = tuple[int, int]  # a value, and the set of values that a node exports to Γ


class _SpentError(Exception):
    """The models of a grammar are too large to try."""


@final
class _Budget:
    """Counts the runs of productions in the models of one text."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _SpentError


@final
class Model:
    """An interpretation of types by two values, and what can be derived in it."""

    __slots__ = ("_budget", "_derived", "_false", "_machine", "_meanings", "_terms", "_values")

    def __init__(
        self, machine: Machine, terms: Terms, meanings: Mapping[str, str], false: frozenset[str], budget: _Budget
    ) -> None:
        self._budget: Final = budget
        self._machine: Final = machine
        self._terms: Final = terms
        self._meanings: Final = meanings
        self._false: Final = false  # leaves
        self._values: Final[dict[Term, frozenset[int]]] = {}
        self._derived: Final[dict[tuple[int, int], set[_Outcome]]] = {}

    def values(self, term: Term) -> frozenset[int]:
        """The values of a type, whatever its holes stand for."""
        found = self._values.get(term)
        if found is None:
            whole = self._terms.open(term) if term.head == SCHEME_HEAD else term
            found = self._values[term] = frozenset(value for value, _ in self._evaluated(whole, {}))
        return found

    def outcomes(self, nonterminal: int, gamma: int) -> set[_Outcome]:
        """What a nonterminal can yield where Γ holds a set of values."""
        if (nonterminal, gamma) not in self._derived:
            self._derived[nonterminal, gamma] = set()
            self._close()
        return self._derived[nonterminal, gamma]

    def _close(self) -> None:
        changed = True
        while changed:
            changed = False
            for nonterminal, gamma in tuple(self._derived):
                known = self._derived[nonterminal, gamma]
                size, calls = len(known), len(self._derived)
                for production in self._machine.productions[nonterminal]:
                    known.update(self._run(production, gamma))
                changed |= len(known) > size or len(self._derived) > calls

    def _run(self, production: Production, gamma: int) -> Iterator[_Outcome]:
        """All outcomes of a production by what is known so far of its children."""
        self._budget.spend()
        template = production.template
        states: list[tuple[_Env, int]] = [({}, 0)]
        for position in production.positions:
            following: dict[tuple[frozenset[tuple[int, int]], int], tuple[_Env, int]] = {}
            for env, exported in states:
                for state in self._read(production, position, env, gamma, exported):
                    following[frozenset(state[0].items()), state[1]] = state
            states = list(following.values())
        for env, exported in states:
            effect = exported if production.keeps else 0
            for binding in production.effects:
                effect |= self._bound(template[binding.type_slot], env, binding.generalises)
            for value, _ in self._evaluated(template[RESULT], env):
                yield value, effect

    def _read(
        self, production: Production, position: Position, env: _Env, gamma: int, exported: int
    ) -> Iterator[tuple[_Env, int]]:
        template = production.template
        if position.nonterminal >= 0:
            inner = gamma if position.initial else gamma | exported
            for extension in position.extensions:
                if not extension.ambient:
                    inner |= self._bound(template[extension.type_slot], env, extension.generalises)
            for value, effect in tuple(self._called(position.nonterminal, inner)):
                if position.slot == NO_SLOT:
                    yield env, exported | effect
                else:
                    for solved in self._solved(template[position.slot], value, env):
                        yield solved, exported | effect
            return
        held = gamma | exported
        if position.member and not held:
            return
        envs = [env]
        if position.slot != NO_SLOT:  # a text may be any leaf
            envs = [solved for value in _VALUES for solved in self._solved(template[position.slot], value, env)]
        for lookup in position.lookups:
            envs = [
                solved
                for current in envs
                for value in _VALUES
                if held >> value & 1
                for solved in self._solved(template[lookup.slot], value, current)
            ]
        for current in envs:
            yield current, exported

    def _called(self, nonterminal: int, gamma: int) -> set[_Outcome]:
        return self._derived.setdefault((nonterminal, gamma), set())

    def _bound(self, term: Term, env: _Env, generalises: bool) -> int:
        """The set of values that a binding may bring into Γ."""
        if generalises:
            return sum(1 << value for value in _VALUES)
        return sum(1 << value for value in {value for value, _ in self._evaluated(term, env)})

    def _evaluated(self, term: Term, env: _Env) -> list[tuple[int, _Env]]:
        if term.index >= 0:
            if term.index in env:
                return [(env[term.index], env)]
            return [(value, {**env, term.index: value}) for value in _VALUES]
        if not term.args:
            return [(0 if term.head in self._false else 1, env)]
        states: list[tuple[tuple[int, ...], _Env]] = [((), env)]
        for arg in term.args:
            states = [((*values, value), after) for values, e in states for value, after in self._evaluated(arg, e)]
        return [(self._apply(term.head, values), after) for values, after in states]

    def _solved(self, term: Term, value: int, env: _Env) -> list[_Env]:
        return [after for found, after in self._evaluated(term, env) if found == value]

    def _apply(self, head: str, values: tuple[int, ...]) -> int:
        meaning = self._meanings[head]
        if meaning == "implication":
            return int(values[-1] or not all(values[:-1]))
        if meaning == "last":
            return values[-1]
        return int(meaning == "truth" or all(values))


def refute(reading: Reading) -> str | None:
    """Why no continuation satisfies a text, if one of some small models shows it."""
    reader = reading.reader
    machine, terms = reader.parser.machine, reader.parser.arena.terms
    if sum(map(len, machine.productions)) > _PRODUCTIONS:
        return None
    front = _front(reading)
    above = _above(front)
    try:
        for model, shown in _models(machine, terms, above):
            if not _reaches(model, front, reader.root):
                return f"no term has the type that is demanded: {shown} is a model of the rules"
    except _SpentError:
        return None
    return None


def _front(reading: Reading) -> list[Record]:
    """The calls that the next lexeme, or the rest of this one, belongs to."""
    reader = reading.reader
    found: dict[Record, None] = {}
    for hypothesis in reading.hypotheses:
        groups = [hypothesis.items]
        if hypothesis.length:
            groups += [items for items, _ in reader.finished(hypothesis)]
        for items in groups:
            for expecting in items.expected.values():
                found.update(dict.fromkeys(item.record for item in expecting))
    return list(found)


def _above(records: list[Record]) -> list[Record]:
    found = dict.fromkeys(records)
    stack = list(records)
    while stack:
        for waiter in stack.pop().waiters:
            record = waiter.item.record
            if record not in found:
                found[record] = None
                stack.append(record)
    return list(found)


def _reaches(model: Model, front: list[Record], root: Record) -> bool:
    """Whether a chain of calls, each of which can be answered in the model, leads from the front to the root."""
    seen: set[Record] = set()
    stack = list(front)
    while stack:
        record = stack.pop()
        if record in seen or not _answerable(model, record):
            continue
        if record is root:
            return True
        seen.add(record)
        stack += [waiter.item.record for waiter in record.waiters]
    return False


def _answerable(model: Model, record: Record) -> bool:
    gamma = 0
    if record.context is not None:
        for bound in record.context.scope.types:
            for value in model.values(bound):
                gamma |= 1 << value
    outcomes = model.outcomes(record.nonterminal, gamma)
    if record.demand is None:
        return bool(outcomes)
    wanted = model.values(record.demand)
    return any(value in wanted for value, _ in outcomes)


def _models(machine: Machine, terms: Terms, records: list[Record]) -> Iterator[tuple[Model, str]]:
    """Small models, those first in which a demanded leaf alone is false."""
    heads: dict[str, None] = {}
    leaves: dict[str, None] = {}
    templates = [term for group in machine.productions for production in group for term in production.template]
    scopes = [bound for record in records if record.context is not None for bound in record.context.scope.types]
    demands = [record.demand for record in records if record.demand is not None]
    for term in (*demands, *scopes, *templates):
        stack = [term]
        while stack:
            current = stack.pop()
            stack += current.args
            if current.args:
                heads.setdefault(current.head)
            elif current.index < 0 and current.head != "⊤" and not current.head.startswith(SCHEME_HEAD):
                leaves.setdefault(current.head)
    heads.pop(SCHEME_HEAD, None)
    names = list(heads)
    budget = _Budget(_WORK)
    choices = (
        product(_MEANINGS, repeat=len(names)) if len(names) <= 3 else ((meaning,) * len(names) for meaning in _MEANINGS)
    )
    count = 0
    falses = [frozenset(leaves), *(frozenset((leaf,)) for leaf in list(leaves)[:8])]
    for meanings in choices:
        for false in falses:
            if count >= _MODELS:
                return
            count += 1
            shown = ", ".join(f"{name!r} as {meaning}" for name, meaning in zip(names, meanings, strict=True))
            lies = ", ".join(sorted(false))
            yield (
                Model(machine, terms, dict(zip(names, meanings, strict=True)), false, budget),
                f"{lies} false" + (f", {shown}" if shown else ""),
            )
