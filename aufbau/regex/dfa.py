"""Expressions to one minimal deterministic automaton over the bytes of UTF-8.

The subset construction and the minimisation run over *characters*, partitioned into the classes that no
expression tells apart; only the minimal result is spread out over bytes. A state between the bytes of one
character is shared with every equal one, and can never equal a state between characters, so the outcome is
minimal as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, final

from aufbau.regex.charset import Ranges
from aufbau.regex.errors import RegexError
from aufbau.regex.limits import DEFAULT_LIMITS, RegexLimits
from aufbau.regex.positions import Positions, bits
from aufbau.regex.syntax import Regex
from aufbau.regex.utf8 import NO_CLASS, ClassTree

DEAD = -1

Run = tuple[int, int, int]  # first byte, last byte, next state


class ByteAutomaton(NamedTuple):
    """A minimal automaton without states that lead nowhere; `start` is DEAD when no text is accepted."""

    start: int
    runs: list[tuple[Run, ...]]
    accepts: list[int]


class _CharAutomaton(NamedTuple):
    """States over character classes; moves are per state, class -> state."""

    start: int
    moves: list[dict[int, int]]
    accepts: list[int]


def compile_regexes(
    regexes: Sequence[Regex],
    resolve: Callable[[int], int] = lambda mask: mask,
    limits: RegexLimits = DEFAULT_LIMITS,
) -> ByteAutomaton:
    """The automaton of all expressions at once.

    A state accepts the bit set of the expressions that match there, passed through `resolve`, which may drop
    bits but not all of them.
    """
    positions = Positions(regexes, limits)
    cuts, cut_class, members = _partition(positions.charset_positions)
    raw = _subsets(positions, members, resolve, limits)
    if not raw.moves[raw.start] and not raw.accepts[raw.start]:
        return ByteAutomaton(DEAD, [], [])
    return _Spreader(_minimise(raw), ClassTree(cuts, cut_class), limits).automaton()


def _partition(charsets: dict[Ranges, int]) -> tuple[list[int], list[int], list[int]]:
    """Cut the code points where some set begins or ends.

    Returns the cuts, the class from each cut to the next, and for each class the positions it matches.
    """
    toggles: dict[int, int] = {0: 0}
    for number, ranges in enumerate(charsets):
        for low, high in ranges:
            toggles[low] = toggles.get(low, 0) ^ (1 << number)
            toggles[high + 1] = toggles.get(high + 1, 0) ^ (1 << number)
    positions_of = list(charsets.values())
    class_of: dict[int, int] = {0: NO_CLASS}
    members: list[int] = []
    cuts = sorted(toggles)
    cut_class: list[int] = []
    inside = 0
    for cut in cuts:
        inside ^= toggles[cut]
        if inside not in class_of:
            class_of[inside] = len(members)
            matched = 0
            for number in bits(inside):
                matched |= positions_of[number]
            members.append(matched)
        cut_class.append(class_of[inside])
    return cuts, cut_class, members


def _subsets(
    positions: Positions, members: list[int], resolve: Callable[[int], int], limits: RegexLimits
) -> _CharAutomaton:
    """Determinise: a state is what may come next together with what is accepted here."""
    follow, tags = positions.follow, positions.tags
    steps = 0
    start_key = (positions.start_first, resolve(positions.start_tags))
    numbers: dict[tuple[int, int], int] = {start_key: 0}
    keys = [start_key]
    moves: list[dict[int, int]] = []
    by_matched: dict[int, int] = {}
    while len(moves) < len(keys):
        coming = keys[len(moves)][0]
        here: dict[int, int] = {}
        steps += len(members)
        for number, member in enumerate(members):
            matched = coming & member
            if not matched:
                continue
            target = by_matched.get(matched, DEAD)
            if target == DEAD:
                after = mask = 0
                for position in bits(matched):
                    after |= follow[position]
                    mask |= tags[position]
                    steps += 1
                key = (after, resolve(mask))
                target = numbers.setdefault(key, len(keys))
                if target == len(keys):
                    keys.append(key)
                by_matched[matched] = target
            here[number] = target
        moves.append(here)
        if len(keys) > limits.states:
            raise _too_large("states", limits.states)
        if steps > limits.steps:
            raise _too_large("steps of construction", limits.steps)
    return _CharAutomaton(0, moves, [accepted for _, accepted in keys])


def _too_large(what: str, limit: int) -> RegexError:
    return RegexError(
        f"the automaton of the expressions needs more than {limit} {what}",
        0,
        "lower the counts of repetitions, above all behind a part that can match the same text",
    )


def _minimise(raw: _CharAutomaton) -> _CharAutomaton:
    """Merge the states that accept the same texts."""
    blocks = _equivalence(raw)
    block_of = [0] * len(raw.moves)
    for number, block in enumerate(blocks):
        for state in block:
            block_of[state] = number
    representatives = [min(block) for block in blocks]
    return _CharAutomaton(
        block_of[raw.start],
        [{letter: block_of[to] for letter, to in raw.moves[state].items()} for state in representatives],
        [raw.accepts[state] for state in representatives],
    )


def _equivalence(raw: _CharAutomaton) -> list[set[int]]:
    """The coarsest stable partition (Hopcroft): split by the predecessors of a block until nothing changes.

    Moves are partial and every state leads to acceptance, so a missing move tells states apart. It is enough
    to split by every block of the first partition and, from then on, by the smaller half of each split.
    """
    sources: list[list[tuple[int, int]]] = [[] for _ in raw.moves]
    for state, here in enumerate(raw.moves):
        for letter, to in here.items():
            sources[to].append((letter, state))
    by_accept: dict[int, set[int]] = {}
    for state, accepted in enumerate(raw.accepts):
        by_accept.setdefault(accepted, set()).add(state)
    blocks = list(by_accept.values())
    block_of = [0] * len(raw.moves)
    for number, block in enumerate(blocks):
        for state in block:
            block_of[state] = number
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = list(blocks[waiting.pop()])
        by_letter: dict[int, list[int]] = {}
        for to in splitter:
            for letter, state in sources[to]:
                by_letter.setdefault(letter, []).append(state)
        for states in by_letter.values():
            _split(states, blocks, block_of, waiting)
    return blocks


def _split(states: list[int], blocks: list[set[int]], block_of: list[int], waiting: set[int]) -> None:
    """Split every block that has some, but not only, members among `states`."""
    touched: dict[int, list[int]] = {}
    for state in states:
        touched.setdefault(block_of[state], []).append(state)
    for number, inside in touched.items():
        block = blocks[number]
        if len(inside) == len(block):
            continue
        moved = set(inside)
        block -= moved
        # The smaller part gets the new number and waits; the larger part waits if the block did.
        if len(moved) > len(block):
            blocks[number], moved = moved, block
        for state in moved:
            block_of[state] = len(blocks)
        waiting.add(len(blocks))
        blocks.append(moved)


@final
class _Spreader:
    """Spreads moves over characters out into moves over bytes."""

    __slots__ = ("_accepts", "_ascii_of", "_chars", "_inner", "_limits", "_nodes", "_runs", "_tree")

    def __init__(self, chars: _CharAutomaton, tree: ClassTree, limits: RegexLimits) -> None:
        self._chars = chars
        self._tree = tree
        self._limits = limits
        self._runs: list[tuple[Run, ...]] = [()] * len(chars.moves)
        self._accepts = list(chars.accepts)
        self._inner: dict[tuple[Run, ...], int] = {}
        self._nodes: dict[tuple[int, ...], int] = {}
        self._ascii_of: list[Run] = []
        for byte, number in enumerate(tree.ascii):
            if number != NO_CLASS:
                _append(self._ascii_of, byte, byte, number)

    def automaton(self) -> ByteAutomaton:
        for state, moves in enumerate(self._chars.moves):
            runs: list[Run] = []
            for low, high, number in self._ascii_of:
                target = moves.get(number, DEAD)
                if target != DEAD:
                    _append(runs, low, high, target)
            for low, high, node in self._tree.roots:
                target = self._node(node, moves)
                if target != DEAD:
                    _append(runs, low, high, target)
            self._runs[state] = tuple(runs)
        return ByteAutomaton(self._chars.start, self._runs, self._accepts)

    def _node(self, node: int, moves: dict[int, int]) -> int:
        """The state inside a character that stands for a tree node under these moves."""
        key = (node, *[moves.get(number, DEAD) for number in self._tree.classes[node]])
        known = self._nodes.get(key)
        if known is not None:
            return known
        last_byte = self._tree.depth[node] == 1
        runs: list[Run] = []
        for low, high, child in self._tree.runs[node]:
            target = moves.get(child, DEAD) if last_byte else self._node(child, moves)
            if target != DEAD:
                _append(runs, low, high, target)
        state = self._state(tuple(runs))
        self._nodes[key] = state
        return state

    def _state(self, runs: tuple[Run, ...]) -> int:
        if not runs:
            return DEAD
        state = self._inner.get(runs)
        if state is None:
            state = len(self._runs)
            if state >= self._limits.states:
                raise _too_large("states", self._limits.states)
            self._inner[runs] = state
            self._runs.append(runs)
            self._accepts.append(0)
        return state


def _append(runs: list[Run], low: int, high: int, target: int) -> None:
    """Append a run, merging it with an adjacent one that has the same target."""
    if runs and runs[-1][2] == target and runs[-1][1] == low - 1:
        runs[-1] = (runs[-1][0], high, target)
    else:
        runs.append((low, high, target))
