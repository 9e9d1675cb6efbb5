"""The OpenAPI description of the endpoints of workspaces, checked with generated requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, SerializationContext
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation

from rag_assets.api.backend import Backend
from rag_assets.billing.chat_models import ChatModels
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from tests.installation import Installation
from tests.integration.api.conftest import running
from tests.integration.systems.workspace.site import SETTINGS, Site, workspace

pytestmark = pytest.mark.long

OPERATIONS = {
    ("PUT", "/rag/records/{source_type}/{source_id}"),
    ("DELETE", "/rag/records/{source_type}/{source_id}"),
    ("GET", "/rag/records/{source_type}/{source_id}"),
    ("POST", "/rag/records"),
    ("PUT", "/rag/records/file/{source_id}/content"),
    ("POST", "/rag/reconcile"),
    ("PUT", "/rag/tree/{uuid}"),
    ("DELETE", "/rag/tree/{uuid}"),
    ("GET", "/rag/access"),
    ("GET", "/rag/settings"),
    ("PATCH", "/rag/settings"),
    ("POST", "/rag/reindex"),
    ("GET", "/rag/status"),
}
BLOCK = {"block_id": "b", "type": "paragraph", "text": "Otters."}
VALID: dict[str, dict[str, Any]] = {
    "page": {"title": "Otters", "blocks": [BLOCK]},
    "block": {"page_uuid": "p", "block": BLOCK},
    "comment": {"page_uuid": "p", "text": "Why?"},
    "file": {"page_uuid": "p", "name": "notes.md"},
    "template": {"name": "Standup", "payload": {"ask": ["what"]}},
    "db_row": {"database_uuid": "d", "values": [{"name": "City", "value_text": "Tartu"}]},
}
CONFORMS = ("not_a_server_error", "status_code_conformance", "content_type_conformance")
NO_OTHER_REASON = {"/rag/tree/{uuid}", "/rag/access", "/rag/reindex"}
"""Paths below which what is not as described is refused for that alone."""


@schemathesis.serializer("application/x-ndjson", "application/octet-stream")
def _lines(_: SerializationContext, value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "described") as made:
        yield made


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Serve the same workspace over real connections; yield the address."""
    session = site.driver.session
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    chat_models = ChatModels(session.catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(session.catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    with running(backend) as address:
        yield address


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_answers_are_as_described(site: Site, address: str, mode: GenerationMode) -> None:
    load_all_checks()
    site.send("PATCH", "/rag/settings", {"enabled": True})
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [
        found
        for found in (all_operation.ok() for all_operation in schema.get_all_operations())
        if (found.method.upper(), found.path) in OPERATIONS
    ]
    assert len(operations) == len(OPERATIONS)
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and operation.path in {"/rag/settings", "/rag/status"}:
            continue  # an operation with only a tenant has no invalid request
        codes = _codes(site, operation, mode)
        if mode is GenerationMode.POSITIVE:
            assert codes & {200, 202}, operation.label


def _codes(site: Site, operation: APIOperation[Any, Any], mode: GenerationMode) -> set[int]:
    """Send requests that fit the description, or do not; return the status codes."""
    checks = [*CHECKS.get_by_names([*CONFORMS, "response_schema_conformance"])]
    if mode is GenerationMode.NEGATIVE and operation.path in NO_OTHER_REASON:
        checks += CHECKS.get_by_names(["negative_data_rejection"])
    answered: set[int] = set()

    @given(
        case=operation.as_strategy(generation_mode=mode).filter(_says_each_once),
        known=st.sampled_from([None, *VALID]),
    )
    @settings(
        max_examples=8,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    def holds(case: Case, known: str | None) -> None:
        if mode is GenerationMode.POSITIVE:
            _name_what_is_there(case, site, known)
        response = case.call(headers=site.headers())
        answered.add(response.status_code)
        case.validate_response(response, checks=checks)

    holds()
    return answered


def _name_what_is_there(case: Case, site: Site, known: str | None) -> None:
    """Ask for the only source, and for a valid record if one is known."""
    query = case.query if isinstance(case.query, dict) else {}
    for name in ("tenant", "source"):
        query.pop(name, None)
    if known is None:
        return
    if case.path == "/rag/records":
        case.body = json.dumps({"op": "put", "type": known, "id": "p", **VALID[known]}).encode()
    elif case.path == "/rag/reconcile":
        case.body = json.dumps({"type": known, "id": "p"}).encode()
    elif case.path == "/rag/reindex":
        case.body = {"scope": "workspace"}
    elif case.path.startswith("/rag/records/"):
        _name_a_record(case, site, known)


def _name_a_record(case: Case, site: Site, known: str) -> None:
    site.put("page", "p", VALID["page"])
    case.path_parameters["source_id"] = "p"
    if case.path.endswith("/content"):
        site.put("file", "p", VALID["file"])
        case.body = b"# Otters\n"
    elif case.method == "GET":
        site.put("template", "p", VALID["template"])
        case.path_parameters["source_type"] = "template"
    else:
        case.path_parameters |= {
            "source_type": known,
            "source_id": "b" if known == "block" else "p",
        }
        case.query = {"page_uuid": "p"} if case.method == "DELETE" else {}
        if case.method == "PUT":
            case.body = VALID[known]


def _says_each_once(case: Case) -> bool:
    """Return whether no parameter is repeated: the last value counts, and may be valid."""
    given = {k: v for k, v in dict(case.query or {}).items() if k != "principal"}
    return not any(isinstance(value, list) for value in given.values())
