"""Docstrings: the summary, and the parameters' descriptions in three habits."""

import pytest

from registry.docstrings import read_docstring

CASES: list[tuple[str | None, str, dict[str, str]]] = [
    (None, "", {}),
    ("", "", {}),
    ("Only this.", "Only this.", {}),
    ("Over two\n    lines.\n\n    More.", "Over two lines.", {}),
    (
        """Find.

        Args:
            query: words
                to look for.
            limit (int, optional): how many: at most.

            mode: fast or slow.

        Returns:
            docs: what was found.
        """,
        "Find.",
        {"query": "words to look for.", "limit": "how many: at most.", "mode": "fast or slow."},
    ),
    (
        """Find.

        Parameters
        ----------
        query : str
            Words
            to look for.
        limit
            How many.

        Returns
        -------
        Docs
            What was found.
        """,
        "Find.",
        {"query": "Words to look for.", "limit": "How many."},
    ),
    (
        """Find.

        :param query: words
            to look for.
        :param int limit: how many.
        :returns: what was found.
        """,
        "Find.",
        {"query": "words to look for.", "limit": "how many."},
    ),
    ("\n    Args:\n        x: a number.\n    ", "", {"x": "a number."}),
    ("Sum.\n\nArgs:\nnothing is indented", "Sum.", {}),
    ("Sum.\n\nParameters\n----------\n", "Sum.", {}),
]


@pytest.mark.parametrize(("text", "summary", "parameters"), CASES)
def test_docstring(text: str | None, summary: str, parameters: dict[str, str]) -> None:
    found = read_docstring(text)
    assert (found.summary, found.parameters) == (summary, parameters)
