"""Readable case files: a grammar, then texts with the verdict each must get (`cases/README.txt` has the format)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from aufbau import Grammar, Oracle, Prefix, Verdict
from aufbau.reference.subjects import bindings

CASES = Path(__file__).parent / "cases"
SETTINGS = ("context", "goal", "symbol", "ambient")
WORDS = ("satisfied", "live", "lost", "admits", "refuses", "extensible", "final")
_SPELLINGS = {"␤": "\n", "␉": "\t", "␍": "\r", "·": " "}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One line of a case file with the settings above it."""

    file: str
    line: int
    grammar: str
    word: str
    wanted: str
    text: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The id of the test: where the case stands, and what it says."""
        return f"{self.file}:{self.line}:{self.word}"


def read(path: Path) -> list[Case]:
    """The cases of one file."""
    head, separator, body = path.read_text(encoding="utf-8").partition("\n====\n")
    assert separator, f"{path.name} lacks the ==== between its grammar and its cases"
    settings: dict[str, str] = {}
    found = []
    for number, line in enumerate(body.split("\n"), head.count("\n") + 3):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if colon and key in SETTINGS:
            settings = {**settings, key: value.strip()}
            continue
        left, bar, text = line.partition("|")
        word, _, wanted = left.strip().partition(" ")
        assert bar and word in WORDS, f"{path.name}:{number}: not a case: {line}"
        found.append(
            Case(
                file=path.stem,
                line=number,
                grammar=head,
                word=word,
                wanted=wanted.strip(),
                text=_spelled(text.removeprefix(" ")),
                settings=settings,
            )
        )
    return found


def _spelled(text: str) -> str:
    for shown, meant in _SPELLINGS.items():
        text = text.replace(shown, meant)
    return text


@cache
def oracle(head: str) -> Oracle:
    """The oracle of an inline grammar, or of a shipped one named by `grammar: NAME`."""
    key, colon, name = head.partition(":")
    if colon and key == "grammar":
        return Oracle(Grammar.load(name.strip()))
    return Oracle(Grammar.parse(head + "\n"))


def start(case: Case) -> Prefix:
    """The empty prefix under the settings of a case."""
    settings = case.settings
    return oracle(case.grammar).start(
        context=bindings(settings.get("context", "")),
        ambient=bindings(settings.get("ambient", "")),
        goal=settings.get("goal") or None,
        symbol=settings.get("symbol") or None,
    )


def check(case: Case) -> None:
    """Hold a case against the oracle."""
    if case.word in ("admits", "refuses"):
        _check_continuations(case)
        return
    before, mark, after = case.text.partition("¦")
    prefix = start(case).feed(before + after)
    if case.word == "lost":
        assert mark, "mark the byte at which it is lost by ¦"
        _check_lost(case, prefix, len(before.encode()))
    elif case.word == "live":
        assert prefix.verdict is Verdict.LIVE, str(prefix.explain())
        assert prefix.type is None and prefix.tree() is None
    elif case.word == "satisfied":
        _check_satisfied(case, prefix)
    else:
        assert prefix.verdict is not Verdict.LOST, str(prefix.explain())
        assert prefix.extensible is (case.word == "extensible")


def _check_lost(case: Case, prefix: Prefix, at: int) -> None:
    assert prefix.verdict is Verdict.LOST, f"{prefix.verdict} instead of lost; next: {prefix.explain()}"
    assert prefix.lost_at == at, f"lost at byte {prefix.lost_at}, not {at}:\n{prefix.explain()}"
    assert start(case).feed(case.text.partition("¦")[0]).verdict is not Verdict.LOST
    assert str(at) in str(prefix.explain())


def _check_satisfied(case: Case, prefix: Prefix) -> None:
    assert prefix.verdict is Verdict.SATISFIED, str(prefix.explain())
    types, brace, context = case.wanted.partition("{")
    wanted = [part.strip() for part in types.split(" ; ") if part.strip()]
    if wanted:
        assert sorted(prefix.types) == sorted(wanted)
    if brace:
        assert prefix.context == bindings(context.strip().removesuffix("}"))
    step = start(case)
    for byte in case.text.encode():
        step = step.feed(bytes((byte,)))
        assert step.verdict is not Verdict.LOST, f"a prefix of it is lost: {step.explain()}"
    tree = prefix.tree()
    assert tree is not None and tree.text in case.text


def _check_continuations(case: Case) -> None:
    prefix = start(case).feed(case.text)
    assert prefix.verdict is not Verdict.LOST, str(prefix.explain())
    for word in case.wanted.split():
        after = prefix.feed(word)
        if case.word == "admits":
            assert after.verdict is not Verdict.LOST, f"{word!r} is refused: {after.explain()}"
        else:
            assert after.lost_at == len(prefix.text), f"{word!r} is lost at {after.lost_at}, {after.verdict}"
        assert prefix.try_feed(word) is after.verdict


ALL = [case for path in sorted(CASES.glob("*.txt")) if path.stem != "README" for case in read(path)]


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_case(case: Case) -> None:
    check(case)


def test_a_wrong_case_fails() -> None:
    """The checker itself can fail: each word refuses what it does not say."""
    grammar = "grammar: fun"
    wrong = [
        ("satisfied", "", "let x"),
        ("satisfied", "Bool", "1"),
        ("live", "", "1"),
        ("lost", "", "¦1"),
        ("lost", "", "let x : Int = 1;¦ y"),
        ("admits", "true", "let x : Int = "),
        ("refuses", "1", "let x : Int = "),
        ("final", "", "1"),
    ]
    for word, wanted, text in wrong:
        with pytest.raises(AssertionError):
            check(Case(file="", line=0, grammar=grammar, word=word, wanted=wanted, text=text))
