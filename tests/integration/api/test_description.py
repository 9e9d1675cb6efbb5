"""The service conforms to its own OpenAPI description, whatever requests it receives."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, SerializationContext
from schemathesis.checks import positive_data_acceptance
from schemathesis.generation import GenerationMode

from rag_assets.common.times import parse_boundary
from tests.integration.api.conftest import Api

pytestmark = pytest.mark.long


@schemathesis.serializer("application/x-ndjson")
def _lines(_: SerializationContext, value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.mark.parametrize(
    "mode",
    [
        GenerationMode.POSITIVE,
        pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.nightly),
    ],
)
def test_answers_are_as_described(api: Api, address: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    member = {"Authorization": f"Bearer {api.token()}"}
    chief = api.token("chief", role="admin", organization="fuzzed")
    admin = {"Authorization": f"Bearer {chief}"}
    made = api.send("PUT", "/api/projects/fuzzed", {}, token=chief)
    assert made.status_code in {200, 201}
    operations = [all_operation.ok() for all_operation in schema.get_all_operations()]
    if mode is GenerationMode.NEGATIVE:  # an operation without parameters has no invalid request
        taken = ("/rag/", "/api/")
        operations = [found for found in operations if found.path.startswith(taken)]
    for operation in operations:
        fair = _says_each_once if mode is GenerationMode.NEGATIVE else _is_consistent

        @given(case=operation.as_strategy(generation_mode=mode).filter(fair))
        @settings(
            max_examples=6,
            derandomize=True,
            database=None,
            suppress_health_check=[*HealthCheck],
        )
        def holds(case: Case) -> None:
            below_api = case.path.startswith("/api/")
            if below_api and mode is GenerationMode.POSITIVE:
                _name_what_is_there(case)
            response = case.call(headers=admin if below_api else member)
            # A generated request may choose a provider without a key: then valid data may be
            # refused with a response of the described form.
            has_no_key = response.status_code == HTTPStatus.PAYMENT_REQUIRED
            unchecked = [positive_data_acceptance] if has_no_key else []
            case.validate_response(response, excluded_checks=unchecked)

        holds()
    paths = {operation.path for operation in operations}
    assert paths >= {"/rag/query", "/rag/documents", "/api/projects/{project_id}/guidelines"}


def _name_what_is_there(case: Case) -> None:
    """Put the token's own organization and project into the path: others get 404.

    Paths that test a key are left alone, because that calls the provider, and so are paths that
    replace an unknown text.
    """
    if case.path.endswith("/test") or (case.method == "PUT" and case.path.endswith("/text")):
        return
    for name in ("organization_id", "project_id"):
        if name in case.path_parameters:
            case.path_parameters[name] = "fuzzed"


def _says_each_once(case: Case) -> bool:
    """Return whether no parameter is repeated: the last value counts, and may be valid."""
    return not any(isinstance(value, list) for value in dict(case.query or {}).values())


def _is_consistent(case: Case) -> bool:
    """Return whether fields are consistent with each other, which OpenAPI cannot express."""
    body = case.body if isinstance(case.body, dict) else {}
    filters = body.get("filters") or {}
    after, before = filters.get("modified_after"), filters.get("modified_before")
    if after and before and parse_boundary(after) >= parse_boundary(before):
        return False
    names = {body.get("id"), body.get("tenant")} - {None}
    return body.get("scope") != "workspace" or len(names) < 2


def test_the_description_is_openapi_3_1_and_names_the_problems(api: Api) -> None:
    description = api.client.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    assert "caller" not in description["components"]["schemas"]["QueryRequest"]["properties"]
    query = description["paths"]["/rag/query"]["post"]
    assert query["security"]
    assert set(query["responses"]["402"]["content"]) == {"application/problem+json"}
