"""Reads a Python file."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.python.exported import exported_of
from rag_assets.systems.code_memory.languages.python.facts import facts_of
from rag_assets.systems.code_memory.languages.python.scopes import Scopes
from rag_assets.systems.code_memory.languages.python.settings import settings_of
from rag_assets.systems.code_memory.languages.python.source import PythonSource
from rag_assets.systems.code_memory.languages.python.statements import statements_of
from rag_assets.systems.code_memory.languages.python.units import units_of
from rag_assets.systems.code_memory.symbols.model import CodeText


def read(text: str) -> CodeText:
    """Return the units and facts of a Python file."""
    source = PythonSource(text)
    scopes = Scopes(source)
    notes = ("parts of it are no Python that could be parsed",) if source.tree.has_errors else ()
    found = [*facts_of(source, scopes), *statements_of(source, scopes)]
    found += [*settings_of(source, scopes), *exported_of(source)]
    facts = sorted(found, key=lambda fact: (fact.start, fact.end))
    return CodeText(units_of(source), tuple(facts), "python", notes)
