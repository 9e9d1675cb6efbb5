"""What is wrong with a request, told without what was sent: that may be a credential, or a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

from rag_assets.api.responses import InvalidField

_MOST = 50
"""Fields that are named: a body can have very many that are wrong."""


def invalid(field: str, problem: str) -> RequestValidationError:
    """What to raise where a field of the body turns out to be unusable for what is there."""
    return RequestValidationError([{"type": "value_error", "loc": ("body", field), "msg": problem}])


def invalid_fields(
    errors: Sequence[Mapping[str, Any]], names: Collection[str]
) -> list[InvalidField]:
    """The first of what a validation found.

    Args:
        errors: as Pydantic tells them.
        names: that the service's description holds; all others were made up by who asks.
    """
    return [
        InvalidField(field=_field(error, names), problem=_problem(error))
        for error in errors[:_MOST]
    ]


def _field(error: Mapping[str, Any], names: Collection[str]) -> str:
    where = [*error["loc"][1:]]
    if error["type"] == "union_tag_invalid":
        where.append(error["ctx"]["discriminator"].strip("'"))
    parts = [str(part) if isinstance(part, int) or part in names else "*" for part in where]
    return re.sub(r"\*(\.\*)+", "*", ".".join(parts)) or "body"


def _problem(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field"
    if error["type"] == "union_tag_invalid":
        return f"it must be one of: {error['ctx']['expected_tags']}"
    problem: str = error["msg"]
    return problem
