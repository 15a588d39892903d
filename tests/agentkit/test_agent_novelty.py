"""The rule against repetitions: it prunes exactly what can only repeat, at the first byte, and never anything else."""

from __future__ import annotations

from functools import cache
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.novelty import NovelPrefix
from agentkit.repetition import History
from aufbau import Node, Prefix, Verdict
from dialects import CLikeDialect, LoweredDialect
from registry import INT, STRING, HandleType, Registry, ToolType, tool


class Doc:
    """A handle."""


class Book:
    """A handle that no tool makes."""


@cache
def lowered() -> LoweredDialect:
    registry = Registry()

    @registry.tool(pure=True)
    def find(query: str) -> Doc:
        """Find."""
        return Doc()

    @registry.tool(pure=True)
    def pages(doc: Doc) -> int:
        """Count."""
        return 1

    @registry.tool(pure=True)
    def print_as(doc: Doc, speed: Literal["fast lane", "faster"] = "faster") -> str:
        """Print."""
        return ""

    @registry.tool
    def roll() -> int:
        """Roll."""
        return 1

    return CLikeDialect().lower(registry)


def start(scope: dict[str, str], past: list[str], output: ToolType | None = None) -> NovelPrefix:
    """A step under a context of names with types, after these steps were executed."""
    types = {kind.name: kind for kind in lowered().registry.types()} | {"int": INT}
    history = History(lowered().registry)
    for text in past:
        history.record(read(lowered().start({name: types["doc"] for name in ("d", "dx", "e")}).feed(text)))
    context = {name: types[kind] for name, kind in scope.items()}

    def repeats(tree: Node) -> bool:
        return history.has_called(lowered().read_step(tree))

    return NovelPrefix(lowered().start(context, output), repeats)


def read(prefix: Prefix):  # type: ignore[no-untyped-def]
    tree = prefix.tree()
    assert tree is not None, str(prefix.explain())
    return lowered().read_step(tree)


def first_lost(prefix: NovelPrefix, text: str) -> str | None:
    """The shortest beginning of `text` that is LOST."""
    data = text.encode()
    for end in range(len(data) + 1):
        if prefix.feed(data[:end]).verdict is Verdict.LOST:
            return data[:end].decode()
    return None


# What is in scope; what was called; the step; where it is lost (None: nowhere).
CASES: list[tuple[dict[str, str], list[str], str, str | None]] = [
    ({}, [], 'let x = find("sun");', None),
    ({}, ['let a = find("sun");'], 'let x = find("sun");', 'let x = find("sun"'),
    ({}, ['let a = find("sun");'], 'let x = find ( query = "sun" ) ;', 'let x = find ( query = "sun"'),
    ({}, ['let a = find("sun");'], 'let x = find("\\u0073un");', 'let x = find("\\u0073un"'),
    ({}, ['let a = find("sun");'], 'let x = find("sun ");', None),
    ({}, ['let a = find("sun");'], 'let x = find("sunny");', None),
    # One name: the call is forced from the tool's first byte that no other tool has.
    ({"d": "doc"}, ["let n = pages(d);"], "let m = pages(d);", "let m = pa"),
    ({"d": "doc"}, ["let n = pages(d);"], "let m = print_as(d);", None),
    # Two names, one of them new: only the old one is refused; both old: the tool is.
    # `pages(d` may still become `pages(doc = e)`.
    ({"d": "doc", "e": "doc"}, ["let n = pages(d);"], "let m = pages(d);", "let m = pages(d)"),
    ({"d": "doc", "e": "doc"}, ["let n = pages(d);"], "let m = pages(e);", None),
    ({"d": "doc", "e": "doc"}, ["let n = pages(d);", "let k = pages(e);"], "let m = pages(e);", "let m = pa"),
    # A name that another one continues.
    ({"d": "doc", "dd": "doc"}, ["let n = pages(d);"], "let m = pages(dd);", None),
    ({"d": "doc", "dd": "doc"}, ["let n = pages(d);"], "let m = pages(d);", "let m = pages(d)"),
    # A space inside a literal is content: one member is old, the other new.
    ({"d": "doc"}, ['let s = print_as(d, "faster");'], 'let t = print_as(d, "fast lane");', None),
    (
        {"d": "doc"},
        ['let s = print_as(d, "faster");'],
        'let t = print_as(d, "faster");',
        'let t = print_as(d, "faste',
    ),
    # The name alone is refused where only an old call could follow it.
    ({"d": "doc", "dx": "doc"}, ["let n = pages(d);", "let k = pages(dx);"], "let m = pages(d);", "let m = pa"),
    # Not pure, and returns.
    ({}, ["let n = roll();"], "let m = roll();", None),
    ({"n": "int"}, ["let n = roll();"], "return n;", None),
]


