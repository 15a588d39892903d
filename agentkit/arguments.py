"""What command lines take as arguments, checked with a message that reads well."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """A number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)
