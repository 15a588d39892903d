"""Fixed points over the context-free surface, and the load checks that need nothing else (Proposition 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from aufbau.errors import GrammarError, Span
from aufbau.grammar.model import Alternative, Definition, GrammarModel, SymbolKind
from aufbau.typesystem.syntax import type_roots


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names what is spelled almost like `name`."""
    matches = get_close_matches(name, sorted(set(known)), 3)
    return f"did you mean {' or '.join(matches)}?" if matches else ""


def nonterminals_of(alternative: Alternative) -> list[str]:
    """The nonterminals of a right-hand side, in order."""
    return [symbol.value for symbol in alternative.symbols if symbol.kind is SymbolKind.NONTERMINAL]


def check_surface(model: GrammarModel) -> None:
    """Refuse unknown, unreachable, unproductive nonterminals and zero-consumption cycles. Raises `GrammarError`."""
    by_name = {definition.name: definition for definition in model.definitions}
    for definition in model.definitions:
        for alternative in definition.alternatives:
            for symbol in alternative.symbols:
                if symbol.kind is SymbolKind.NONTERMINAL and symbol.value not in by_name:
                    raise GrammarError(
                        f"unknown nonterminal {symbol.value} in {definition.name}",
                        symbol.span,
                        near(symbol.value, by_name) or "define it, or quote it if it is a literal",
                    )
    for root in (model.start, *model.roots):
        if root not in by_name:
            raise GrammarError(
                f"the start symbol {root} is not defined",
                model.declared.get(root, Span()),
                near(root, by_name) or "name one that is defined after %start",
            )
    for name in model.bottom_up:
        if name not in by_name:
            raise GrammarError(
                f"%bottom-up names {name}, which is not defined",
                model.declared.get(name, Span()),
                near(name, by_name) or "name a nonterminal",
            )
    _check_reachable(model, by_name)
    _check_productive(model)
    _check_cycles(model)


def reachable(by_name: Mapping[str, Definition], roots: Iterable[str]) -> set[str]:
    """Nonterminals that occur in derivations from the roots."""
    stack, found = list(roots), set()
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            for alternative in by_name[name].alternatives:
                stack += nonterminals_of(alternative)
    return found


def _check_reachable(model: GrammarModel, by_name: Mapping[str, Definition]) -> None:
    found = reachable(by_name, (model.start, *model.roots, *type_roots(model)))
    for definition in model.definitions:
        if definition.name not in found:
            raise GrammarError(
                f"nonterminal {definition.name} is unreachable from {model.start}",
                definition.span,
                f"use it, remove it, star it if it spells types, or make it a start: %start {model.start} "
                f"{definition.name}",
            )


def nullable(definitions: Iterable[Definition]) -> set[str]:
    """Nonterminals that derive the empty text."""
    definitions = list(definitions)
    found: set[str] = set()
    changed = True
    while changed:
        changed = False
        for definition in definitions:
            if definition.name not in found and any(
                all(s.kind is SymbolKind.NONTERMINAL and s.value in found for s in alternative.symbols)
                for alternative in definition.alternatives
            ):
                found.add(definition.name)
                changed = True
    return found


def _check_productive(model: GrammarModel) -> None:
    productive: set[str] = set()
    changed = True
    while changed:
        changed = False
        for definition in model.definitions:
            if definition.name not in productive and any(
                all(name in productive for name in nonterminals_of(alternative))
                for alternative in definition.alternatives
            ):
                productive.add(definition.name)
                changed = True
    for definition in model.definitions:
        if definition.name not in productive:
            raise GrammarError(
                f"nonterminal {definition.name} is unproductive: it derives no finite text",
                definition.span,
                "give it an alternative that does not lead back to itself",
            )


def _check_cycles(model: GrammarModel) -> None:
    """A nonterminal that derives itself and nothing else would give one span unboundedly many annotations.

    The paper states the condition with left corners after a nullable prefix, which would refuse every left-recursive
    grammar, its own minimal one included. What its proof needs is that no cycle consumes nothing: here an edge goes
    from A to B when all that stands *beside* B in a production of A is nullable. Left recursion that consumes is
    bounded by the demands instead (see `aufbau.earley.demand`).
    """
    empty = nullable(model.definitions)
    edges: dict[str, list[str]] = {}
    for definition in model.definitions:
        for alternative in definition.alternatives:
            for i, symbol in enumerate(alternative.symbols):
                rest = [s for j, s in enumerate(alternative.symbols) if j != i]
                if symbol.kind is SymbolKind.NONTERMINAL and all(
                    s.kind is SymbolKind.NONTERMINAL and s.value in empty for s in rest
                ):
                    edges.setdefault(definition.name, []).append(symbol.value)
    for definition in model.definitions:
        seen: set[str] = set()
        stack = list(edges.get(definition.name, ()))
        while stack:
            name = stack.pop()
            if name == definition.name:
                raise GrammarError(
                    f"a zero-consumption cycle: {definition.name} can derive {definition.name} itself without text",
                    definition.span,
                    "Proposition 2.2 needs every cycle to consume text; remove the unit alternative that closes it",
                )
            if name not in seen:
                seen.add(name)
                stack += edges.get(name, ())
