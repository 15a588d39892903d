"""The union automaton: bytes, reservation, masks and residual strings."""

from __future__ import annotations

import codecs
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau.lexer import LexerAutomaton, TerminalSpec, build
from aufbau.regex import DEAD, literal_regex, parse_regex


def terminals(*spellings: str) -> list[TerminalSpec]:
    """`/…/` is a regex, `~word` a contextual literal, anything else a literal."""
    specs = []
    for spelling in spellings:
        if len(spelling) > 1 and spelling.startswith("/") and spelling.endswith("/"):
            specs.append(TerminalSpec(regex=parse_regex(spelling[1:-1])))
        else:
            word = spelling.removeprefix("~")
            contextual = spelling.startswith("~")
            specs.append(TerminalSpec(regex=literal_regex(word), literal=True, contextual=contextual))
    return specs


def names(mask: int, spellings: tuple[str, ...]) -> list[str]:
    return [spelling for number, spelling in enumerate(spellings) if mask >> number & 1]


KEYWORDS = ("let", "=", "==", "~get", "/[a-z]+/", "/[a-z]+[0-9]*/", "/=+/", "/[ ]+/")

# Text, terminals that match it, terminals that can match it or more, terminals that can only match more.
RESERVATION: list[tuple[str, list[str], list[str]]] = [
    ("let", ["let"], ["let", "/[a-z]+/", "/[a-z]+[0-9]*/"]),
    ("le", ["/[a-z]+/", "/[a-z]+[0-9]*/"], ["let", "/[a-z]+/", "/[a-z]+[0-9]*/"]),
    ("letx", ["/[a-z]+/", "/[a-z]+[0-9]*/"], ["/[a-z]+/", "/[a-z]+[0-9]*/"]),
    ("let1", ["/[a-z]+[0-9]*/"], ["/[a-z]+[0-9]*/"]),
    ("get", ["~get", "/[a-z]+/", "/[a-z]+[0-9]*/"], ["~get", "/[a-z]+/", "/[a-z]+[0-9]*/"]),
    ("=", ["="], ["=", "==", "/=+/"]),
    ("==", ["=="], ["==", "/=+/"]),
    ("===", ["/=+/"], ["/=+/"]),
    ("", [], list(KEYWORDS)),
    ("A", [], []),
]


@pytest.mark.parametrize(("text", "accepted", "live"), RESERVATION)
def test_reservation(text: str, accepted: list[str], live: list[str]) -> None:
    automaton = build(terminals(*KEYWORDS))
    state = automaton.run(text.encode())
    assert names(automaton.accepts[state], KEYWORDS) == accepted
    assert names(automaton.live[state], KEYWORDS) == live
    assert automaton.classify(text.encode()) == automaton.accepts[state]


def test_masks_ahead() -> None:
    spellings = ("let", "/[a-z]+/", "/x[0-9]{1,3}/")
    automaton = build(terminals(*spellings))
    for text, more, infinite in [
        ("", ["let", "/[a-z]+/", "/x[0-9]{1,3}/"], ["/[a-z]+/"]),
        ("let", ["/[a-z]+/"], ["/[a-z]+/"]),
        ("x1", ["/x[0-9]{1,3}/"], []),
        ("x123", [], []),
    ]:
        state = automaton.run(text.encode())
        assert names(automaton.more[state], spellings) == more
        assert names(automaton.infinite[state], spellings) == infinite


