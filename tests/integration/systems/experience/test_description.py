"""The OpenAPI description of the endpoints of experience, checked with generated requests."""

from __future__ import annotations

from http import HTTPStatus

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from rag_assets.api.guard import MAX_BODY_BYTES
from tests.integration.systems.experience.conftest import Learning

pytestmark = pytest.mark.long

BELOW = "/rag/experience"


@pytest.mark.parametrize("role", ["orchestrator", "admin"])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_answers_are_as_described(
    learning: Learning, address: str, role: str, mode: GenerationMode
) -> None:
    project = learning.project()
    entry = learning.failure(project, "cosine 0.90", "Steps.")
    learning.learned(project)
    load_all_checks()
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    found = [all_operation.ok() for all_operation in schema.get_all_operations()]
    operations = [operation for operation in found if operation.path.startswith(BELOW)]
    assert {operation.path for operation in operations} >= {f"{BELOW}/entries", f"{BELOW}/context"}
    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=6,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        )
        def holds(case: Case) -> None:
            if mode is GenerationMode.POSITIVE:
                _name_what_is_there(case, project, entry)
            # Empty values are not sent, so the rest may be a valid request.
            is_whole = all(map(_is_sent, (case.query or {}).values()))
            response = case.call(headers=learning.headers(role))
            is_large = response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            if is_large:  # the check does not know 413: a refused request must be too large
                assert len(response.request.body or b"") > MAX_BODY_BYTES
            left_out = (
                []
                if is_whole and not is_large
                else CHECKS.get_by_names(["negative_data_rejection"])
            )
            case.validate_response(response, excluded_checks=[*left_out])

        holds()


def _is_sent(value: object) -> bool:
    """Return whether a client sends a query parameter with this value."""
    values = value if isinstance(value, list) else [value]
    return value != {} and any(one is not None for one in values)


def _name_what_is_there(case: Case, project: str, entry: str) -> None:
    """Ask about the existing project and entry."""
    known = {"project_id": project, "pattern_id": entry, "entry_id": entry}
    body = case.body if isinstance(case.body, dict) else {}
    for name, value in known.items():
        if body.get(name):
            body[name] = value
        if name in case.path_parameters and case.method != "DELETE":
            case.path_parameters[name] = value
