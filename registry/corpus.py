"""Document collections, and the index that finds documents in them: SQLite's FTS5, ranked by BM25."""

from __future__ import annotations

import json
import sqlite3
import threading
import tomllib
import unicodedata
import weakref
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Self, final

from pydantic import BaseModel, ConfigDict, ValidationError

from registry.errors import CorpusError
from registry.types import Handle

# Distinct terms of a query that are looked up; later ones are ignored, so that no query is too long for FTS5.
MAX_TERMS: Final = 64

# Words that say nothing about what is sought; they count only where a query has no others.
_STOP_TEXT: Final = """
a about all an and are as at be by did do does for from had has have how in into is it its many of on or than
that the their there they this to was were what when where which who why will with
"""
_STOP_WORDS: Final = frozenset(_STOP_TEXT.split())

_SCHEMA: Final = """
CREATE VIRTUAL TABLE document USING fts5(title, text, tokenize = 'porter unicode61 remove_diacritics 2')
"""
# A title says in few words what a document is about, so its terms weigh more. FTS5 scores better ones lower.
_SELECT: Final = """
SELECT rowid, -bm25(document, 2.0, 1.0) AS score FROM document
WHERE document MATCH ? ORDER BY score DESC, rowid
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A text with a title, and an id that is unique in its collection."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A document that a search found, and how well it fits: more is better."""

    document: Document
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Docs(Handle):
    """What a search found, best first: a handle, which only a search can make."""

    query: str
    hits: tuple[Hit, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def __str__(self) -> str:
        titles = "; ".join(hit.document.title for hit in self.hits[:3])
        more = f"; and {len(self) - 3} more" if len(self) > 3 else ""
        return f"{len(self)} document{'' if len(self) == 1 else 's'} for {self.query!r}" + (
            f": {titles}{more}" if titles else ""
        )


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    id: str
    title: str
    text: str


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    document: list[_Entry]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A collection of documents with unique ids."""

    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        repeated = [name for name, times in Counter(item.id for item in self.documents).items() if times > 1]
        if repeated:
            raise CorpusError(f"two documents have the id {repeated[0]!r}; give each its own")

    def __len__(self) -> int:
        return len(self.documents)

    @classmethod
    def load(cls, path: str | Path) -> Corpus:
        """Read a TOML file of `[[document]]` tables or a JSON file `{"document": [...]}`: id, title, text."""
        return _load(Path(path))


@cache
def default_corpus() -> Corpus:
    """The collection that the package ships."""
    return _load(resources.files("registry") / "data" / "documents.toml")


def _load(file: Traversable) -> Corpus:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file.name}: cannot be read as UTF-8 text: {error}") from error
    try:
        raw = json.loads(text) if file.name.endswith(".json") else tomllib.loads(text)
        entries = _File.model_validate(raw).document
        return Corpus(tuple(Document(id=entry.id, title=entry.title, text=entry.text) for entry in entries))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise CorpusError(
            f"{file.name}: {place}: {first['msg']}; expected document tables with id, title and text"
        ) from error
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise CorpusError(f"{file.name}: not well formed: {error}") from error
    except CorpusError as error:
        raise CorpusError(f"{file.name}: {error}") from error


@final
class Index:
    """A full-text index of a corpus, in memory, that threads may share; closed by `close` or when dropped."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._finalizer = weakref.finalize(self, self._connection.close)
        try:
            self._connection.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self.close()
            raise CorpusError(
                f"the SQLite of this Python ({sqlite3.sqlite_version}) cannot build a full-text index "
                f"({error}); use a Python whose SQLite has FTS5"
            ) from error
        rows = ((number, item.title, item.text) for number, item in enumerate(corpus.documents))
        self._connection.executemany("INSERT INTO document(rowid, title, text) VALUES (?, ?, ?)", rows)

    def search(self, query: str) -> tuple[Hit, ...]:
        """The documents that hold any term of the query, best first; any text is a query."""
        terms = query_terms(query)
        if not terms:
            return ()
        expression = " OR ".join(f'"{term}"' for term in terms)
        with self._lock:
            if not self._finalizer.alive:
                raise CorpusError("the index is closed; build another registry to search again")
            rows = self._connection.execute(_SELECT, (expression,)).fetchall()
        return tuple(Hit(document=self._corpus.documents[row], score=score) for row, score in rows)

    def close(self) -> None:
        """Free the index; closing twice is harmless."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def query_terms(query: str) -> tuple[str, ...]:
    """The distinct words of a query that are looked up, in their order."""
    words = tuple(dict.fromkeys(word.casefold() for word in words_of(query)))
    return tuple(word for word in words if word not in _STOP_WORDS)[:MAX_TERMS] or words[:MAX_TERMS]


def words_of(text: str) -> list[str]:
    """Runs of letters, digits and marks: words for FTS5's tokenizer too, and nothing that its syntax uses."""
    composed = unicodedata.normalize("NFC", text)
    return "".join(character if _is_word(character) else " " for character in composed).split()


def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"
