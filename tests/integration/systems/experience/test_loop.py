"""The loop of an orchestrator is complete in every interface: HTTP, MCP and the command line."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest

from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning


class Interface(ABC):
    """An interface for the loop; each step returns the interface's answer."""

    def __init__(self, learning: Learning, installed: Installation, folder: Path) -> None:
        self.learning, self.installed, self.folder = learning, installed, folder

    @abstractmethod
    def project(self, project: str) -> dict[str, Any]: ...
    @abstractmethod
    def capture(self, entry: dict[str, Any]) -> dict[str, Any]: ...
    @abstractmethod
    def checkpoint(self, project: str) -> dict[str, Any]: ...
    @abstractmethod
    def progress(self, checkpoint: str) -> dict[str, Any]: ...
    @abstractmethod
    def task(self, description: str) -> dict[str, Any]: ...
    @abstractmethod
    def failure(self, description: str) -> dict[str, Any]: ...
    @abstractmethod
    def context(self, description: str, basic: str) -> dict[str, Any]: ...
    @abstractmethod
    def feedback(self, query: str, pattern: str) -> dict[str, Any]: ...


class Http(Interface):
    def _ok(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = self.learning.ok(method, path, body)
        return found

    def project(self, project: str) -> dict[str, Any]:
        return self._ok("PUT", f"/projects/{project}", {"name": "Harbor"})

    def capture(self, entry: dict[str, Any]) -> dict[str, Any]:
        return self._ok("POST", "/entries", entry)

    def checkpoint(self, project: str) -> dict[str, Any]:
        body = {"checkpoint_type": "phase_completion", "project_id": project}
        return self._ok("POST", "/checkpoints", body)

    def progress(self, checkpoint: str) -> dict[str, Any]:
        return self._ok("GET", f"/checkpoints/{checkpoint}")

    def task(self, description: str) -> dict[str, Any]:
        return self._ok("POST", "/task", {"task_description": description})

    def failure(self, description: str) -> dict[str, Any]:
        return self._ok("POST", "/failure", {"failure_description": description})

    def context(self, description: str, basic: str) -> dict[str, Any]:
        body = {"task": {"description": description}, "basic_context": basic}
        return self._ok("POST", "/context", body)

    def feedback(self, query: str, pattern: str) -> dict[str, Any]:
        body = {"query_id": query, "pattern_id": pattern, "outcome": "helped"}
        return self._ok("POST", "/feedback", body)


class Mcp(Interface):
    def _tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        called = {"name": f"experience_{name}", "arguments": arguments}
        answer = self.learning.client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called},
            headers=self.learning.headers("orchestrator")
            | {"Accept": "application/json, text/event-stream"},
        )
        result = answer.json()["result"]
        assert not result.get("isError"), result
        found: dict[str, Any] = json.loads(result["content"][0]["text"])
        return found

    def project(self, project: str) -> dict[str, Any]:
        return self._tool("project", project_id=project, name="Harbor")

    def capture(self, entry: dict[str, Any]) -> dict[str, Any]:
        return self._tool("capture", **entry)

    def checkpoint(self, project: str) -> dict[str, Any]:
        arguments = {"checkpoint_type": "phase_completion", "project_id": project}
        return self._tool("checkpoint", **arguments)

    def progress(self, checkpoint: str) -> dict[str, Any]:
        return self._tool("checkpoint_progress", checkpoint_id=checkpoint)

    def task(self, description: str) -> dict[str, Any]:
        return self._tool("for_task", task_description=description)

    def failure(self, description: str) -> dict[str, Any]:
        return self._tool("for_failure", failure_description=description)

    def context(self, description: str, basic: str) -> dict[str, Any]:
        return self._tool("context", task_description=description, basic_context=basic)

    def feedback(self, query: str, pattern: str) -> dict[str, Any]:
        return self._tool("feedback", query_id=query, pattern_id=pattern, outcome="helped")


class CommandLine(Interface):
    def _run(self, command: str, *arguments: str) -> dict[str, Any]:
        options = ("experience", command, self.learning.tenant, *arguments, "--json")
        result = self.installed.command(*options)
        assert result.code == 0, result.err
        found: dict[str, Any] = json.loads(result.out)
        return found

    def project(self, project: str) -> dict[str, Any]:
        return self._run("project", project, "--name", "Harbor")

    def capture(self, entry: dict[str, Any]) -> dict[str, Any]:
        file = self.folder / "entries.jsonl"
        file.write_text(json.dumps(entry))
        [captured] = self._run("capture", str(file))["entries"]
        return dict(captured)

    def checkpoint(self, project: str) -> dict[str, Any]:
        return self._run("checkpoint", "--project", project, "--type", "phase_completion")

    def progress(self, checkpoint: str) -> dict[str, Any]:
        return self._run("checkpoints", checkpoint)

    def task(self, description: str) -> dict[str, Any]:
        return self._run("task", description)

    def failure(self, description: str) -> dict[str, Any]:
        return self._run("failure", description)

    def context(self, description: str, basic: str) -> dict[str, Any]:
        file = self.folder / "basic.txt"
        file.write_text(basic)
        return self._run("context", description, "--basic", str(file))

    def feedback(self, query: str, pattern: str) -> dict[str, Any]:
        return self._run("feedback", query, pattern, "helped")


