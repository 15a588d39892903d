"""What a model is told: the language in a few lines, solved examples, and the request.

Examples are chat turns whose answers are bare programs, without a code fence: an instructed model then ends its turn
where the program ends, which is a stop token that the oracle can judge. In the modes that reason, the examples reason
too, for one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentkit.models import Message
from agentkit.modes import Mode
from agentkit.synthesis.languages import Language

# What stands between reasoning and program.
OPENING: Final = "Program:\n"
# Where an answer ends that is not a masked one: at a fence, at the next turn as a plain prompt shows it, at a gap.
_FREE_STOP: Final = ("\n```", "\nUser:", "\n\n\n")
_FENCE: Final = re.compile(r"```[\w+#-]*[ \t]*\n(.*?)(?:\n?```|\Z)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A request with its solution."""

    request: str
    goal: str
    thought: str
    program: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A language as a model is told of it."""

    role: str
    goal_name: str
    examples: tuple[Example, ...]


_ML_EXAMPLES: Final = (
    Example(
        request="A function that doubles a number.",
        goal="int -> int",
        thought="The result is the number times 2.",
        program="let double (n : int) : int = n * 2",
    ),
    Example(
        request="A recursive function that counts the elements of a list of numbers.",
        goal="int list -> int",
        thought="An empty list has 0 elements, any other has one more than its tail.",
        program="let rec count (l : int list) : int =\n  match l with\n  | [] -> 0\n  | _ :: rest -> 1 + count rest",
    ),
    Example(
        request="A function that tells whether a number lies between two others.",
        goal="int -> int -> int -> bool",
        thought="It must be at least the lower and at most the upper one.",
        program="let between (low : int) (high : int) (n : int) : bool = low <= n && n <= high",
    ),
)
# Programs of definitions have no type in core ML, so a goal asks for an expression there.
_CORE_ML_EXAMPLES: Final = (
    Example(
        request="A function that doubles a number.",
        goal="int -> int",
        thought="The result is the number times 2.",
        program="fun n -> n * 2",
    ),
    Example(
        request="A function that multiplies the numbers from 1 to n.",
        goal="int -> int",
        thought="For n below 2 it is 1, else n times the result for n - 1.",
        program=("let rec factorial (n : int) : int =\n  if n < 2 then 1 else n * factorial (n - 1)\nin factorial"),
    ),
    Example(
        request="A function that tells whether a number lies between two others.",
        goal="int -> int -> int -> bool",
        thought="It must be at least the lower and at most the upper one.",
        program="fun low -> fun high -> fun n -> low <= n && n <= high",
    ),
)
_C_EXAMPLES: Final = (
    Example(
        request="A function that doubles a number.",
        goal="int twice(int n)",
        thought="The result is the number times 2.",
        program="int twice(int n) {\n  return n * 2;\n}",
    ),
    Example(
        request="A function that counts the zeros among the first n numbers.",
        goal="int zeros(int *values, int n)",
        thought="Go through the numbers and count where one is 0.",
        program=(
            "int zeros(int *values, int n) {\n  int count = 0;\n  for (int i = 0; i < n; i++) {\n"
            "    if (values[i] == 0) {\n      count++;\n    }\n  }\n  return count;\n}"
        ),
    ),
)
_CORE_C_EXAMPLES: Final = (
    _C_EXAMPLES[0],
    Example(
        request="A function that adds the numbers from 1 to n.",
        goal="int total(int n)",
        thought="Go from 1 to n and add each number to a sum.",
        program=(
            "int total(int n) {\n  int sum = 0;\n  for (int i = 1; i <= n; i++) {\n    sum += i;\n  }\n  return sum;\n}"
        ),
    ),
)
_STLC_EXAMPLES: Final = (
    Example(
        request="The identity on A.",
        goal="A -> A",
        thought="It takes x and gives x back.",
        program="λx:A.x",
    ),
    Example(
        request="Apply a function from A to B to an argument.",
        goal="(A -> B) -> A -> B",
        thought="It takes f and x and applies f to x.",
        program="λf:A->B.λx:A.f x",
    ),
    Example(
        request="Apply a function twice.",
        goal="(A -> A) -> A -> A",
        thought="It takes f and x; f is applied to f x.",
        program="λf:A->A.λx:A.f (f x)",
    ),
)
_FUN_EXAMPLES: Final = (
    Example(
        request="A function that doubles a number.",
        goal="Int -> Int",
        thought="The result is the number times 2.",
        program="(n: Int) => n * 2",
    ),
    Example(
        request="Add the squares of two numbers.",
        goal="Int -> Int -> Int",
        thought="Multiply each with itself and add both.",
        program="(a: Int) => (b: Int) => a * a + b * b",
    ),
    Example(
        request="Apply a function to the half of a floating number.",
        goal="(Float -> Bool) -> Float -> Bool",
        thought="Half of x is x /. 2.0; the function is applied to it.",
        program="(f: Float -> Bool) => (x: Float) => let half: Float = x /. 2.0; f(half)",
    ),
)

CARDS: Final[Mapping[Language, Card]] = {
    Language.ML: Card(
        role="You write OCaml. Annotate parameters and results.", goal_name="Type", examples=_ML_EXAMPLES
    ),
    Language.CORE_ML: Card(
        role="You write one expression of OCaml, with int, bool and lists, without match.",
        goal_name="Type",
        examples=_CORE_ML_EXAMPLES,
    ),
    Language.C: Card(role="You write C functions.", goal_name="Prototype", examples=_C_EXAMPLES),
    Language.CORE_C: Card(
        role="You write simple C functions, without arrays and structs.",
        goal_name="Prototype",
        examples=_CORE_C_EXAMPLES,
    ),
    Language.STLC: Card(
        role=(
            "You write terms of the simply typed lambda calculus. λx:A.e is a function of x of type A, f x is an"
            " application; f (g x) needs its parentheses."
        ),
        goal_name="Type",
        examples=_STLC_EXAMPLES,
    ),
    Language.FUN: Card(
        role=(
            "You write terms of a small language. (x: Int) => e is a function, f(x) an application, let x: Int = e; e"
            " a definition. + - * / are for Int, +. -. *. /. for Float."
        ),
        goal_name="Type",
        examples=_FUN_EXAMPLES,
    ),
}
_UNKNOWN: Final = Card(role="You write programs in the grammar that you are given.", goal_name="Type", examples=())


def synthesis_messages(
    language: Language | None,
    prompt: str,
    *,
    goal: str | None = None,
    context: Mapping[str, str] | None = None,
    mode: Mode = Mode.DIRECT,
    grammar: str = "",
) -> list[Message]:
    """The conversation that asks for a program; `grammar` is the source to show for a language without a card."""
    card = _UNKNOWN if language is None else CARDS[language]
    how = (
        "Reason in one sentence, then write Program: and the program."
        if mode.reasons
        else "Answer with the program alone."
    )
    system = "\n\n".join(part for part in (f"{card.role} {how}", grammar) if part)
    messages = [Message(role="system", content=system)]
    for example in card.examples:
        answer = f"{example.thought}\n{OPENING}{example.program}" if mode.reasons else example.program
        messages.append(Message(role="user", content=_request(card, example.request, example.goal, {})))
        messages.append(Message(role="assistant", content=answer))
    messages.append(Message(role="user", content=_request(card, prompt, goal, context or {})))
    return messages


def _request(card: Card, prompt: str, goal: str | None, context: Mapping[str, str]) -> str:
    lines = [prompt.strip()]
    if context:
        lines.append(f"Given: {', '.join(f'{name} : {bound}' for name, bound in context.items())}")
    if goal:
        lines.append(f"{card.goal_name}: {goal}")
    return "\n".join(lines)


def free_stop(mode: Mode) -> tuple[str, ...]:
    """Where a free answer ends; one that follows an opening also before it begins again with one."""
    return (*_FREE_STOP, f"\n{OPENING.strip()}") if mode.reasons else _FREE_STOP


def program_in(answer: str) -> str:
    """The program in a free answer: what follows the last `Program:`, or the code fence in that."""
    _, _, tail = answer.rpartition(OPENING)
    fence = _FENCE.search(tail)
    return (fence[1] if fence is not None else tail).strip()
