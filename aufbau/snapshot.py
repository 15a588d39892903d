"""Graphs of the engine's objects as bytes and back, without nesting and without running what is not the engine's.

Pickle follows references depth first, and so runs out of stack in a parser's tables. Here all objects are made first
and filled afterwards, one attribute of all objects of a class at a time. An object is made empty; one of a class that
mypyc has compiled is made by its constructor, since its final attributes are read-only, and therefore after the
objects that it is made of. Only objects of this package's classes are made, and nothing else is called: bytes that
someone has forged can make the engine wrong, but they run nothing of their own.
"""

from __future__ import annotations

import gc
import io
import pickle
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]  # pickle's name for making an object empty
from enum import Enum
from inspect import Parameter, signature
from typing import Any, Final, final

_PACKAGE: Final = __name__.partition(".")[0]
_ATOMS: Final = frozenset({bool, bytes, int, str, type(None)})
# Parameters named otherwise than the attributes that they become.
_ATTRIBUTES: Final = {"bound": "type", "sieve": "filter"}


class SnapshotError(Exception):
    """Objects that can't be kept as bytes, or bytes that no snapshot wrote."""


def dump(root: object, anchors: Sequence[object] = ()) -> bytes:
    """The graph below `root` as bytes; it may refer to `anchors`, which are given again when it is loaded.

    Raises `SnapshotError` for an object that is neither a container nor `keepable`, and for one that changes meanwhile.
    """
    out = io.BytesIO()
    try:
        graph = _Graph(root, anchors)
        groups = [(some, graph.shapes[kind].columns(some)) for kind, some in graph.by_class.items()]
        _Writer(out, graph).dump((graph.order(), groups, root))
    except (AttributeError, RuntimeError) as error:  # another thread is filling an object, or a table
        raise SnapshotError(f"the objects change: {error}") from error
    return out.getvalue()


def load(data: bytes, anchors: Sequence[object] = ()) -> Any:
    """What `dump` was given. Raises `SnapshotError` for bytes that it did not write."""
    collecting = gc.isenabled()
    gc.disable()  # nothing of it is garbage: 15 ms instead of 20 to 60 for the 50,000 objects of a grammar
    try:
        _, groups, root = _Reader(data, anchors).load()
        for some, columns in groups:
            kind = type(some[0])
            known = _attributes(kind)
            for name, column in columns.items():
                if name not in known:
                    raise SnapshotError(f"{kind.__qualname__} has no attribute {name}")
                deque(map(getattr(kind, name).__set__, some, column), maxlen=0)
    except SnapshotError:
        raise
    except Exception as error:  # whatever bytes that are none of ours lead pickle to
        raise SnapshotError(f"no snapshot: {type(error).__name__}: {error}") from error
    finally:
        if collecting:
            gc.enable()
    return root


def keepable(kind: type) -> bool:
    """Whether objects of a class can be made and filled: it is ours, and has slots only; if it is compiled, what its
    constructor needs are attributes, or it has a static method `blank` that makes one to be filled."""
    if kind.__module__.partition(".")[0] != _PACKAGE or kind.__dictoffset__ != 0 or issubclass(kind, Enum):
        return False
    if not compiled(kind):
        return all(hasattr(getattr(kind, name), "__set__") for name in _attributes(kind))
    return hasattr(kind, "blank") or _parameters(kind) is not None


def compiled(kind: type) -> bool:
    """Whether mypyc has compiled a class."""
    return hasattr(kind, "__mypyc_attrs__")


def _attributes(kind: type) -> tuple[str, ...]:
    """The attributes of a class, its bases' among them."""
    names: tuple[str, ...] | None = getattr(kind, "__mypyc_attrs__", None)
    if names is not None:
        return names
    return tuple(name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))


def _parameters(kind: type) -> dict[str, str] | None:
    """The parameters of a constructor with the attributes that they become; those that have a default may become none.
    None when another does."""
    attributes = _attributes(kind)
    found: dict[str, str] = {}
    try:
        parameters = signature(kind).parameters.values()
    except ValueError:  # mypyc writes no signature where a default is not a literal
        return None
    for parameter in parameters:
        name = parameter.name if parameter.name in attributes else _ATTRIBUTES.get(parameter.name, "")
        if name in attributes:
            found[parameter.name] = name
        elif parameter.default is Parameter.empty:
            return None
    return found


def _positional(kind: type, names: list[str]) -> bool:
    """Whether a constructor takes some parameters by position, which is faster."""
    first = list(signature(kind).parameters.values())[: len(names)]
    return [one.name for one in first] == names and all(one.kind is not Parameter.KEYWORD_ONLY for one in first)


@final
class _Shape:
    """How the objects of a class are kept."""

    __slots__ = ("_settable", "kind", "names", "owned", "parameters", "positional")

    def __init__(self, kind: type, one: object) -> None:
        self.kind: Final = kind
        self.names: Final = _attributes(kind)
        blank = not compiled(kind) or hasattr(kind, "blank")
        self.parameters: Final = {} if blank else _parameters(kind) or {}
        self.positional: Final = not blank and _positional(kind, list(self.parameters))
        self._settable: Final = [name for name in self.names if not compiled(kind) or _set_again(one, name)]
        # Objects that are attributes, but neither given to the constructor nor set: it makes them itself.
        left = [name for name in self.names if name not in (*self._settable, *self.parameters.values())]
        self.owned: Final = [name for name in left if keepable(type(getattr(one, name)))]

    def columns(self, some: list[Any]) -> dict[str, list[Any]]:
        """The values of each attribute that is set."""
        return {name: [getattr(one, name) for one in some] for name in self._settable}

    def given(self, one: Any) -> tuple[Any, ...]:
        """What the constructor is called with. An attribute that is the object itself is what it is when left out."""
        return tuple([None if (value := getattr(one, name)) is one else value for name in self.parameters.values()])


