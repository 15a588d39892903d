"""Reads one inference rule: premises, a line of dashes with its name, a conclusion."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aufbau.errors import GrammarError, Span
from aufbau.grammar.model import (
    AmbientMembership,
    Conclusion,
    Equality,
    Extension,
    Given,
    Judgement,
    Membership,
    Premise,
    Rule,
    TypeText,
)

DASHES = re.compile(r"\s*-{3,}")
_RULE_LINE = re.compile(r"\s*-{3,}\s*\(\s*([^\s()]+)\s*\)\s*$")
_GAMMA = re.compile(r"(?:Γ|Gamma)(?!\w)")
_JUDGED = re.compile(r"(?:Γ|Gamma)(?P<initial>₀|0)?(?!\w)")
_TURNSTILE = re.compile(r"⊢|\|-")
_MEMBER = re.compile(
    r"(?P<what>'[^']+'|\"[^\"]+\"|\S+?)\s*(?P<how>∈|∉|(?<=\s)(?:not\s*in|in)(?=\s))\s*(?:Γ|Gamma)(?P<inner>\s*\[\s*\])?$"
)
_SCOPE = re.compile(r"\s*\[\s*\]")
_EQUALS = re.compile(r"(?<![=<>!:])=(?![=>])")
_ARROW = re.compile(r"\s*(?:→|->)\s*")
_FORALL = re.compile(r"∀|forall(?!\w)")
_KEPT = re.compile(r"['′]")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file with its number, counted from 1."""

    text: str
    number: int

    def span(self, offset: int = 0) -> Span:
        """The place of a character of this line."""
        return Span(self.number, offset + 1)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of rule text that knows where each of its characters stands in the file."""

    text: str
    places: tuple[Span, ...]

    @property
    def span(self) -> Span:
        return self.at(0)

    def at(self, offset: int) -> Span:
        """The place of a character; past the end, the place after the last one."""
        if offset < len(self.places):
            return self.places[offset]
        last = self.places[-1] if self.places else Span()
        return Span(last.line, last.column + 1)

    def slice(self, start: int, end: int | None = None) -> _Piece:
        """A part, without the white space around it."""
        stop = len(self.text) if end is None else end
        while start < stop and self.text[start].isspace():
            start += 1
        while stop > start and self.text[stop - 1].isspace():
            stop -= 1
        places = self.places[start:stop] or (self.at(start),)
        return _Piece(self.text[start:stop], places)


def read_rule(block: list[Line]) -> Rule:
    """Read the block of one rule. Raises `GrammarError`."""
    bars = [i for i, line in enumerate(block) if DASHES.match(line.text)]
    if len(bars) > 1:
        raise GrammarError("two rules in one block", block[bars[1]].span(), "separate rules by a blank line")
    bar = block[bars[0]]
    named = _RULE_LINE.match(bar.text)
    if named is None:
        raise GrammarError("a rule without a name", bar.span(), "write the name after the dashes:  ------ (name)")
    if bars[0] == len(block) - 1:
        raise GrammarError(f"rule {named[1]} has no conclusion", bar.span(), "write it under the dashes")
    premises = [premise for line in _joined(block[: bars[0]]) for premise in _premises(line)]
    conclusion = _conclusion(_joined(block[bars[0] + 1 :])[0])
    return Rule(name=named[1], premises=tuple(premises), conclusion=conclusion, span=bar.span(bar.text.index(named[1])))


def _joined(lines: list[Line]) -> list[_Piece]:
    """The lines as one piece, joined by spaces."""
    if not lines:
        return []
    text = ""
    places: list[Span] = []
    for line in lines:
        stripped = line.text.strip()
        lead = len(line.text) - len(line.text.lstrip())
        text += (" " if text else "") + stripped
        start = lead - (1 if places else 0)
        places += [line.span(offset) for offset in range(start, lead + len(stripped))]
    return [_Piece(text, tuple(places))]


def _split(text: str, separator: str) -> list[tuple[int, int]]:
    """Stretches between separators that stand outside quotes and brackets."""
    found, start, depth, quote = [], 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == separator and depth == 0:
            found.append((start, at))
            start = at + 1
    found.append((start, len(text)))
    return found


def _premises(piece: _Piece) -> list[Premise]:
    """Commas separate premises; as types may contain commas too, a stretch that opens no premise goes to the last."""
    stretches: list[tuple[int, int]] = []
    for start, end in _split(piece.text, ","):
        text = piece.text[start:end].strip()
        if stretches and not _opens_premise(text):
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((start, end))
    return [_premise(piece.slice(start, end)) for start, end in stretches]


def _opens_premise(text: str) -> bool:
    if _MEMBER.match(text) or _top_level(_EQUALS, text) is not None:
        return True
    return bool(_JUDGED.match(text)) and _TURNSTILE.search(text) is not None


def _top_level(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first match outside quotes and brackets."""
    for match in pattern.finditer(text):
        before = text[: match.start()]
        quoted = before.count("'") % 2 or before.count('"') % 2
        depth = sum(before.count(c) for c in _OPEN) - sum(before.count(c) for c in _CLOSE)
        if not quoted and depth == 0:
            return match
    return None


