"""Patterns: what they match, against Python's `re`; what is refused, where, and with which advice."""

from __future__ import annotations

import re
import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau.lexer import LexerAutomaton, TerminalSpec, build
from aufbau.regex import RegexError, RegexLimits, charset, is_empty, literal_regex, nullable, parse_regex


def automaton(pattern: str) -> LexerAutomaton:
    return build([TerminalSpec(regex=parse_regex(pattern))])


def matches(pattern: str, text: str) -> bool:
    return automaton(pattern).classify(text.encode()) == 1


# Pattern, texts that match, texts that do not. What `re` cannot judge, or reads differently, is here.
MATCHES: list[tuple[str, list[str], list[str]]] = [
    (r"[a-z][a-z0-9_]*", ["a", "ab_1"], ["", "A", "1a", "a-"]),
    (r'"([^"\\\x00-\x1f]|\\.)*"', ['""', '"é€😀"', r'"\""', r'"\\"'], ['"', '"""', '"\n"', r'"\"']),
    (r"/\*([^*]|\*+[^*/])*\*+/", ["/**/", "/* a * b **/", "/*\n*/"], ["/*", "/*/", "/**/*/"]),
    (r"\u{1F600}\u00e9\xe9\u{41}", ["😀ééA"], ["😀éé"]),
    (r"\n\t\r\f\v\0", ["\n\t\r\f\v\0"], ["ntrfv0"]),
    (r"\/\\\-\"\.\ \[\]", ['/\\-". []'], ["/"]),
    (r"\p{L}+", ["aé漢", "Ж"], ["", "1", "_", "a1"]),
    (r"\P{L}", ["1", " ", "€", "\U0010ffff"], ["a", "é", "漢"]),
    (r"[\p{Lu}\p{Nd}_]+", ["AÉ٣_9"], ["a", "²"]),
    (r"[^\P{L}a]", ["b", "é"], ["a", "1"]),
    (r"\p{Co}", ["\ue000", "\U000f0000", "\U0010fffd"], ["a", "\U0010ffff"]),
    (r".", ["a", "é", "\U0010ffff", "\r"], ["\n", "", "ab"]),
    (r"[^a]", ["b", "\n", "\ud7ff", "\ue000"], ["a", ""]),
    (r"[\ud7ff-\ue000]", ["\ud7ff", "\ue000"], ["\ud7fe", "\ue001"]),
    (r"[a-]|[-b]", ["a", "-", "b"], ["c"]),
    (r"[a-c-]+", ["a-b"], ["d"]),
    (r"[a\]\-^]+", ["]^-a"], ["\\"]),
    (r"[\d\-x]+", ["1-x"], ["d"]),
    (r"a||b", ["a", "b", ""], ["ab"]),
    (r"()(?:)a", ["a"], [""]),
    (r"a{2}b{1,}c{0,2}d{0}", ["aab", "aabbcc"], ["ab", "aac", "aabccc", "aabd"]),
    (r"(a|b{2,3}){2}", ["aa", "abb", "bbbbbb"], ["a", "bbb", "bbbbbbb"]),
    (r"((a?){3}b?){2}", ["", "aab", "aaabaaab"], ["aaaab" + "aaa", "bbb"]),
    (r"(a*)*(b+)+", ["b", "aabb"], ["", "aa", "aba"]),
    (r"x(yz){3,}", ["xyzyzyz", "xyzyzyzyz"], ["xyzyz", "xyzyzyzy"]),
    (r"a|[^\d\D]b|(?:[^\d\D])*c", ["a", "c"], ["b", "cb", ""]),
    (r"\}\{", ["}{"], ["}"]),
    ("é{2}", ["éé"], ["é"]),
]


@pytest.mark.parametrize(("pattern", "accepted", "refused"), MATCHES)
def test_matches(pattern: str, accepted: list[str], refused: list[str]) -> None:
    compiled = automaton(pattern)
    assert [text for text in accepted if not compiled.classify(text.encode())] == []
    assert [text for text in refused if compiled.classify(text.encode())] == []


