"""Bad input is refused with the name of the wrong field, and nothing of it is stored."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from rag_assets.systems.experience.tables import knowledge_staging
from tests.installation import FAST, Installation
from tests.integration.systems.experience.conftest import Learning

FAILURE: dict[str, Any] = {
    "entry_type": "failure_solution",
    "agent_type": "tester",
    "failure_description": "It fails",
    "solution_steps": "Mend it.",
    "success_verified": True,
}
REJECTION = {
    "entry_type": "gate_rejection",
    "gate_type": "ux",
    "human_feedback": "No.",
    "revision_approach": "Yes.",
}


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (FAILURE | {"gate_type": "ux"}, "gate_type"),
        (FAILURE | {"approved_approach": "x"}, "approved_approach"),
        (FAILURE | {"agent_type": None}, "agent_type"),
        (FAILURE | {"failure_description": None}, "failure_description"),
        (FAILURE | {"failure_description": " "}, "failure_description"),
        (FAILURE | {"agent_type": "a" * 101}, "agent_type"),
        (FAILURE | {"error_message": "e" * 20_001}, "error_message"),
        (FAILURE | {"error_message": "zero \x00 byte"}, "error_message"),
        (FAILURE | {"entry_type": "other"}, "entry_type"),
        (FAILURE | {"project_id": "no uuid"}, "project_id"),
        (FAILURE | {"unknown": 1}, "there is no such field"),
        (REJECTION | {"gate_type": None}, "gate_type"),
        (REJECTION | {"gate_type": "g" * 51}, "gate_type"),
        (REJECTION | {"revision_approach": None}, "revision_approach"),
        (REJECTION | {"human_feedback": None}, "human_feedback"),
        (REJECTION | {"solution_steps": "x"}, "solution_steps"),
        (REJECTION | {"success_verified": True}, "success_verified"),
        ({"entry_type": "gate_approval", "gate_type": "ux"}, "approved_approach"),
    ],
)
def test_an_entry_is_refused_by_its_field(
    learning: Learning, entry: dict[str, Any], field: str
) -> None:
    body = {"project_id": learning.project(), **entry}
    given = {name: value for name, value in body.items() if value is not None}
    answer = learning.send("POST", "/entries", given)
    assert answer.status_code == 422, answer.text
    assert field in answer.text
    assert learning.ok("POST", "/checkpoints", {"checkpoint_type": "manual"})["staged"] == 0


@pytest.mark.parametrize(
    "change", [{"solution_steps": None}, {"success_verified": None}, {"success_verified": False}]
)
def test_what_was_not_verified_is_not_kept(learning: Learning, change: dict[str, Any]) -> None:
    body = {"project_id": learning.project(), **FAILURE, **change}
    given = {name: value for name, value in body.items() if value is not None}
    answer = learning.send("POST", "/entries", given)
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("not-verified")


def test_what_is_not_there_is_404(learning: Learning) -> None:
    absent = str(uuid.uuid4())
    answers = [
        learning.send("POST", "/entries", FAILURE | {"project_id": absent}),
        learning.send(
            "POST", "/checkpoints", {"checkpoint_type": "cancellation", "project_id": absent}
        ),
        learning.send("GET", f"/checkpoints/{absent}"),
        learning.send("GET", f"/patterns/{absent}", role="admin"),
        learning.send("POST", f"/patterns/{absent}/merge", {"into": absent[::-1]}, role="admin"),
        learning.send("DELETE", f"/entries/{absent}", role="admin"),
    ]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 404, 422, 404]


def test_a_checkpoint_of_a_phase_is_of_one_project(learning: Learning) -> None:
    answer = learning.send("POST", "/checkpoints", {"checkpoint_type": "phase_completion"})
    assert answer.status_code == 422
    assert "project_id" in answer.text


def test_a_retraction_names_a_project_or_a_token(learning: Learning) -> None:
    for body in ({}, {"project_id": str(uuid.uuid4()), "token": "x"}):
        assert learning.send("POST", "/retract", body, role="admin").status_code == 422


def test_a_tenant_of_another_profile_has_no_experience(
    learning: Learning, installed: Installation
) -> None:
    installed.add_tenant(f"{learning.tenant}x", **FAST)
    learning.driver.sync(f"{learning.tenant}x")
    other = Learning(learning.client, learning.driver, f"{learning.tenant}x")
    answer = other.send("POST", "/task", {"task_description": "a"})
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("no-experience")


def test_a_disabled_tenant_answers_that_it_is(learning: Learning, installed: Installation) -> None:
    project = learning.project()
    installed.configure(learning.tenant, enabled=False)
    session = learning.driver.session
    session.reconcile()
    answer = learning.ok("POST", "/task", {"task_description": "a"})
    assert answer == {
        "query_id": None,
        "threshold": None,
        "patterns": [],
        "disabled": True,
        "warnings": [],
    }
    # Entries captured meanwhile are staged.
    learning.failure(project, "cosine 0.9", "Steps.")


@pytest.mark.parametrize(
    "columns",
    [
        {"entry_type": "failure_solution", "gate_type": "ux"},
        {"entry_type": "gate_rejection", "failure_description": "It fails"},
        {"entry_type": "gate_approval", "failure_description": "It fails"},
        {"entry_type": "another", "failure_description": "It fails", "gate_type": "ux"},
    ],
)
def test_postgres_refuses_a_row_without_what_its_type_requires(
    learning: Learning, columns: dict[str, str]
) -> None:
    row = {"tenant": learning.tenant, "agent_type": "tester"} | columns
    database = learning.driver.session.catalog.database
    with (
        pytest.raises(IntegrityError, match="ck_knowledge_staging_entry_type"),
        database.begin() as connection,
    ):
        connection.execute(insert(knowledge_staging).values(row))


def test_postgres_has_the_described_indexes_of_staged_entries(learning: Learning) -> None:
    query = "SELECT indexdef FROM pg_indexes WHERE tablename = 'knowledge_staging'"
    with psycopg.connect(learning.driver.session.endpoints.database_url) as connection:
        definitions = [row[0] for row in connection.execute(query)]
    for columns in ("(tenant, project_id)", "(tenant, embedded)"):
        assert any(definition.endswith(columns) for definition in definitions)
