"""The façade that people use: `Oracle` compiles a grammar once, `Prefix` is a text consumed so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

import numpy as np

from aufbau.earley.arena import Arena
from aufbau.earley.chart import Answer
from aufbau.earley.machine import Machine
from aufbau.earley.parser import Parser
from aufbau.errors import LimitError, StartError
from aufbau.explored import Keeper
from aufbau.grammar.grammar import Grammar
from aufbau.lexer.automaton import LexerAutomaton
from aufbau.lexer.state import Hypothesis, Reader
from aufbau.limits import Limits
from aufbau.lookahead import Explorer
from aufbau.masks import Words, fill, pack
from aufbau.plans import CacheReport, Masks, Readings
from aufbau.reading import Reading, begin
from aufbau.regex import DEAD
from aufbau.typesystem.context import Context
from aufbau.typesystem.terms import Term
from aufbau.verdict import Verdict
from aufbau.vocabulary.series import Bools
from aufbau.vocabulary.vocabulary import Vocabulary
from aufbau.witness import Witness, witness

if TYPE_CHECKING:
    from aufbau.expected import Expectation
    from aufbau.explain import Explanation
    from aufbau.tree import Node


@final
class Oracle:
    """A compiled grammar: immutable, and safe to share between threads and tasks."""

    __slots__ = ("_arenas", "_keepers", "_machines", "_masks", "_twin", "grammar", "limits")

    def __init__(self, grammar: Grammar, *, limits: Limits | None = None) -> None:
        """Compile `grammar`. Raises `GrammarError` when it can't be used."""
        self.grammar: Final = grammar
        self.limits: Final = limits or Limits()
        self._machines: dict[str, Machine] = {}
        self._arenas: dict[Machine, tuple[Arena, Explorer]] = {}
        self._keepers: dict[Machine, Keeper] = {}
        self._masks = Masks()
        self._twin: Oracle | None = None
        self._machine(grammar.start)

    def _machine(self, symbol: str) -> Machine:
        found = self._machines.get(symbol)
        if found is None:
            found = self._machines.setdefault(symbol, self.grammar.machine(symbol))
        return found

    def _shared(self, machine: Machine) -> tuple[Arena, Explorer]:
        """What a start shares with earlier ones, tables and what masks explored; once the tables are large, afresh."""
        found = self._arenas.get(machine)
        if found is None or not found[0].make_room():
            arena = Arena(machine, self.limits)
            explorer = Explorer(Parser(arena), limit=self.limits.explored_items)
            found = self._arenas[machine] = (arena, explorer)
            if self.grammar.shelf is not None:
                shelf = self.grammar.shelf.below("explored", machine.names[machine.start], repr(self.limits))
                self._keepers[machine] = Keeper(shelf, arena, explorer)
        return found

    def start(
        self,
        *,
        context: Mapping[str, str] | None = None,
        goal: str | None = None,
        symbol: str | None = None,
        ambient: Mapping[str, str] | None = None,
    ) -> Prefix:
        """The empty prefix.

        `context` gives names in scope with their types, `goal` the type demanded of the root, `ambient` the types of
        ambient keys; types are written in the grammar's own syntax. Holes (`?A`) may stand in a goal, which leaves
        them open, and in a context, where they stand for every type. `symbol` starts at another nonterminal. Raises
        `StartError` for an unknown symbol or a name that no terminal spells, `TypeTextError` for a type that can't be
        read.
        """
        name = symbol or self.grammar.start
        if name not in self.grammar.symbols:
            known = ", ".join(self.grammar.symbols)
            raise StartError(f"there is no nonterminal {name} to start at; the grammar defines {known}")
        arena, explorer = self._shared(self._machine(name))
        reader, gamma, first = begin(arena, context=context, goal=goal, ambient=ambient)
        return Prefix(self, _Start(reader, explorer, gamma), b"", _State(first, 0), None)

    def mask(self, prefix: Prefix, vocabulary: Vocabulary, out: Bools | None = None) -> Bools:
        """For every token: is the prefix not LOST after its spelling? Special tokens are no text, so never.

        Written into `out` where that is given. Equal to `try_feed` of every token; how far a vocabulary is worked out
        is kept with the oracle (`mask_caches`), as is what the parser explores (`Limits.explored_items`).
        """
        if out is None:
            out = np.zeros(len(vocabulary), np.bool_)
        elif out.shape != (len(vocabulary),) or out.dtype != np.bool_:
            raise ValueError(
                f"a mask over {len(vocabulary)} tokens needs as many numpy booleans in one row, not an array of shape"
                f" {out.shape} and type {out.dtype}"
            )
        prefix.admit(self._masks.readings(prefix.automaton, vocabulary), out)
        keeper = self._keepers.get(prefix._start.reader.parser.machine)
        if keeper is not None:
            keeper.keep()
        return out

    def packed_mask(self, prefix: Prefix, vocabulary: Vocabulary, out: Words | None = None) -> Words:
        """The mask as int32 words, token i being bit i % 32 of word i // 32, as llguidance, xgrammar and vLLM have it.

        Written into `out` where that is given: a row of a batch, say; words past the vocabulary become 0.
        """
        return pack(self.mask(prefix, vocabulary), out)

    def mask_caches(self) -> list[CacheReport]:
        """What masks keep between calls: a report for each vocabulary and automaton."""
        return self._masks.report()

    def syntactic(self) -> Oracle:
        """The twin without typing rules: the same surface, no context and no types."""
        if self._twin is None:
            self._twin = Oracle(self.grammar.syntactic(), limits=self.limits)
        return self._twin

    def __repr__(self) -> str:
        return f"Oracle({self.grammar!r})"


