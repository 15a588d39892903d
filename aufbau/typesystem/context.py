"""Γ: a persistent, hash-consed map from names and ambient keys to types, with look-up by prefix.

Names lie in a byte trie that copies only the path it changes, so binding and look-up cost O(length of the name), a
series of n declarations stays linear, and the names that begin with some bytes are one subtree, as an unfinished
lexeme needs them. Each node knows the types below it, so a subtree without a fitting type is skipped whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, final

from aufbau.typesystem.terms import Term, Terms

_NO_TYPES: Final[frozenset[Term]] = frozenset()
_NO_NAMES: Final[frozenset[str]] = frozenset()


@final
class Scope:
    """A node of the trie: the binding that ends here, and what follows, as a dictionary would hold it in less room."""

    __slots__ = ("following", "name", "nodes", "type", "types")

    def __init__(
        self, name: str, bound: Term | None, following: bytes, nodes: tuple[Scope, ...], types: frozenset[Term]
    ) -> None:
        self.name: Final = name
        self.type: Final = bound
        self.following: Final = following  # bytes, in ascending order
        self.nodes: Final = nodes  # what each of them leads to
        self.types: Final = types  # all that are below, and perhaps some that have been shadowed

    def beginning(self, prefix: bytes) -> Scope | None:
        """The subtree of the names that begin with these bytes."""
        node = self
        for byte in prefix:
            at = node.following.find(byte)
            if at < 0:
                return None
            node = node.nodes[at]
        return node

    def names(self) -> Iterator[tuple[str, Term]]:
        """Bindings of this subtree in the order of their bytes."""
        stack = [self]
        while stack:
            node = stack.pop()
            if node.type is not None:
                yield node.name, node.type
            stack.extend(reversed(node.nodes))


_EMPTY_SCOPE: Final = Scope("", None, b"", (), _NO_TYPES)


def _insert(root: Scope, name: str, bound: Term) -> Scope:
    path, node = [], root
    data = name.encode()
    for byte in data:
        path.append(node)
        at = node.following.find(byte)
        node = _EMPTY_SCOPE if at < 0 else node.nodes[at]
    types = frozenset((bound,))
    new = Scope(name, bound, node.following, node.nodes, _joined(node.types, types))
    for parent, byte in zip(reversed(path), reversed(data), strict=True):
        following, nodes = parent.following, parent.nodes
        at = bisect_left(following, byte)
        end = at + (following[at : at + 1] == bytes((byte,)))
        if end == at:
            following = following[:at] + bytes((byte,)) + following[at:]
        new = Scope(parent.name, parent.type, following, (*nodes[:at], new, *nodes[end:]), _joined(parent.types, types))
    return new


def _joined(types: frozenset[Term], more: frozenset[Term]) -> frozenset[Term]:
    """The union, as one of the two where that is enough: a program has many names and few types."""
    if more <= types:
        return types
    return types | more if types else more


_Open = tuple[tuple[str, Term], ...]
SHADOWED: Final = "\0"  # no name


def _hidden(opened: _Open, name: str) -> _Open:
    """The entries of which one is shadowed. It stays for its holes, so that these are numbered alike whatever the
    names are."""
    return tuple([(SHADOWED, bound) if known == name else (known, bound) for known, bound in opened])


@final
class Context:
    """Γ, hash-consed: equal extensions of one context are one object.

    Entries whose types have holes are kept beside a `base` without such entries, and are shared by content, so that
    the canonical form of an open Γ is one object however its holes were numbered before.
    """

    __slots__ = (
        "_ambient_next",
        "_canonical",
        "_inside",
        "_instances",
        "_next",
        "_next_outside",
        "_opened",
        "ambient",
        "base",
        "effects",
        "ground",
        "inner",
        "keys",
        "opened",
        "opened_inside",
        "scope",
    )

    def __init__(
        self,
        scope: Scope,
        inner: Scope,
        ambient: dict[str, Term],
        base: Context | None = None,
        opened: _Open = (),
        keys: _Open = (),
        opened_inside: frozenset[str] | None = None,
    ) -> None:
        self.scope: Final = scope
        self.ambient: Final = ambient
        self.base: Final[Context] = self if base is None else base
        self.opened: Final = opened  # names whose types have holes
        self.keys: Final = keys  # ambient keys whose types have holes
        self.inner: Final = inner  # whole types of the innermost scope
        self.opened_inside: Final = opened_inside or _NO_NAMES  # those of `opened` in the innermost scope
        self._inside: Context | None = None
        self.ground: Final[bool] = base is None
        self._next: dict[tuple[str, Term], Context] = {}
        self._next_outside: dict[tuple[str, Term], Context] = {}
        self._ambient_next: dict[tuple[str, Term], Context] = {}
        self._opened: dict[tuple[_Open, _Open, frozenset[str]], Context] = {}
        self.effects: dict[Effect, Context] = {}
        self._instances: dict[tuple[Term, ...], Context] = {}
        self._canonical: dict[Term | None, tuple[Context, Term | None, tuple[int, ...]]] = {}

    @staticmethod
    def empty() -> Context:
        """A new Γ that binds nothing."""
        return Context(_EMPTY_SCOPE, _EMPTY_SCOPE, {})

    def bind(self, name: str, bound: Term) -> Context:
        """Γ[name:type]; an earlier binding of the name is shadowed."""
        key = (name, bound)
        found = self._next.get(key)
        if found is None:
            if self.ground and bound.ground:
                found = Context(_insert(self.scope, name, bound), _insert(self.inner, name, bound), self.ambient)
            else:
                opened = _hidden(self.opened, name)
                inside = self.opened_inside - {name}
                if bound.ground:
                    found = self.base.bind(name, bound)._open(opened, self.keys, inside)
                else:
                    found = self.base._open((*opened, key), self.keys, inside | {name})
            found = self._next.setdefault(key, found)
        return found

    def bind_outside(self, name: str, bound: Term) -> Context:
        """Γ[name:type] for a name that lies outside the innermost scope."""
        key = (name, bound)
        found = self._next_outside.get(key)
        if found is None:
            if self.ground and bound.ground:
                found = Context(_insert(self.scope, name, bound), self.inner, self.ambient)
            else:
                opened = _hidden(self.opened, name)
                if bound.ground:
                    found = self.base.bind_outside(name, bound)._open(opened, self.keys, self.opened_inside)
                else:
                    found = self.base._open((*opened, key), self.keys, self.opened_inside)
            found = self._next_outside.setdefault(key, found)
        return found

    def bind_ambient(self, key: str, bound: Term) -> Context:
        """Γ['key':type]."""
        if self.ambient.get(key) is bound:
            return self
        pair = (key, bound)
        found = self._ambient_next.get(pair)
        if found is None:
            if self.ground and bound.ground:
                found = Context(self.scope, self.inner, {**self.ambient, key: bound})
            else:
                keys = tuple(entry for entry in self.keys if entry[0] != key)
                if bound.ground:
                    found = self.base.bind_ambient(key, bound)._open(self.opened, keys, self.opened_inside)
                else:
                    found = self.base._open(self.opened, (*keys, pair), self.opened_inside)
            found = self._ambient_next.setdefault(pair, found)
        return found

    def open_scope(self) -> Context:
        """Γ[]: the same bindings, all of them outside a new innermost scope."""
        found = self._inside
        if found is None:
            if self.ground:
                found = Context(self.scope, _EMPTY_SCOPE, self.ambient)
            else:
                found = self.base.open_scope()._open(self.opened, self.keys, _NO_NAMES)
            found._inside = found
            self._inside = found
        return found

    def renewed(self) -> Context:
        """The same bindings, without what was remembered of extensions; only for contexts without holes."""
        return Context(self.scope, self.inner, self.ambient)

    def in_scope(self, name: str) -> bool:
        """Whether a name is bound in the innermost scope."""
        if name in self.opened_inside:
            return True
        node = self.inner.beginning(name.encode())
        return node is not None and node.type is not None

    def _open(self, opened: _Open, keys: _Open, inside: frozenset[str]) -> Context:
        """This context, which has no holes, with entries that have."""
        if not opened and not keys:
            return self
        found = self._opened.get((opened, keys, inside))
        if found is None:
            scope = self.scope
            for name, bound in opened:
                scope = _insert(scope, name, bound)
            opening = Context(scope, self.inner, {**self.ambient, **dict(keys)}, self, opened, keys, inside)
            found = self._opened.setdefault((opened, keys, inside), opening)
        return found

    def lookup(self, name: str) -> Term | None:
        """The type of a name, or None."""
        node = self.scope.beginning(name.encode())
        return None if node is None else node.type

    def beginning(self, prefix: bytes) -> Scope | None:
        """The subtree of the names that begin with these bytes."""
        return self.scope.beginning(prefix)

    def names(self) -> Iterator[tuple[str, Term]]:
        """All bindings of names, in the order of their bytes."""
        return self.scope.names()

    def open_types(self) -> list[Term]:
        """The types with holes, in a fixed order."""
        return [bound for _, bound in self.keys] + [bound for _, bound in self.opened]

    def canonical(self, terms: Terms, demand: Term | None) -> tuple[Context, Term | None, tuple[int, ...]]:
        """Γ and a demand with their holes numbered by first appearance, and what these were; remembered."""
        found = self._canonical.get(demand)
        if found is None:
            names: dict[int, int] = {}
            gamma = self._mapped([terms.rename(bound, names) for bound in self.open_types()])
            renamed = None if demand is None else terms.rename(demand, names)
            found = self._canonical[demand] = (gamma, renamed, tuple(names))
        return found

    def instantiate(self, terms: Terms, values: tuple[Term, ...]) -> Context:
        """Replace hole number i by `values[i]`; remembered."""
        found = self._instances.get(values)
        if found is None:
            found = self._mapped([terms.instance(bound, values) for bound in self.open_types()])
            self._instances[values] = found
        return found

    def _mapped(self, types: list[Term]) -> Context:
        """The base with other types for the open entries; those that are whole now join the base."""
        result, at = self.base, 0
        for key, _ in self.keys:
            result = result.bind_ambient(key, types[at])
            at += 1
        # A name of an outer scope stays there, whether its type is whole by now or not.
        for name, _ in self.opened:
            if name == SHADOWED and types[at].ground:
                at += 1
                continue
            inside = name in self.opened_inside
            result = result.bind(name, types[at]) if inside else result.bind_outside(name, types[at])
            at += 1
        return result

    def apply(self, effect: Effect | None) -> Context:
        """Γ extended by an effect, entry by entry; remembered, so a growing effect costs one entry a time."""
        if effect is None:
            return self
        pending = []
        current: Effect | None = effect
        result = self
        while current is not None:
            known = self.effects.get(current)
            if known is not None:
                result = known
                break
            pending.append(current)
            current = current.before
        for entry in reversed(pending):
            if entry.ambient:
                result = result.bind_ambient(entry.name, entry.type)
            else:
                result = result.bind(entry.name, entry.type)
            self.effects[entry] = result
        return result


@final
class Effect:
    """A series of bindings that a finished node exports, the last one first; hash-consed by `Effects`."""

    __slots__ = ("ambient", "before", "ground", "name", "type")

    def __init__(self, before: Effect | None, name: str, ambient: bool, bound: Term) -> None:
        self.before: Final = before
        self.name: Final = name
        self.ambient: Final = ambient
        self.type: Final = bound
        self.ground: Final[bool] = bound.ground and (before is None or before.ground)

    def entries(self) -> list[Effect]:
        """The entries in the order in which they were made."""
        found: list[Effect] = []
        current: Effect | None = self
        while current is not None:
            found.append(current)
            current = current.before
        found.reverse()
        return found


@final
class Effects:
    """The table in which effects are shared."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table: dict[tuple[Effect | None, str, bool, Term], Effect] = {}

    def __len__(self) -> int:
        """How many effects there are."""
        return len(self.table)

    def add(self, before: Effect | None, name: str, ambient: bool, bound: Term) -> Effect:
        """`before` followed by one more binding."""
        key = (before, name, ambient, bound)
        found = self.table.get(key)
        if found is None:
            found = self.table.setdefault(key, Effect(before, name, ambient, bound))
        return found

    def compose(self, first: Effect | None, second: Effect | None) -> Effect | None:
        """`first` followed by `second`; the cost is the length of `second`."""
        if second is None:
            return first
        if first is None:
            return second
        result = first
        for entry in second.entries():
            result = self.add(result, entry.name, entry.ambient, entry.type)
        return result

    def mapped(self, effect: Effect, image: list[Term]) -> Effect:
        """The same entries with other types, given in the order of `entries`."""
        result: Effect | None = None
        for entry, bound in zip(effect.entries(), image, strict=True):
            result = self.add(result, entry.name, entry.ambient, bound)
        assert result is not None
        return result