def _set_again(one: object, name: str) -> bool:
    """Whether an attribute can be set, tried with what it is."""
    try:
        setattr(one, name, getattr(one, name))
    except AttributeError:
        return False
    return True


@final
class _Graph:
    """All objects with attributes that a root leads to."""

    __slots__ = ("anchors", "by_class", "given", "owned", "shapes")

    def __init__(self, root: object, anchors: Sequence[object]) -> None:
        self.anchors: Final = {id(anchor): number for number, anchor in enumerate(anchors)}
        self.by_class: Final[dict[type, list[Any]]] = {}
        self.shapes: Final[dict[type, _Shape]] = {}
        self.owned: Final[dict[int, tuple[object, str]]] = {}  # what constructors make, with who has it
        self.given: Final[dict[int, tuple[Any, ...]]] = {}  # what constructors are called with
        seen = set(self.anchors)
        pending: list[Any] = [root]
        while pending:
            one = pending.pop()
            kind = type(one)
            if kind in _ATOMS or id(one) in seen:
                continue
            seen.add(id(one))
            if kind is tuple or kind is list or kind is set or kind is frozenset:
                pending += one
            elif kind is dict:
                pending += one
                pending += one.values()
            elif isinstance(one, Enum):
                continue
            else:
                shape = self.shapes.get(kind) or self._shape(kind, one)
                self.by_class[kind].append(one)
                pending += [getattr(one, name) for name in shape.names]
                for name in shape.owned:
                    self.owned[id(getattr(one, name))] = one, name

    def _shape(self, kind: type, one: object) -> _Shape:
        if not keepable(kind):
            raise SnapshotError(f"an object of {kind.__module__}.{kind.__qualname__} can't be kept")
        self.by_class[kind] = []
        found = self.shapes[kind] = _Shape(kind, one)
        return found

    def order(self) -> list[Any]:
        """The objects in an order in which they can be made: each after those that its constructor is given."""
        found = [one for kind, some in self.by_class.items() if not self.shapes[kind].parameters for one in some]
        found = [one for one in found if id(one) not in self.owned]
        made = {id(one) for one in found}
        stack = [one for some in self.by_class.values() for one in some if id(one) not in made]
        while stack:
            one = stack[-1]
            if id(one) in made:
                stack.pop()
            elif id(one) in self.given:
                first = [other for other in self._needed(one) if id(other) not in made]
                if first:
                    raise SnapshotError(f"an object of {type(one).__qualname__} is made of itself")
                made.add(id(one))
                found.append(stack.pop())
            else:
                self.given[id(one)] = self.shapes[type(one)].given(one)
                stack += [other for other in self._needed(one) if id(other) not in made]
        return found

    def _needed(self, one: Any) -> list[Any]:
        """The objects that have to be there before one can be made."""
        if id(one) in self.owned:
            return [self.owned[id(one)][0]]
        found: list[Any] = []
        pending = [*self.given[id(one)]]
        while pending:
            value = pending.pop()
            kind = type(value)
            if kind in _ATOMS:
                continue
            if kind is tuple or kind is list or kind is set or kind is frozenset:
                pending += value
            elif kind is dict:
                pending += value
                pending += value.values()
            elif kind in self.shapes and id(value) not in self.anchors:
                found.append(value)
        return found


class _Writer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, graph: _Graph) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._graph = graph
        self._known = {id(one) for some in graph.by_class.values() for one in some}

    def reducer_override(self, one: Any) -> Any:
        number = self._graph.anchors.get(id(one))
        if number is not None:
            return _anchor, (number,)
        if id(one) in self._graph.owned:
            return _owned, self._graph.owned[id(one)]
        if id(one) in self._known:
            kind = type(one)
            shape = self._graph.shapes[kind]
            if not compiled(kind):
                return __newobj__, (kind,)
            given = self._graph.given.get(id(one), ())
            return (
                (kind, given) if shape.positional else (_made, (kind, dict(zip(shape.parameters, given, strict=True))))
            )
        if isinstance(one, type | Enum) or any(one is function for function in (_anchor, _made, _owned)):
            return NotImplemented
        raise SnapshotError(f"an object of {type(one).__qualname__} came while the others were written")


def _anchor(number: int) -> None:
    """Stands in a snapshot for the anchors that it is loaded with."""


def _made(kind: Any, given: Mapping[str, Any]) -> Any:
    """An object of a compiled class that takes keywords, or has a `blank`."""
    blank: Callable[[], Any] | None = getattr(kind, "blank", None)
    return kind(**given) if blank is None else blank()


def _owned(one: Any, name: str) -> Any:
    """What an object of a compiled class has made itself."""
    if not compiled(type(one)) or name not in _attributes(type(one)):
        raise SnapshotError(f"{name} has no place in a snapshot")
    return getattr(one, name)


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, anchors: Sequence[object]) -> None:
        super().__init__(io.BytesIO(data))
        self._functions = {"_anchor": anchors.__getitem__, "_made": self._made, "_owned": _owned}
        self._kinds: set[type] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in self._functions:
            return self._functions[name]
        if module.partition(".")[0] == _PACKAGE:
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and found.__module__ == module and (issubclass(found, Enum) or keepable(found)):
                self._kinds.add(found)
                return found
        raise SnapshotError(f"{module}.{name} has no place in a snapshot")

    def _made(self, kind: type, given: Mapping[str, Any]) -> Any:
        if kind not in self._kinds:
            raise SnapshotError(f"{kind!r} has no place in a snapshot")
        return _made(kind, given)
