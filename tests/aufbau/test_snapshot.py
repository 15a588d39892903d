"""Snapshots: what is loaded is what was dumped, however deep or round, and bytes of others run nothing."""

from __future__ import annotations

import gc
import os
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aufbau.snapshot
from aufbau import Grammar
from aufbau.errors import Span
from aufbau.grammar.model import Symbol, SymbolKind
from aufbau.snapshot import SnapshotError, compiled, dump, keepable, load
from aufbau.verdict import Verdict
from aufbau.vocabulary.trie import Node

atoms = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.sampled_from(Verdict)
objects = st.builds(Node, low=st.integers(), high=st.integers(), depth=st.integers())
graphs = st.recursive(
    atoms | objects,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(atoms)
        | st.builds(Node, low=inner, high=inner, depth=st.none())
    ),
)


@given(graph=graphs)
def test_what_is_loaded_is_what_was_dumped(graph: Any) -> None:
    assert load(dump(graph)) == graph


def test_what_was_shared_is_shared() -> None:
    one = Node(1, 2, 3)
    listed = [one]
    first, second, (third,), fourth = load(dump((one, listed, listed, [one])))
    assert first is second[0] is third is fourth[0]
    assert first == one and first is not one
    assert second is not fourth


def test_circles_and_long_chains() -> None:
    chain = circle = Node(0, 0, 0)
    for depth in range(100_000):
        chain = Node(0, depth, chain)  # type: ignore[arg-type]
    object.__setattr__(circle, "low", chain)
    found = load(dump(chain))
    for _ in range(100_000):
        before, found = found, found.depth
    assert found.depth == 0 and found.low.depth is not before
    assert found.low.high == 99_999


def test_anchors_are_those_it_is_loaded_with() -> None:
    anchor, other = Node(1, 2, 3), Node(4, 5, 6)
    kept = dump({"a": [anchor, Node(7, 8, 9)]}, [other, anchor])
    given_again = Node(0, 0, 0)
    found = load(kept, [None, given_again])
    assert found["a"][0] is given_again
    assert found["a"][1] == Node(7, 8, 9)


def test_enums_are_themselves() -> None:
    symbol = Symbol(kind=SymbolKind.REGEX, value="x", span=Span(3, 4))
    found = load(dump(symbol))
    assert found == symbol and found.span == symbol.span and found.kind is SymbolKind.REGEX


class Foreign:
    """A class of another package."""


@pytest.mark.parametrize("thing", [Foreign(), object(), 1.5, len, Node, os.environ, bytearray(b"x")])
def test_what_is_not_ours_is_refused(thing: object) -> None:
    with pytest.raises(SnapshotError, match="can't be kept"):
        dump([thing])


class Runs:
    """An object whose pickle runs a command when it is loaded."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.target,)


def test_bytes_of_others_run_nothing(tmp_path: Any) -> None:
    target = tmp_path / "made"
    with pytest.raises(SnapshotError, match="has no place in a snapshot"):
        load(pickle.dumps(([], [], Runs(str(target)))))
    assert not target.exists()


@pytest.mark.parametrize("name", ["cli.main", "cli.Path", "store.Store", "snapshot.io", "no.Such"])
def test_only_our_classes_with_slots_are_named(name: str) -> None:
    module, _, what = name.partition(".")
    with pytest.raises(SnapshotError, match="has no place"):
        load(b"caufbau." + module.encode() + b"\n" + what.encode() + b"\n.")


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(SnapshotError):
        load(data)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_what_is_cut_off_is_refused_and_collection_goes_on(cut: float) -> None:
    kept = dump([Node(number, 0, 0) for number in range(100)])
    assert gc.isenabled()
    with pytest.raises(SnapshotError):
        load(kept[: int(len(kept) * cut)])
    assert gc.isenabled()


def test_objects_with_a_dict_are_not_keepable() -> None:
    assert keepable(Node)
    assert not keepable(Foreign)
    assert not keepable(SnapshotError)


READ_ONLY = {"args", "base", "depth", "ground", "head", "index", "name", "top", "types"}


def test_objects_are_made_by_their_constructors_where_attributes_are_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a compiled build, which this imitates for the classes of a machine."""
    grammar = Grammar.load("core_ml", cache=False)
    machine = grammar.machine(grammar.start)
    modules = {
        f"aufbau.{name}" for name in ("earley.machine", "lexer.automaton", "typesystem.context", "typesystem.terms")
    }
    monkeypatch.setattr(aufbau.snapshot, "compiled", lambda kind: compiled(kind) or kind.__module__ in modules)
    settable = aufbau.snapshot._set_again
    monkeypatch.setattr(
        aufbau.snapshot,
        "_set_again",
        lambda one, name: settable(one, name) if compiled(type(one)) else name not in READ_ONLY,
    )
    made = dump(machine)
    assert b"_made" in made and b"_owned" in made
    found = load(made)
    assert (found.names, found.name_mask, found.terminals) == (machine.names, machine.name_mask, machine.terminals)
    assert found.terms.con("⊤") is found.terms.top
    assert [repr(term) for term in found.terms.all()] == [repr(term) for term in machine.terms.all()]
    assert [(name, repr(bound)) for name, bound in found.initial.names()] == [
        (name, repr(bound)) for name, bound in machine.initial.names()
    ]
    assert found.initial.base is found.initial
    for group, other in zip(found.productions, machine.productions, strict=True):
        for one, wanted in zip(group, other, strict=True):
            assert (one.name, one.label, repr(one.template)) == (wanted.name, wanted.label, repr(wanted.template))
            assert all(term in found.terms.all() for term in one.template)
            assert [p.symbol for p in one.positions] == [p.symbol for p in wanted.positions]
    assert found.automaton.transitions == machine.automaton.transitions


def test_what_is_made_of_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aufbau.snapshot, "compiled", lambda kind: kind is Node)
    circle = Node(0, 0, 0)
    object.__setattr__(circle, "low", [circle])
    with pytest.raises(SnapshotError, match="made of itself"):
        dump(circle)