def walked(interface: Interface) -> dict[str, dict[str, Any]]:
    """Run one loop in which an entry helps twice; return the answers."""
    project = str(uuid.uuid4())
    entry = {
        "entry_type": "failure_solution",
        "project_id": project,
        "agent_type": "tester",
        "failure_description": "cosine 0.90 the login test hangs",
        "solution_steps": "Wait for the response.",
        "success_verified": True,
        "about": [{"path": "tests/login.py"}],
    }
    answers = {"project": interface.project(project), "capture": interface.capture(entry)}
    answers["checkpoint"] = interface.checkpoint(project)
    interface.learning.driver.sync(interface.learning.tenant)
    answers["progress"] = interface.progress(answers["checkpoint"]["checkpoint_id"])
    answers["task"] = interface.task("write a login test")
    answers["failure"] = interface.failure("the login test stops")
    answers["context"] = interface.context("write a login test", "You are a tester.")
    for asked in ("failure", "context"):
        [pattern] = answers[asked]["patterns"]
        answers[f"feedback on {asked}"] = interface.feedback(
            answers[asked]["query_id"], pattern["id"]
        )
    return answers


@pytest.mark.parametrize("kind", [Http, Mcp, CommandLine])
def test_the_whole_loop_goes_over_one_interface(
    learning: Learning, installed: Installation, tmp_path: Path, kind: type[Interface]
) -> None:
    answers = walked(kind(learning, installed, tmp_path))
    assert answers["project"]["name"] == "Harbor"
    assert answers["project"]["state"] == "active"
    captured = answers["capture"]
    assert (captured["quality"], captured["staged"], list(captured["masked"])) == ("HIGH", True, [])
    assert answers["checkpoint"]["staged"] == 1
    progress = answers["progress"]
    assert (progress["state"], progress["embedded"], progress["failed"]) == ("done", 1, 0)
    for asked in ("task", "failure", "context"):
        [pattern] = answers[asked]["patterns"]
        assert pattern["id"] == captured["id"]
        assert pattern["solution"] == "Wait for the response."
        assert pattern["score"] == pytest.approx(0.9, abs=0.01)
    context = answers["context"]
    assert context["context"].startswith("You are a tester.\n\n[ORCHESTRATOR CONTEXT:")
    assert context["tokens"] > 0
    assert answers["feedback on failure"] == {
        "pattern_id": captured["id"],
        "success_count": 2,
        "failure_count": 0,
    }
    assert answers["feedback on context"]["success_count"] == 3


def test_a_wrong_id_is_named_by_a_tool(
    learning: Learning, installed: Installation, tmp_path: Path
) -> None:
    tools = Mcp(learning, installed, tmp_path)
    with pytest.raises(AssertionError, match="project_id: not a valid UUID"):
        tools.project("harbor")
    with pytest.raises(AssertionError, match="checkpoint_id: not a valid UUID"):
        tools.progress("1")


def test_the_command_line_shows_texts_and_asks_before_it_merges_different_problems(
    learning: Learning, installed: Installation
) -> None:
    project = learning.project()
    one = learning.failure(project, "cosine 0.90 the import stops", "Retry it.")
    two = learning.failure(project, "cosine 0.91 the page is blank", "Clear the cache.")
    learning.learned(project)
    merge = ("experience", "merge", learning.tenant, one, two)
    refused = installed.command(*merge)
    assert refused.code != 0
    assert "--yes" in refused.err
    for text in ("the import stops", "Retry it.", "the page is blank", "Clear the cache."):
        assert text in refused.out

    merged = installed.command(*merge, "--yes")
    assert merged.code == 0, merged.err
    assert "the import stops" in merged.out
    shown = installed.command("experience", "patterns", learning.tenant, two)
    assert shown.out.count("the import stops") == 2
    split = installed.command("experience", "split", learning.tenant, two, one)
    assert "the import stops" in split.out
    assert "blank" not in split.out
    wanted = ("--order", "use", "--search", "BLANK page")
    found = installed.command("experience", "patterns", learning.tenant, *wanted, "--json")
    assert [pattern["id"] for pattern in json.loads(found.out)["patterns"]] == [two]
