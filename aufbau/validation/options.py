"""What options of the harness's commands may say: numbers in their range, names of sets."""

from __future__ import annotations

import argparse

from aufbau.validation.corpora import ProgramSet
from aufbau.validation.errors import ValidationError


def count(text: str) -> int:
    """A number that is not below 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def positive(text: str) -> int:
    """A number that is not below 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def duration(text: str) -> float:
    """Seconds above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time limit; give seconds above 0")
    return number


def sets_named(text: str, known: tuple[ProgramSet, ...] = tuple(ProgramSet)) -> tuple[ProgramSet, ...]:
    """Sets by their names, with commas between, each once. Raises `ValidationError`."""
    names = {origin.value: origin for origin in known}
    found = [name.strip() for name in text.split(",")]
    for name in found:
        if name not in names:
            raise ValidationError(
                f"--sets: there is no set {name!r}; give some of {', '.join(names)}, with commas between"
            )
    return tuple(dict.fromkeys(names[name] for name in found))
