"""Reads a file of PHP."""

from __future__ import annotations

from rag_assets.code.languages.php.facts import facts_of
from rag_assets.code.languages.php.source import PhpSource
from rag_assets.code.languages.php.units import units_of
from rag_assets.code.model import CodeText


def read(text: str) -> CodeText:
    """The units and facts of a file of PHP."""
    source = PhpSource(text)
    notes = ("parts of it are no PHP that could be parsed",) if source.tree.has_errors else ()
    facts = sorted(facts_of(source), key=lambda fact: (fact.start, fact.end))
    return CodeText(units_of(source), tuple(facts), "php", notes)
