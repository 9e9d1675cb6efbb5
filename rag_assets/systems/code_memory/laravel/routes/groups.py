"""Attributes of groups and routes, merged in the way of Laravel's RouteGroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from rag_assets.systems.code_memory.laravel.routes.values import (
    Unknown,
    Value,
    bounded,
    few,
    listed,
    text_of,
)

Attributes: TypeAlias = dict[str, Value]

_OWN: Final = frozenset({"namespace", "prefix", "where", "as"})
_LISTS: Final = frozenset({"middleware", "excluded_middleware", "can"})


def joined(*parts: Value) -> str | Unknown:
    """Return the concatenation of texts; unknown if one of them is unknown."""
    found: list[str] = []
    why = ""
    for part in parts:
        text = part.rest if isinstance(part, Unknown) else text_of(part)
        if isinstance(part, Unknown) or text is None:
            why = why or (part.why if isinstance(part, Unknown) else "no text")
        found.append(text or "")
    text = bounded("".join(found))
    if isinstance(text, Unknown):
        return text
    return Unknown(why, text) if why else str(text)


def trimmed(value: Value, characters: str = "/") -> str | Unknown:
    """Return a text without these characters at its start and end."""
    text = joined(value)
    return text if isinstance(text, Unknown) else text.strip(characters)


def merged(new: Mapping[str, Value], old: Mapping[str, Value], *, prepend: bool) -> Attributes:
    """Return the attributes of a group or route merged with the enclosing group's attributes.

    Args:
        new: attributes of the inner group or route.
        old: attributes of the outer group.
        prepend: whether the outer prefix comes first; for routes it comes last.
    """
    outer = {key: value for key, value in old.items() if key not in _OWN}
    for name in ("domain", "controller"):
        if new.get(name) is not None:
            outer.pop(name, None)
    inner = dict(new)
    if old.get("as") is not None:
        inner["as"] = joined(old["as"], new.get("as"))
    inner["namespace"] = _namespace(new.get("namespace"), old.get("namespace"))
    inner["prefix"] = _prefix(new.get("prefix"), old.get("prefix"), prepend=prepend)
    inner["where"] = {**_keyed(old.get("where")), **_keyed(new.get("where"))}
    found = {**outer, **inner}
    for name in _LISTS:
        found[name] = few([*listed_of(outer.get(name)), *listed_of(inner.get(name))])
    return found


def listed_of(value: Value) -> list[Value]:
    """Return the middleware in an attribute."""
    return value if isinstance(value, list) else listed(value)


def _namespace(new: Value, old: Value) -> Value:
    if new is None:
        return old
    text = joined(new)
    if isinstance(text, Unknown):
        return text
    if old is None or text.startswith("\\"):
        return text.strip("\\")
    return joined(trimmed(old, "\\"), "\\", text.strip("\\"))


def _prefix(new: Value, old: Value, *, prepend: bool) -> Value:
    if new is None:
        return "" if old is None else old
    first, last = (old, new) if prepend else (new, old)
    return joined(trimmed(first), "/", trimmed(last))


def _keyed(value: Value) -> dict[str | int, Value]:
    return value if isinstance(value, dict) else {}
