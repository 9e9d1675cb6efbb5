"""Reads a file with its grammar: units, facts, and notes on parts that could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.finder import definitions
from rag_assets.systems.code_memory.languages.definitions.layout import covered, signature, units
from rag_assets.systems.code_memory.languages.definitions.model import Definition, Grammar, Placed
from rag_assets.systems.code_memory.languages.definitions.walk import Walk
from rag_assets.systems.code_memory.languages.tree import SyntaxTree, syntax_tree
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit

BROKEN_SHARE: Final = 0.5
"""Share of unparsable text above which the text is cut at blank lines instead."""

LONGEST: Final = 4_000_000
"""Maximum characters of a text to parse; dense code of that length takes 15 seconds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a text with a grammar, before text outside definitions is cut.

    Attributes:
        units: the units of definitions.
        facts: the facts, in the order of their evidence.
        cuts: offsets after which a statement ends.
        notes: descriptions of parts that could not be read.
        found: the definitions.
    """

    units: tuple[Unit, ...]
    facts: tuple[Fact, ...]
    cuts: tuple[int, ...]
    notes: tuple[str, ...]
    found: tuple[Placed, ...] = ()


def read_code(text: str, grammar: type[Grammar]) -> CodeText:
    """Return the units and facts of a file."""
    reading = reading_of(text, grammar)
    whole = covered(text, reading.units, reading.cuts)
    return CodeText(whole, reading.facts, grammar.language, reading.notes)


def reading_of(text: str, grammar: type[Grammar]) -> Reading:
    """Return the result of reading a text, before text outside definitions is cut.

    Args:
        text: the text of a file, or of a part of a file.
    """
    if len(text) > LONGEST:
        note = f"{len(text)} characters of {grammar.language} are more than are parsed"
        return Reading((), (), (), (f"{note}: cut at blank lines",))
    tree = syntax_tree(text, grammar.module, grammar.function)
    if tree.gave_up:
        note = f"the parser gave up on {len(text)} characters of {grammar.language}"
        return Reading((), (), (), (f"{note}: cut at blank lines",))
    read = grammar(tree)
    found = definitions(read)
    walk = Walk(read, found).run()
    places, size = walk.errors
    notes: tuple[str, ...] = ()
    if places:
        note = f"{places} places with {size} bytes could not be read as {grammar.language}"
        if size > BROKEN_SHARE * max(1, len(text.strip())):
            return Reading((), (), (), (f"{note}: cut at blank lines",))
        notes = (note,)
    facts = [*walk.facts, *_declared(tree, walk, found)]
    facts.sort(key=lambda fact: (fact.start, fact.end))
    return Reading(tuple(units(tree, found)), tuple(facts), tuple(walk.cuts), notes, tuple(found))


def _declared(tree: SyntaxTree, walk: Walk, found: Sequence[Placed]) -> Iterator[Fact]:
    for placed in found:
        definition = placed.definition
        if not definition.symbol:
            continue
        start, last = tree.start(definition.node), tree.end(definition.node)
        yield Fact("declares", start, last, definition.symbol, _values(tree, placed))
        end = start + _width(tree, definition)
        for kind, names in (("extends", definition.extends), ("implements", definition.implements)):
            for name in names:
                target = walk.named(name)
                yield Fact(kind, start, end, definition.symbol, target.values())


def _width(tree: SyntaxTree, definition: Definition) -> int:
    """Return the number of characters of a declaration without its body."""
    start = tree.start(definition.node)
    body = definition.body
    last = tree.end(definition.node)
    if body is not None and tree.start(body) > start:
        last = tree.start(body)
    return len(tree.text[start : min(last, start + 200)].rstrip())


def _values(tree: SyntaxTree, placed: Placed) -> dict[str, object]:
    definition = placed.definition
    values: dict[str, object] = {
        "name": definition.symbol,
        "role": definition.role,
        "what": definition.what,
        "exported": definition.exported,
        "signature": signature(tree, placed),
    }
    if definition.parameters:
        values["parameters"] = [
            {"name": name, "type": type_} if type_ else {"name": name}
            for name, type_ in definition.parameters
        ]
    if definition.returns:
        callable_ = definition.role in {"function", "method"}
        values["returns" if callable_ else "type"] = definition.returns
    return values
