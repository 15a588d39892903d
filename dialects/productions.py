"""Productions of argument lists: positional arguments first, then keyword arguments in any order.

Lists of arguments nest to the right: each argument holds the `rest` of the list, so that its rule can tell the rest
what is given already (see `dialects.discipline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dialects.surface import Surface

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A parameter of a tool or a field of a record."""

    name: str
    required: bool


@dataclass(slots=True)
class Names:
    """Hands out nonterminal names, so that `Argument_a_b` of two owners never means both."""

    used: set[str] = field(default_factory=set)

    def fresh(self, *parts: str) -> str:
        """The parts joined by underscores, with a number when that is taken."""
        base = name = "_".join(parts)
        number = 2
        while name in self.used:
            name = f"{base}_{number}"
            number += 1
        self.used.add(name)
        return name


def quote(literal: str) -> str:
    """A literal terminal as `.auf` text spells it."""
    for character, escaped in _ESCAPES.items():
        literal = literal.replace(character, escaped)
    return f"'{literal}'"


def in_one(parts: Sequence[bool]) -> bool:
    """Whether one production can hold the whole list, from what is required: there are no orders and no defaults."""
    return not parts or list(parts) == [True]


def application(
    surface: Surface, head: str, label: str, owner: str, parts: Sequence[Part], names: Names, *, positional: bool
) -> str:
    """The definition of `owner` applied to its parts, as the nonterminal `head` with a rule's label."""
    if not parts:
        around = [(surface.opening(owner), surface.closing(owner)), *surface.bare(owner)]
        return f"{head}({label}) ::= {' | '.join(map(' '.join, around))}\n"
    if in_one([part.required for part in parts]):
        (part,) = parts
        ways = [_keyed(surface, part.name, part.name)]
        ways += [_placed(surface, part.name)] if positional else []
        whole = (f"{surface.opening(owner)} {way} {surface.closing(owner)}" for way in reversed(ways))
        return f"{head}({label}) ::= {' | '.join(whole)}\n"
    return _nested(surface, head, label, owner, parts, names, positional=positional)


def _placed(surface: Surface, binding: str) -> str:
    return " ".join(filter(None, (surface.lead, f"Value[{binding}]")))


def _keyed(surface: Surface, name: str, binding: str) -> str:
    before, after = surface.keyed(name)
    return " ".join(filter(None, (surface.lead, before, f"Value[{binding}]", after)))


def _nested(
    surface: Surface, head: str, label: str, owner: str, parts: Sequence[Part], names: Names, *, positional: bool
) -> str:
    """A list with several arguments or defaults.

    `From_f_a` is the list from the positional argument a on, `Keyed_f` one that goes on by keyword, `End_f` its end.
    What an argument is followed by are alternatives of it where a comma stands between arguments, else of its rest.
    """
    # may_end[i]: all parts from i on have defaults.
    may_end = [all(not part.required for part in parts[index:]) for index in range(len(parts) + 1)]
    end, keyed = names.fresh("End", owner), names.fresh("Keyed", owner)
    rest = names.fresh("Rest", owner) if len(parts) > 1 and not surface.comma else ""
    froms = [names.fresh("From", owner, part.name) for part in parts] if positional else []
    first = [f"{surface.opening(owner)} {way}[rest]" for way in [*froms[:1], *([] if froms else [keyed])]]
    first += [f"{surface.opening(owner)} {end}[rest]"] if may_end[0] and (surface.comma or not froms) else []
    bare = list(surface.bare(owner)) if may_end[0] else []
    empty = names.fresh("Empty", owner) if bare else ""
    first += [f"{before} {empty}[rest]" for before, _ in bare]
    lines = [f"{head}({label}) ::= {' | '.join(first)}"]
    lines += [f"{empty}(end.{owner}) ::= {' | '.join(after for _, after in bare)}"] if bare else []
    for index, (part, before) in enumerate(zip(parts, froms, strict=False)):
        place = names.fresh("Place", owner, part.name)
        ends = [end] if may_end[index] and not surface.comma else []
        lines.append(f"{before} ::= {' | '.join([place, keyed, *ends])}")
        after = froms[index + 1] if index + 1 < len(parts) else ""
        ways = _followed(surface, _placed(surface, "value"), after, end if may_end[index + 1] else "")
        lines.append(f"{place}(argument.{owner}.{part.name}) ::= {ways}")
    keys = [names.fresh("Key", owner, part.name) for part in parts]
    lines.append(f"{keyed} ::= {' | '.join(keys)}")
    lines += [f"{rest} ::= {keyed} | {end}"] if rest else []
    for part, key in zip(parts, keys, strict=True):
        after = (rest or keyed) if len(parts) > 1 else ""
        ways = _followed(surface, _keyed(surface, part.name, "value"), after, end)
        lines.append(f"{key}(argument.{owner}.{part.name}) ::= {ways}")
    lines.append(f"{end}(end.{owner}) ::= {surface.closing(owner)}")
    return "\n".join(lines) + "\n"


def _followed(surface: Surface, argument: str, following: str, end: str) -> str:
    """The alternatives of an argument: `following` goes on from it, or the list ends."""
    if not surface.comma:
        return f"{argument} {following or end}[rest]"
    ways = [f"{argument} {surface.comma} {following}[rest]"] if following else []
    return " | ".join([*ways, *([f"{argument} {end}[rest]"] if end else [])])
