"""Productions of argument lists: positional ones first, then by keyword in the order of declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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


def application(head: str, label: str, owner: str, parts: Sequence[Part], names: Names, *, positional: bool) -> str:
    """The definition of `owner(…)`, as the nonterminal `head` with a rule's label.

    When every part is required, the alternatives differ in how many arguments are positional and bind all of them.
    Otherwise each argument is a nonterminal, and two chains of nonterminals say which may follow which.
    """
    if all(part.required for part in parts):
        most = len(parts) if positional else 0
        ways = [_flat(parts, count) for count in range(most, -1, -1)]
        bodies = list(dict.fromkeys(" ',' ".join(way) for way in ways))
        alternatives = " | ".join(" ".join(filter(None, (f"'{owner}' '('", body, "')'"))) for body in bodies)
        return f"{head}({label}) ::= {alternatives}\n"
    return _chained(head, label, owner, parts, names, positional=positional)


def _flat(parts: Sequence[Part], positional: int) -> list[str]:
    return [
        f"Value[{part.name}]" if index < positional else f"'{part.name}' '=' Value[{part.name}]"
        for index, part in enumerate(parts)
    ]


def _chained(head: str, label: str, owner: str, parts: Sequence[Part], names: Names, *, positional: bool) -> str:
    # may_end[i]: the list may end before part i, since all parts from i on have defaults.
    may_end = [all(not part.required for part in parts[index:]) for index in range(len(parts) + 1)]
    keywords = [names.fresh("Keyword", owner, part.name) for part in parts]
    positions = [names.fresh("Positional", owner, part.name) for part in parts] if positional else []
    empty = f"'{owner}' '(' ')' | " if may_end[0] else ""
    lines = [f"{head}({label}) ::= {empty}'{owner}' '(' {(positions or keywords)[0]} ')'"]
    for index, part in enumerate(parts):
        last, rule = index + 1 == len(parts), f"argument.{owner}.{part.name}"
        if positional:
            plain = names.fresh("Argument", owner, part.name)
            ways = _ways(plain, may_end[index + 1], positions[index + 1 : index + 2])
            lines.append(f"{positions[index]} ::= {' | '.join([*ways, keywords[index]])}")
            lines.append(f"{plain}({rule}) ::= Value[value]")
        keyed = names.fresh("Keyed", owner, part.name)
        ways = _ways(keyed, may_end[index + 1], keywords[index + 1 : index + 2])
        ways += [] if last or part.required else [keywords[index + 1]]
        lines.append(f"{keywords[index]} ::= {' | '.join(ways)}")
        lines.append(f"{keyed}({rule}) ::= '{part.name}' '=' Value[value]")
    return "\n".join(lines) + "\n"


def _ways(argument: str, may_end: bool, following: Sequence[str]) -> list[str]:
    """An argument that ends the list, where it may, and one that the following nonterminal goes on from."""
    return [argument] * may_end + [f"{argument} ',' {after}" for after in following]
