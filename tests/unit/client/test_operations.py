"""The client's operations match the service's OpenAPI description, with all fields."""

import inspect
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.client import AsyncClient, Client, Filters, Question, operations
from rag_assets.client.calls import Call, Pages, copy_signature
from rag_assets.client.errors import Invalid

_ASIDE = {"title", "description", "default", "required", "discriminator", "$defs"}
QUESTION = Question(
    query="valve",
    **{name: None for name, field in Question.model_fields.items() if field.default is None},
    filters=Filters(), must_include_paths=(), include_run_summaries=True,
)  # fmt: skip
FILE: dict[str, Any] = {
    "page_uuid": "p", "name": "n", "metadata": {}, "url": "https://a", "updated_at": None,
    "version": None,
}  # fmt: skip
WHOLE: list[Call[Any]] = [
    operations.query(QUESTION, tenant="acme"),
    operations.answer(QUESTION, max_tokens=16, tenant="acme"),
    operations.documents(after="a", limit=1, tenant="acme"),
    operations.delete_document("d", tenant="acme"),
    operations.put_record(
        "page", "7", "text", media_type="text/plain", title="t", uri="u", scope="s", tags=["a"],
        metadata={"b": 1}, updated_at=datetime.now(UTC), version=1, etag='"e"', source="pushed",
        tenant="acme",
    ),
    operations.delete_record(
        "page", "7", page_uuid="p", updated_at=datetime.now(UTC), version=1, etag='"e"',
        source="pushed", tenant="acme",
    ),
    operations.put_typed_record("file", "7", FILE, etag='"e"', source="pushed", tenant="acme"),
    operations.put_record_content("7", b"text", source="pushed", tenant="acme"),
    operations.write_records([{"op": "delete"}], source="pushed", tenant="acme"),
    operations.reconcile([{}], apply=True, allow_deletes=True, source="pushed", tenant="acme"),
    operations.record("page", "7", source="pushed", tenant="acme"),
    operations.records(status="failed", limit=1, tenant="acme"),
    operations.upload("a.md", b"text", replaces="d", source="uploads", tenant="acme"),
    operations.uploads(source="uploads", tenant="acme"),
    operations.delete_upload("d", tenant="acme"),
    operations.reindex(document="d", tenant="acme"),
    operations.events(after=1, kind="k", limit=1, tenant="acme"),
    operations.status(tenant="acme"),
    operations.live(),
    operations.ready(),
    operations.metrics(),
]  # fmt: skip
"""Each operation with everything that it takes."""


@pytest.fixture(scope="module")
def description() -> Mapping[str, Any]:
    return build_app(cast("Backend", None)).openapi()


def described(description: Mapping[str, Any], call: Call[Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = description["paths"][call.path][call.method.lower()]
    return found


def resolved(schema: Any, definitions: Mapping[str, Any], within: tuple[str, ...] = ()) -> Any:
    """Return a schema with resolved references, and without descriptions."""
    if isinstance(schema, list):
        return [resolved(part, definitions, within) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in within:
            return {"within": name}
        return resolved(definitions[name], definitions, (*within, name))
    kept = {name: value for name, value in schema.items() if name not in _ASIDE}
    if "properties" in kept:
        fields = kept["properties"].items()
        of_fields = {n: resolved(part, definitions, within) for n, part in fields}
        return {**kept, "properties": of_fields}
    return {name: resolved(value, definitions, within) for name, value in kept.items()}


def made() -> Iterator[str]:
    for name, made in inspect.getmembers(operations, inspect.isfunction):
        if made.__module__ == operations.__name__ and not name.startswith("_"):
            yield name


def test_no_operation_of_the_service_lacks_one_here(description: Mapping[str, Any]) -> None:
    theirs = {
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
    }
    assert {(call.method, call.path) for call in WHOLE} == theirs


@pytest.mark.parametrize("call", WHOLE, ids=lambda call: call.path)
def test_an_operation_takes_all_its_fields(description: Mapping[str, Any], call: Call[Any]) -> None:
    theirs = described(description, call)
    taken: dict[str, set[str]] = {"path": set(), "query": set(), "header": set()}
    for parameter in theirs.get("parameters", ()):
        taken[parameter["in"]].add(parameter["name"])
    assert set(call.named) == taken["path"]
    assert set(call.parameters) == taken["query"]
    assert {name.lower() for name in call.headers} == {name.lower() for name in taken["header"]}
    content = theirs.get("requestBody", {}).get("content", {})
    if call.file is not None:
        form = content["multipart/form-data"]["schema"]["properties"]
        assert {"file", *call.file.fields} == form.keys()
    body = content.get("application/json", {})
    schema = resolved(body.get("schema", {}), description["components"]["schemas"])
    fields = set(schema.get("properties", ()))
    for variant in schema.get("oneOf", ()):
        fields |= set(variant["properties"])
    either = [set(variant["properties"]) for variant in schema.get("anyOf", ())]
    assert set(call.body or ()) in (either or [fields])


@pytest.mark.parametrize("call", WHOLE, ids=lambda call: call.path)
def test_answers_match_their_description(description: Mapping[str, Any], call: Call[Any]) -> None:
    answers = [
        body["schema"]
        for status, response in described(description, call)["responses"].items()
        if status.startswith("2")
        for body in response["content"].values()
    ]
    assert answers
    ours = TypeAdapter(call.answer).json_schema()
    for theirs in answers:
        definitions = description["components"]["schemas"]
        assert resolved(ours, ours.get("$defs", {})) == resolved(theirs, definitions)


def test_problems_are_read_as_they_are_described(description: Mapping[str, Any]) -> None:
    from rag_assets.api.responses import Problem

    ours = TypeAdapter(Problem).json_schema()
    theirs = description["components"]["schemas"]
    assert resolved(ours, ours["$defs"]) == resolved(theirs["Problem"], theirs)


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_each_client_has_a_method_for_each_operation(client: type) -> None:
    for name in made():
        method, operation = getattr(client, name), getattr(operations, name)
        assert method.__doc__ == operation.__doc__
        [itself, *taken] = inspect.signature(method).parameters
        assert (itself, taken) == ("self", list(inspect.signature(operation).parameters))


def test_a_bound_method_shows_what_it_takes() -> None:
    class Asks:
        @copy_signature(operations.query)
        def method(self, *_: object, **__: object) -> None: ...

    assert list(inspect.signature(Asks().method).parameters) == ["question", "tenant"]


def test_pages_follow_each_other_until_the_last() -> None:
    pages = cast("Pages[Any, Any]", operations.all_documents(tenant="acme"))
    from rag_assets.api.responses import Documents

    second = pages.build_next_call(Documents((), next="b"))
    assert second is not None
    assert second.parameters == {"after": "b", "limit": 100, "tenant": "acme"}
    assert pages.build_next_call(Documents((), next=None)) is None


@pytest.mark.parametrize("words", ["", " ", "x" * 20_001])
def test_an_invalid_question_is_refused_as_the_service_would(words: str) -> None:
    with pytest.raises(Invalid, match="422 The request is not valid: query: ") as refused:
        operations.query(words)
    assert refused.value.kind == "invalid-request"


def test_what_is_to_be_indexed_anew_is_one_thing() -> None:
    assert operations.reindex().body == {"scope": "tenant"}
    assert operations.reindex(source="files").body == {"scope": "source", "id": "files"}
    with pytest.raises(TypeError):
        operations.reindex(source="files", document="d")
