"""Single-shot synthesis: the five modes, goals, prefixes and contexts, and the prompts that ask for a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agentkit.errors import ConfigurationError
from agentkit.models import (
    FunctionModel,
    Message,
    Model,
    PrefixLike,
    RandomModel,
    ScriptedModel,
    StopPolicy,
)
from agentkit.modes import Mode
from agentkit.synthesis import Language, Synthesis, TestsError, UnitTest, compiles, synthesize
from agentkit.synthesis.languages import begun_by, engine_goal, oracle_of
from agentkit.synthesis.prompts import CARDS, program_in, synthesis_messages
from aufbau import Grammar, Verdict
from aufbau.errors import AufbauError

TINY = """\
Type* ::= 'answer'
Word(word) ::= 'yes' | 'no'

-------- (word)
'answer'
"""
SUM = "let rec sum l = match l with [] -> 0 | x :: r -> x + sum r"


def made(language: str | Path | Grammar, model: Model, **options: object) -> Synthesis:
    async def main() -> Synthesis:
        return await synthesize(language, "Do it.", model, **options)  # type: ignore[arg-type]

    return anyio.run(main)


@pytest.mark.parametrize("language", list(CARDS), ids=str)
def test_examples_of_the_prompts_are_right(language: Language) -> None:
    for example in CARDS[language].examples:
        start = oracle_of(language.value).start(goal=engine_goal(language, example.goal))
        assert start.feed(example.program).verdict is Verdict.SATISFIED, example
        assert anyio.run(compiles, language, example.program, example.goal).passed, example
        assert example.program.startswith(begun_by(language, example.goal))


def test_messages_show_examples_and_end_in_the_request() -> None:
    plain = synthesis_messages(Language.ML, " Sum a list. ", goal="int list -> int", context={"f": "int"})
    assert [message.role for message in plain] == ["system", *["user", "assistant"] * 3, "user"]
    assert plain[-1].content == "Sum a list.\nGiven: f : int\nType: int list -> int"
    assert "Program:" not in "".join(message.content for message in plain)
    thoughtful = synthesis_messages(Language.C, "x", goal="int f(void)", mode=Mode.MIXED)
    assert all("\nProgram:\n" in message.content for message in thoughtful if message.role == "assistant")
    assert thoughtful[-1].content.endswith("Prototype: int f(void)")


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        (" let x = 1\n", "let x = 1"),
        ("```ocaml\nlet x = 1\n```\nThat is it.", "let x = 1"),
        ("```\nlet x = 1", "let x = 1"),
        ("Here it is:\n```c\nint x;\n```", "int x;"),
        ("It is easy.\nProgram:\nlet x = 1", "let x = 1"),
        ("", ""),
    ],
)
def test_a_program_is_cut_out_of_a_free_answer(answer: str, program: str) -> None:
    assert program_in(answer) == program


DIRECT = [
    # language, goal, reply, type
    ("ml", "int list -> int", SUM, "int list -> int"),
    ("ml", "'a list -> int", "let f l = List.length l", "?A list -> int"),
    ("core_ml", "int -> int", "fun x -> x", "int -> int"),
    ("stlc", "A -> A", "λx:A.x", "A -> A"),
    ("fun", "Int -> Int", "(x: Int) => x + 1", "Int -> Int"),
    ("c", "int f(int a)", " return a;\n}", "int (int)"),
    ("core_c", "int f(int a);", " return a;\n}", None),
]


@pytest.mark.parametrize(("language", "goal", "reply", "type_"), DIRECT)
def test_direct(language: str, goal: str, reply: str, type_: str | None) -> None:
    made_ = made(language, ScriptedModel([reply]), goal=goal)
    assert (made_.verdict, made_.type, made_.mode, made_.note) == (Verdict.SATISFIED, type_, Mode.DIRECT, "")
    assert made_.compiled is not None and made_.compiled.passed and made_.passed
    assert made_.text == (begun_by(Language(language), goal) + reply).strip()


def test_direct_never_leaves_the_goal() -> None:
    made_ = made("ml", ScriptedModel(["let f (x : int) : int = true"]), goal="int -> int")
    assert made_.text == "let f (x : int) : int = tru" and made_.verdict is Verdict.LIVE
    assert not made_.passed and made_.compiled is not None and not made_.compiled.passed


@pytest.mark.parametrize("mode", ["mixed", "thinking"])
def test_modes_that_reason(mode: str) -> None:
    model = ScriptedModel(["An empty list has the sum 0.\n", SUM])
    made_ = made("ml", model, goal="int list -> int", mode=mode, compile=False)
    assert (made_.text, made_.passed, model.remaining) == (SUM, True, 0)
    assert made_.block.reasoning.strip() == "An empty list has the sum 0."


def test_what_a_model_is_shown() -> None:
    """The answer begins with the prefix, and after a reasoning with `Program:`."""
    seen: list[str] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages[-1].content if messages[-1].role == "assistant" else "")
        return "Easy.\n" if len(seen) == 2 else " return a; }"

    made("c", FunctionModel(answer), goal="int f(int a)", compile=False)
    made("c", FunctionModel(answer), goal="int f(int a)", mode="mixed", compile=False)
    assert seen == ["int f(int a) {\n", "", "Easy.\nProgram:\nint f(int a) {\n"]


def test_unconstrained_answers_are_judged_afterwards() -> None:
    good = made("ml", ScriptedModel([f"```ocaml\n{SUM}\n```"]), goal="int list -> int", mode="unconstrained")
    assert (good.text, good.verdict, good.passed) == (SUM, Verdict.SATISFIED, True)
    bad = made("ml", ScriptedModel(["let f x = x + true"]), goal="int -> int", mode=Mode.UNCONSTRAINED)
    assert bad.verdict is Verdict.LOST and bad.compiled is not None and "bool" in bad.compiled.why
    assert "bool" in str(bad.to_data()["why"])


def test_syntactic_admits_what_has_no_type() -> None:
    made_ = made("fun", ScriptedModel(["1 + true"]), goal="Int", mode="syntactic")
    assert (made_.text, made_.verdict) == ("1 + true", Verdict.LOST)


def test_tests_are_run_where_the_compiler_accepts() -> None:
    tests = [UnitTest(call="sum [1; 2]", expect="3")]
    assert (made_ := made("ml", ScriptedModel([SUM]), tests=tests)).behaviour is not None
    assert made_.behaviour.passed and made_.passed
    wrong = made("ml", ScriptedModel([SUM.replace("-> 0", "-> 1")]), tests=tests)
    assert wrong.behaviour is not None and not wrong.behaviour.passed and not wrong.passed
    refused = made("ml", ScriptedModel(["let sum = "]), tests=tests, mode="unconstrained")
    assert refused.behaviour is None and refused.compiled is not None and not refused.compiled.passed


def test_a_missing_compiler_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    made_ = made("ml", ScriptedModel([SUM]), goal="int list -> int")
    assert (made_.text, made_.verdict, made_.compiled) == (SUM, Verdict.SATISFIED, None)
    assert "ocamlc" in made_.note and "install" in made_.note
    assert made("ml", ScriptedModel([SUM]), compile=False).note == ""


def test_a_grammar_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "tiny.auf"
    path.write_text(TINY, encoding="utf-8")
    seen: list[str] = []

    def answer(messages: Sequence[Message], prefix: PrefixLike | None) -> str:
        seen.append(messages[0].content)
        return "yes"

    for language in (str(path), path, Grammar.load(path)):
        made_ = made(language, FunctionModel(answer))
        assert (made_.text, made_.verdict, made_.compiled) == ("yes", Verdict.SATISFIED, None)
    assert all("Word(word)" in text for text in seen)


def test_prefix_and_context() -> None:
    made_ = made("fun", ScriptedModel(["n)"]), prefix="f(", context={"f": "Int -> Bool", "n": "Int"}, goal="Bool")
    assert (made_.text, made_.type, made_.passed) == ("f(n)", "Bool", True)


def test_wrong_input_is_refused_before_the_model_is_asked() -> None:
    model = ScriptedModel([])
    for language, options, error in (
        ("fun", {"prefix": "true +"}, ConfigurationError),
        ("ml", {"goal": "intt"}, TestsError),
        ("c", {"goal": "int f"}, TestsError),
        ("fun", {"goal": "Int ->"}, AufbauError),
        ("nosuch", {}, AufbauError),
        ("fun", {"mode": "nosuch"}, ConfigurationError),
    ):
        with pytest.raises(error):
            made(language, model, **options)


def test_the_result_as_json() -> None:
    data = json.loads(made("fun", ScriptedModel(["1"]), goal="Int").to_json())
    assert (data["program"], data["verdict"], data["type"], data["mode"]) == ("1", "satisfied", "Int", "direct")
    assert data["compiled"] == {"passed": True, "kind": "validity", "why": ""}


@pytest.mark.parametrize(
    ("language", "goal", "mode"),
    [("fun", "Int -> Bool", "direct"), ("core_ml", "bool", "mixed"), ("core_c", "int f(int *a)", "direct")],
)
def test_random_programs_of_covered_grammars_are_accepted(language: str, goal: str, mode: str) -> None:
    """Whatever a model prefers, its program ends within its budget, and the outside judge accepts it."""
    model = RandomModel(7)
    made_ = made(language, model, goal=goal, mode=mode, max_tokens=24, reasoning_tokens=5)
    assert made_.verdict is Verdict.SATISFIED
    assert made_.passed, made_


def test_the_papers_stop_policy_may_end_unfinished() -> None:
    made_ = made("fun", ScriptedModel(["1 +"]), stop_policy=StopPolicy.PAPER)
    assert made_.verdict is Verdict.LIVE and not made_.passed


@pytest.mark.model
@pytest.mark.parametrize(
    ("language", "request_", "goal"),
    [
        ("ml", "A function that adds one to a number.", "int -> int"),
        ("core_ml", "A function that adds one to a number.", "int -> int"),
        ("c", "A function that returns the larger of two numbers.", "int larger(int a, int b)"),
        ("core_c", "A function that returns the larger of two numbers.", "int larger(int a, int b)"),
        ("stlc", "The first of two arguments.", "A -> B -> A"),
        ("fun", "A function that adds one to a number.", "Int -> Int"),
    ],
)
def test_the_default_model_writes_valid_programs(language: str, request_: str, goal: str) -> None:
    async def main() -> Synthesis:
        return await synthesize(language, request_, goal=goal, max_tokens=64)

    made_ = anyio.run(main)
    assert made_.passed, made_.to_json()
