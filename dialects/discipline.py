"""The type discipline that every surface shares: its inference rules, written for the labels that productions carry.

A surface writes the productions; the labels and bindings it must use are those of the rules here:

========================  ===========================================  =================================
label                     bindings                                     meaning
========================  ===========================================  =================================
let, let.T                x, call                                      bind a fresh name to a result, to one of type T
return, return.T, open    value                                        end with a value of the demanded, of any type
sequence, sequence.T      first, rest                                  one step (that binds a T), then the others
var                       x                                            a bound name
text int float bool date  (none)                                       a literal
null                      (none)                                       no value, where a type is optional
widened, some             value                                        an int as a float; a value as an optional one
list, empty, items        items; (none); value, rest                   a list written out
enum.E                    (none)                                       a member of an enumeration
field.R.f                 record                                       a field read from a record
record.R, call.f          (none), or the only part, or rest            a record written out; a tool applied
argument.owner.name       value, rest                                  one argument, and the rest of the list
end.owner                 (none)                                       the end of the list
========================  ===========================================  =================================

Where there are several arguments, or defaults, each may be given once and in any order: the ambient key `argument a`
tells whether a is given, and the list ends when all that are required are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dialects.productions import Names, in_one
from dialects.realizable import (
    CALL_KEY,
    gains,
    guarded,
    key_of,
    let_key,
    name_key,
    name_keys,
    read_key,
    return_key,
    telling,
)
from dialects.universe import Universe
from registry import Registry
from registry.types import ToolType

# The ambient keys of a step: the type that a `return` must have, or the permission to return any type.
OUTPUT_KEY = "output"
OPEN_KEY = "open"
# What the ambient key of an argument says. No type of a tool is spelled so, since a name has no space in it.
NOT_GIVEN, GIVEN = "'not given'", "'given once'"

_STEPS = """\
'some call' ∈ Γ, x ∉ Γ, Γ ⊢ call : ?A
------------------------------------- (let)
Γ → Γ[x:?A] ⊢ ?A

Γ ⊢ value : Γ('output')
----------------------- (return)
Γ('output')

'open' ∈ Γ, Γ ⊢ value : ?A
-------------------------- (open)
?A
"""
_SEQUENCE = """\
Γ ⊢ first : ?A, Γ ⊢ rest : ?B
----------------------------- (sequence)
?B
"""

_LISTS = """\
Γ ⊢ items : ?A
-------------- (list)
list[?A]

------ (empty)
list[?A]

Γ ⊢ value : ?A, Γ ⊢ rest : ?A
----------------------------- (items)
?A
"""

_OPTIONALS = """\
Γ ⊢ value : ?A
-------------- (some)
optional[?A]

------ (null)
optional[?A]
"""


def quoted(kind: ToolType) -> str:
    """A type as rules write it: quoted as a whole, so that no binding's name can be taken for it."""
    return f"'{kind.name}'"


def rule(
    label: str,
    premises: Iterable[tuple[str, str]],
    conclusion: str,
    keys: Iterable[str] = (),
    before: Iterable[str] = (),
    after: Iterable[str] = (),
) -> str:
    """An inference rule: ambient keys, premises `before`, judgements `Γ ⊢ child : type`, and premises `after` them."""
    ambient = [f"'{key}' ∈ Γ" for key in dict.fromkeys(keys)]
    above = ", ".join([*ambient, *before, *(f"Γ ⊢ {child} : {kind}" for child, kind in premises), *after])
    dashes = "-" * max(6, len(above))
    return (f"{above}\n" if above else "") + f"{dashes} ({label})\n{conclusion}\n"


def type_fragment(universe: Universe, *, slots: bool) -> str:
    """The sort of types: the atoms that occur, and the constructors that build on them."""
    alternatives = [f"'{name}'" for name in universe.atoms] + ([NOT_GIVEN, GIVEN] if slots else [])
    lines = []
    if universe.has_lists:
        alternatives.append("ListType")
        lines.append("ListType(list_of) ::= 'list' '[' Type ']'")
    if universe.has_optionals:
        alternatives.append("OptionalType")
        lines.append("OptionalType(optional_of) ::= 'optional' '[' Type ']'")
    return "\n".join([f"Type* ::= {' | '.join(alternatives)}", *lines]) + "\n"


def step_rules(universe: Universe, registry: Registry, *, announced: bool, nested: bool) -> str:
    """Rules of steps and whole programs; what a binding makes possible is told to the rest of a program."""
    word, blocks = words(universe), [_STEPS]
    results = noted(universe, registry, announced=announced)
    if any(tool.returns not in results for tool in registry.values()):
        blocks.append(_SEQUENCE)
    for kind in telling(universe, registry):
        effect = f"Γ → Γ[x:{quoted(kind)}] ⊢ {quoted(kind)}"
        blocks.append(rule(f"let.{word[kind]}", [("call", quoted(kind))], effect, [let_key(kind)], ["x ∉ Γ"]))
    for kind in guarded(universe):
        premises = [("value", quoted(kind))]
        blocks.append(rule(f"return.{word[kind]}", premises, quoted(kind), [return_key(kind), key_of(kind)]))
    for kind in results:
        keys = {key_of(gained): gained.name for gained in gains(universe, registry, kind, nested=nested)}
        if announced:
            keys |= name_keys([kind])
        told = "".join(f"['{key}':'{name}']" for key, name in keys.items())
        blocks.append(rule(f"sequence.{word[kind]}", [("first", "?A")], "?B", after=[f"Γ{told} ⊢ rest : ?B"]))
    return "\n".join(blocks)


