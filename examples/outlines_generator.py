"""Typed text out of Outlines' own generator, and an agent on a model of Outlines.

    python examples/outlines_generator.py

Needs the packages `aufbau[models]` and `outlines`. The model is the default one, SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import outlines
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentkit import Agent
from agentkit.models import AufbauLogitsProcessor, OutlinesModel, default_folder
from aufbau import Grammar, Oracle
from aufbau.vocabulary import Vocabulary
from registry import tool

PROMPT = "Write an expression of type Int that uses n, such as n + 1"


@tool(pure=True)
def area(width: int, height: int) -> int:
    """The area of a rectangle."""
    return width * height


def main() -> None:
    """Decode one well-typed expression, then run an agent."""
    folder = default_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    steered = outlines.from_transformers(AutoModelForCausalLM.from_pretrained(folder), tokenizer)
    start = Oracle(Grammar.load("fun")).start(context={"n": "Int", "yes": "Bool"}, goal="Int")
    processor = AufbauLogitsProcessor(start, Vocabulary.from_tokenizer(tokenizer), greedy=True)
    generator = outlines.Generator(steered, processor=processor)
    text = generator(PROMPT, max_new_tokens=12, do_sample=False)
    print(repr(text), start.feed(text).verdict)

    agent = Agent(OutlinesModel(steered), tools=[area], output_type=int)
    result = agent.run_sync("What is the area of a rectangle that is 12 wide and 7 high?")
    print(result.output, result.usage)


if __name__ == "__main__":
    main()
