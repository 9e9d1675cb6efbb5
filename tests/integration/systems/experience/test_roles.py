"""Roles in a tenant of experience: orchestrators ask, admins manage, members do neither."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.integration.systems.experience.conftest import Learning

ID = str(uuid.UUID(int=1, version=4))
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("/task", {"task_description": "a"}),
    ("/failure", {"failure_description": "a"}),
    ("/context", {"task": {"description": "a"}}),
]
MANAGED: list[tuple[str, str, Any]] = [
    ("GET", "/patterns", None),
    ("GET", f"/patterns/{ID}", None),
    ("POST", f"/patterns/{ID}/merge", {"into": ID}),
    ("POST", f"/patterns/{ID}/split", {"entry_id": ID}),
    ("DELETE", f"/entries/{ID}", None),
    ("POST", "/retract", {"project_id": ID}),
    ("GET", "/report", None),
]
CAPTURED: list[tuple[str, str, Any]] = [
    ("PUT", f"/projects/{ID}", {"name": "x"}),
    ("POST", "/entries", {"entry_type": "gate_approval", "project_id": ID}),
    ("POST", "/checkpoints", {"checkpoint_type": "manual"}),
    ("GET", f"/checkpoints/{ID}", None),
    ("POST", "/feedback", {"query_id": ID, "pattern_id": ID, "outcome": "helped"}),
]


@pytest.mark.parametrize("role", ["member", "admin", "guest"])
@pytest.mark.parametrize(("path", "body"), QUESTIONS)
def test_only_an_orchestrator_asks(
    learning: Learning, role: str, path: str, body: dict[str, Any]
) -> None:
    assert learning.send("POST", path, body, role=role).status_code == 403
    assert learning.send("POST", path, body).status_code == 200


@pytest.mark.parametrize("role", ["member", "admin", "guest"])
def test_the_tenants_entries_are_reached_by_no_other_door(learning: Learning, role: str) -> None:
    headers, client = learning.headers(role), learning.client
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    answers = [
        client.post("/rag/query", json={"query": "a"}, headers=headers),
        client.post("/rag/answer", json={"query": "a"}, headers=headers),
        client.get("/rag/documents", headers=headers),
        client.post("/mcp", json=message, headers=headers | accept),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    found = client.post("/rag/query", json={"query": "a"}, headers=learning.headers("orchestrator"))
    assert found.status_code == 200


@pytest.mark.parametrize(("method", "path", "body"), MANAGED)
def test_only_an_admin_manages(learning: Learning, method: str, path: str, body: Any) -> None:
    for role in ("member", "orchestrator", "guest"):
        assert learning.send(method, path, body, role=role).status_code == 403
    assert learning.send(method, path, body, role="admin").status_code != 403


@pytest.mark.parametrize(("method", "path", "body"), CAPTURED)
def test_a_member_contributes_nothing(
    learning: Learning, method: str, path: str, body: Any
) -> None:
    for role in ("member", "guest"):
        assert learning.send(method, path, body, role=role).status_code == 403
    for role in ("orchestrator", "admin"):
        assert learning.send(method, path, body, role=role).status_code != 403


def test_an_orchestrator_has_tools_of_its_own(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 of a tool", "Its steps.")
    learning.learned(project)

    def call(method: str, **params: Any) -> dict[str, Any]:
        answer = learning.client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            headers=learning.headers("orchestrator")
            | {"Accept": "application/json, text/event-stream"},
        )
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    names = {tool["name"] for tool in call("tools/list")["tools"]}
    steps = ("for_task", "for_failure", "capture", "feedback")
    steps += ("project", "checkpoint", "checkpoint_progress", "context")
    ours = {f"experience_{name}" for name in steps}
    assert ours < names

    def text(name: str, **arguments: Any) -> Any:
        result = call("tools/call", name=name, arguments=arguments)
        assert not result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    answer = text("experience_for_failure", failure_description="x")
    [pattern] = answer["patterns"]
    assert pattern["solution"] == "Its steps."
    given = text(
        "experience_feedback",
        query_id=answer["query_id"],
        pattern_id=pattern["id"],
        outcome="helped",
    )
    assert given == {"pattern_id": pattern["id"], "success_count": 2, "failure_count": 0}
    captured = text(
        "experience_capture",
        entry_type="gate_approval",
        project_id=project,
        gate_type="ux",
        approved_approach="One column.",
    )
    assert captured["staged"]
    refused = call(
        "tools/call",
        name="experience_capture",
        arguments={"entry_type": "gate_approval", "project_id": project},
    )
    assert refused["isError"]
    assert "gate_type" in refused["content"][0]["text"]
