"""What a model is told: tools, rules, worked examples, the run so far; in variants to be measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from agentkit.history import earlier
from agentkit.models import Message
from agentkit.window import KEPT_CHARACTERS, Cut, brief
from agentkit.worked import WorkedExample, worked_examples
from dialects import LoweredDialect
from episodes import Binding, Bindings, Turn
from registry import Registry, ToolType

_COMMENTS: Final[Mapping[str, tuple[str, str]]] = {"c": ("// ", ""), "sexpr": ("; ", ""), "xml": ("<!-- ", " -->")}
"""How each surface sets a comment apart, by dialect; others are shown the C-like way."""


def marks(dialect: str) -> tuple[str, str]:
    """What stands before and after a comment in a dialect."""
    return _COMMENTS.get(dialect, _COMMENTS["c"])


class Form(Enum):
    """How the run so far is laid out."""

    CONVERSATION = "conversation"
    """Each step is an answer of the model, each observation a message to it."""

    PROGRAM = "program"
    """The steps are one answer that the model goes on with; observations stand in it as comments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptStyle:
    """What a prompt holds."""

    form: Form
    worked: int = 4
    """Worked examples with tools, shown before the task."""

    scope: bool = False
    """Every observation is followed by the bound names, with their types."""

    wanted: bool = False
    """Every observation is followed by the names that hold the type of the answer, or else its makers."""


class PromptVariant(Enum):
    """The prompts that were tried, by name; `scripts/measure_prompts` compares them."""

    ZERO_SHOT = PromptStyle(form=Form.CONVERSATION, worked=0, scope=True)
    """Tools and rules only."""

    WORKED = PromptStyle(form=Form.CONVERSATION)
    """Worked examples as conversations."""

    SCOPED = PromptStyle(form=Form.CONVERSATION, scope=True)
    """As `WORKED`, with the bound names and their types after each observation."""

    WANTED = PromptStyle(form=Form.CONVERSATION, wanted=True)
    """As `WORKED`, with what can be returned after each observation."""

    PROGRAM_ZERO = PromptStyle(form=Form.PROGRAM, worked=0)
    """Tools and rules; the model goes on with its own commented program."""

    PROGRAM = PromptStyle(form=Form.PROGRAM)
    """As `PROGRAM_ZERO`, after worked examples as commented programs."""

    PROGRAM_WANTED = PromptStyle(form=Form.PROGRAM, wanted=True)
    """As `PROGRAM`, with what can be returned after each observation."""


DEFAULT_PROMPT: Final = PromptVariant.PROGRAM_WANTED
"""The variant that measured best; see `benchmarks/results/prompts.md`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """All that a prompt may tell."""

    task: str
    lowered: LoweredDialect
    output: ToolType | None
    initial: Bindings
    """Γ before the first turn."""

    turns: Sequence[Turn]
    instructions: str | None = None
    thinks_aloud: bool = False
    """Each step comes after a line of reasoning, which stands in the run so far."""

    message_history: Sequence[Message] = ()
    """An earlier conversation, which the task goes on with."""

    cut: Cut = Cut.NOTHING
    """What is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """Messages, and the beginning of the answer that the model goes on with."""

    messages: tuple[Message, ...]
    prefill: str = ""
    reasoning_opening: str = ""
    """What a line of reasoning begins with."""

    reasoning_stop: tuple[str, ...] = ("\n",)
    """Where the line ends; the first is how it is ended."""

    def answered(self, text: str) -> tuple[Message, ...]:
        """The messages with the answer of the model, without the reasoning before it."""
        whole = f"{self.prefill}{text}"
        return (*self.messages, Message(role="assistant", content=whole)) if whole else self.messages


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """A step as it is shown: its text, what came of it, and the names bound after it with their types."""

    text: str
    observation: str
    bound: tuple[tuple[str, str], ...]
    refused: bool = False
    new: tuple[str, str] | None = None
    """The name that it bound, with its type."""

    thought: str = ""
    """The line of reasoning before it."""


