"""Pydantic's validation errors in plain words, for people who write YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MEANINGS: Mapping[str, str] = {
    "extra_forbidden": "there is no such field",
    "missing": "this field is needed",
    "tuple_type": "it must be a list",
    "model_type": "it must be a group of fields",
    "bool_parsing": "it must be true or false",
    "bool_type": "it must be true or false",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "int_type": "it must be a whole number",
    "float_parsing": "it must be a number",
    "float_type": "it must be a number",
    "finite_number": "it must be a finite number",
    "string_type": "it must be a text",
    "string_too_short": "it must not be empty",
    "string_too_long": "it is too long: {max_length} characters at most",
    "string_pattern_mismatch": "it may hold only what {pattern} allows",
    "too_short": "it must not be empty",
    "literal_error": "it must be {expected}",
    "greater_than": "it must be greater than {gt:g}",
    "greater_than_equal": "it must be {ge:g} or more",
    "less_than": "it must be less than {lt:g}",
    "less_than_equal": "it must be {le:g} or less",
}


def problem_of(error: Mapping[str, Any]) -> str:
    """Describe a validation error in one line: the place and the reason, without the value.

    Args:
        error: one of `ValidationError.errors()`.
    """
    # Keys of a mapping are untrusted text: no line end or escape of theirs may enter a message.
    where = ".".join(_printable(str(part)) for part in error["loc"]) or "configuration"
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return f"{where}: {context['error']}"
    meaning = _MEANINGS.get(error["type"])
    return f"{where}: {meaning.format_map(context) if meaning else error['msg']}"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
