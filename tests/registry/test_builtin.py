"""The built-in tools and the document collections under them."""

import gc
import sys
import threading
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import (
    Corpus,
    CorpusError,
    Docs,
    Document,
    Registry,
    ToolExecutionError,
    builtin,
    default_corpus,
)
from registry.corpus import MAX_TERMS, Index, query_terms
from registry.fourtools import NOTHING_FOUND

TOOLS = builtin()


def found(query: str) -> list[str]:
    return [hit.document.id for hit in cast(Docs, TOOLS["search"](query)).hits]


def test_signatures() -> None:
    assert [item.signature for item in TOOLS.values()] == [
        "search(query: string) -> docs",
        "summarize(docs: docs) -> string",
        "count(docs: docs) -> int",
        "format(n: int) -> string",
    ]
    assert all(item.pure and item.description for item in TOOLS.values())
    assert all(part.description for item in TOOLS.values() for part in item.parameters)


QUERIES: list[tuple[str, set[str]]] = [
    ("Danube", {"danube"}),
    ("coffee", {"coffee-ethiopia", "cafe-procope", "espresso", "sao-paulo", "viennese-cafe"}),
    ("Nobel Prize", {"transistor", "honeybee"}),
    ("Where is the Danube?", {"danube"}),
    ("café", {"cafe-procope", "viennese-cafe"}),
    ("CAFE", {"cafe-procope", "viennese-cafe"}),
    ("cafe\u0301", {"cafe-procope", "viennese-cafe"}),
    ("naïve", {"naive-art"}),
    ("Zürich", {"limmat"}),
    ("São Paulo", {"sao-paulo", "azulejos"}),
    ("東京", {"tokyo"}),
    ("京都", {"kyoto", "tokyo"}),
    ("Αθήνα", {"athens"}),
    ("honeybees dancing", {"honeybee"}),
    ('Danube" OR "Nile', {"danube", "nile"}),
    ("xylophone quartet", set()),
    ("", set()),
    ("?!", set()),
]


@pytest.mark.parametrize(("query", "ids"), QUERIES)
def test_search(query: str, ids: set[str]) -> None:
    assert set(found(query)) == ids


