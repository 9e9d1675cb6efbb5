"""Determines the source types of definitions from all frameworks that a repository uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.django import kinds as django
from rag_assets.systems.code_memory.frameworks.facts import FOUND
from rag_assets.systems.code_memory.frameworks.statements import GRAMMARS, STATEMENTS
from rag_assets.systems.code_memory.laravel import classes as laravel
from rag_assets.systems.code_memory.relations.edge_rules import EVENTS
from rag_assets.systems.code_memory.symbols.model import USES, FileFacts
from rag_assets.systems.code_memory.symbols.source_types import SourceType

LABELLED: Final = frozenset({"php", "python", *GRAMMARS})
"""Languages with definitions or statements that frameworks interpret."""

_DECIDES_NOTHING: Final = frozenset({"calls", USES, FOUND, *EVENTS, *STATEMENTS})
"""Kinds of facts that do not influence the source type of any definition."""
_DJANGO: Final = frozenset({"django", "rest_framework"})
"""Packages that only Django projects import."""


READ_KINDS: Final = laravel.READ_KINDS
"""Kinds of the facts that decide source types in PHP."""


def keep_deciding(facts: Sequence[Fact], language: str) -> tuple[Fact, ...]:
    """Return the facts of a file that kinds_of reads unless the repository uses Django."""
    return tuple(filter(laravel.is_read_fact, facts)) if language == "php" else ()


def list_deciding_facts(facts: Sequence[Fact], language: str) -> list[object]:
    """Return the facts of a file that determine source types, in a comparable form.

    If two results are equal, the source types are equal too, in this file and in others.

    Args:
        facts: the facts of one file.
    """
    if language == "php":
        return laravel.select_read_facts(facts)
    # Django's views, models and routes depend on nearly all facts of a module.
    return [
        (fact.kind, fact.symbol, fact.values)
        for fact in facts
        if language == "python" and fact.kind not in _DECIDES_NOTHING
    ]


def kinds_of(files: Sequence[FileFacts]) -> Mapping[tuple[str, str], SourceType]:
    """Return the source type of each definition that has one, by path and qualified name.

    Args:
        files: the files of one repository.
    """
    php = [one for one in files if one.language == "php"]
    python = [one for one in files if one.language == "python"]
    found = dict(laravel.kinds_of(php)) if php else {}
    if any(map(speaks_of_django, python)):
        found |= django.kinds_of(python)
    return found


def speaks_of_django(one: FileFacts) -> bool:
    """Return whether a Python file imports from Django or Django REST framework."""
    return any(
        fact.kind == "imports" and str(fact.values["name"]).partition(".")[0] in _DJANGO
        for fact in one.facts
    )
