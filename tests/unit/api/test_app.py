import re
from collections.abc import Collection, Iterator
from typing import Any, cast

import pytest
from fastapi import APIRouter
from pydantic import TypeAdapter, ValidationError

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.description import Description
from rag_assets.api.guard import Guarded
from rag_assets.api.model import QueryRequest, Reindex
from rag_assets.api.problems import list_invalid_fields
from rag_assets.api.responses import InvalidField
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.invalid_values import PATTERNS
from rag_assets.records.text_records import RecordBody
from rag_assets.search.model import PATTERN as LANGUAGE_PATTERN

BACKEND = cast("Backend", None)


async def _tides() -> str:
    return "high"


def test_a_router_of_a_system_is_described_with_the_others() -> None:
    router = APIRouter(prefix="/rag/tides", route_class=Guarded)
    router.get("")(_tides)
    paths = build_app(BACKEND, routers=[router]).openapi()["paths"]
    assert {"/rag/tides", "/rag/query"} <= set(paths)


def test_an_endpoint_that_needs_no_token_is_refused() -> None:
    inner, outer = APIRouter(prefix="/inner"), APIRouter(prefix="/rag/tides", route_class=Guarded)
    inner.get("")(_tides)
    outer.include_router(inner)
    for router in (inner, outer):
        with pytest.raises(ConfigurationError, match="could be called without a token"):
            build_app(BACKEND, routers=[router])


def test_a_mounted_application_is_refused() -> None:
    router = APIRouter()
    router.mount("/rag/tides", lambda *_: None)
    with pytest.raises(ConfigurationError, match="could be called without a token"):
        build_app(BACKEND, routers=[router])


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/rag/query"), ("DELETE", "/rag/documents/{other}")]
)
def test_an_endpoint_that_hides_another_is_refused(method: str, path: str) -> None:
    router = APIRouter(route_class=Guarded)
    router.add_api_route(path, _tides, methods=[method])
    with pytest.raises(ConfigurationError, match=f"same method and path: {method} {path}"):
        build_app(BACKEND, routers=[router])


SENT = "AKIA-SENT"
OF_PYTHON = re.compile(
    r"(?i)tuple|dict|bool\b|\bint\b|\bstr\b|none|pattern|\^|\\\\|should|valid list"
)


def described(kind: Any, body: Any, names: Collection[str]) -> list[InvalidField]:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(body)
    errors = [{**error, "loc": ("body", *error["loc"])} for error in refused.value.errors()]
    return list_invalid_fields(errors, names)


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
    told = described(kind, body, names)
    assert {error.field for error in told} == {field}
    assert all(error.problem and SENT not in error.problem for error in told)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        (QueryRequest, {}, "this field is needed"),
        (QueryRequest, {"query": 5}, "it must be a string; got a number"),
        (QueryRequest, {"query": " "}, "it must contain a visible character; got a string"),
        (QueryRequest, {"query": "x", "top_k": "many"}, "it must be a number"),
        (QueryRequest, {"query": "x", "top_k": 0}, "it must be 1 or more; got 0"),
        (QueryRequest, {"query": "x", "explain": 3}, "there is no such field"),
        (QueryRequest, {"query": "x", "filters": []}, "it must be an object; got an empty array"),
        (QueryRequest, {"query": "x", "filters": {"paths": "a"}},
         "it must be an array; got a string"),
        (QueryRequest, {"query": "x", "filters": {"paths": {}}}, "an array; got an empty object"),
        (QueryRequest, {"query": "x", "filters": {"paths": ["a"] * 101}}, "100 at most; got 101"),
        (QueryRequest, {"query": "x", "mode": "fast"}, "it must be 'knn'"),
        (RecordBody, {"text": "x", "updated_at": True}, "it must be a time with its zone"),
    ],
)  # fmt: skip
def test_a_field_is_described_in_the_words_of_json(
    names: Collection[str], kind: Any, body: dict[str, Any], problem: str
) -> None:
    told = described(kind, body, names)
    assert any(problem in error.problem for error in told), told
    assert not any(OF_PYTHON.search(error.problem) for error in told), told


def test_every_pattern_of_the_api_has_words() -> None:
    description = build_app(cast("Backend", None)).openapi()
    patterns = set(patterns_in(description)) - {LANGUAGE_PATTERN}
    assert len(patterns) > 10
    assert patterns <= PATTERNS.keys()


def patterns_in(schema: Any) -> Iterator[str]:
    values = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    if isinstance(schema, dict | list):
        for value in values:
            yield from patterns_in(value)
