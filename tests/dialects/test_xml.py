"""The XML dialect: what it keeps, where it loses what, and that an XML parser finds the same in it."""

from __future__ import annotations

import datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aufbau import Verdict
from dialects import Call, Let, LoweringError, Return, SpellingError, XmlDialect, by_name, translate
from dialects import Literal as Lit
from dialects.xmltext import read_text, spell_text
from registry import Registry, type_from_hint
from registry.types import FLOAT, STRING
from tests.dialects.tools import CONTEXT, TOOLS, Docs, Level, Page, check_kept, check_lost, read

LOWERED = XmlDialect().lower(TOOLS)

KEPT = [
    '<let name="p"><search><string>a</string></search></let>',
    '<let name="p"><search><string>a</string><int>3</int><string>exact</string></search></let>',
    '<let name="p"><search><string>a</string><arg name="mode"><string>exact</string></arg></search></let>',
    '<let name="p"><search><arg name="limit"><int>3</int></arg>'
    '<arg name="query"><string>a</string></arg></search></let>',
    '<let name="p" >\n  <search>\n    <string>a</string>\n    <int>-0</int>\n  </search>\n</let>',
    '<let name="p"><search><var name="name" /><var name="count"/></search></let>',
    '<let name="p"><search><field name="title"><var name="page"/></field></search></let>',
    '<let name="p"><search><string> &amp;&lt;&gt;&quot;&apos; ]] ]> &#65;&#x1F600; é\n</string></search></let>',
    '<let name="p"><search><string></string></search></let>',
    '<let name="s"><scale><float>1.5e-3</float><string>LOW</string></scale></let>',
    '<let name="s"><scale><int>2</int><string>LOW</string></scale></let>',
    '<let name="f"><first><var name="pages"/></first></let>',
    '<let name="f"><first><list><var name="page"/><var name="page"/></list><null/></first></let>',
    '<let name="f"><first><list/><arg name="default"><var name="page"/></arg></first></let>',
    '<let name="f"><first><list></list><null /></first></let>',
    '<let name="f"><first><list><Page><arg name="title"><string>t</string></arg><arg name="size"><int>1</int></arg>'
    '<arg name="docs"><field name="docs"><var name="page"/></field></arg>'
    '<arg name="day"><date>2024-02-29</date></arg></Page></list></first></let>',
    '<let name="r"><read><field name="docs"><var name="page"/></field></read></let>',
    '<let name="o"><on><date>2026-01-02</date><bool>true</bool></on></let>',
    '<let name="let"><read><field name="docs"><var name="page"/></field></read></let>',
    "<return><int>3</int></return>",
    '<return><var name="count"/></return>',
    '<return><field name="size"><var name="page"/></field></return>',
]


@pytest.mark.parametrize("text", KEPT)
def test_kept_and_read_back(text: str) -> None:
    check_kept(LOWERED, text)


# The text up to the bar is not lost, and the byte after it loses it.
LOST = [
    ('<let name="p"><se|rch>', "a misspelled tool"),
    ('<let name="p"><search><|int>3</int></search></let>', "an int where a string is demanded"),
    ('<let name="p"><search><var name="|count"/></search></let>', "a bound name of another type"),
    ('<let name="p"><search><string>a</string><|string>b</string></search></let>', "a string where an int is demanded"),
    ('<let name="p"><search><|/search></let>', "a missing argument"),
    ('<let name="p"><search><arg name="limit"><int>3</int></arg><|/search></let>', "a required argument skipped"),
    ('<let name="p"><search><string>a</string><arg name="|query">', "an argument given twice"),
    ('<let name="p"><search><arg name="query"><string>a</string></arg><|int>', "a positional argument after a keyword"),
    ('<let name="p"><search><string>a</string><int>3</int><string>f|ull</string>', "no member of the enumeration"),
    ('<let name="r"><read><field name="d|ay"><var name="page"/></field></read></let>', "a field of another type"),
    ('<let name="r"><read><field name="docs"><var name="page|s"/></field></read></let>', "a field of a list"),
    ('<let name="r"><read><|string>docs</string></read></let>', "a string for a handle"),
    ('<let name="o"><on><date>2025-02-2|9</date>', "a day that does not exist"),
    ('<let name="o"><on><|string>2025-02-28</string>', "a string for a date"),
    ('<let name="o"><on><date>2025-02-28</date><|var', "a name where none of the type is bound"),
    ('<let name="page|"><search>', "a name that is bound already"),
    ('<let name="p"><search><string>a</string></search></le|n>', "the end of another element"),
    ('<let name="f"><first><|search>', "a nested call where these are off"),
    ("<return><|string>a</string></return>", "a return of another type than demanded"),
    ("<return><int>| 3</int></return>", "white space in a number"),
    ("<return><int>0|1</int></return>", "a leading zero"),
    ('<let name="p"><search><string>a<|b></string>', "a bare bracket"),
    ('<let name="p"><search><string>a &|nbsp;</string>', "an entity of HTML"),
    ('<let name="p"><search><string>]]|></string>', "the end of a section"),
    ('<let name="p"><search><string>a|\r</string>', "a bare carriage return"),
    ('<let name="p"><search><string>&#1234567|8;</string>', "a reference without end"),
    ("<return><int>3</int></return> |<let", "a second step"),
    ("<return>        | <int>", "more white space than is allowed"),
]


