"""Single-shot synthesis and its graders: a program from a model, then programs judged without one.

Run it with `python examples/synthesis.py`; it needs `ocamlc`, `cc` and the default model.
"""

from __future__ import annotations

import anyio

from agentkit.synthesis import UnitTest, behaves, compiles, equivalent, synthesize


async def main() -> None:
    """Ask for a C function, and grade an OCaml function and a λ-term of our own."""
    made = await synthesize(
        "c",
        "A function that returns the larger of two numbers.",
        goal="int larger(int a, int b)",
        tests=[UnitTest(call="larger(2, 3)", expect="3"), UnitTest(call="larger(5, -1)", expect="5")],
        max_tokens=64,
    )
    print(made.text)
    print(made.verdict, made.type, made.compiled, made.behaviour)

    wrong = "let rec sum l = match l with [] -> 1 | x :: rest -> x + sum rest"
    print(await compiles("ml", wrong, "int list -> int"))  # valid, and yet …
    print(await behaves("ml", wrong, [UnitTest(call="sum [1; 2]", expect="3")]))
    print(equivalent("stlc", "λf:A->B.f", "λg:A->B.λx:A.g x"))  # by η


if __name__ == "__main__":
    anyio.run(main)
