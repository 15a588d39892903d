"""`agentkit synthesize LANGUAGE PROMPT`: one program from a model, judged.

Exit status: 0 the oracle is satisfied and neither compiler nor tests object, 1 they do.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.text import Text

from agentkit.errors import ConfigurationError
from agentkit.models import Sampling, StopPolicy
from agentkit.modes import Mode
from agentkit.synthesis.graders import Judgement
from agentkit.synthesis.harness import UnitTest
from agentkit.synthesis.languages import Language, known_language
from agentkit.synthesis.single import Synthesis, synthesize
from aufbau import Verdict
from aufbau.errors import AufbauError

if TYPE_CHECKING:
    # argparse has no public name for what add_subparsers returns.
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_STYLE = {Verdict.SATISFIED: "bold green", Verdict.LIVE: "bold yellow", Verdict.LOST: "bold red"}


def add_parser(commands: Commands) -> None:
    """Add the command to those of `agentkit`."""
    languages = ", ".join(language.value for language in Language)
    parser = commands.add_parser("synthesize", help="have a model write one program, and judge it")
    parser.add_argument("language", metavar="LANGUAGE", help=f"{languages}, or a path to an .auf file")
    parser.add_argument("prompt", metavar="PROMPT", help="what the program should do")
    parser.add_argument("--goal", metavar="TYPE", help="the type it must have; for C, a prototype")
    parser.add_argument("--model", default="default", metavar="SPEC", help="as for run")
    parser.add_argument(
        "--mode",
        default=Mode.DIRECT.value,
        choices=[mode.value for mode in Mode],
        help="how it is decoded (default: direct)",
    )
    parser.add_argument("--prefix", metavar="TEXT", help="the text that it begins with (C's default: the goal's head)")
    parser.add_argument(
        "--context", action="append", default=[], metavar="NAME:TYPE", help="a name that it may use; repeatable"
    )
    parser.add_argument(
        "--test", action="append", default=[], metavar="CALL=>VALUE", help="a unit test of ML or C; repeatable"
    )
    parser.add_argument("--max-tokens", type=int, default=256, metavar="N", help="of the program (default: 256)")
    parser.add_argument("--reasoning-tokens", type=int, default=128, metavar="N", help="before it (default: 128)")
    parser.add_argument(
        "--stop-policy",
        default=StopPolicy.STRICT.value,
        choices=[policy.value for policy in StopPolicy],
        help="when the model may end: strict, only at a complete program (default); paper, always",
    )
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    parser.add_argument("--seed", type=int, metavar="N", help="makes sampling repeatable")
    parser.add_argument("--no-compile", action="store_true", help="don't ask a compiler")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Synthesize as the options say and print what came of it."""
    call = partial(
        synthesize,
        options.language,
        options.prompt,
        options.model,
        goal=options.goal,
        mode=options.mode,
        prefix=options.prefix,
        context=dict(_pair(entry, ":", "--context", "x:int") for entry in options.context) or None,
        sampling=Sampling(temperature=options.temperature, seed=options.seed),
        stop_policy=StopPolicy(options.stop_policy),
        max_tokens=_positive(options.max_tokens, "--max-tokens"),
        reasoning_tokens=_positive(options.reasoning_tokens, "--reasoning-tokens"),
        compile=not options.no_compile,
        tests=[_test(entry) for entry in options.test],
    )
    try:
        result = anyio.run(call)
    except AufbauError as error:
        raise ConfigurationError(str(error)) from error
    if options.json:
        print(result.to_json())
    else:
        show_synthesis(Console(highlight=False, soft_wrap=True), result)
    return 0 if result.passed else 1


def show_synthesis(console: Console, result: Synthesis) -> None:
    """The program, and a line for each who judged it."""
    if result.block.reasoning.strip():
        console.print(Text(result.block.reasoning.strip(), style="italic"))
    console.print(Text(result.text or "(nothing)"))
    console.print()
    verdict = Text(result.verdict.value, style=_STYLE[result.verdict])
    console.print(verdict.append(f"  {result.type}", style="default") if result.type else verdict)
    if result.verdict is Verdict.LOST:
        console.print(Text(str(result.block.reached.explain()), style="red"))
    if result.compiled is not None:
        console.print(_judged(_judge(result.language), "accepts", "refuses", result.compiled))
    if result.behaviour is not None:
        console.print(_judged("the tests", "hold", "fail", result.behaviour))
    if result.note:
        console.print(Text(result.note, style="magenta"))
    cost = f"{result.block.tokens} tokens, {result.block.steered} of them steered, {result.seconds:.1f} s"
    console.print(Text(f"{result.model}, {result.mode.value}: {cost}", style="dim"))


def _judge(name: str) -> str:
    language = known_language(name)
    if language is None or not language.has_compiler:
        return "the checker"
    return "ocamlc" if language.is_ml else "cc"


def _judged(who: str, good: str, bad: str, judgement: Judgement) -> Text:
    if judgement.passed:
        return Text(f"{who} {good}", style="green")
    return Text(f"{who} {bad}: {judgement.why}", style="red")


def _pair(entry: str, mark: str, option: str, example: str) -> tuple[str, str]:
    left, found, right = entry.partition(mark)
    if not found or not left.strip() or not right.strip():
        raise ConfigurationError(f"{option} {entry!r} has no {mark!r} between two parts; write for example {example!r}")
    return left.strip(), right.strip()


def _test(entry: str) -> UnitTest:
    call, expect = _pair(entry, "=>", "--test", "sum [1; 2]=>3")
    return UnitTest(call=call, expect=expect)


def _positive(number: int, option: str) -> int:
    if number < 1:
        raise ConfigurationError(f"{option} {number} is less than 1")
    return number