@pytest.mark.parametrize(("marked", "why"), LOST, ids=[why for _, why in LOST])
def test_lost_where_it_goes_wrong(marked: str, why: str) -> None:
    check_lost(LOWERED, marked)


def test_nested_calls_are_an_option() -> None:
    nested = XmlDialect().lower(TOOLS, nested=True)
    text = "<return><scale><on><date>2026-01-02</date><bool>true</bool></on><string>LOW</string></scale></return>"
    prefix = nested.start({}, FLOAT).feed(text)
    tree = prefix.tree()
    assert prefix.verdict is Verdict.SATISFIED and tree is not None
    assert nested.render_step(nested.read_step(tree)) == text


VALUES: list[tuple[object, Any, str]] = [
    ('a "b"\n <é>', str, '<string>a "b"\n &lt;é&gt;</string>'),
    ("\r\0]]>", str, "<string>&#13;&#0;]]&gt;</string>"),
    (-3, int, "<int>-3</int>"),
    (1e300, float, "<float>1e+300</float>"),
    (True, bool, "<bool>true</bool>"),
    (None, Page | None, "<null/>"),
    ([], list[float], "<list/>"),
    ([1.0, 2.5], list[float], "<list><float>1.0</float><float>2.5</float></list>"),
    (Level.HIGH, Level, "<string>HIGH</string>"),
    (datetime.date(2026, 1, 2), datetime.date, "<date>2026-01-02</date>"),
]


@pytest.mark.parametrize(("value", "hint", "text"), VALUES)
def test_values_are_spelled_and_read_back(value: object, hint: Any, text: str) -> None:
    lowered = XmlDialect().lower(TOOLS, types=[type_from_hint(list[float])])
    kind = type_from_hint(hint)
    assert lowered.render_value(value, kind) == text
    assert lowered.start({}, kind).feed(f"<return>{text}</return>").verdict is Verdict.SATISFIED


REFERENCES = [
    ("&#65;&#x41;&#0065;&#x0041;", "AAAA"),
    ("&#0;&#x1f;", "\0\x1f"),
    ("&#128512;&#x1F600;", "😀😀"),
    ("&#55296;&#xD800;&#1114112;&#x110000;&#9999999;", "\ufffd" * 5),
    ("&amp;lt;", "&lt;"),
]


@pytest.mark.parametrize(("content", "text"), REFERENCES)
def test_references(content: str, text: str) -> None:
    prefix = LOWERED.start({}, STRING).feed(f"<return><string>{content}</string></return>")
    tree = prefix.tree()
    assert tree is not None
    assert LOWERED.read_step(tree) == Return(value=Lit(value=text))


# What XML 1.0 can hold.
CARRIED = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\ufffe\uffff")).map(
    lambda text: "".join(c for c in text if c in "\t\n\r" or ord(c) >= 0x20)
)


@given(text=CARRIED)
def test_an_xml_parser_finds_the_same_text(text: str) -> None:
    step = Let(name="p", call=Call(tool="search", arguments=(("query", Lit(value=text)), ("limit", Lit(value=3)))))
    tree = ElementTree.fromstring(LOWERED.render_step(step))
    assert (tree.tag, tree.attrib, [child.tag for child in tree]) == ("let", {"name": "p"}, ["search"])
    assert [(leaf.tag, leaf.text or "") for leaf in tree[0]] == [("string", text), ("int", "3")]


@given(text=st.text())
def test_strings_are_read_back(text: str) -> None:
    assert read_text(spell_text(text)) == text


def test_a_reserved_name_does_not_translate() -> None:
    text = '<let name="search"><read><field name="docs"><var name="page"/></field></read></let>'
    assert translate(text, LOWERED, LOWERED, CONTEXT) == text
    for name in ("c", "sexpr"):
        with pytest.raises(SpellingError, match="reserves"):
            translate(text, LOWERED, by_name(name).lower(TOOLS), CONTEXT)


def string(docs: Docs) -> int:
    """A tool with the name of an element for literals."""
    raise NotImplementedError


def test_refused_tools() -> None:
    with pytest.raises(LoweringError, match="keyword of the XML dialect"):
        XmlDialect().lower(Registry([read, string]))
