"""Renders a model back to `.auf` text that reads equal."""

from __future__ import annotations

from aufbau.grammar.model import (
    DEFAULT_IGNORES,
    Alternative,
    AmbientMembership,
    Conclusion,
    Definition,
    Extension,
    GrammarModel,
    Judgement,
    Membership,
    Premise,
    Rule,
    Symbol,
    SymbolKind,
)

_WIDTH = 100


def render_grammar(model: GrammarModel) -> str:
    """The `.auf` text of a model: directives, productions, rules."""
    blocks = []
    directives = _directives(model)
    if directives:
        blocks.append("\n".join(directives))
    blocks.append("\n".join(_definition(definition) for definition in model.definitions))
    blocks += [_rule(rule) for rule in model.rules]
    return "\n\n".join(blocks) + "\n"


def _directives(model: GrammarModel) -> list[str]:
    lines = [f"%start {' '.join((model.start, *model.roots))}"]
    if model.ignores != DEFAULT_IGNORES:
        for ignore in model.ignores:
            lines.append(f"%ignore{'-once' if ignore.once else ''} /{ignore.pattern}/")
    lines += [f"%contextual {_quoted(word)}" for word in model.contextual]
    lines += [f"%ambient {_quoted(key)}" for key in model.ambient]
    if model.bottom_up:
        lines.append(f"%bottom-up {' '.join(model.bottom_up)}")
    return lines + [f"%given {given.name} : {given.type.text}" for given in model.given]


def _definition(definition: Definition) -> str:
    label = f"({definition.label})" if definition.label else ""
    head = f"{definition.name}{label}{'*' if definition.starred else ''} ::= "
    alternatives = [_alternative(alternative) for alternative in definition.alternatives]
    line = head + " | ".join(alternatives)
    if len(line) <= _WIDTH:
        return line
    return head + ("\n" + " " * (len(head) - 2) + "| ").join(alternatives)


def _alternative(alternative: Alternative) -> str:
    return " ".join(_symbol(symbol) for symbol in alternative.symbols) or "ε"


def _symbol(symbol: Symbol) -> str:
    if symbol.kind is SymbolKind.LITERAL:
        text = _quoted(symbol.value)
    elif symbol.kind is SymbolKind.REGEX:
        text = f"/{symbol.value}/"
    else:
        text = symbol.value
    return text + (f"[{symbol.binding}]" if symbol.binding else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return '"' + escaped.replace('"', '\\"') + '"' if "'" in text else f"'{escaped}'"


def _rule(rule: Rule) -> str:
    premises = ", ".join(render_premise(premise) for premise in rule.premises)
    conclusion = _conclusion(rule.conclusion)
    dashes = "-" * max(3, len(premises), len(conclusion))
    return (f"{premises}\n" if premises else "") + f"{dashes} ({rule.name})\n{conclusion}"


def render_premise(premise: Premise) -> str:
    """A premise in the notation of `.auf`."""
    if isinstance(premise, Membership):
        return f"{premise.name} {'∉' if premise.fresh else '∈'} Γ{'[]' if premise.innermost else ''}"
    if isinstance(premise, AmbientMembership):
        return f"'{premise.key}' ∈ Γ"
    if isinstance(premise, Judgement):
        scope = "[]" if premise.opens else ""
        initial = "₀" if premise.initial else ""
        return f"Γ{initial}{scope}{_extensions(premise.extensions)} ⊢ {premise.child} : {premise.type.text}"
    return f"{premise.left.text} = {premise.right.text}"


def _extensions(extensions: tuple[Extension, ...]) -> str:
    return "".join(
        f"[{_key(extension)}:{'∀' if extension.generalises else ' ' if extension.ambient else ''}{extension.type.text}]"
        for extension in extensions
    )


def _key(extension: Extension) -> str:
    return f"'{extension.name}'" if extension.ambient else extension.name


def _conclusion(conclusion: Conclusion) -> str:
    if conclusion.effects or conclusion.keeps:
        kept = "'" if conclusion.keeps else ""
        return f"Γ → Γ{kept}{_extensions(conclusion.effects)} ⊢ {conclusion.type.text}"
    return conclusion.type.text
