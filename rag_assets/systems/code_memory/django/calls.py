"""Calls and collections among static expressions."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

LOOPS: Final = frozenset({"for", "while"})
"""Statements whose body runs an unknown number of times."""


def since_last(held: list[Any], name: str) -> list[Any]:
    """Return the assignments from the last one on that replaces the whole value."""
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


class Call:
    """A call whose arguments can be read by name or by position."""

    def __init__(self, value: Any) -> None:
        self.value = value
        call = value["call"]
        self.called: str = call.get("name", "") if isinstance(call, dict) else ""

    def get(self, name: str, position: int) -> Any:
        """Return an argument; None if it is missing."""
        return argument(self.value, position, name)

    def text(self, name: str, position: int) -> str:
        """Return an argument that is a string; "" for any other argument."""
        return text_of(self.get(name, position))


def is_a(value: Any, kind: str) -> TypeGuard[dict[str, Any]]:
    """Return whether an expression is of a kind, such as call or name."""
    return isinstance(value, dict) and value.get("of") == kind


def argument(call: Any, position: int, name: str) -> Any:
    """Return an argument of a call by its name, else by its position; None if it is missing."""
    if name in call["named"]:
        return call["named"][name]
    arguments = call["arguments"]
    return arguments[position] if position < len(arguments) else None


def text_of(value: Any) -> str:
    """Return the value of a string expression; "" for any other expression."""
    return value if isinstance(value, str) else ""


def items_of(value: Any) -> list[Any]:
    """Return the items of a list, a tuple or a set, or of a sum of these."""
    found: list[Any] = value.get("items", []) if isinstance(value, dict) else []
    return found if not isinstance(value, dict) or value["of"] != "dict" else []


def dictionary_of(value: Any) -> dict[str, Any]:
    """Return the values of a dictionary by its string keys."""
    pairs = value["items"] if isinstance(value, dict) and value["of"] == "dict" else []
    return {key: held for key, held in pairs if isinstance(key, str)}


def groups_of(value: Any) -> list[tuple[str, ...]]:
    """Return groups of names; a single group may be written without the list around it."""
    if isinstance(value, dict) and value["of"] == "call" and value["arguments"]:
        value = value["arguments"][0]
    items = items_of(value)
    if items and all(isinstance(item, str) for item in items):
        return [tuple(items)]
    return [tuple(i for i in items_of(item) if isinstance(i, str)) for item in items]