def build_prompt(style: PromptStyle, situation: Situation) -> Prompt:
    """The prompt for the next step. It only grows from turn to turn, so a model keeps what it has read."""
    shown = _Shown(style, situation.lowered.name, _makers(situation.lowered.registry))
    messages = [_system(situation)]
    worked = style.worked if situation.cut is not Cut.STEPS else 0
    for example in worked_examples(situation.lowered, worked):
        messages.append(Message(role="user", content=_task(example.task, example.answer)))
        messages += shown.whole(_of_example(example), example.answer)
    answer = situation.output.name if situation.output else None
    told = _of_turns(situation)
    if situation.cut.value < Cut.RECENT.value:
        messages += earlier(messages, situation.message_history)
    messages.append(
        Message(role="user", content="\n".join([_whole_task(situation, answer), *_left_out(situation, told)]))
    )
    told = _shortened(told, situation.cut)
    prefill = ""
    if style.form is Form.PROGRAM:
        prefill = "".join(f"{line}\n" for line in shown.lines(told, answer))
    else:
        messages += shown.conversation(told, answer)
    before, after = shown.marks
    return Prompt(
        messages=tuple(messages),
        prefill=prefill,
        reasoning_opening=before.rstrip(),
        reasoning_stop=tuple(dict.fromkeys((f"{after}\n", "\n"))),
    )


def _system(situation: Situation) -> Message:
    registry = situation.lowered.registry
    shown = worked_examples(situation.lowered, 1)
    lines = ["Solve the task with the tools, one step at a time. Write one step and nothing else."]
    if shown:
        first, last = shown[0].steps[0].text, shown[0].steps[-1].text
        lines.append(f"A step binds a new name to the result of a tool, like {first}")
        lines.append(f"The last step returns the answer, like {last}")
    if situation.thinks_aloud:
        before, after = marks(situation.lowered.name)
        lines.append(f"Before each step say on one line what is to be done next, like {before}what comes next{after}")
    lines.append("Return a bound name, unless the task itself says the value.")
    lines.append("Do not call a tool again with the same arguments. Use the names that are bound.")
    lines += ["", "Tools:", *(_tool_line(tool.signature, tool.description) for tool in registry.values())]
    if situation.instructions:
        lines += ["", situation.instructions]
    return Message(role="system", content="\n".join(lines))


def _tool_line(signature: str, description: str) -> str:
    return f"{signature}  {description}".rstrip()


def _whole_task(situation: Situation, answer: str | None) -> str:
    bound = list(situation.initial.values())
    if situation.cut.value < Cut.RECENT.value:
        return _task(situation.task, answer, bound)
    named = (f"Bound: {brief('', (one.name, one.type.name))}" for one in bound)
    return "\n".join([_task(situation.task, answer), *named])


def _left_out(situation: Situation, told: Sequence[_Told]) -> list[str]:
    """What the prompt does not show, and the names that only the steps left out would show."""
    if situation.cut is Cut.NOTHING:
        return []
    lines = [f"Left out, for want of space, if there was any: {situation.cut.words}."]
    if situation.cut is Cut.STEPS and len(told) > 1:
        names = ", ".join(f"{name} : {kind}" for name, kind in told[-2].bound) or "nothing"
        lines.append(f"Steps 1 to {len(told) - 1} are done and bound: {names}")
    return lines


def _shortened(told: Sequence[_Told], cut: Cut) -> list[_Told]:
    """The steps as a cut leaves them."""
    match cut:
        case Cut.NOTHING:
            return list(told)
        case Cut.OLD:
            return [*map(_without_value, told[:-2]), *told[-2:]]
        case Cut.RECENT:
            return [*map(_without_value, told[:-1]), *map(_without_long_value, told[-1:])]
        case Cut.STEPS:
            return [*map(_without_long_value, told[-1:])]


