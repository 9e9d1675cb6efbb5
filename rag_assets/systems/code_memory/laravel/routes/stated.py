"""Values in the arguments of calls on routes, resources and groups."""

from __future__ import annotations

from typing import Final

from rag_assets.systems.code_memory.laravel.routes.frames import Arguments
from rag_assets.systems.code_memory.laravel.routes.groups import joined
from rag_assets.systems.code_memory.laravel.routes.values import Unknown, Value, listed, text_of

_CONSTRAINTS: Final = {
    "wherealpha": "[a-zA-Z]+",
    "wherealphanumeric": "[a-zA-Z0-9]+",
    "wherenumber": "[0-9]+",
    "whereulid": "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}",
    "whereuuid": "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}",
}
CONSTRAINTS: Final = frozenset({"where", "setwheres", "wherein", *_CONSTRAINTS})
"""Calls that constrain parameters, in lower case."""


def wheres(name: str, given: Arguments) -> dict[str | int, Value]:
    """Return the regular expressions that a call states, by parameter.

    Args:
        name: the name of the call, one of CONSTRAINTS.
    """
    first, second = given.at(0), given.at(1)
    if name in {"where", "setwheres"}:
        return first if isinstance(first, dict) else {str(first): second}
    if name == "wherein":
        texts = [text_of(one) for one in listed(second)]
        pattern: Value = Unknown("a list") if None in texts else "|".join(map(str, texts))
    else:
        pattern = _CONSTRAINTS[name]
    return {str(one): pattern for one in listed(first)}


def names(given: Arguments) -> list[Value]:
    """Return names of middleware that are passed as a list or as separate arguments."""
    first = given.at(0)
    return listed(first) if isinstance(first, dict) else list(given.all)


def ability(given: Arguments) -> Value:
    """Return the middleware that the call `can` adds."""
    models = listed(given.at(1, "models"))
    parts = [part for one in models for part in (",", one)]
    return joined("can:", given.at(0, "ability"), *parts)


def keyed(value: Value) -> dict[str | int, Value]:
    """Return the value if it is an array; for anything else, an empty array."""
    return value if isinstance(value, dict) else {}
