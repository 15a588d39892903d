"""What the surface of a grammar alone says of lengths: shortest lexemes and texts, and the gaps that lexemes need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, final

from aufbau.earley.machine import Machine, Position, Production
from aufbau.regex import DEAD

NEVER: Final = 1 << 30  # more bytes than any text has


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def clings(machine: Machine, state: int, text: bytes) -> bool:
    """Whether a lexeme that left the automaton in `state` would go on into `text`."""
    automaton = machine.automaton
    for byte in text:
        state = automaton.transitions[state][byte]
        if state == DEAD:
            return False
        if automaton.accepts[state]:
            return True
    return False


@final
class Surface:
    """What a machine's surface alone says of lengths; measured once a machine."""

    __slots__ = ("gaps", "glue", "least", "rests", "sizes")

    def __init__(self, machine: Machine) -> None:
        automaton = machine.automaton
        self.gaps: Final[list[bytes]] = sorted(  # short ignorable texts
            (text for t in bits(machine.ignore_mask) for text in automaton.extensions(automaton.start, t, 6)), key=len
        )
        self.glue: Final[dict[tuple[int, bytes], int]] = {}
        self.rests: Final[dict[Production, tuple[int, ...]]] = {}
        terminals = [
            next((len(text) for text in automaton.extensions(automaton.start, t, 1)), NEVER)
            for t in range(len(machine.terminals))
        ]
        positions = [p for group in machine.productions for production in group for p in production.positions]
        # For each mask, the bytes of the shortest lexeme.
        self.sizes: Final = {
            mask: min((terminals[t] for t in bits(mask)), default=NEVER) for mask in {p.mask for p in positions}
        }
        # For each nonterminal, those of its shortest texts, whatever the rules say (least fixed point).
        self.least: Final = [NEVER] * len(machine.productions)
        changed = True
        while changed:
            changed = False
            for nonterminal, group in enumerate(machine.productions):
                total = min(sum(map(self.bytes, production.positions)) for production in group)
                if total < self.least[nonterminal]:
                    self.least[nonterminal], changed = total, True

    def bytes(self, position: Position) -> int:
        """The bytes of a shortest text at a position."""
        return self.sizes[position.mask] if position.nonterminal < 0 else self.least[position.nonterminal]

    def rest(self, production: Production, dot: int) -> int:
        """The least bytes of what stands from the dot on."""
        rests = self.rests.get(production)
        if rests is None:
            found = [0]
            for position in reversed(production.positions):
                found.append(found[-1] + self.bytes(position))
            rests = self.rests[production] = tuple(reversed(found))
        return rests[dot]


@lru_cache(maxsize=32)
def surface(machine: Machine) -> Surface:
    """The measures of a machine."""
    return Surface(machine)