def noted(universe: Universe, registry: Registry, *, announced: bool) -> tuple[ToolType, ...]:
    """The types of results that change what the rest of a program can do or, where names are announced, say."""
    if announced:
        return tuple({tool.returns.name: tool.returns for tool in registry.values()}.values())
    return telling(universe, registry)


def words(universe: Universe) -> dict[ToolType, str]:
    """A word for each type, fit for nonterminals and labels."""
    names = Names()
    return {kind: names.fresh(re.sub(r"\W+", "_", kind.name).strip("_")) for kind in universe}


def value_rules(universe: Universe, *, announced: bool = False) -> str:
    """Rules of names, literals and the two conversions; `announced`: names follow a text of the surface (see there)."""
    blocks = [rule("var", (), "Γ(x)", before=["x ∈ Γ"])]
    if announced:
        blocks = [
            rule(f"var.{word}", (), quoted(kind), [name_key(kind)], [f"Γ(x) = {quoted(kind)}"])
            for kind, word in words(universe).items()
        ]
    blocks += [rule(label, (), quoted(universe.by_name[name])) for label, name in literal_kinds(universe)]
    if universe.widens:
        blocks.append(rule("widened", [("value", "'int'")], "'float'"))
    if universe.has_optionals:
        blocks.append(_OPTIONALS)
    if universe.has_lists:
        blocks.append(_LISTS)
    blocks += [rule(f"enum.{kind.name}", (), quoted(kind)) for kind in universe.enums]
    return "\n".join(blocks)


def literal_kinds(universe: Universe) -> tuple[tuple[str, str], ...]:
    """Label and type name of each kind of literal that the universe has."""
    kinds = (("text", "string"), ("int", "int"), ("float", "float"), ("bool", "bool"), ("date", "date"))
    return tuple((label, name) for label, name in kinds if universe.has(name))


def field_rules(universe: Universe, *, announced: bool = False) -> str:
    """One rule for each field that can be read."""
    return "\n".join(
        rule(
            f"field.{record.name}.{field.name}",
            [("record", quoted(record))],
            quoted(field.type),
            [read_key(record)] if announced else [],
        )
        for record in universe.records
        for field in record.fields
    )


def applied_rules(universe: Universe, registry: Registry) -> str:
    """Rules of records written out and of calls; a demand that no literal meets needs its ambient key."""
    needy = set(guarded(universe))
    blocks = []
    for record in universe.written:
        parts = [(field.name, field.type, field.required) for field in record.fields]
        blocks += _applied(f"record.{record.name}", record.name, parts, record, needy)
    for tool in registry.values():
        parts = [(parameter.name, parameter.type, parameter.required) for parameter in tool.parameters]
        blocks += _applied(f"call.{tool.name}", tool.name, parts, tool.returns, needy)
    return "\n".join(blocks)


def _applied(
    label: str, owner: str, parts: list[tuple[str, ToolType, bool]], result: ToolType, needy: set[ToolType]
) -> list[str]:
    """One rule sees the arguments where one production holds them; otherwise each has its own, and so has the end."""
    keys = [key_of(kind) for _, kind, required in parts if required and kind in needy]
    if in_one([required for _, _, required in parts]):
        return [rule(label, [(name, quoted(kind)) for name, kind, _ in parts], quoted(result), keys)]
    nothing = "".join(f"['{_key(name)}':{NOT_GIVEN}]" for name, _, _ in parts)
    blocks = [rule(label, (), quoted(result), keys, after=[f"Γ{nothing} ⊢ rest : ⊤"])]
    for name, kind, _ in parts:
        key = _key(name)
        blocks.append(
            rule(
                f"argument.{owner}.{name}",
                [("value", quoted(kind))],
                "⊤",
                [key_of(kind)] if kind in needy else [],
                before=[f"Γ('{key}') = {NOT_GIVEN}"],
                after=[f"Γ['{key}':{GIVEN}] ⊢ rest : ⊤"],
            )
        )
    needed = [f"Γ('{_key(name)}') = {GIVEN}" for name, _, required in parts if required]
    return [*blocks, rule(f"end.{owner}", (), "⊤", before=needed)]


def _key(name: str) -> str:
    """The ambient key of an argument."""
    return f"argument {name}"


def needs_slots(universe: Universe, registry: Registry) -> bool:
    """Whether some list of arguments has several, or defaults."""
    lists = [[part.required for part in tool.parameters] for tool in registry.values()]
    lists += [[part.required for part in record.fields] for record in universe.written]
    return not all(map(in_one, lists))


def ambient_keys(universe: Universe, registry: Registry, *, announced: bool = False) -> tuple[str, ...]:
    """The ambient keys that rules read and that a start sets."""
    keys = [OUTPUT_KEY, OPEN_KEY, CALL_KEY]
    keys += [*map(key_of, guarded(universe)), *map(let_key, telling(universe, registry))]
    keys += map(return_key, guarded(universe))
    if announced:
        keys += [*map(name_key, universe), *map(read_key, universe.records)]
    return tuple(keys)
