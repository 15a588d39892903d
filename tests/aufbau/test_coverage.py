"""What proofs of coverage rest on, held against the engine: sorts, demands, and the texts that are said to exist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from aufbau import Grammar, Oracle, Outcome, Prefix
from aufbau.coverage import Proof
from aufbau.demanded import RIGID
from aufbau.earley.chart import Answer, Item, Record
from aufbau.sorts import OTHER, Sorts
from aufbau.typesystem.terms import TOP_HEAD, Term
from tests.aufbau.walks import walk

TOOL = "dialects/grammars/tool.auf"
GRAMMARS = ("fun", "stlc", "minimal", "core_c", "core_ml", TOOL)
PROVED = ("fun", "core_c", "core_ml")


@cache
def oracle(name: str) -> Oracle:
    return Oracle(Grammar.load(name))


@cache
def proof(name: str) -> Proof:
    grammar = oracle(name).grammar
    return Proof(grammar.model, grammar.machine(grammar.model.start))


def walks(name: str, count: int) -> Iterator[Prefix]:
    ambient = {"open": "int", "some call": "int", "some docs": "int"} if name == TOOL else None
    start = oracle(name).start(ambient=ambient)
    for seed in range(count):
        random = Random(seed)
        yield start.feed(walk(random, start, random.randint(1, 25)))


def chart(prefix: Prefix) -> tuple[list[Record], list[Answer]]:
    """The calls that wait in a prefix, and the answers that its items were built from."""
    records: dict[Record, None] = {}
    answers: dict[Answer, None] = {}
    stack: list[Item] = []
    for hypothesis in prefix._state.hypotheses:
        stack += [item for group in hypothesis.items.expected.values() for item in group] + hypothesis.items.kernel
    seen: set[Item] = set()
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if item.record not in records:
            records[item.record] = None
            stack += [waiter.item for waiter in item.record.waiters]
        if isinstance(item.child, Answer):
            answers[item.child] = None
            stack.append(item.child.item)
        if item.previous is not None:
            stack.append(item.previous)
    return list(records), list(answers)


def admits(pattern: Term, demand: Term) -> bool:
    """Whether a demand is no more settled than a pattern says."""
    if demand.index >= 0 or pattern.head.startswith(RIGID):
        return True
    if pattern.index >= 0 or (pattern.head, len(pattern.args)) != (demand.head, len(demand.args)):
        return False
    return all(map(admits, pattern.args, demand.args))


@pytest.mark.parametrize("name", GRAMMARS)
def test_types_are_of_their_sorts(name: str) -> None:
    grammar = oracle(name).grammar
    machine = grammar.machine(grammar.model.start)
    sorts = Sorts(grammar.model, machine, machine.terms.fork())
    checked = 0
    for prefix in walks(name, 25):
        for answer in chart(prefix)[1]:
            found, of = answer.type, sorts.of(answer.item.record.nonterminal)
            if found.index >= 0 or found.head == TOP_HEAD:
                continue
            known = (found.head, len(found.args)) in of
            other = not found.args and any(head.startswith(OTHER) for head, _ in of)
            assert known or other, (prefix, machine.names[answer.item.record.nonterminal], found, of)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("name", GRAMMARS)
def test_demands_are_foreseen(name: str) -> None:
    demands, names, checked = proof(name).demands, proof(name).machine.names, 0
    for prefix in walks(name, 25):
        for record in chart(prefix)[0]:
            if record.demand is not None:
                patterns = demands.of(record.nonterminal)
                assert any(admits(pattern, record.demand) for pattern in patterns), (
                    prefix,
                    names[record.nonterminal],
                    record.demand,
                    patterns,
                )
                checked += 1
    assert checked > 20


def some_type(random: Random, known: Proof, cases: list[Term], depth: int) -> Term | None:
    """An instance of one of these cases, its parts of the sorts that they have; None where that fails."""
    case = random.choice(cases)
    parts = []
    for i, arg in enumerate(case.args):
        if not arg.head.startswith(RIGID):
            parts.append(arg)
            continue
        heads = known.sorts.parts(case.head, len(case.args), i)
        inner = [c for head in heads for c in known.written(*head)]
        small = [c for c in inner if not any(a.head.startswith(RIGID) for a in c.args)]
        part = some_type(random, known, small if depth == 0 and small else inner, depth - 1) if inner else None
        if part is None or depth < -3:
            return None
        parts.append(part)
    return known.terms.con(case.head, tuple(parts))


@pytest.mark.parametrize("name", PROVED)
def test_what_is_said_to_be_covered_has_texts(name: str) -> None:
    """Random types at every nonterminal of which types are demanded: a text of each is found."""
    known, random, found = proof(name), Random(name), 0
    for nonterminal in sorted(known.demanded & known.proved):
        for _ in range(2):
            wanted = some_type(random, known, known.cases[nonterminal], 1)
            if wanted is None:
                continue
            goal, symbol = known.syntax.render(wanted), known.machine.names[nonterminal]
            start = oracle(name).start(symbol=symbol, goal=goal)
            assert start.witness().outcome is Outcome.FOUND, f"{symbol} has no text of type {goal}"
            found += 1
    assert found > 10
