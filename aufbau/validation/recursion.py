"""The recursion probe for ML: recursive definitions, right and with each fault, built systematically."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """One program of the probe; whether it is right is the compiler's word, not ours."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """A recursive function: what it takes and gives, and where its body calls itself (`{call}`)."""

    name: str
    parameters: tuple[tuple[str, str], ...]  # name and type
    result: str
    body: str  # with {call} for the recursive call
    call: str  # with {f} for the function's name
    use: str  # arguments of a call from outside


# One or more of each way in which the fragment recurses: on numbers, on lists, with accumulators, building, deciding.
_SHAPES = (
    _Shape(
        name="factorial",
        parameters=(("n", "int"),),
        result="int",
        body="if n < 1 then 1 else n * {call}",
        call="{f} (n - 1)",
        use="5",
    ),
    _Shape(
        name="power",
        parameters=(("b", "int"), ("n", "int")),
        result="int",
        body="if n = 0 then 1 else b * {call}",
        call="{f} b (n - 1)",
        use="2 10",
    ),
    _Shape(
        name="even",
        parameters=(("n", "int"),),
        result="bool",
        body="if n < 1 then true else not ({call})",
        call="{f} (n - 1)",
        use="7",
    ),
    _Shape(
        name="length",
        parameters=(("l", "int list"),),
        result="int",
        body="match l with [] -> 0 | h :: t -> 1 + {call}",
        call="{f} t",
        use="(1 :: 2 :: [])",
    ),
    _Shape(
        name="append",
        parameters=(("l", "int list"), ("m", "int list")),
        result="int list",
        body="match l with [] -> m | h :: t -> h :: {call}",
        call="{f} t m",
        use="(1 :: []) []",
    ),
    _Shape(
        name="every",
        parameters=(("p", "int -> bool"), ("l", "int list")),
        result="bool",
        body="match l with [] -> true | h :: t -> p h && {call}",
        call="{f} p t",
        use="(fun (x : int) -> x > 0) (1 :: [])",
    ),
    _Shape(
        name="split",
        parameters=(("n", "int"), ("a", "int")),
        result="int * int",
        body="if n < 1 then (n, a) else {call}",
        call="{f} (n - 1) (a + n)",
        use="3 0",
    ),
)

# What is done to the recursive call; the first is right.
_CALLS = (
    ("right", "{call}"),
    ("too few arguments", "{f}"),
    ("too many arguments", "({call}) 1"),
    ("argument of another type", "{f} (1 :: true :: [])"),
    ("itself as argument", "{f} {f}"),
    ("another name", "{call_other}"),
    ("result compared", "(({call}) = ({call}))"),
)
# How the function is written: name, what stands before the body, and whether `rec` is there.
_HEADS = ("parameters", "functions", "without rec")
# Where it stands.
_PLACES = ("top", "local")


def probes() -> Iterator[Probe]:
    """All programs of the probe, in a fixed order."""
    for shape, (fault, call), head, place in product(_SHAPES, _CALLS, _HEADS, _PLACES):
        definition = _definition(shape, call, head)
        yield Probe(name=f"{shape.name}/{fault}/{head}/{place}", text=_placed(shape, definition, place))
    yield from _special()


def _definition(shape: _Shape, call: str, head: str, name: str = "f") -> str:
    """`let rec f … = body`, without what follows it."""
    right = shape.call.format(f=name)
    inner = call.format(call=right, f=name, call_other=shape.call.format(f="g"))
    body = shape.body.format(call=inner)
    keyword = "let" if head == "without rec" else "let rec"
    if head == "functions":
        arrows = " -> ".join(f"({bound})" if "->" in bound else bound for _, bound in shape.parameters)
        functions = " -> ".join(f"fun ({parameter} : {bound})" for parameter, bound in shape.parameters)
        return f"{keyword} {name} : {arrows} -> {shape.result} = {functions} -> {body}"
    parameters = " ".join(f"({parameter} : {bound})" for parameter, bound in shape.parameters)
    return f"{keyword} {name} {parameters} : {shape.result} = {body}"


def _placed(shape: _Shape, definition: str, place: str) -> str:
    used = f"f {shape.use}"
    if place == "top":
        return f"{definition}\nlet r : {shape.result} = {used}\n"
    return f"let r : {shape.result} =\n  {definition} in\n  {used}\n"


def _special() -> Iterator[Probe]:
    """Names around recursion: shadowed, hidden, used too early, used for a wrong result, bound to no function."""
    for shape in _SHAPES:
        definition = _definition(shape, "{call}", "parameters")
        parameter, bound = shape.parameters[0]
        other = "bool" if shape.result != "bool" else "int"
        hidden = definition.replace(f"({parameter} : {bound})", f"(f : {bound})", 1)
        earlier = f"let f : {other} = {'true' if other == 'bool' else '1'}\n"
        use = f"let r : {shape.result} = f {shape.use}\n"
        cases = {
            "own name is a parameter": f"{hidden}\n",
            "shadows an earlier value": f"{earlier}{definition}\n{use}",
            "earlier value without rec": f"{earlier}{_definition(shape, '{call}', 'without rec')}\n",
            "earlier function without rec": f"{definition}\n{_definition(shape, '{call}', 'without rec')}\n{use}",
            "shadowed by a later value": f"{definition}\n{earlier}{use}",
            "used before its definition": f"{use}{definition}\n",
            "result of another type": f"{definition}\nlet r : {other} = f {shape.use}\n",
            "local and out of scope": f"let r : {shape.result} = {definition} in f {shape.use}\n{use}",
            "called by a later function": f"{definition}\nlet g (u : int) : {shape.result} = f {shape.use}\n",
            "annotated with another type": f"{definition.replace(f' : {shape.result} =', f' : {other} =', 1)}\n",
        }
        for name, text in cases.items():
            yield Probe(name=f"{shape.name}/{name}", text=text)
