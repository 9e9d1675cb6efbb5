"""The controllers in a route statement itself, before its groups are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_assets.systems.code_memory.laravel.routes.expressions import Json
from rag_assets.systems.code_memory.laravel.routes.marks import RESOURCES, VERBS

_CLASS: Final = re.compile(r"\\?[A-Za-z_]\w*(?:\\[A-Za-z_]\w*)+(?:@\w+)?")
_ACTIONS: Final = VERBS | {"match", "any", "controller", "fallback"}
_PAIR: Final = 2


def targets_of(expression: Json) -> Iterator[tuple[str, str]]:
    """Yield controllers and methods, fully qualified; "" for a method that is not stated."""
    if not isinstance(expression, dict) or expression.get("of") != "chain":
        return
    for call in expression["calls"]:
        name, arguments = call["name"].lower(), call["arguments"]
        if name in _ACTIONS and arguments:
            yield from _target(arguments[-1])
        elif name in RESOURCES:
            yield from _controllers(arguments)


def _target(action: Json) -> Iterator[tuple[str, str]]:
    if isinstance(action, str) and _CLASS.fullmatch(action):
        controller, _, method = action.lstrip("\\").partition("@")
        yield controller, method
    elif isinstance(action, dict) and action.get("of") == "array":
        keyed = {key: value for key, value in action["items"] if isinstance(key, str)}
        plain = [value for _, value in action["items"] if isinstance(value, str)]
        if isinstance(keyed.get("uses"), str):
            yield from _target(keyed["uses"])
        elif not keyed and len(plain) == len(action["items"]) == _PAIR:
            yield from _target("@".join(plain))


def _controllers(arguments: list[Json]) -> Iterator[tuple[str, str]]:
    """Yield the controller of a resource, or of each of several resources."""
    first = arguments[0] if arguments else None
    if isinstance(first, dict) and first.get("of") == "array":
        for _, value in first["items"]:
            yield from _target(value)
    elif len(arguments) > 1:
        yield from _target(arguments[1])
