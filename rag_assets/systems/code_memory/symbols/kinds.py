"""Kinds: the source type of a chunk, from its path, its definition, and facts of other files.

The path decides the type of a file (see places). A definition in the file may have another type,
which depends on ancestry and use in other files: a class in app/Models that extends no model is not
a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES, SourceType

Kinds: TypeAlias = Mapping[str, str]
"""Source types by the qualified names of one file's definitions."""

_BY_ROLE: Final[Mapping[str, SourceType]] = {
    "route": "route",
    "group": "route",
    "schema": "migration",
    "operation": "api_endpoint",
    "ability": "policy",
}
_METHODS: Final[Mapping[str, SourceType]] = {"controller": "controller_method"}
_PROSE: Final = frozenset(
    {"readme", "doc", "adr", "cursor_rule", "claude_rule", "known_bug", "run_summary"}
)
_OF_KEYS: Final = frozenset({"config", "package"})
_SEPARATORS: Final = re.compile(r"::|\.|#")
_OF_FILES: Final = frozenset({*_OF_KEYS, "migration", "table", "route", "api_endpoint"})
_MEMBERS: Final = frozenset({"method", "relation"})


def source_type_of(role: str, symbol: str, kinds: Kinds, place: str) -> str:
    """Return the source type of a chunk.

    Args:
        role: see Role.
        symbol: its qualified name; "" if it has none.
        kinds: of the definitions in its file.
        place: source type of its document by path; any other name counts as "code".
    """
    told = place if place in SOURCE_TYPES else "code"
    if role in _BY_ROLE:
        return _BY_ROLE[role]
    if told in _PROSE or role == "derived":
        return told
    if role == "section":
        return "doc"
    if role == "key":
        return told if told in _OF_KEYS else "code"
    owner = _owner_of(symbol, kinds)
    if role == "relation" and owner == "model":
        return "model_relation"
    if role in _MEMBERS:
        owner = _METHODS.get(owner or "", owner)
    # The path is only a hint for the type of a class; `kinds` has already used or rejected it.
    return owner or (told if told in _OF_FILES else "code")


def _owner_of(symbol: str, kinds: Kinds) -> str | None:
    """Return the type of the innermost definition around a name; "" stands for the file."""
    name = symbol
    while name:
        if name in kinds:
            return kinds[name]
        ends = [found.start() for found in _SEPARATORS.finditer(name)]
        name = name[: ends[-1]] if ends else ""
    return kinds.get("")