def test_the_best_document_comes_first() -> None:
    assert found("solar storms 1859")[0] == "telegraph-1859"
    scores = [hit.score for hit in cast(Docs, TOOLS["search"]("solar storms 1859")).hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


NASTY = st.text() | st.text(alphabet='"*^():-+{}ANDORT \x00\ud800é東', max_size=20)


@given(NASTY)
def test_any_text_is_a_query(query: str) -> None:
    docs = cast(Docs, TOOLS["search"](query))
    assert docs.query == query
    assert TOOLS["count"](docs) == len(docs.hits) <= len(default_corpus())
    assert TOOLS["summarize"](docs) == TOOLS["summarize"](TOOLS["search"](query))
    assert str(len(docs)) in str(docs)


@given(st.lists(st.sampled_from(["Danube", "Nile", "coffee", "nothing"]), min_size=1))
def test_searching_several_words_finds_what_each_finds(words: list[str]) -> None:
    assert set(found(" ".join(words))) == {name for word in words for name in found(word)}


def test_queries_have_a_bounded_number_of_terms() -> None:
    many = " ".join(f"word{number}" for number in range(10_000))
    assert len(query_terms(many)) == MAX_TERMS
    assert found(f"{many} Danube") == []
    assert found(f"Danube {many}") == ["danube"]


SUMMARIES: list[tuple[str, str]] = [
    ("xylophone quartet", NOTHING_FOUND),
    (
        "tardigrades",
        "Tardigrades are animals of half a millimetre that live in moss. "
        "Dried out, they survive frost, vacuum and radiation.",
    ),
    (
        "Nobel Prize",
        "John Bardeen, Walter Brattain and William Shockley shared a Nobel Prize for it. "
        "Karl von Frisch decoded the dance and received a Nobel Prize in 1973.",
    ),
]


@pytest.mark.parametrize(("query", "summary"), SUMMARIES)
def test_summarize(query: str, summary: str) -> None:
    assert TOOLS["summarize"](TOOLS["search"](query)) == summary


@pytest.mark.parametrize(("n", "text"), [(0, "0"), (-7, "-7"), (999, "999"), (1234567, "1,234,567")])
def test_format(n: int, text: str) -> None:
    assert TOOLS["format"](n) == text


@pytest.mark.anyio
async def test_called_as_a_chain() -> None:
    docs = await TOOLS["search"].call({"query": "Nobel Prize"}, timeout=30)
    number = await TOOLS["count"].call({"docs": docs})
    assert number == 2
    assert await TOOLS["format"].call({"n": number}) == "2"


def test_docs_say_what_they_hold() -> None:
    assert str(TOOLS["search"]("Danube")) == "1 document for 'Danube': The Danube"
    assert str(TOOLS["search"]("xylophone")) == "0 documents for 'xylophone'"
    assert str(TOOLS["search"]("coffee")).endswith("; and 2 more")


def test_the_shipped_collection_is_in_order() -> None:
    documents = default_corpus().documents
    assert len(documents) == 60
    for document in documents:
        assert document.id and document.title and 2 <= document.text.count(". ") + 1 <= 4
        assert document.text.endswith(".")


def test_a_corpus_of_ones_own(tmp_path: Path) -> None:
    corpus = Corpus((Document(id="a", title="Alpha", text="One two."), Document(id="b", title="Beta", text="Two.")))
    toml = tmp_path / "corpus.toml"
    toml.write_text(
        '[[document]]\nid = "a"\ntitle = "Alpha"\ntext = "One two."\n'
        '[[document]]\nid = "b"\ntitle = "Beta"\ntext = "Two."\n',
        encoding="utf-8",
    )
    json = tmp_path / "corpus.json"
    json.write_text(
        '{"document": [{"id": "a", "title": "Alpha", "text": "One two."},'
        '{"id": "b", "title": "Beta", "text": "Two."}]}',
        encoding="utf-8",
    )
    assert Corpus.load(toml) == Corpus.load(str(json)) == corpus
    with builtin(corpus) as tools:
        assert tools["count"](tools["search"]("two")) == 2
    assert Corpus(()).documents == ()
    with builtin(Corpus(())) as tools:
        assert tools["count"](tools["search"]("two")) == 0


BROKEN: list[tuple[str, str | None, str]] = [
    ("none.toml", None, "none.toml: cannot be read"),
    ("bad.toml", "[[document]", "bad.toml: not well formed"),
    ("bad.json", "{", "bad.json: not well formed"),
    ("list.json", "[]", "list.json: the file:"),
    ("lacks.toml", '[[document]]\nid = "a"\ntitle = "A"', "lacks.toml: document.0.text: Field required"),
    (
        "typed.toml",
        '[[document]]\nid = 5\ntitle = "A"\ntext = ""',
        "typed.toml: document.0.id: Input should be",
    ),
    ("extra.toml", "x = 1\ndocument = []", "extra.toml: x: Extra inputs"),
    (
        "twice.json",
        '{"document": [{"id": "a", "title": "", "text": ""}, {"id": "a", "title": "", "text": ""}]}',
        "twice.json: two documents have the id 'a'",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_a_broken_corpus_is_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError) as raised:
        Corpus.load(tmp_path / name)
    assert str(raised.value).startswith(message)


@pytest.mark.anyio
async def test_a_closed_registry_says_so() -> None:
    tools: Registry = builtin()
    tools.close()
    tools.close()
    with pytest.raises(ToolExecutionError, match="the index is closed; build another registry"):
        await tools["search"].call({"query": "Danube"})


def test_a_sqlite_without_full_text_search_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.corpus._SCHEMA", "CREATE VIRTUAL TABLE document USING fts0(title, text)")
    with pytest.raises(CorpusError, match=r"no such module: fts0.*use a Python whose SQLite has FTS5"):
        builtin()


def test_an_index_that_is_dropped_is_closed() -> None:
    index = Index(Corpus(()))
    finalizer = index._finalizer
    del index
    gc.collect()
    assert not finalizer.alive


def test_threads_may_share_an_index() -> None:
    results: list[set[str]] = []
    errors: list[BaseException] = []

    def work(query: str, ids: set[str]) -> None:
        try:
            for _ in range(20):
                results.append(set(found(query)) ^ ids)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=case) for case in QUERIES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert results == [set()] * (20 * len(QUERIES))
