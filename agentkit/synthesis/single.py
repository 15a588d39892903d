"""Single-shot synthesis: a request to one program, its verdict and type, and what compilers and tests say of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import anyio
import anyio.to_thread

from agentkit.block import Block, BlockRequest, decode_block
from agentkit.errors import ConfigurationError
from agentkit.models import Model, Sampling, Session, StopPolicy, TokenRecord, resolve_model
from agentkit.modes import Mode, mode_of
from agentkit.synthesis.compilers import check_goal, prototype_name
from agentkit.synthesis.errors import CompilerMissing
from agentkit.synthesis.graders import Judgement, behaves, compiles
from agentkit.synthesis.harness import UnitTest
from agentkit.synthesis.languages import Language, begun_by, engine_goal, known_language, oracle_of
from agentkit.synthesis.prompts import OPENING, free_stop, program_in, synthesis_messages
from aufbau import Grammar, Oracle, Prefix, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Synthesis:
    """A program and what is known of it."""

    language: str
    model: str
    mode: Mode
    goal: str | None
    text: str
    """The program."""

    verdict: Verdict
    type: str | None
    """Of the program; in C, of the function that the goal names, as the oracle writes it; core C has none."""

    compiled: Judgement | None
    """The word of ocamlc, of cc or, for the lambda calculi, of the checker written by hand; None where not asked."""

    behaviour: Judgement | None
    """Whether the unit tests hold, where there were any."""

    note: str
    """Why a compiler has not been asked, where it should have been: it is missing, and this says what to install."""

    block: Block
    """All that decoding recorded."""

    seconds: float

    @property
    def passed(self) -> bool:
        """The oracle is satisfied, and nobody who was asked objects."""
        judged = (self.compiled, self.behaviour)
        return self.verdict is Verdict.SATISFIED and all(one is None or one.passed for one in judged)

    def to_data(self) -> dict[str, object]:
        """As JSON has it."""
        generation = self.block.generation
        return {
            "language": self.language,
            "model": self.model,
            "mode": self.mode.value,
            "goal": self.goal,
            "program": self.text,
            "verdict": self.verdict.value,
            "type": self.type,
            "why": str(self.block.reached.explain()) if self.verdict is Verdict.LOST else "",
            "compiled": None if self.compiled is None else self.compiled.to_data(),
            "behaviour": None if self.behaviour is None else self.behaviour.to_data(),
            "note": self.note,
            "reasoning": self.block.reasoning,
            "finish": generation.finish.value,
            "tokens": self.block.tokens,
            "steered": self.block.steered,
            "seconds": round(self.seconds, 3),
        }

    def to_json(self) -> str:
        """The same, as text."""
        return json.dumps(self.to_data(), ensure_ascii=False, indent=2)


async def synthesize(
    language: Language | str | Path | Grammar,
    prompt: str,
    model: Model | str = "default",
    *,
    goal: str | None = None,
    mode: Mode | str = Mode.DIRECT,
    prefix: str | None = None,
    context: Mapping[str, str] | None = None,
    sampling: Sampling | None = None,
    stop_policy: StopPolicy = StopPolicy.STRICT,
    max_tokens: int = 256,
    reasoning_tokens: int = 128,
    session: Session | None = None,
    compile: bool = True,
    tests: Sequence[UnitTest] = (),
    on_token: Callable[[TokenRecord], None] | None = None,
) -> Synthesis:
    """Have `model` write one program for `prompt`.

    `language` is "ml", "c", "core_ml", "core_c", "stlc" or "fun", or a grammar of one's own, as such or by its path,
    which no compiler judges. `goal` is a type as the language writes it: in the lambda calculi of the term; in ML of
    the program's last definition or expression (core ML types expressions only), where type variables stand for any
    type. In C it is a prototype, and the program begins with its head unless `prefix`, the text that the program
    begins with, says otherwise. `context` gives names that the program may use, with their types.

    `compile` asks the compiler of ML and C, and `tests` are run where it accepts. A missing compiler is no error: the
    result says so in `note`. Raises `ConfigurationError` for a prefix that no program begins with, what the model
    raises, and `aufbau`'s errors for goals and contexts that can't be read.
    """
    begun = perf_counter()
    mode = mode_of(mode)
    known = None if isinstance(language, Grammar) else known_language(language)
    if known is not None and goal is not None and known.has_compiler:
        await _check_goal(known, goal, compile)
    oracle = await anyio.to_thread.run_sync(_oracle, language)
    start, syntactic_start = _starts(oracle, known, goal, context, prefix)
    request = BlockRequest(
        messages=synthesis_messages(
            known, prompt, goal=goal, context=context, mode=mode, grammar="" if known else oracle.grammar.source()
        ),
        start=start,
        syntactic_start=syntactic_start,
        mode=mode,
        sampling=sampling or Sampling(),
        stop_policy=stop_policy,
        max_tokens=max_tokens,
        reasoning_tokens=reasoning_tokens,
        opening=OPENING if mode.reasons else "",
        reasoning_stop=(OPENING.strip(), "```") if mode.reasons else (),
        free_stop=free_stop(mode),
        extract=program_in,
    )
    source = await anyio.to_thread.run_sync(resolve_model, model) if isinstance(model, str) else model
    block = await _decoded(source, session, request, on_token)
    compiled, behaviour, note = await _judged(known, block.text, goal, context, compile, tests)
    return Synthesis(
        language=_name(language),
        model=source.name,
        mode=mode,
        goal=goal,
        text=block.text,
        verdict=block.verdict,
        type=_type(known, block.reached, goal),
        compiled=compiled,
        behaviour=behaviour,
        note=note,
        block=block,
        seconds=perf_counter() - begun,
    )


def _starts(
    oracle: Oracle, language: Language | None, goal: str | None, context: Mapping[str, str] | None, prefix: str | None
) -> tuple[Prefix, Prefix]:
    """Where the program begins, with and without types. Raises `ConfigurationError`."""
    beginning = begun_by(language, goal) if prefix is None else prefix
    typed = oracle.start(context=context, goal=engine_goal(language, goal))
    return _begun(typed, beginning), _begun(oracle.syntactic().start(), beginning)


async def _decoded(
    source: Model, session: Session | None, request: BlockRequest, on_token: Callable[[TokenRecord], None] | None
) -> Block:
    """The program from the given session, or from one of its own."""
    if session is not None:
        return await decode_block(session, request, on_token)
    own = source.session()
    try:
        return await decode_block(own, request, on_token)
    finally:
        # A cancelled request closes its session too.
        with anyio.CancelScope(shield=True):
            await own.aclose()


async def _check_goal(language: Language, goal: str, compile: bool) -> None:
    """Before a model is asked: could any program have that goal?"""
    if language.is_c:
        prototype_name(goal)
    if compile:
        try:
            await check_goal(language, goal)
        except CompilerMissing:
            return  # which the result will say


def _oracle(language: Language | str | Path | Grammar) -> Oracle:
    return Oracle(language) if isinstance(language, Grammar) else oracle_of(str(language))


def _name(language: Language | str | Path | Grammar) -> str:
    return language.source_name or language.start if isinstance(language, Grammar) else str(language)


def _begun(start: Prefix, beginning: str) -> Prefix:
    """The start after the text that the program begins with. Raises `ConfigurationError`."""
    reached = start.feed(beginning)
    if reached.verdict is Verdict.LOST:
        raise ConfigurationError(f"no program of that goal begins with the prefix {beginning!r}: {reached.explain()}")
    return reached


def _type(language: Language | None, reached: Prefix, goal: str | None) -> str | None:
    """The type of the program; in C, that of the function which the goal names."""
    if language is not Language.C or goal is None:
        return reached.type
    return reached.context.get(prototype_name(goal), "").removeprefix("function defined ") or None


async def _judged(
    language: Language | None,
    text: str,
    goal: str | None,
    context: Mapping[str, str] | None,
    compile: bool,
    tests: Sequence[UnitTest],
) -> tuple[Judgement | None, Judgement | None, str]:
    """What the compiler says, what the tests say, and why nobody was asked."""
    if language is None or not (compile or tests):
        return None, None, ""
    try:
        compiled = await compiles(language, text, goal, context)
        behaviour = await behaves(language, text, tests) if tests and compiled.passed else None
    except CompilerMissing as missing:
        return None, None, str(missing)
    return compiled, behaviour, ""
