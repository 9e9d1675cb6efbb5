"""Operations of code memory match the description of its endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.client import Client, code_operations
from rag_assets.client.calls import Call
from rag_assets.systems.code_memory.run_retrieval import RetrievalOptions
from rag_assets.systems.code_memory.run_routes import receiving, router
from rag_assets.systems.code_memory.runs import RunEvent, parse_events

OPTIONS = RetrievalOptions().model_dump()
EVENT = {"id": "1", "kind": "file_updated", "path": "größe.php", "summary": "two\nlines"}
CALLS: Mapping[str, Call[Any]] = {
    "put_run": code_operations.put_run("r", model="m", project="p"),
    "record_run_events": code_operations.record_run_events("r", [EVENT], project="p"),
    "retrieve": code_operations.retrieve("q", run="r", options=OPTIONS, project="p"),
    "index_file": code_operations.index_file("a.php", project="p"),
    "invalidate": code_operations.invalidate("a.php", project="p"),
}


@pytest.fixture(scope="module")
def description() -> Mapping[str, Any]:
    return build_app(cast("Backend", None), routers=[router, receiving]).openapi()


def resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [resolved(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolved(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    aside = {"title", "description", "default", "required", "$defs"}
    kept = {name: value for name, value in schema.items() if name not in aside}
    if "properties" in schema:
        kept["properties"] = {n: resolved(p, definitions) for n, p in schema["properties"].items()}
        return kept
    return {name: resolved(value, definitions) for name, value in kept.items()}


def operation(description: Mapping[str, Any], call: Call[Any]) -> Mapping[str, Any]:
    path = call.path.replace("{id}", "{project_id}")
    found: Mapping[str, Any] = description["paths"][path][call.method.lower()]
    return found


@pytest.mark.parametrize("name", CALLS)
def test_everything_that_is_sent_is_described(description: Mapping[str, Any], name: str) -> None:
    call = CALLS[name]
    theirs = operation(description, call)
    named = {one["name"] for one in theirs["parameters"] if one["in"] == "path"}
    assert {"project_id" if one == "id" else one for one in call.named} == named
    [schema] = [body["schema"] for body in theirs["requestBody"]["content"].values()]
    models = description["components"]["schemas"]
    body = resolved(schema, models)
    shapes = [body, *body.get("anyOf", ())]
    fields = {field for shape in shapes for field in shape.get("properties", ())}
    if call.lines is None:
        assert set(call.body or ()) == fields
    else:
        assert fields == set(RunEvent.model_fields)


@pytest.mark.parametrize("name", CALLS)
def test_answers_are_read_as_they_are_described(description: Mapping[str, Any], name: str) -> None:
    call = CALLS[name]
    [theirs] = [
        body["schema"]
        for status, response in operation(description, call)["responses"].items()
        if status.startswith("2")
        for body in response["content"].values()
    ]
    ours = TypeAdapter(call.answer).json_schema()
    models = description["components"]["schemas"]
    assert resolved(ours, ours.get("$defs", {})) == resolved(theirs, models)


def test_events_are_sent_as_the_service_reads_them() -> None:
    lines = code_operations.record_run_events("r", [EVENT, {**EVENT, "id": "2"}]).lines or ""
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["1", "2"]
    first, second = parse_events(lines.encode())
    assert (first.path, second.id, first.summary) == ("größe.php", "2", "two\nlines")


def test_everything_of_a_project_is_indexed_again_without_a_body() -> None:
    call = code_operations.reindex_project(project="p")
    assert (call.address, call.body, call.repeatable) == ("/api/projects/p/index-rag", None, False)


def test_the_client_has_all_of_them() -> None:
    assert all(callable(getattr(Client, name)) for name in (*CALLS, "reindex_project"))
