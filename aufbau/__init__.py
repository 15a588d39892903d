"""A semantic prefix oracle: grammars with typing rules that judge a text byte by byte as it streams in."""

from aufbau.classify import GrammarReport
from aufbau.errors import AufbauError, GrammarError, LimitError, StartError, TypeTextError
from aufbau.grammar.grammar import Grammar
from aufbau.limits import Limits
from aufbau.oracle import Oracle, Prefix
from aufbau.tree import Node
from aufbau.verdict import Verdict
from aufbau.witness import Outcome, Witness

__all__ = [
    "AufbauError",
    "Grammar",
    "GrammarError",
    "GrammarReport",
    "LimitError",
    "Limits",
    "Node",
    "Oracle",
    "Outcome",
    "Prefix",
    "StartError",
    "TypeTextError",
    "Verdict",
    "Witness",
]