# fmt: off
_ATOMS = st.sampled_from([
    "a", "b", "é", "€", "😀", "_", "1", r"\.", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\x41",
    r"\u20ac", "[ab]", "[^a]", "[a-c1]", r"[^\w]", r"[à-ž]", r"[^€-\uffff]", r"[\s\-é]", "[😀-😂_]",
])
# fmt: on
_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"])
PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.builds(lambda part, quantifier: f"(?:{part}){quantifier}", inner, _QUANTIFIERS),
    ),
    max_leaves=6,
)
TEXTS = st.text(st.sampled_from("abcé€😀😁ž_1A. \n-") | st.characters(exclude_categories=["Cs"]), max_size=6)


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=8))
def test_agrees_with_re(pattern: str, texts: list[str]) -> None:
    """Law: a text matches exactly when `re.fullmatch` takes it; strings from the automaton are taken too."""
    compiled, reference = automaton(pattern), re.compile(pattern, re.ASCII)
    produced = [found.decode() for found in compiled.extensions(compiled.start, 0, 12)]
    assert produced
    for text in texts:
        assert bool(compiled.classify(text.encode())) == bool(reference.fullmatch(text)), text
    for text in produced:
        assert reference.fullmatch(text), text


@given(PATTERNS)
def test_nullable_is_acceptance_of_nothing(pattern: str) -> None:
    assert nullable(parse_regex(pattern)) == matches(pattern, "")


@pytest.mark.parametrize(
    ("pattern", "empty"),
    [
        ("", False),
        ("a", False),
        (r"[^\d\D]", True),
        (r"a[^\d\D]", True),
        (r"[^\d\D]+", True),
        (r"[^\d\D]*", False),
        (r"[^\d\D]|[^\w\W]", True),
        (r"[^\d\D]|b", False),
        (r"\p{Cs}", True),
    ],
)
def test_is_empty(pattern: str, empty: bool) -> None:
    regex = parse_regex(pattern)
    assert is_empty(regex) == empty
    compiled = build([TerminalSpec(regex=regex)])
    assert (compiled.live[compiled.start] == 0) == empty


