"""The service keeps to its own OpenAPI description, whatever it is sent."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case

from tests.integration.service.conftest import Door


@pytest.fixture
def described(door: Door) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", door.client.app)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[*HealthCheck],
)
def test_answers_are_as_described(door: Door, case: Case) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {door.token()}"})


def test_the_description_is_openapi_3_1_and_names_the_problems(door: Door) -> None:
    description = door.client.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    assert "caller" not in description["components"]["schemas"]["QueryRequest"]["properties"]
    query = description["paths"]["/rag/query"]["post"]
    assert query["security"]
    assert set(query["responses"]["402"]["content"]) == {"application/problem+json"}
