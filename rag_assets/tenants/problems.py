"""Validation errors in one line, for people who write YAML or commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.common.invalid_values import allowed_value

_IN_YAML: Mapping[str, str] = {
    "it must be an array": "it must be a list",
    "it must be an object": "it must be a group of fields",
    "it must be a string": "it must be a text",
}


def describe_problem(error: Mapping[str, Any]) -> str:
    """Describe a validation error: its location and the allowed values, without the given value.

    Args:
        error: an item of `ValidationError.errors()`.
    """
    # Keys of a mapping are untrusted text: their line ends and control characters must not enter a
    # message.
    where = ".".join(_printable(str(part)) for part in error["loc"]) or "configuration"
    allowed = allowed_value(error)
    return f"{where}: {_IN_YAML.get(allowed, allowed)}"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
