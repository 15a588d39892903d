"""The four built-in tools: search, summarize, count and format, over an index of a document collection."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from registry.corpus import Corpus, Docs, Hit, Index, default_corpus, query_terms, words_of
from registry.registry import Registry
from registry.tool import tool

# Sentences of a summary.
SUMMARY_SENTENCES: Final = 2
NOTHING_FOUND: Final = "No documents were found."

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+")


def builtin(corpus: Corpus | None = None) -> Registry:
    """A new registry of the four tools over `corpus`, or over the collection that the package ships.

    The registry holds an index open; `close` frees it, and so does dropping the registry.
    """
    index = Index(default_corpus() if corpus is None else corpus)

    @tool(pure=True)
    def search(query: str) -> Docs:
        """Find the documents that hold any word of a query, best first.

        Args:
            query: words to look for; case, accents and endings do not matter.
        """
        return Docs(query=query, hits=index.search(query))

    return Registry([search, summarize, count, format_number], closing=[index.close])


@tool(pure=True)
def summarize(docs: Docs) -> str:
    """Quote the sentences of found documents that say most about the query.

    Args:
        docs: what a search found.
    """
    wanted = {_stem(term) for term in query_terms(docs.query)}
    sentences = list(_sentences(docs.hits))
    if not sentences:
        return NOTHING_FOUND
    # The order of the documents decides between sentences of equal merit, so the summary is always the same.
    ranked = sorted(range(len(sentences)), key=lambda index: -len(wanted & _stems(sentences[index])))
    return " ".join(sentences[index] for index in sorted(ranked[:SUMMARY_SENTENCES]))


@tool(pure=True)
def count(docs: Docs) -> int:
    """Count found documents.

    Args:
        docs: what a search found.
    """
    return len(docs)


@tool(name="format", pure=True)
def format_number(n: int) -> str:
    """Write a number as text, its thousands separated by commas.

    Args:
        n: the number.
    """
    return f"{n:,}"


def _sentences(hits: tuple[Hit, ...]) -> Iterator[str]:
    for hit in hits:
        yield from filter(None, _SENTENCE_END.split(hit.document.text.strip()))


def _stems(sentence: str) -> set[str]:
    return {_stem(word) for word in words_of(sentence)}


def _stem(word: str) -> str:
    """A word without case, accents and a plural's ending, so that it is recognised in its common forms."""
    letters = unicodedata.normalize("NFD", word.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") else plain