# Pattern, offset of the fault, words of the message, words of the hint.
FAULTS: list[tuple[str, int, str, str]] = [
    (r"a(b)\1", 4, "backreference", "spell"),
    (r"\k<n>", 0, "backreference", "spell"),
    ("a(?P=n)", 1, "backreference", "spell"),
    ("a(?=b)", 1, "lookahead", "longest"),
    ("a(?!b)", 1, "lookahead", "longest"),
    ("(?<=a)b", 0, "lookbehind", "lexeme"),
    ("(?<!a)b", 0, "lookbehind", "lexeme"),
    ("(?P<n>a)", 0, "names", "(?:"),
    ("(?<n>a)", 0, "names", "(?:"),
    ("(?>a)", 0, "atomic", "(?:"),
    ("(?#a)", 0, "comments", "//"),
    ("(a)(?(1)b)", 3, "conditional", "alternatives"),
    ("a(?i)b", 1, "flags", "[aA]"),
    ("(?i:a)", 0, "flags", "[aA]"),
    ("(?", 0, "flags", "(?:"),
    ("^a", 0, "anchor", r"\^"),
    ("a$", 1, "anchor", r"\$"),
    (r"a\b", 1, "anchor", "remove"),
    (r"\Aa", 0, "anchor", "remove"),
    (r"a\Z", 1, "anchor", "remove"),
    (r"[\b]", 1, "anchor", r"\x08"),
    ("a*?", 2, "lazy", "remove"),
    ("a{2}?", 4, "lazy", "remove"),
    ("a++", 2, "possessive", "remove"),
    ("a**", 2, "quantifier follows", "(…)"),
    ("a{2}{3}", 4, "quantifier follows", "(…)"),
    ("*a", 0, "nothing to repeat", r"\*"),
    ("a|+", 2, "nothing to repeat", r"\+"),
    ("(?:?)", 3, "nothing to repeat", r"\?"),
    ("{2}", 0, "nothing to repeat", r"\{"),
    ("a{", 1, "not closed", r"\{"),
    ("a{,3}", 1, "no count", "{0,n}"),
    ("a{b}", 1, "no count", r"\{"),
    ("a{²}", 1, "no count", r"\{"),
    ("a{3,2}", 1, "reversed", "{2,3}"),
    ("a{1001}", 1, "limit of 1000", "*"),
    ("a{2," + "9" * 5000 + "}", 1, "limit of 1000", "*"),
    ("(a", 0, "not closed", r"\("),
    ("a(b(c)", 1, "not closed", r"\("),
    ("a)", 1, "closes no group", r"\)"),
    ("a]", 1, "closes nothing", r"\]"),
    ("a}", 1, "closes nothing", r"\}"),
    ("a[bc", 1, "not closed", r"\["),
    (r"[a\]", 0, "not closed", r"\["),
    ("a[]", 1, "empty", r"\]"),
    ("[^]b", 0, "empty", r"\]"),
    ("[z-a]", 1, "reversed", "smaller"),
    (r"[a\w-z]", 2, "set as its end", r"\-"),
    (r"[a-\d]", 1, "set as its end", r"\-"),
    ("[[:alpha:]]", 1, "POSIX", r"\p{L}"),
    ("[a&&b]", 2, "set operations", r"\&"),
    ("[a--b]", 2, "set operations", r"\-"),
    ("[a~~b]", 2, "set operations", r"\~"),
    ("ab\\", 2, "backslash", r"\\"),
    ("[\\", 1, "backslash", r"\\"),
    (r"\q", 0, "not known", "`q`"),
    (r"[\é]", 1, "not known", "`é`"),
    (r"a\07", 1, "octal", r"\xHH"),
    (r"\x4", 0, "code", r"\xHH"),
    (r"\xg0", 0, "code", r"\xHH"),
    (r"\u12", 0, "code", r"\uHHHH"),
    (r"\u{}", 0, "code", r"\u{H…}"),
    (r"\u{41", 0, "code", r"\u{H…}"),
    (r"\u{0000041}", 0, "code", "six"),
    (r"\u{110000}", 0, "beyond", "10FFFF"),
    (r"a\ud800", 1, "surrogate", "whole character"),
    ("a\ud800", 1, "surrogate", "whole character"),
    (r"a\p{Greek}", 1, "`Greek`", r"\p{Lu}"),
    (r"\pL", 0, "missing", r"\p{L}"),
    (r"\P{", 0, "missing", r"\p{L}"),
    ("(" * 100_000, 64, "64 groups", "remove"),
]


@pytest.mark.parametrize(("pattern", "offset", "message", "hint"), FAULTS, ids=lambda value: str(value)[:20])
def test_fault(pattern: str, offset: int, message: str, hint: str) -> None:
    with pytest.raises(RegexError) as caught:
        parse_regex(pattern)
    assert caught.value.offset == offset
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert str(caught.value) == f"{caught.value.message} (at character {offset}); {caught.value.hint}"


@given(st.text(st.sampled_from(r"ab01\()[]{}^$|*+?.-,:<>=!&xupPdLé"), max_size=12))
def test_any_text_parses_or_is_refused_inside(pattern: str) -> None:
    """Law: a pattern raises only RegexError, with an offset inside it; `re` agrees with what is taken."""
    try:
        compiled = automaton(pattern)
    except RegexError as error:
        assert 0 <= error.offset <= len(pattern)
        assert error.hint
        return
    if r"\p" not in pattern and r"\P" not in pattern and r"\u{" not in pattern:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # `re` may want `[a||b]` and `[[a]` for set operations
            reference = re.compile(pattern, re.ASCII)
        for text in compiled.extensions(compiled.start, 0, 5):
            assert reference.fullmatch(text.decode())


