"""What can still be matched from each state of the union automaton, and by which bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aufbau.regex import ByteAutomaton

Runs = Sequence[tuple[int, int, int]]


class Reach(NamedTuple):
    """Masks of terminals per state; see `LexerAutomaton` for their meaning."""

    live: list[int]
    more: list[int]
    infinite: list[int]


# The states on the way to a terminal: the moves of each as (byte, next state), readable bytes first, and the states
# that lead to each.
Region = tuple[dict[int, list[tuple[int, int]]], dict[int, list[int]]]


def analyse(automaton: ByteAutomaton) -> Reach:
    """Masks by one pass over the components of the graph, each after the components that it leads to."""
    successors = [sorted({target for _, _, target in runs}) for runs in automaton.runs]
    count = len(successors)
    live, more, infinite = [0] * count, [0] * count, [0] * count
    for component in _components(successors):
        cyclic = len(component) > 1 or component[0] in successors[component[0]]
        inside = beyond = endless = 0
        for state in component:
            inside |= automaton.accepts[state]
            for target in successors[state]:
                # Targets in this component still have the mask 0.
                beyond |= live[target]
                endless |= infinite[target]
        for state in component:
            live[state] = inside | beyond
            more[state] = inside | beyond if cyclic else beyond
            infinite[state] = inside | beyond if cyclic else endless
    return Reach(live, more, infinite)


def _components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected components, successors first (Tarjan, with an explicit stack)."""
    unseen, done = -1, len(successors)
    order = [unseen] * len(successors)
    lowest = [0] * len(successors)
    found: list[list[int]] = []
    pending: list[int] = []
    seen = 0
    for root in range(len(successors)):
        if order[root] != unseen:
            continue
        path: list[tuple[int, Iterator[int]]] = []
        entering = root
        while True:
            if entering != unseen:
                order[entering] = lowest[entering] = seen
                seen += 1
                pending.append(entering)
                path.append((entering, iter(successors[entering])))
                entering = unseen
            state, targets = path[-1]
            for target in targets:
                if order[target] == unseen:
                    entering = target
                    break
                # A state of a finished component has order `done`, which lowers nothing.
                lowest[state] = min(lowest[state], order[target])
            if entering != unseen:
                continue
            path.pop()
            if lowest[state] == order[state]:
                component: list[int] = []
                while order[state] != done:
                    member = pending.pop()
                    order[member] = done
                    component.append(member)
                found.append(component)
            if not path:
                break
            parent = path[-1][0]
            lowest[parent] = min(lowest[parent], lowest[state])
    return found


def _preference(byte: int) -> int:
    """Sort key that puts readable bytes first."""
    char = chr(byte)
    if not char.isascii() or not char.isprintable():
        return byte + 2048
    if char.islower():
        return byte
    if char.isupper():
        return byte + 256
    return byte + 512 if char.isdigit() else byte + 1024


_READABLE = sorted(range(256), key=_preference)


def residuals(region: Region, accepts: Sequence[int], state: int, bit: int, limit: int) -> Iterator[bytes]:
    """Strings that lead in the region from `state` to acceptance of `bit`, shortest first, without dead ends.

    `exact[k]` holds the states from which some string of exactly k bytes is accepted. It grows with the
    length, so the work between two results is at most the length times the states around, never exponential.
    """
    moves, sources = region
    exact = [{here for here in moves if accepts[here] & bit}]
    frontier = {state}
    left = limit
    while frontier and left > 0:
        if state in exact[-1]:
            for text in _of_length(moves, exact, state):
                yield text
                left -= 1
                if left == 0:
                    return
        # No string of this or any greater length is left once the frontier is empty.
        frontier = {target for here in frontier for _, target in moves[here]}
        exact.append({source for target in exact[-1] for source in sources[target]})


def region_of(runs: Sequence[Runs], live: Sequence[int], state: int, bit: int) -> Region:
    """The states on the way from `state` to `bit`."""
    moves: dict[int, list[tuple[int, int]]] = {}
    waiting = [state]
    while waiting:
        here = waiting.pop()
        if here in moves:
            continue
        by_byte = {
            byte: target for low, high, target in runs[here] if live[target] & bit for byte in range(low, high + 1)
        }
        moves[here] = [(byte, by_byte[byte]) for byte in _READABLE if byte in by_byte]
        waiting.extend(set(by_byte.values()))
    sources: dict[int, list[int]] = {here: [] for here in moves}
    for here, options in moves.items():
        for target in dict.fromkeys(target for _, target in options):
            sources[target].append(here)
    return moves, sources


def _of_length(moves: dict[int, list[tuple[int, int]]], exact: Sequence[set[int]], state: int) -> Iterator[bytes]:
    """All strings of exactly `len(exact) - 1` bytes, depth first over states that can still make it."""
    length = len(exact) - 1
    if length == 0:
        yield b""
        return
    text = bytearray()
    path = [iter(moves[state])]
    while path:
        left = length - len(path)
        for byte, target in path[-1]:
            if target not in exact[left]:
                continue
            if left == 0:
                yield bytes(text) + bytes((byte,))
            else:
                text.append(byte)
                path.append(iter(moves[target]))
                break
        else:
            path.pop()
            if text:
                text.pop()
