"""All ways to read a prefix as lexemes, by maximal munch, with its last lexeme finished or still going on."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import final

from aufbau.grammar.model import SymbolKind
from aufbau.reference.regular import split
from aufbau.reference.surface import Surface, Terminal


@dataclass(frozen=True, slots=True)
class Known:
    """A finished lexeme."""

    text: str
    classes: frozenset[Terminal]


@dataclass(frozen=True, slots=True)
class Begun:
    """A lexeme that will be longer than the bytes seen of it; none seen: any lexeme at all."""

    piece: bytes = b""


Slot = Known | Begun


@dataclass(frozen=True, slots=True)
class Lexing:
    """One reading: the lexemes that count, and whether the text ends inside an ignorable one."""

    slots: tuple[Slot, ...]
    inside_ignorable: bool = False
    gap: bool = False  # whether an ignore-once lexeme was read since the last lexeme that counts

    @property
    def finished(self) -> bool:
        """Whether the last lexeme is taken as finished, so that the text may be a whole program."""
        return not self.inside_ignorable and not any(isinstance(slot, Begun) for slot in self.slots)


@final
class Lexer:
    """Reads texts for one surface."""

    def __init__(self, surface: Surface) -> None:
        self.terminals = surface.terminals
        self._extends: dict[tuple[bytes, Terminal], bool] = {}
        self._first, self._following = surface.neighbours
        self._ignored = {(SymbolKind.REGEX, ignore.pattern): ignore.once for ignore in surface.model.ignores}

    def lexings(self, data: bytes) -> list[Lexing]:
        """Every reading of a prefix in which the grammar has what stands side by side.

        Without that condition there are 2^n where n gaps may be lexemes themselves, such as blanks of a directive.
        """
        try:
            text, broken = split(data)
        except UnicodeDecodeError:
            return []
        return list(dict.fromkeys(self._from(text, broken, 0, Lexing(()))))

    def _from(self, text: str, broken: bytes, start: int, so_far: Lexing) -> Iterator[Lexing]:
        if start == len(text) and not broken:
            yield so_far
            return
        yield from self._unfinished(text[start:].encode() + broken, so_far)
        # Only the longest match of all that has been read can be the lexeme, if this one has ended.
        end = self.terminals.longest(text, start)
        if end is None:
            return
        lexeme = text[start:end]
        classes = self.terminals.classes(lexeme)
        allowed = self._allowed(so_far.gap) & classes
        if allowed:
            once = any(self._ignored[terminal] for terminal in classes & self._ignored.keys())
            yield from self._from(text, broken, end, Lexing(so_far.slots, gap=so_far.gap or once))
        if self._fits(so_far, classes - self._ignored.keys()):
            yield from self._from(text, broken, end, Lexing((*so_far.slots, Known(lexeme, classes))))

    def _unfinished(self, piece: bytes, so_far: Lexing) -> Iterator[Lexing]:
        if any(self.extends(piece, terminal) for terminal in self._allowed(so_far.gap)):
            yield Lexing(so_far.slots, inside_ignorable=True, gap=so_far.gap)
        if any(self.extends(piece, terminal) for terminal in self.terminals.languages.keys() - self._ignored.keys()):
            yield Lexing((*so_far.slots, Begun(piece)))

    def _fits(self, so_far: Lexing, classes: Set[Terminal]) -> bool:
        """Whether a lexeme of some of these terminals can come next."""
        last = so_far.slots[-1] if so_far.slots else None
        if not isinstance(last, Known):
            return bool(classes & self._first)
        return any(classes & self._following.get(terminal, frozenset()) for terminal in last.classes)

    def _allowed(self, gap: bool) -> set[Terminal]:
        return {terminal for terminal, once in self._ignored.items() if not (once and gap)}

    def extends(self, piece: bytes, terminal: Terminal) -> bool:
        """Whether some longer lexeme is this terminal."""
        key = (piece, terminal)
        if key not in self._extends:
            self._extends[key] = next(self.terminals.longer(piece, terminal), None) is not None
        return self._extends[key]
