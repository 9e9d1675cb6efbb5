"""What the definitions of a repository are, by all frameworks that its files speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rag_assets.code.edge_rules import EVENTS
from rag_assets.code.framework_data.facts import FOUND
from rag_assets.code.framework_data.statements import GRAMMARS, STATEMENTS
from rag_assets.code.frameworks.django import kinds as django
from rag_assets.code.frameworks.laravel import kinds as laravel
from rag_assets.code.model import Fact, FileFacts
from rag_assets.code.name_uses import USES
from rag_assets.code.source_types import SourceType

LABELLED: Final = frozenset({"php", "python", *GRAMMARS})
"""Languages whose definitions or statements frameworks give a meaning."""

_DECIDES_NOTHING: Final = frozenset({"calls", USES, FOUND, *EVENTS, *STATEMENTS})
"""Kinds of facts that say nothing of what a definition is."""
_DJANGO: Final = frozenset({"django", "rest_framework"})
"""Packages that only projects of Django import."""


def deciding(facts: Sequence[Fact], language: str) -> list[object]:
    """What of a file's facts decides kinds, its own and those of other files: equal, if all is.

    Args:
        facts: of one file.
        language: of it.
    """
    if language == "php":
        return laravel.deciding(facts)
    # Django's views, models and routes follow from nearly all that a module states.
    return [
        (fact.kind, fact.symbol, fact.values)
        for fact in facts
        if language == "python" and fact.kind not in _DECIDES_NOTHING
    ]


def kinds_of(files: Sequence[FileFacts]) -> Mapping[tuple[str, str], SourceType]:
    """The source type of each definition that has one, by path and qualified name.

    Args:
        files: of one repository.
    """
    php = [one for one in files if one.language == "php"]
    python = [one for one in files if one.language == "python"]
    found = dict(laravel.kinds_of(php)) if php else {}
    if any(map(speaks_of_django, python)):
        found |= django.kinds_of(python)
    return found


def speaks_of_django(one: FileFacts) -> bool:
    """Whether a file of Python imports something of Django, or of its REST framework."""
    return any(
        fact.kind == "imports" and str(fact.values["name"]).partition(".")[0] in _DJANGO
        for fact in one.facts
    )
