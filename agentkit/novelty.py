"""Prunes a step whose every completion would repeat a pure call that was already made.

A pure tool gives the same value again, and a small model left alone asks for it again and again. The grammar
cannot see earlier steps, so this wrapper adds them: a prefix is LOST as soon as each of its completions
is a repetition, and otherwise what the wrapped prefix says.

It finds that out by following what may come next, lexeme by lexeme, for as long as that is a word, a name in scope
or a fresh name. Where text may be free (inside a string), or the search grows past its bound, the prefix counts as
novel: late, never wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, final

from aufbau import Node, Prefix, Verdict
from aufbau.expected import Expectation, ExpectationKind
from aufbau.explain import Explanation
from aufbau.witness import Outcome, Witness

MAX_STATES: Final = 64
"""Prefixes looked at in one search. The rest of a call is mostly below 10 lexemes."""

_JOINING: Final = (
    frozenset(bytes((byte,)) for byte in range(256) if byte > 127 or chr(byte).isalnum() or byte == ord("_")),
    frozenset(bytes((byte,)) for byte in b"!#$%&*+-./:<=>?@^|~"),
)

_FILLING: Final = b"aeiou0123456789"
"""Bytes that a free text is led on by."""

_NAME: Final = b"x"
"""A fresh name, or what makes one that has begun longer."""


@final
class NovelPrefix:
    """A prefix that is also LOST where only repetitions can follow. Persistent, as `Prefix` is."""

    __slots__ = ("_children", "_repeats", "_verdict", "inner")

    def __init__(self, inner: Prefix, repeats: Callable[[Node], bool]) -> None:
        self.inner = inner
        self._repeats = repeats
        self._verdict: Verdict | None = None
        self._children: dict[bytes, NovelPrefix] = {}

    @property
    def verdict(self) -> Verdict:
        """The wrapped verdict, or LOST when every completion repeats an earlier call."""
        if self._verdict is None:
            novel = may_be_novel(self.inner, self._repeats)
            self._verdict = self.inner.verdict if novel else Verdict.LOST
        return self._verdict

    def feed(self, data: bytes | str) -> NovelPrefix:
        """The prefix longer by `data`. What has been tried is not computed again."""
        raw = data.encode() if isinstance(data, str) else data
        child = self._children.get(raw)
        if child is None:
            child = NovelPrefix(self.inner.feed(raw), self._repeats)
            self._children[raw] = child
        return child

    def try_feed(self, data: bytes | str) -> Verdict:
        """The verdict after `data`, with nothing committed."""
        raw = data.encode() if isinstance(data, str) else data
        if self.inner.try_feed(raw) is Verdict.LOST:
            return Verdict.LOST
        return self.feed(raw).verdict

    def next_bytes(self) -> bytes:
        """The bytes that may come next, sorted."""
        after = self.inner.next_bytes()
        return bytes(byte for byte in after if self.try_feed(bytes((byte,))) is not Verdict.LOST)

    @property
    def text(self) -> bytes:
        return self.inner.text

    @property
    def extensible(self) -> bool:
        return self.inner.extensible

    @property
    def type(self) -> str | None:
        return self.inner.type

    @property
    def context(self) -> dict[str, str]:
        return self.inner.context

    @property
    def lost_at(self) -> int | None:
        """Where the wrapped prefix was lost; the end of the text where it only repeats."""
        if self.inner.verdict is not Verdict.LOST and self.verdict is Verdict.LOST:
            return len(self.inner.text)
        return self.inner.lost_at

    def tree(self) -> Node | None:
        return self.inner.tree()

    def expected(self) -> list[Expectation]:
        return self.inner.expected()

    def witness(self, max_bytes: int = 200, max_steps: int = 10_000, *, prove: bool = True) -> Witness:
        """A continuation that satisfies the wrapped prefix and repeats nothing; mostly, but not always, a shortest."""
        return novel_witness(self.inner, self._repeats, max_bytes, max_steps, prove=prove)

    def explain(self) -> Explanation:
        return self.inner.explain()


def may_be_novel(prefix: Prefix, repeats: Callable[[Node], bool]) -> bool:
    """Whether some completion of `prefix` is no repetition, or none was found within the bound."""
    # What is to be looked at: a prefix, the lexeme to be added first, whether a fresh name was added on the way.
    waiting: list[tuple[Prefix, bytes, bool]] = [(prefix, b"", False)]
    for _ in range(MAX_STATES):
        if not waiting:
            return False
        before, lexeme, named = waiting.pop()
        for here in _continuations(before, lexeme) if lexeme else (before,):
            if _ends_new(here, repeats):
                return True
            for one in sorted(here.expected(), key=_last_first):
                if one.kind is ExpectationKind.TERMINAL:
                    return True
                if one.kind is not ExpectationKind.FRESH:
                    waiting.append((here, one.text.encode(), named))
                elif not named:
                    # Which name it is makes no difference to what is called, so one stands for all.
                    waiting.append((here, _NAME, True))
    return True


def novel_witness(
    prefix: Prefix, repeats: Callable[[Node], bool], max_bytes: int, max_steps: int, *, prove: bool = True
) -> Witness:
    """A witness of `prefix` that is no repetition.

    The wrapped prefix's own mostly is none. Where it is one, the text is led elsewhere first: by the lexemes that may
    come next, or inside free text by one character more, breadth first. `max_steps` bounds the searches together.
    """
    waiting: deque[tuple[Prefix, bytes]] = deque([(prefix, b"")])
    spent = 0
    for _ in range(MAX_STATES):
        if not waiting or spent >= max_steps:
            break
        here, before = waiting.popleft()
        found = here.witness(max_bytes - len(before), max_steps - spent, prove=prove)
        spent += found.steps
        if found.text is None:
            if not before:
                return found
            continue
        if _ends_new(here.feed(found.text), repeats):
            return replace(found, text=before + found.text, shortest=found.shortest and not before, steps=spent)
        waiting.extend(_detours(here, before, max_bytes))
    return Witness(
        outcome=Outcome.UNKNOWN,
        text=None,
        reason=f"no continuation was found in {MAX_STATES} places that does not repeat an earlier call",
        steps=spent,
    )


def _detours(here: Prefix, before: bytes, max_bytes: int) -> Iterator[tuple[Prefix, bytes]]:
    """Where a text may go on from a prefix: after each lexeme that may come next, or after each of some bytes."""
    size = len(here.text) - len(before)
    for one in here.expected():
        if one.kind is ExpectationKind.TERMINAL:
            longer = [here.feed(bytes((byte,))) for byte in _FILLING if byte in here.next_bytes()]
        else:
            longer = _continuations(here, _NAME if one.kind is ExpectationKind.FRESH else one.text.encode())
        for following in longer:
            if len(following.text) - size < max_bytes:
                yield following, following.text[size:]


def _ends_new(prefix: Prefix, repeats: Callable[[Node], bool]) -> bool:
    tree = prefix.tree() if prefix.verdict is Verdict.SATISFIED else None
    return tree is not None and not repeats(tree)


def _last_first(expectation: Expectation) -> tuple[bool, int]:
    """Fresh names at the bottom of the stack, short lexemes on top: they end a step soonest."""
    return expectation.kind is not ExpectationKind.FRESH, -len(expectation.text)


def _continuations(prefix: Prefix, lexeme: bytes) -> list[Prefix]:
    """The prefixes after a lexeme that may have begun already, or may need a space before it.

    Where it began is not known, so every place is tried. A prefix that is not LOST is a true continuation in any
    case, and the one that was meant is among them.
    """
    begun = (size for size in range(1, len(lexeme)) if prefix.text.endswith(lexeme[:size]))
    longer = [prefix.feed(rest) for rest in (lexeme, *(lexeme[size:] for size in begun))]
    found = [one for one in longer if one.verdict is not Verdict.LOST]
    if not found or _may_join(prefix.text[-1:], lexeme[:1]):
        apart = prefix.feed(b" " + lexeme)
        if apart.verdict is not Verdict.LOST:
            found.append(apart)
    return found


def _may_join(left: bytes, right: bytes) -> bool:
    """Whether two bytes may belong to one lexeme, so that a space between them makes a difference."""
    return any(left in kind and right in kind for kind in _JOINING)
