"""Lists built by several statements: which assignments apply, and which lists they unpack."""

from __future__ import annotations

from typing import Any, Final

from rag_assets.systems.code_memory.django.calls import is_a

LOOPS: Final = frozenset({"for", "while"})
"""Statements with a body that runs an unknown number of times."""


def since_last(held: list[Any], name: str) -> list[Any]:
    """Return the assignments, starting with the last one that replaces the whole value."""
    start = 0
    for index, fact in enumerate(held):
        if not fact.values["adds"] and not fact.values["under"] and not _uses(fact, name):
            start = index
    return held[start:]


def _uses(fact: Any, name: str) -> bool:
    value = fact.values["value"]
    items = (
        value["items"] if is_a(value, "sum") else value["arguments"] if is_a(value, "call") else []
    )
    items = [*items, *(i["value"] for i in _spreads(value))]
    return any(is_a(item, "name") and item["name"].lstrip(":") == name for item in items)


def _spreads(value: Any) -> list[Any]:
    items = value["items"] if is_a(value, "list") or is_a(value, "tuple") else []
    return [item for item in items if is_a(item, "spread")]
