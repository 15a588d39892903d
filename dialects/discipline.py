"""The type discipline that every surface shares: its inference rules, written for the labels that productions carry.

A surface writes the productions; the labels and bindings it must use are those of the rules here:

========================  ===========================================  =================================
label                     bindings                                     meaning
========================  ===========================================  =================================
let                       x, call                                      bind a fresh name to a result
return, open              value                                        end with a value of the demanded, of any type
sequence                  first, rest                                  one step, then the others
var                       x                                            a bound name
text int float bool date  (none)                                       a literal
null                      (none)                                       no value, where a type is optional
widened, some             value                                        an int as a float; a value as an optional one
list, empty, items        items; (none); value, rest                   a list written out
enum.E                    (none)                                       a member of an enumeration
field.R.f                 record                                       a field read from a record
record.R, call.f          one for each field or parameter, unless       a record written out; a tool applied
                          they are arguments of their own
argument.owner.name       value                                        one argument, where some may be left out
========================  ===========================================  =================================
"""

from __future__ import annotations

from collections.abc import Iterable

from dialects.realizable import CALL_KEY, guarded, key_of
from dialects.universe import Universe
from registry import Registry
from registry.types import ToolType

# The ambient keys of a step: the type that a `return` must have, or the permission to return any type.
OUTPUT_KEY = "output"
OPEN_KEY = "open"

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

Γ ⊢ first : ?A, Γ ⊢ rest : ?B
----------------------------- (sequence)
?B
"""

_NAMES = """\
x ∈ Γ
------ (var)
Γ(x)
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


def rule(label: str, premises: Iterable[tuple[str, str]], conclusion: str, keys: Iterable[str] = ()) -> str:
    """An inference rule whose premises are ambient keys and judgements `Γ ⊢ child : type`."""
    ambient = [f"'{key}' ∈ Γ" for key in dict.fromkeys(keys)]
    above = ", ".join(ambient + [f"Γ ⊢ {child} : {kind}" for child, kind in premises])
    dashes = "-" * max(6, len(above))
    return (f"{above}\n" if above else "") + f"{dashes} ({label})\n{conclusion}\n"


def type_fragment(universe: Universe) -> str:
    """The sort of types: the atoms that occur, and the constructors that build on them."""
    alternatives = [f"'{name}'" for name in universe.atoms]
    lines = []
    if universe.has_lists:
        alternatives.append("ListType")
        lines.append("ListType(list_of) ::= 'list' '[' Type ']'")
    if universe.has_optionals:
        alternatives.append("OptionalType")
        lines.append("OptionalType(optional_of) ::= 'optional' '[' Type ']'")
    return "\n".join([f"Type* ::= {' | '.join(alternatives)}", *lines]) + "\n"


def step_rules() -> str:
    """Rules of steps and whole programs."""
    return _STEPS


def value_rules(universe: Universe) -> str:
    """Rules of names, literals and the two conversions."""
    blocks = [_NAMES]
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


def field_rules(universe: Universe) -> str:
    """One rule for each field that can be read."""
    return "\n".join(
        rule(f"field.{record.name}.{field.name}", [("record", quoted(record))], quoted(field.type))
        for record in universe.records
        for field in record.fields
    )


def applied_rules(universe: Universe, registry: Registry) -> str:
    """Rules of records written out and of calls; a demand that no literal meets needs its ambient key."""
    needy = set(guarded(universe))
    blocks = []
    for record in universe.records:
        parts = [(field.name, field.type, field.required) for field in record.fields]
        blocks += _applied(f"record.{record.name}", record.name, parts, record, needy)
    for tool in registry.values():
        parts = [(parameter.name, parameter.type, parameter.required) for parameter in tool.parameters]
        blocks += _applied(f"call.{tool.name}", tool.name, parts, tool.returns, needy)
    return "\n".join(blocks)


def _applied(
    label: str, owner: str, parts: list[tuple[str, ToolType, bool]], result: ToolType, needy: set[ToolType]
) -> list[str]:
    """With nothing to leave out, one rule sees all arguments; otherwise each argument has its own."""
    keys = [key_of(kind) for _, kind, required in parts if required and kind in needy]
    if all(required for _, _, required in parts):
        return [rule(label, [(name, quoted(kind)) for name, kind, _ in parts], quoted(result), keys)]
    blocks = [rule(label, (), quoted(result), keys)]
    for name, kind, _ in parts:
        own = [key_of(kind)] if kind in needy else []
        blocks.append(rule(f"argument.{owner}.{name}", [("value", quoted(kind))], "⊤", own))
    return blocks


def ambient_keys(universe: Universe) -> tuple[str, ...]:
    """The ambient keys that rules read and that a start sets."""
    return (OUTPUT_KEY, OPEN_KEY, CALL_KEY, *map(key_of, guarded(universe)))
