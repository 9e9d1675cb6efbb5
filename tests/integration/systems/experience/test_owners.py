"""A project belongs to the token that created it, or to its organization; others get 404."""

from __future__ import annotations

import time
import uuid
from typing import Any

import jwt
import pytest

from tests.integration.systems.experience.conftest import SECRET, Learning
from tests.integration.systems.experience.test_bad_input import FAILURE

ORGANIZATION = {"organization": "harbour"}


def send(learning: Learning, method: str, path: str, body: Any = None, **claims: Any) -> Any:
    given = {"sub": "stranger", "role": "orchestrator", "tenants": [learning.tenant]}
    token = jwt.encode({**given, "exp": int(time.time()) + 600, **claims}, SECRET)
    headers = {"Authorization": f"Bearer {token}"}
    return learning.client.request(method, f"/rag/experience{path}", json=body, headers=headers)


def without_id(answer: Any, *ids: str) -> tuple[int, str]:
    text = answer.text
    for id_ in ids:
        text = text.replace(id_, "ID")
    return answer.status_code, text.replace(answer.headers["x-request-id"], "REQUEST")


def entry(project: str, **changes: Any) -> dict[str, Any]:
    return {**FAILURE, "project_id": project, **changes}


def test_a_project_of_another_token_is_unknown(learning: Learning) -> None:
    project, absent = learning.project(), str(uuid.uuid4())
    learning.failure(project, "cosine 0.90 of the harbor", "Its steps.", external_id="one")
    for name, body in (
        ("/entries", entry),
        ("/checkpoints", lambda id_: {"checkpoint_type": "manual", "project_id": id_}),
    ):
        own, unknown = (send(learning, "POST", name, body(id_)) for id_ in (project, absent))
        assert own.status_code == 404
        assert without_id(own, project) == without_id(unknown, absent)
    renamed = send(learning, "PUT", f"/projects/{project}", {"name": "Mine", "state": "cancelled"})
    assert renamed.status_code == 404
    checkpoint = learning.checkpoint(project)
    hidden = send(learning, "GET", f"/checkpoints/{checkpoint}")
    assert without_id(hidden, checkpoint) == without_id(
        send(learning, "GET", f"/checkpoints/{absent}"), absent
    )
    assert learning.ok("GET", f"/checkpoints/{checkpoint}")["staged"] == 1
    assert learning.ok("PUT", f"/projects/{project}", {"name": "Harbor"})["state"] == "active"


def test_others_find_out_nothing_of_a_project_by_asking_in_its_name(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 of the only harbor", "Its steps.")
    learning.learned(project)
    question = {"failure_description": "x"}

    def found(project_id: str | None, **claims: Any) -> list[str]:
        body = question if project_id is None else {**question, "project_id": project_id}
        answer = send(learning, "POST", "/failure", body, **claims)
        assert answer.status_code == 200, answer.text
        return [pattern["id"] for pattern in answer.json()["patterns"]]

    assert found(project) == found(None) == found(str(uuid.uuid4())) != []
    assert found(project, sub="conductor") == []


def test_external_ids_of_others_are_free(learning: Learning) -> None:
    first = learning.project()
    learning.failure(first, "A failure of the first", "Its steps.", external_id="one")
    second = str(uuid.uuid4())
    assert send(learning, "PUT", f"/projects/{second}", {"name": "Second"}).status_code == 200
    other = send(learning, "POST", "/entries", entry(second, external_id="one"))
    assert other.status_code == 201
    again = send(learning, "POST", "/entries", entry(second, external_id="one"))
    assert (again.status_code, again.json()["id"]) == (200, other.json()["id"])
    changed = entry(second, external_id="one", solution_steps="Others.")
    assert send(learning, "POST", "/entries", changed).status_code == 409


def test_a_checkpoint_of_all_projects_is_of_the_callers(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "A failure that is staged", "Its steps.")
    own = str(uuid.uuid4())
    assert send(learning, "PUT", f"/projects/{own}", {"name": "Own"}).status_code == 200
    assert send(learning, "POST", "/entries", entry(own)).status_code == 201
    made = send(learning, "POST", "/checkpoints", {"checkpoint_type": "manual"}).json()
    assert made["staged"] == 1
    path = f"/checkpoints/{made['checkpoint_id']}"
    assert send(learning, "GET", path).json()["staged"] == 1
    assert send(learning, "GET", path, sub="conductor").status_code == 404
    assert send(learning, "GET", path, sub="anybody", role="admin").status_code == 200


def test_an_organization_shares_its_projects(learning: Learning) -> None:
    project = str(uuid.uuid4())
    made = send(learning, "PUT", f"/projects/{project}", {"name": "Pier"}, **ORGANIZATION)
    assert made.status_code == 200, made.text
    colleague = send(learning, "POST", "/entries", entry(project), sub="lee", **ORGANIZATION)
    assert colleague.status_code == 201
    for claims in ({}, {"organization": "quay"}):
        assert send(learning, "POST", "/entries", entry(project), **claims).status_code == 404


@pytest.mark.parametrize("role", ["admin", "orchestrator"])
def test_only_an_admin_hands_a_project_over(learning: Learning, role: str) -> None:
    project = learning.project()
    body = {"name": "Harbor", "owner": "jwt:stranger"}
    handed = send(learning, "PUT", f"/projects/{project}", body, sub="conductor", role=role)
    assert handed.status_code == (200 if role == "admin" else 403)
    theirs, former = (
        send(learning, "POST", "/entries", entry(project), sub=name).status_code
        for name in ("stranger", "conductor")
    )
    assert (theirs, former) == ((201, 404) if role == "admin" else (404, 201))


def test_a_project_that_an_admin_made_is_every_contributors(learning: Learning) -> None:
    project = str(uuid.uuid4())
    made = send(learning, "PUT", f"/projects/{project}", {"name": "Shared"}, role="admin")
    assert made.status_code == 200
    assert send(learning, "POST", "/entries", entry(project)).status_code == 201