def _premise(piece: _Piece) -> Premise:
    text = piece.text
    member = _MEMBER.match(text)
    if member is not None:
        what, fresh = member["what"], member["how"] not in ("∈", "in")
        if member["inner"] and not fresh:
            raise GrammarError(
                "only freshness can ask the innermost scope", piece.span, "write x ∉ Γ[], or x ∈ Γ for any scope"
            )
        if what[0] in "'\"":
            if fresh:
                raise GrammarError(
                    "an ambient key can't be fresh", piece.span, "write 'key' ∈ Γ, or x ∉ Γ for a bound name"
                )
            return AmbientMembership(key=what[1:-1], span=piece.span)
        return Membership(name=what, fresh=fresh, innermost=member["inner"] is not None, span=piece.span)
    judged = _JUDGED.match(text)
    if judged is not None and _TURNSTILE.search(text):
        return _judgement(piece, judged)
    equals = _top_level(_EQUALS, text)
    if equals is not None:
        left, right = piece.slice(0, equals.start()), piece.slice(equals.end())
        return Equality(left=_type(left), right=_type(right), span=piece.span)
    raise GrammarError(
        f"this premise can't be read: {text}",
        piece.span,
        "premises are  x ∈ Γ,  x ∉ Γ,  'key' ∈ Γ,  Γ ⊢ e : τ,  Γ[x:τ] ⊢ e : τ,  τ = σ,  Γ(f) = σ",
    )


def _judgement(piece: _Piece, judged: re.Match[str]) -> Judgement:
    start = judged.end()
    scope = _SCOPE.match(piece.text, start)
    extensions, at = _extensions(piece, scope.end() if scope else start)
    turnstile = _TURNSTILE.match(piece.text, at)
    if turnstile is None:
        raise GrammarError("expected ⊢ after Γ", piece.slice(at).span, "write  Γ ⊢ e : τ  (or  Gamma |- e : t)")
    child, colon, _ = piece.text[turnstile.end() :].partition(":")
    if not colon:
        raise GrammarError("a judgement without a type", piece.span, "write  Γ ⊢ e : τ  (⊤ when e is only checked)")
    after = turnstile.end() + len(child) + 1
    return Judgement(
        child=child.strip(),
        type=_type(piece.slice(after)),
        extensions=extensions,
        opens=scope is not None,
        initial=judged["initial"] is not None,
        span=piece.span,
    )


def _extensions(piece: _Piece, at: int) -> tuple[tuple[Extension, ...], int]:
    """The `[x:τ]` that follow a Γ, and where they end."""
    found: list[Extension] = []
    text = piece.text
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text) or text[at] != "[":
            return tuple(found), at
        end = _closing(piece, at)
        inner = piece.slice(at + 1, end)
        name, colon, _ = inner.text.partition(":")
        if not colon:
            raise GrammarError("an extension without a type", inner.span, "write Γ[x:τ] or Γ['key':τ]")
        name = name.strip()
        ambient = name[:1] in ("'", '"')
        bound = inner.slice(inner.text.index(":") + 1)
        quantifier = _FORALL.match(bound.text)
        if quantifier:
            bound = bound.slice(quantifier.end())
        found.append(
            Extension(
                name=name[1:-1] if ambient else name,
                ambient=ambient,
                type=_type(bound),
                generalises=quantifier is not None,
                span=inner.span,
            )
        )
        at = end + 1


def _closing(piece: _Piece, at: int) -> int:
    depth = 0
    for position in range(at, len(piece.text)):
        if piece.text[position] == "[":
            depth += 1
        elif piece.text[position] == "]":
            depth -= 1
            if depth == 0:
                return position
    raise GrammarError("an extension that does not end", piece.slice(at).span, "close it with ]")


def _conclusion(piece: _Piece) -> Conclusion:
    gamma = _GAMMA.match(piece.text)
    if gamma is not None:
        arrow = _ARROW.match(piece.text, gamma.end())
        target = _GAMMA.match(piece.text, arrow.end()) if arrow else None
        if target is not None:
            kept = _KEPT.match(piece.text, target.end())
            effects, at = _extensions(piece, kept.end() if kept else target.end())
            turnstile = _TURNSTILE.match(piece.text, at)
            if turnstile is not None:
                shown = _type(piece.slice(turnstile.end()))
                return Conclusion(type=shown, effects=effects, keeps=kept is not None, span=piece.span)
            raise GrammarError(
                "an effect without a type", piece.span, "write  Γ → Γ[x:τ] ⊢ σ  (⊤ when nothing is valued)"
            )
    return Conclusion(type=_type(piece), span=piece.span)


def read_given(line: Line, offset: int) -> Given:
    """Read `name : type` of a %given directive."""
    piece = _Piece(line.text, tuple(line.span(i) for i in range(len(line.text)))).slice(offset)
    colon = re.search(r"\s:\s|:(?=\s)", piece.text)
    if colon is None:
        raise GrammarError("%given needs a name and a type", piece.span, "for example  %given length : ?A list -> int")
    name = piece.text[: colon.start()].strip()
    if len(name) > 2 and name[0] == name[-1] and name[0] in "'\"":
        name = name[1:-1]
    return Given(name=name, type=_type(piece.slice(colon.end())), span=piece.span)


def _type(piece: _Piece) -> TypeText:
    text = " ".join(piece.text.split())
    if not text:
        raise GrammarError("a type is missing here", piece.span, "write a type, a hole such as ?A, or ⊤")
    top = text in ("⊤", "T")
    return TypeText(text="⊤" if top else text, written=piece.text, places=piece.places)
