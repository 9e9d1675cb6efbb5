"""Kinds: the source type of a chunk, by its place, its definition, and what other files say.

A path tells the type of a file (places). What is defined in it may be of another type, which
ancestry and use in other files decide: a class in app/Models that extends no model is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from rag_assets.code.source_types import SOURCE_TYPES, SourceType

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
    """The source type of a chunk.

    Args:
        role: what it is by its own text; see Role.
        symbol: its qualified name; "" for none.
        kinds: of the definitions of its file.
        place: the source type of its document, which its path told; any other name: none.
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
    # What a place alone says of a class is a hint, which `kinds` took or left.
    return owner or (told if told in _OF_FILES else "code")


def _owner_of(symbol: str, kinds: Kinds) -> str | None:
    """The type of the innermost definition around a name that has one; "" stands for the file."""
    name = symbol
    while name:
        if name in kinds:
            return kinds[name]
        ends = [found.start() for found in _SEPARATORS.finditer(name)]
        name = name[: ends[-1]] if ends else ""
    return kinds.get("")