@pytest.mark.parametrize(
    ("limits", "pattern"),
    [
        (RegexLimits(repetition=7), "a{7}"),
        (RegexLimits(repetition=7), "a{0,7}"),
        (RegexLimits(nesting=3), "(((a)))"),
    ],
)
def test_limits_of_a_pattern(limits: RegexLimits, pattern: str) -> None:
    parse_regex(pattern, limits)
    with pytest.raises(RegexError, match=r"\((repetition|nesting)\)"):
        parse_regex(pattern.replace("7", "8").replace("a", "(a)"), limits)


@pytest.mark.parametrize(
    ("limits", "within", "beyond", "message"),
    [
        (RegexLimits(positions=10), "a{9}", "a{10}", "unroll to 11 characters; the limit is 10"),
        (RegexLimits(positions=10), "(a{2}){3}", "(a{2}){4}", "unroll to 13 characters; the limit is 10"),
        (RegexLimits(states=10), "a{9}", "a{10}", "more than 10 states"),
        (RegexLimits(states=9), "[^a]", "[^a]{2}", "more than 9 states"),
        (RegexLimits(steps=30), "(a?){5}", "(a?){9}", "more than 30 steps"),
    ],
)
def test_limits_of_an_automaton(limits: RegexLimits, within: str, beyond: str, message: str) -> None:
    build([TerminalSpec(regex=parse_regex(within))], limits)
    with pytest.raises(RegexError, match=message):
        build([TerminalSpec(regex=parse_regex(beyond))], limits)


def test_default_limits_keep_a_state_explosion_away() -> None:
    with pytest.raises(RegexError, match="more than 30000 states"):
        automaton("(a|b)*a(a|b){20}")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_literal_matches_itself_only(text: str) -> None:
    compiled = build([TerminalSpec(regex=literal_regex(text), literal=True)])
    assert list(compiled.extensions(compiled.start, 0, 9)) == [text.encode()]


def test_literal_with_a_surrogate() -> None:
    with pytest.raises(RegexError) as caught:
        literal_regex("ab\udc00")
    assert caught.value.offset == 2


CATEGORIES = sorted({unicodedata.category(chr(code)) for code in range(0x3000)} | {"Co", "Cn"} - {"Cs"})


@given(st.characters(exclude_categories=["Cs"]), st.sampled_from(CATEGORIES))
def test_categories(char: str, name: str) -> None:
    own = unicodedata.category(char)
    for asked in (name, own, name[0], own[0]):
        ranges = charset.category(asked)
        assert ranges is not None
        assert any(low <= ord(char) <= high for low, high in ranges) == own.startswith(asked)


def test_unscanned_planes() -> None:
    """What `charset` takes for known about Unicode without looking is so in this Python."""
    for name, low, high in charset._UNSCANNED:
        assert {unicodedata.category(chr(code)) for code in range(low, high + 1)} == {name}
    covered = charset.union([*charset._SCANNED, *((low, high) for _, low, high in charset._UNSCANNED)])
    assert covered == ((0, 0x10FFFF),)


RANGES = st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 60)), max_size=5).map(
    lambda pairs: charset.union((low, min(low + width, 0x10FFFF)) for low, width in pairs)
)


@given(RANGES)
def test_complement(ranges: charset.Ranges) -> None:
    """Law: complement is an involution on scalar values, and the two halves make up all of them."""
    outside, scalar = charset.complement(ranges), charset.without_surrogates(ranges)
    assert charset.complement(outside) == scalar
    assert charset.without_surrogates(charset.union([*outside, *scalar])) == charset.SCALARS
    assert sum(high - low + 1 for low, high in (*outside, *scalar)) == 0x110000 - 0x800