@pytest.mark.parametrize(("scope", "past", "step", "lost"), CASES)
def test_where_a_step_is_lost(scope: dict[str, str], past: list[str], step: str, lost: str | None) -> None:
    assert first_lost(start(scope, past), step) == lost


def test_a_name_is_no_way_out() -> None:
    """Where every call is old and nothing can be returned, the step is lost from its start, not after a name."""

    @tool(pure=True)
    def look() -> Doc:
        """Look."""
        return Doc()

    wanted = HandleType(name="book", python_type=Book)
    begun = CLikeDialect().lower(Registry([look]), types=[wanted]).start({"d": look.returns}, wanted)
    assert NovelPrefix(begun, lambda tree: False).verdict is Verdict.LIVE
    assert NovelPrefix(begun, lambda tree: True).verdict is Verdict.LOST


def test_next_bytes_leave_out_what_only_repeats() -> None:
    here = start({"d": "doc"}, ["let n = pages(d);"]).feed("let m = p")
    assert b"a" not in here.next_bytes() and b"r" in here.next_bytes()


def test_the_place_is_told() -> None:
    lost = start({}, ['let a = find("sun");']).feed('let x = find("sun"')
    assert lost.verdict is Verdict.LOST and lost.lost_at == len('let x = find("sun"')
    assert lost.inner.verdict is Verdict.LIVE


PAST = ['let a = find("su");', "let n = pages(d);", 'let s = print_as(e, "faster");']
STEPS = [
    'let x = find("su");', 'let x = find("sun");', "let x = pages(d);", "let x = pages(e);",
    'let x = print_as(e, "fast lane");', 'let x = print_as(d, "faster");', "let x = roll();", "return d;",
]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(STEPS), st.sets(st.sampled_from(PAST)))
def test_prefixes_of_a_new_step_are_never_lost(step: str, past: set[str]) -> None:
    """Safe pruning, and the other half: what only repeats is lost before it is whole."""
    prefix = start({"d": "doc", "e": "doc"}, sorted(past))
    old = any(step.partition(" = ")[2] == one.partition(" = ")[2] for one in past)
    assert (first_lost(prefix, step) is not None) == old


@pytest.mark.parametrize("output", [None, INT, STRING])
def test_nothing_is_pruned_where_nothing_was_called(output: ToolType | None) -> None:
    prefix = start({"d": "doc"}, [], output)
    for step in STEPS[:3]:
        for end in range(len(step)):
            fed = prefix.feed(step[:end])
            assert fed.verdict is fed.inner.verdict


# Witnesses


@pytest.mark.parametrize(("scope", "past", "step", "lost"), CASES)
def test_a_witness_obeys_the_rule(scope: dict[str, str], past: list[str], step: str, lost: str | None) -> None:
    """At every beginning of a step that is not LOST, a continuation is found, and nothing in it is a repetition."""
    prefix = start(scope, past)
    for byte in step.encode()[: None if lost is None else len(lost.encode()) - 1]:
        found = prefix.witness()
        assert found.text is not None, (prefix.text, found.reason)
        after = prefix.feed(found.text)
        assert after.verdict is Verdict.SATISFIED
        tree = after.tree()
        assert tree is not None and not prefix._repeats(tree)
        prefix = prefix.feed(bytes((byte,)))


def test_where_only_repetitions_are_left_there_is_no_witness() -> None:
    prefix = start({"d": "doc"}, ["let n = pages(d);"])
    assert prefix.inner.feed("let m = pages(").witness().text == b"d);"
    assert prefix.feed("let m = pages(").witness().text is None