def _without_value(step: _Told) -> _Told:
    return replace(step, thought="", observation=brief(step.observation, step.new))


def _without_long_value(step: _Told) -> _Told:
    return _without_value(step) if len(step.observation) > KEPT_CHARACTERS else replace(step, thought="")


def _task(task: str, output: str | None, bound: Iterable[Binding] = ()) -> str:
    lines = [f"Task: {task}"]
    if output is not None:
        lines.append(f"Answer: {output}")
    return "\n".join([*lines, *(f"Bound: {binding}" for binding in bound)])


def _of_example(example: WorkedExample) -> list[_Told]:
    bound: list[tuple[str, str]] = []
    told = []
    for step in example.steps:
        if step.name is not None:
            bound.append((step.name, step.type))
        told.append(_Told(text=step.text, observation=step.observation, bound=tuple(bound)))
    return told


def _of_turns(situation: Situation) -> list[_Told]:
    bound = [(name, kind.name) for name, kind in situation.initial.types().items()]
    told = []
    for turn in situation.turns:
        new = None
        if turn.result is not None and turn.result.name is not None:
            new = (turn.result.name, turn.result.type or "")
            bound.append(new)
        told.append(
            _Told(
                text=turn.text,
                observation=turn.observation,
                bound=tuple(bound),
                refused=turn.result is None,
                new=new,
                thought=turn.thought if situation.thinks_aloud else "",
            )
        )
    return told


def _makers(registry: Registry) -> dict[str, list[str]]:
    makers: dict[str, list[str]] = {}
    for tool in registry.values():
        makers.setdefault(tool.returns.name, []).append(tool.name)
    return makers


@dataclass(frozen=True, slots=True)
class _Shown:
    """Lays steps out in a style."""

    style: PromptStyle
    dialect: str
    makers: Mapping[str, Sequence[str]]
    """For each type the tools that return it."""

    @property
    def marks(self) -> tuple[str, str]:
        """What stands before and after a comment."""
        return marks(self.dialect)

    def whole(self, told: Sequence[_Told], answer: str) -> list[Message]:
        """An example from its first step to its return."""
        if self.style.form is Form.PROGRAM:
            return [Message(role="assistant", content="\n".join(self.lines(told, answer)))]
        # Nothing is said after the return.
        return self.conversation(told, answer)[:-1]

    def conversation(self, told: Sequence[_Told], answer: str | None) -> list[Message]:
        """Steps as answers, what came of them as messages to the model."""
        messages = []
        for step in told:
            said = [*([self._comment(step.thought)] if step.thought else []), step.text or "(nothing)"]
            messages.append(Message(role="assistant", content="\n".join(said)))
            messages.append(Message(role="user", content="\n".join(self._after(step, answer))))
        return messages

    def lines(self, told: Sequence[_Told], answer: str | None) -> list[str]:
        """Steps as lines of a program, what came of them as comments. A refused step is told, not shown."""
        lines = []
        for step in told:
            if step.thought:
                lines.append(self._comment(step.thought))
            if step.refused:
                lines.append(self._comment(f"refused: {step.text} ({step.observation})"))
                continue
            lines.append(step.text)
            lines += [self._comment(line) for line in self._after(step, answer) if step.observation]
        return lines

    def _after(self, step: _Told, answer: str | None) -> list[str]:
        lines = [step.observation]
        if self.style.scope:
            lines.append(f"Bound: {', '.join(f'{name} : {kind}' for name, kind in step.bound) or 'nothing'}")
        if self.style.wanted and answer is not None:
            names = [name for name, kind in step.bound if kind == answer]
            makers = self.makers.get(answer)
            lack = f"no {answer} yet" + (f"; next: {' or '.join(makers)}" if makers else "")
            lines.append(f"{answer}: {', '.join(names)}" if names else lack)
        return lines

    def _comment(self, text: str) -> str:
        before, after = self.marks
        return f"{before}{' '.join(text.split())}{after}"