def valid_start(text: bytes) -> bool:
    """Whether Python takes these bytes as the beginning of a UTF-8 text."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return False
    # CPython objects to a surrogate at its third byte only, but no valid text goes on after the second.
    return not (text[-2:-1] == b"\xed" and text[-1] >= 0xA0)


NOT_QUOTE = build(terminals('/[^"]*/'))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.binary(max_size=3))
def test_bytes_live_exactly_in_valid_utf8(text: str, noise: bytes) -> None:
    """Law: in `[^"]*` every byte prefix of valid UTF-8 lives, and the first byte that breaks it is DEAD."""
    data = text.encode() + noise
    state = NOT_QUOTE.start
    for length in range(1, len(data) + 1):
        state = NOT_QUOTE.step(state, data[length - 1])
        alive = valid_start(data[:length]) and b'"' not in data[:length]
        assert (state != DEAD) == alive, data[:length]
        assert state == NOT_QUOTE.run(data[:length])


def test_every_lead_and_second_byte() -> None:
    anything = build(terminals(r"/[\s\S]*/"))
    for pair in product(range(256), repeat=2):
        data = bytes(pair)
        assert (anything.run(data) != DEAD) == valid_start(data), data
        assert (NOT_QUOTE.run(data) != DEAD) == (valid_start(data) and b'"' not in data), data


def test_dead_stays_dead_and_run_resumes() -> None:
    automaton = build(terminals("let", "/[0-9]+/"))
    assert automaton.step(DEAD, 0x61) == DEAD
    assert automaton.run(b"x") == DEAD == automaton.run(b"1", DEAD)
    assert automaton.run(b"t", automaton.run(b"le")) == automaton.run(b"let")
    assert automaton.accepts[DEAD] == automaton.live[DEAD] == automaton.more[DEAD] == automaton.infinite[DEAD] == 0


@pytest.mark.parametrize("specs", [[], terminals(r"/[^\d\D]/"), terminals(r"/a[^\d\D]/", r"/[^\s\S]+/")])
def test_nothing_to_match(specs: list[TerminalSpec]) -> None:
    automaton = build(specs)
    assert automaton.start == DEAD
    assert automaton.size == automaton.classify(b"") == automaton.classify(b"a") == 0


@pytest.mark.parametrize("spelling", [r"/c[^\d\D]|ab/", r"/(c[^\d\D])*ab/", r"/(c(d[^\d\D]|[^\d\D]))?ab/"])
def test_a_part_that_matches_nothing_leaves_no_states(spelling: str) -> None:
    automaton = build(terminals(spelling))
    assert automaton.run(b"c") == DEAD
    assert automaton.size == 3


SMALL = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "é", "[^a]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "?", "{2}", "{1,2}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=5,
)
WORDS = st.lists(st.sampled_from(["a", "ab", "b", "~ba", "abé", "~aa"]), unique=True, max_size=3)
SPELLINGS = st.tuples(WORDS, st.lists(SMALL, min_size=1, max_size=3)).map(
    lambda pair: (*pair[0], *(f"/{pattern}/" for pattern in pair[1]))
)


def successors(automaton: LexerAutomaton) -> list[set[int]]:
    return [set(row) - {DEAD} for row in automaton.transitions[: automaton.size]]


@given(SPELLINGS)
def test_minimal_and_trimmed(spellings: tuple[str, ...]) -> None:
    """Law: every state is reachable, leads to acceptance, and differs from every other one."""
    automaton = build(terminals(*spellings))
    following = successors(automaton)
    reached, waiting = {automaton.start}, [automaton.start]
    while waiting:
        new = following[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    assert reached == set(range(automaton.size))
    assert all(automaton.live[state] for state in range(automaton.size))
    kind = automaton.accepts[:]
    while True:
        signatures = [
            (
                kind[state],
                *(kind[target] if target != DEAD else DEAD for target in automaton.transitions[state]),
            )
            for state in range(automaton.size)
        ]
        numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
        if len(numbers) == len(set(kind[: automaton.size])):
            break
        kind = [numbers[signature] for signature in signatures]
    assert len(numbers) == automaton.size


@given(SPELLINGS)
def test_masks_follow_from_the_graph(spellings: tuple[str, ...]) -> None:
    """Law: live, more and infinite are what closing the graph step by step yields."""
    automaton = build(terminals(*spellings))
    beyond = successors(automaton)
    for middle in range(automaton.size):
        for state in range(automaton.size):
            if middle in beyond[state]:
                beyond[state] |= beyond[middle]
    for state in range(automaton.size):
        more = infinite = 0
        for target in beyond[state]:
            more |= automaton.accepts[target]
        for looping in beyond[state] | {state}:
            if looping in beyond[looping]:
                for target in beyond[looping]:
                    infinite |= automaton.accepts[target]
        assert automaton.more[state] == more
        assert automaton.live[state] == more | automaton.accepts[state]
        assert automaton.infinite[state] == infinite


@given(SPELLINGS, st.text("ab", max_size=3), st.data())
def test_extensions(spellings: tuple[str, ...], text: str, data: st.DataObject) -> None:
    """Law: residual strings come shortest first, once, all of them, and nothing else."""
    automaton = build(terminals(*spellings))
    terminal = data.draw(st.integers(0, len(spellings) - 1))
    state = automaton.run(text.encode())
    found = list(automaton.extensions(state, terminal, 40))
    assert found == sorted(found, key=len)
    assert len(set(found)) == len(found)
    assert all(automaton.accepts[automaton.run(rest, state)] >> terminal & 1 for rest in found)
    assert bool(found) == bool(automaton.live[state] >> terminal & 1)
    assert len(found) == 40 or not automaton.infinite[state] >> terminal & 1
    assert list(automaton.extensions(state, terminal, 3)) == found[:3]
    complete = len(found[-1]) if len(found) == 40 else 5
    for length in range(min(complete, 5)):
        for letters in product(b"ab", repeat=length):
            accepted = automaton.accepts[automaton.run(letters, state)] >> terminal & 1
            assert (bytes(letters) in found) == bool(accepted)


@pytest.mark.parametrize(
    ("spelling", "before", "expected"),
    [
        ("/[a-z][a-z0-9_]*/", "", ["a", "b", "c"]),
        ("/[a-z][a-z0-9_]*/", "x", ["", "a", "b"]),
        ('/"[^"]{40,}"/', '"', ["a" * 40 + '"', "a" * 39 + 'b"', "a" * 39 + 'c"']),
        ("/x[0-9]{1,2}/", "x9", ["", "0", "1"]),
        ("/(ab|c{300})?/", "", ["", "ab", "c" * 300]),
        ("while", "wh", ["ile"]),
        ("while", "when", []),
    ],
)
def test_extensions_come_readable_first(spelling: str, before: str, expected: list[str]) -> None:
    automaton = build(terminals(spelling))
    found = automaton.extensions(automaton.run(before.encode()), 0, 3)
    assert [rest.decode() for rest in found] == expected


def test_extensions_without_room() -> None:
    automaton = build(terminals("/a*/"))
    assert list(automaton.extensions(automaton.start, 0, 0)) == []
    assert list(islice(automaton.extensions(automaton.start, 0, 10**9), 4)) == [b"", b"a", b"aa", b"aaa"]


def test_two_regexes_stay() -> None:
    spellings = (r"/\d+/", r"/\d+(\.\d+)?/", r"/[\p{L}_]\w*/")
    automaton = build(terminals(*spellings))
    assert names(automaton.classify(b"12"), spellings) == [r"/\d+/", r"/\d+(\.\d+)?/"]
    assert names(automaton.classify(b"12.5"), spellings) == [r"/\d+(\.\d+)?/"]
    assert names(automaton.live[automaton.run("é".encode()[:1])], spellings) == [r"/[\p{L}_]\w*/"]


@pytest.mark.parametrize(
    ("spellings", "size"),
    [
        (("/[^a]/",), 9),  # start, end, and 7 states inside characters
        (("/[^a]*/",), 8),
        (("/.{0,1000}/",), 8001),
        (("/(a?){1000}/",), 1001),
        (("/a{1000}/",), 1001),
        (("/(ab|ac|bb|bc)*/",), 2),
        (("/[a-z]+/", "do", "done", "~in"), 8),
    ],
)
def test_size(spellings: tuple[str, ...], size: int) -> None:
    assert build(terminals(*spellings)).size == size
