"""Where comparisons begin, for the grammars that ship: names in scope, demands, and beginnings of programs."""

from __future__ import annotations

from aufbau.reference.correspondence import Start

_TOOLS = {"x": "int", "foo": "docs", "f": "string"}

STARTS: dict[str, tuple[Start, ...]] = {
    "minimal": (Start(), Start(context={"x": "A", "f": "A → A"}), Start(context={"x": "A", "f": "A → A"}, goal="A")),
    "stlc": (
        Start(openings=("λf:A->B.", "(\\x:A.")),
        Start(context={"x": "A", "foo": "A -> B", "f": "(A -> B) -> A -> B"}),
        Start(context={"x": "A", "foo": "A -> B", "f": "(A -> B) -> A -> B"}, goal="B"),
    ),
    "fun": (
        Start(openings=("let x : Int = ", "(f : Int -> Bool) => ", "let foo : Int -> Int = (x : Int) => ")),
        Start(context={"x": "Int", "foo": "Int -> Bool", "f": "(Int -> Bool) -> Float -> Int"}),
        Start(context={"x": "Int", "foo": "Int -> Bool", "f": "(Int -> Bool) -> Int"}, goal="Int"),
    ),
    "tool": (
        Start(context=_TOOLS, ambient={"open": "int", "some call": "int", "some docs": "int"}, symbol="Program"),
        Start(context=_TOOLS, ambient={"output": "string", "some call": "int"}, symbol="Program"),
        Start(symbol="Step", ambient={"output": "int", "some call": "int"}),
    ),
    "ml": (
        Start(),
        Start(openings=("let rec f (x : int) : int = ", "let x = [1] let y = ", "let f (x : bool) = if x then ")),
        Start(openings=("let x = match [1; 2] with [] -> ", "type t = A | B of int let x = ")),
    ),
    "core_ml": (
        Start(),
        Start(openings=("let rec f (x : int) : int = ", "let f (x : bool) : int list = if x then ", "let x : int = ")),
    ),
    "core_c": (
        Start(),
        Start(openings=("int f(int x) { ", "int x; int f(int *foo) { return ", "char *f; int foo(double x) { f = ")),
    ),
    "c": (
        Start(),
        Start(openings=("int f(int x) { ", "int x; int f(int *foo) { return ", "char *f; int foo(int x) { f = ")),
    ),
}

# How many lexemes a text has at most: ambiguous grammars have exponentially many parses, big ones many rules.
LENGTHS = {"minimal": 7, "core_ml": 10, "core_c": 10, "ml": 8, "c": 8}
