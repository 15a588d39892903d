"""The one error of regular expressions: what is wrong, at which character of the pattern, how to mend it."""

from __future__ import annotations


class RegexError(ValueError):
    """A pattern that is malformed, not regular, or larger than a limit.

    `offset` counts characters of the pattern from 0 and points at the construct that is refused; an error
    about the size of a whole automaton has offset 0.
    """

    def __init__(self, message: str, offset: int, hint: str) -> None:
        self.message = message
        self.offset = offset
        self.hint = hint
        super().__init__(message, offset, hint)

    def __str__(self) -> str:
        return f"{self.message} (at character {self.offset}); {self.hint}"