@final
class _Start:
    """What all prefixes of one start have in common."""

    __slots__ = ("context", "explorer", "reader")

    def __init__(self, reader: Reader, explorer: Explorer, context: Context) -> None:
        self.reader: Final = reader
        self.explorer: Final = explorer
        self.context: Final = context


@final
class _State:
    """The hypotheses after some text, and the states that were tried from here, byte by byte."""

    __slots__ = ("hypotheses", "offset", "tried")

    def __init__(self, hypotheses: tuple[Hypothesis, ...], offset: int) -> None:
        self.hypotheses: Final = hypotheses
        self.offset: Final = offset
        self.tried: dict[int, _State] | None = None


@final
class Prefix:
    """A text consumed so far. Persistent: feeding returns a new prefix and leaves this one as it is."""

    __slots__ = ("_lost_at", "_roots", "_start", "_state", "oracle", "text")

    def __init__(self, oracle: Oracle, start: _Start, text: bytes, state: _State, lost_at: int | None) -> None:
        self.oracle: Final = oracle
        self.text: Final = text
        self._start = start
        self._state = state  # at a lost prefix: the last state that was not lost
        self._lost_at = lost_at if lost_at is not None or state.hypotheses else 0
        self._roots: list[Answer] | None = None

    # Feeding

    def feed(self, text: str | bytes) -> Prefix:
        """The prefix after more text; bytes may end anywhere, also inside a character.

        LOST is a verdict, not an exception. Raises `LimitError` when a budget of the oracle is spent.
        """
        data = text.encode() if isinstance(text, str) else bytes(text)
        whole = self.text + data
        if self._lost_at is not None or not data:
            return self if not data else Prefix(self.oracle, self._start, whole, self._state, self._lost_at)
        self._check_length(len(whole))
        return self._fed(data, whole, keep=False)

    def _check_length(self, length: int) -> None:
        limit = self.oracle.limits.text_bytes
        if length > limit:
            raise LimitError(f"the text exceeds {limit} bytes; raise Limits(text_bytes=…) of the oracle")

    def _fed(self, data: bytes, whole: bytes, keep: bool) -> Prefix:
        state = self._state
        for byte in data:
            following = self._step(state, byte, keep)
            if not following.hypotheses:
                return Prefix(self.oracle, self._start, whole, state, state.offset)
            state = following
        return Prefix(self.oracle, self._start, whole, state, None)

    def _step(self, state: _State, byte: int, keep: bool) -> _State:
        """The state after a byte. What is only tried is kept, for the next try and for the feed that follows; what is
        fed is not, or the first prefix of a text would hold all of its sets."""
        found = state.tried.get(byte) if state.tried is not None else None
        if found is None:
            hypotheses = self._start.reader.step(state.hypotheses, byte, state.offset)
            found = _State(hypotheses, state.offset + 1)
            if keep:
                if state.tried is None:
                    state.tried = {}
                found = state.tried.setdefault(byte, found)
        return found

    def try_feed(self, text: str | bytes) -> Verdict:
        """The verdict that `feed` would lead to. What was explored is remembered, so a later feed of it is free."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        if self._lost_at is not None or not data:
            return self.verdict
        self._check_length(len(self.text) + len(data))
        return self._fed(data, b"", keep=True).verdict

    def next_bytes(self) -> bytes:
        """The bytes that can follow without losing the text, in ascending order."""
        if self._lost_at is not None:
            return b""
        return bytes(byte for byte in self._readable() if self._step(self._state, byte, True).hypotheses)

    def _readable(self) -> list[int]:
        """The bytes that the automaton can read next."""
        automaton = self.automaton
        rows = [automaton.transitions[hypothesis.state] for hypothesis in self._state.hypotheses]
        if any(automaton.accepts[hypothesis.state] for hypothesis in self._state.hypotheses):
            rows.append(automaton.transitions[automaton.start])
        return [byte for byte in range(256) if any(row[byte] != DEAD for row in rows)]

    def admit(self, readings: Readings, out: Bools) -> None:
        """Say for every token of a vocabulary whether the prefix is not LOST after it (`Oracle.mask`)."""
        hypotheses = self._state.hypotheses if self._lost_at is None else ()
        fill(self._start.explorer, self._start.reader, readings, hypotheses, out)

    def forced(self, max_bytes: int = 256) -> bytes:
        """The longest text, up to a bound, that every continuation must begin with.

        Nothing is forced where the text may end. Exact as far as LOST is: a continuation that is only lost later
        counts as one.
        """
        found = bytearray()
        prefix = self
        while len(found) < max_bytes and prefix.verdict is Verdict.LIVE:
            following = prefix._only_byte()
            if following is None:
                break
            found.append(following)
            prefix = prefix.feed(bytes((following,)))
        return bytes(found)

    def _only_byte(self) -> int | None:
        """The byte that must come next, if there is just one."""
        only: int | None = None
        for byte in self._readable():
            if self._step(self._state, byte, True).hypotheses:
                if only is not None:
                    return None
                only = byte
        return only

    # Verdicts

    @property
    def verdict(self) -> Verdict:
        """LIVE, SATISFIED or LOST (`aufbau.Verdict` defines them).

        Like everything that looks past the last lexeme, it may build one more set, and so raise `LimitError`.
        """
        if self._lost_at is not None:
            return Verdict.LOST
        return Verdict.SATISFIED if self._complete() else Verdict.LIVE

    @property
    def lost_at(self) -> int | None:
        """Offset of the byte at which the text was lost; None when it is not."""
        return self._lost_at

    @property
    def extensible(self) -> bool:
        """Whether anything but ignorable text can still be added without losing it."""
        if self._lost_at is not None:
            return False
        reader = self._start.reader
        automaton = reader.parser.machine.automaton
        for hypothesis in self._state.hypotheses:
            if hypothesis.length:
                more, items, text = automaton.more[hypothesis.state], hypothesis.items, hypothesis.text
                if more & items.free_mask or any(
                    mask & more and reader.takes(item, mask, hypothesis.state, text)
                    for mask, expecting in items.expected.items()
                    for item in expecting
                ):
                    return True
                if any(reader.viable(items) for items, _ in reader.finished(hypothesis)):
                    return True
                if more & reader.ignorable(hypothesis.gap) and reader.viable(items):
                    return True  # an ignorable lexeme that has not ended
            elif reader.viable(hypothesis.items):
                return True
        return False

    def _complete(self) -> list[Answer]:
        """Answers of the start symbol, the last lexeme taken as finished."""
        if self._roots is None:
            reader = self._start.reader
            roots: list[Answer] = []
            if self._lost_at is None:
                for hypothesis in self._state.hypotheses:
                    if not hypothesis.length:
                        roots += hypothesis.items.roots
                    elif reader.parser.machine.automaton.accepts[hypothesis.state]:
                        for items, _ in reader.finished(hypothesis):
                            roots += items.roots
            self._roots = list(dict.fromkeys(roots))
        return self._roots

    # Evidence

    @property
    def types(self) -> tuple[str, ...]:
        """The types of all complete readings of a satisfied prefix, each once; a root without value has none."""
        terms = self._start.reader.parser.arena.terms
        shown = dict.fromkeys(terms.canonical(answer.type)[0] for answer in self._complete())
        return tuple(self._render(term) for term in shown if term is not terms.top)

    @property
    def type(self) -> str | None:
        """The type of a satisfied root (of the first reading, where there are several); else, and for ⊤, None."""
        types = self.types
        return types[0] if types else None

    @property
    def context(self) -> dict[str, str]:
        """Γ after a satisfied prefix (what the start gave and what the root exported), name to type.

        Before that, what the start gave: effects are exported only by what is complete. Names that the grammar gives
        (`%given`) and those of name spaces are left out, so the result can be handed to the next start.
        """
        gamma = self._start.context
        for answer in self._complete()[:1]:
            gamma = gamma.apply(answer.effect)
        return {name: self._render(bound) for name, bound in gamma.names() if name[0] != "\0" and gamma.in_scope(name)}

    def _render(self, term: Term) -> str:
        return self._start.reader.parser.machine.syntax.render(term)

    def tree(self) -> Node | None:
        """The typed syntax tree of a satisfied prefix (of its first reading); None otherwise."""
        from aufbau.tree import build_tree

        roots = self._complete()
        return build_tree(roots[0].item, self.text, self._start.reader.parser.machine) if roots else None

    def expected(self) -> list[Expectation]:
        """What may come next: literals, regex terminals, and names in scope with their types."""
        from aufbau.expected import expectations

        return [] if self._lost_at is not None else expectations(self._start.reader, self._state.hypotheses)

    def explain(self) -> Explanation:
        """Why the text was lost: place, rule, premise, clash and near misses. For other prefixes, what may follow."""
        from aufbau.explain import explain

        return explain(self._start.reader, self._state.hypotheses, self.text, self._lost_at)

    def witness(self, max_bytes: int = 200, max_steps: int = 10_000, *, prove: bool = True) -> Witness:
        """A shortest continuation that satisfies the prefix, a proof that there is none, or neither within the bounds.

        `max_bytes` bounds the continuation, `max_steps` the work of the search. Without `prove`, no proof is sought but
        what the search itself gives.
        """
        reading = Reading(self._start.reader, self._state.hypotheses, self.text, self._lost_at)
        return witness(reading, max_bytes, max_steps, prove=prove)

    @property
    def automaton(self) -> LexerAutomaton:
        """The automaton that reads the lexemes of this text."""
        return self._start.reader.parser.machine.automaton

    def __repr__(self) -> str:
        tail = self.text[-40:].decode(errors="replace")
        return f"<Prefix {self.verdict} {'…' if len(self.text) > 40 else ''}{tail!r}>"
