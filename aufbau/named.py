"""The names that items take for a lexeme: listed by their types, as far as Γ and the text decide."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from aufbau.earley.chart import Item, Lexeme
from aufbau.earley.machine import NO_SLOT, RESULT
from aufbau.lexer.state import Reader, by_type
from aufbau.typesystem.context import Scope
from aufbau.typesystem.terms import Term, variables
from aufbau.vocabulary.texts import TextIndex

_Key = tuple[object, ...]
Found = tuple[npt.NDArray[np.int32], list[bytes]]
_NONE: Final = np.zeros(0, np.int32)


@final
class Names:
    """The texts that some items take for a lexeme, where they are finitely many; in ascending order."""

    __slots__ = ("texts",)

    def __init__(self, texts: tuple[bytes, ...]) -> None:
        self.texts: Final = texts

    def among(self, index: TextIndex, read: bytes) -> Found:
        """Tokens of the index that, after `read`, begin a name, and the texts that are all that is left of one."""
        few = index.few()
        return self._sought(index, read) if few is None else self._tried(few, read)

    def _tried(self, few: list[tuple[bytes, npt.NDArray[np.int32]]], read: bytes) -> Found:
        """Look for each text of a small index among the names."""
        begun, whole, names = [], [], self.texts
        for text, tokens in few:
            begins = read + text
            at = bisect_left(names, begins)
            if at < len(names) and names[at] == begins:
                whole.append(text)
                at += 1
            if at < len(names) and names[at].startswith(begins):
                begun.append(tokens)
        return np.concatenate(begun) if begun else _NONE, whole

    def _sought(self, index: TextIndex, read: bytes) -> Found:
        """Look for the beginnings of each name in the index."""
        rests: Sequence[bytes] = self.texts
        if read:
            rests = [
                name[len(read) :]
                for name in rests[bisect_left(rests, read) :]
                if name.startswith(read) and len(name) > len(read)
            ]
        parts = index.beginnings(rests)
        begun = [tokens for tokens, _ in parts if len(tokens)]
        whole = [rest for rest, (_, tokens) in zip(rests, parts, strict=True) if len(tokens)]
        return np.concatenate(begun) if begun else _NONE, whole


@final
class Lists:
    """Lists names, and remembers what it listed."""

    def __init__(self, reader: Reader, *, limit: int = 10_000) -> None:
        self._reader = reader
        self._limit = limit
        self._names: dict[_Key, Names] = {}
        self._tables: dict[tuple[Scope, str, int], dict[Term, list[bytes]]] = {}
        self._listed: dict[_Key, tuple[bytes, ...]] = {}
        self._fits: dict[_Key, dict[Term, bool]] = {}
        self._verdicts: dict[_Key, dict[_Key, bool]] = {}

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What was decided apart from texts."""
        return self._tables, self._fits, self._verdicts

    def make_room(self) -> None:
        """Forget all when it is too much."""
        known: tuple[dict[Any, Any], ...] = (self._names, self._tables, self._listed, self._fits, self._verdicts)
        if sum(map(len, known)) > self._limit:
            for table in known:
                table.clear()

    def names(self, items: list[Item], mask: int) -> Names:
        """The texts that some of these items takes; none of them may be `endless`."""
        texts: set[bytes] = set()  # where the text itself is compared
        fitting: dict[tuple[Scope, str], set[Term]] = {}
        for item in items:
            position, record = item.production.positions[item.dot], item.record
            if position.slot != NO_SLOT:
                required = item.slots[record.holes + position.slot]
                if required.index < 0:
                    texts.add(required.head.encode())
                    continue
            if by_type(position):
                prefix = position.lookups[0].prefix if position.lookups else position.member_prefix
                scope = self._reader.parser.context(item).scope
                self._fit(item, self._table(scope, prefix, mask), fitting.setdefault((scope, prefix), set()))
            else:
                texts.update(self._texts(item, mask))
        tables = tuple([(*key, frozenset(types)) for key, types in fitting.items() if types])
        key = (mask, tables, frozenset(texts))
        found = self._names.get(key)
        if found is None:
            for scope, prefix, types in tables:
                table = self._table(scope, prefix, mask)
                texts.update(name for bound in types for name in table[bound])
            found = self._names[key] = Names(tuple(sorted(texts)))
        return found

    def _texts(self, item: Item, mask: int) -> tuple[bytes, ...]:
        """The names that an item takes where their text counts beside their type."""
        record = item.record
        key = (mask, item.production, item.dot, item.slots, item.effect, record.holes, record.filter, record.context)
        found = self._listed.get(key)
        if found is None:
            found = self._listed[key] = tuple(self._taken(item, mask))
        return found

    def _taken(self, item: Item, mask: int) -> list[bytes]:
        """Try the names of Γ, where what Γ says of one is what it said of an earlier one, once for both."""
        position, record, parser = item.production.positions[item.dot], item.record, self._reader.parser
        gamma = parser.context(item)
        if not gamma.ground:
            return [name.encode() for name, _ in self._reader.names(item, mask, b"")]
        state = (item.production, item.dot, item.slots, item.effect, record.holes, record.filter)
        verdicts = self._verdicts.setdefault(state, {})
        prefixes = [lookup.prefix for lookup in position.lookups]
        if position.member:
            prefixes.append(position.member_prefix)
        textual = position.slot != NO_SLOT and not _alone(item, record.holes + position.slot)
        found = []
        for bound, names in self._table(gamma.scope, prefixes[0], mask).items():
            for name in names:
                text = name.decode()
                known: list[object] = [bound, text if textual else None]
                known += [gamma.lookup(prefix + text) for prefix in prefixes[1:]]
                if position.fresh:
                    binder = position.fresh_prefix + text
                    known += [gamma.lookup(binder) is None, gamma.in_scope(binder)]
                key = tuple(known)
                fits = verdicts.get(key)
                if fits is None:
                    fits = verdicts[key] = parser.take(item, Lexeme(text, 0, 0)) is not None
                if fits:
                    found.append(name)
        return found

    def _fit(self, item: Item, table: dict[Term, list[bytes]], fitting: set[Term]) -> None:
        """Add the types of a table that an item takes. Where a type decides, nothing else of Γ does."""
        record = item.record
        state = (item.production, item.dot, item.slots, item.effect, record.holes, record.filter)
        verdicts = self._fits.get(state)
        if verdicts is None:
            verdicts = self._fits[state] = {}
        for bound, names in table.items():
            if bound not in fitting:
                fits = verdicts.get(bound)
                if fits is None:
                    taken = self._reader.parser.take(item, Lexeme(names[0].decode(), 0, 0))
                    fits = verdicts[bound] = taken is not None
                if fits:
                    fitting.add(bound)

    def _table(self, scope: Scope, prefix: str, mask: int) -> dict[Term, list[bytes]]:
        """The names of a name space that can be the terminals of `mask`, by their types."""
        found = self._tables.get((scope, prefix, mask))
        if found is None:
            found = {}
            skipped = prefix.encode()
            space = scope.beginning(skipped)
            classify = self._reader.parser.machine.automaton.classify
            stack = [] if space is None else _named(space)
            while stack:
                node = stack.pop()
                if node.type is not None:
                    name = node.name.encode()[len(skipped) :]
                    if classify(name) & mask:
                        found.setdefault(node.type, []).append(name)
                stack += _named(node)
            self._tables[scope, prefix, mask] = found
        return found


def _named(node: Scope) -> list[Scope]:
    """What follows a node of a name space; a zero byte leads to another space."""
    return [after for byte, after in zip(node.following, node.nodes, strict=True) if byte]


def endless(item: Item) -> bool:
    """Whether the texts that an item takes can't be listed: they need neither be in Γ nor be a given one."""
    position = item.production.positions[item.dot]
    if position.member or position.lookups:
        return False
    return position.slot == NO_SLOT or item.slots[item.record.holes + position.slot].index >= 0


def _alone(item: Item, at: int) -> bool:
    """Whether the variable that a text is written to stands nowhere else in an item."""
    if at == item.record.holes + RESULT or (item.effect is not None and not item.effect.ground):
        return False
    return item.slots[at].index not in variables(item.slots[:at] + item.slots[at + 1 :])
