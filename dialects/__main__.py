"""Prints the grammar of the built-in tools, as shipped: `python -m dialects > dialects/grammars/tool.auf`."""

from dialects.clike import grammar_text
from dialects.universe import Universe
from registry import builtin

with builtin() as tools:
    print(grammar_text(tools, Universe.of(tools)), end="")
