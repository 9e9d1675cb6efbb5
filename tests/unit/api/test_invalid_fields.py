"""What is wrong with a request is told without what was sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest
from pydantic import TypeAdapter, ValidationError

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.invalid_fields import invalid_fields
from rag_assets.api.model import QueryRequest
from rag_assets.api.openapi import Description
from rag_assets.api.write_model import RecordBody, Reindex

SENT = "AKIA-SENT"


@pytest.fixture(scope="module")
def names() -> Collection[str]:
    described: Description = build_app(cast("Backend", None)).state.description
    return described.names


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        (Reindex, {"scope": SENT}, "scope"),
        (Reindex, {"scope": "document", "id": SENT}, "document.id"),
        (QueryRequest, {"query": "x", SENT: 1}, "*"),
        (QueryRequest, {"query": "x", "mode": SENT}, "mode"),
        (QueryRequest, {"query": "x", "filters": {"paths": [1]}}, "filters.paths.0"),
        (QueryRequest, {"query": "x", "filters": {SENT: 1}}, "filters.*"),
        (RecordBody, {"text": "x", "metadata": {f"{SENT}.": "x"}}, "metadata.*"),
        (RecordBody, {"text": "x", "metadata": {"owner": {SENT: SENT}}}, "metadata.*"),
        (RecordBody, {"text": "x", "media_type": SENT}, "media_type"),
        (RecordBody, {"text": "x", "updated_at": SENT}, "updated_at"),
    ],
)
def test_nothing_is_quoted(
    names: Collection[str], kind: Any, body: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(body)
    errors = [{**found, "loc": ("body", *found["loc"])} for found in refused.value.errors()]
    told = invalid_fields(errors, names)
    assert {error.field for error in told} == {field}
    assert all(error.problem and SENT not in error.problem for error in told)
