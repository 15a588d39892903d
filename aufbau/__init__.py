"""A semantic prefix oracle: grammars with typing rules that judge a text byte by byte as it streams in."""

from aufbau.choice import Choice, Cut, Shares, cut, greedy, sample, shares
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
    "Choice",
    "Cut",
    "Grammar",
    "GrammarError",
    "GrammarReport",
    "LimitError",
    "Limits",
    "Node",
    "Oracle",
    "Outcome",
    "Prefix",
    "Shares",
    "StartError",
    "TypeTextError",
    "Verdict",
    "Witness",
    "cut",
    "greedy",
    "sample",
    "shares",
]
