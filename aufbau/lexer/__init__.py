"""Bytes to lexemes."""

from aufbau.lexer.automaton import LexerAutomaton, TerminalSpec, build

__all__ = ["LexerAutomaton", "TerminalSpec", "build"]
