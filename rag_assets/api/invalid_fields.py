"""Descriptions of invalid request fields, without the values, which may be credentials or texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rag_assets.api.responses import InvalidField
from rag_assets.common.invalid_values import allowed_value, sent_value

_MAX_FIELDS = 50
"""Maximum number of reported fields: a body can have very many invalid fields."""
_NO_OBJECT = frozenset({"dict_type", "model_attributes_type", "model_type"})
"""Error types that concern the whole body: with a wrong Content-Type, it arrives unparsed."""
_DEEPEST = 12
"""Maximum number of parts in the path of a field."""


def invalid_fields(
    errors: Sequence[Mapping[str, Any]], names: Collection[str]
) -> list[InvalidField]:
    """Return the first invalid fields of a validation.

    Args:
        errors: errors from Pydantic.
        names: names in the OpenAPI description; all other names come from the caller and may be
            secrets.
    """
    return [
        InvalidField(field=_field(error, names), problem=_problem(error))
        for error in errors[:_MAX_FIELDS]
    ]


def _field(error: Mapping[str, Any], names: Collection[str]) -> str:
    where = [*error["loc"][1:]]
    if error["type"] == "union_tag_invalid":
        where.append(error["ctx"]["discriminator"].strip("'"))
    parts = [str(p) if isinstance(p, int) or p in names else "*" for p in where[:_DEEPEST]]
    return re.sub(r"\*(\.\*)+", "*", ".".join(parts)) or "body"


def _problem(error: Mapping[str, Any]) -> str:
    if error["type"] in _NO_OBJECT and len(error["loc"]) == 1:
        return "it must be a JSON object, sent with Content-Type: application/json"
    allowed = allowed_value(error)
    # In a URL, every value is a string.
    came = sent_value(error) if error["loc"][0] == "body" else None
    return allowed if came is None else f"{allowed}; {came} came"
