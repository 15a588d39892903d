"""Incremental semantic Earley parsing: compiled grammars, calls, items and sets."""
