"""Experience of one project helps the next: over HTTP, with the daemon and the shipped model.

No change watcher runs, so only sensors notice checkpoints. No question uses the words of the
captured entries.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jwt
import pytest

from rag_assets.api.experience_responses import CheckpointProgress, CheckpointType, Pattern
from rag_assets.client import Client
from rag_assets.resources.tenant_lock import REASON_TAG
from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import Installation
from tests.panel_site import ENVIRONMENT, SECRET
from tests.security.service_process import started

TENANT = "lessons"
PROMISED_SECONDS = 60
"""From a checkpoint to its entries being found; other work may hold up one of several."""
pytestmark = pytest.mark.timeout(600)


@dataclass
class Orchestrator:
    """An orchestrator that asks and captures for one project after another."""

    client: Client
    daemon: Daemon
    latencies: list[float]

    def project(self, name: str) -> str:
        made = str(uuid.uuid4())
        self.client.put_project(made, name)
        return made

    def learned(self, project: str, kind: CheckpointType) -> CheckpointProgress:
        """Request a checkpoint, and return it when the daemon has completed it."""
        requested = self.client.request_checkpoint(kind, project_id=project)

        def progress() -> CheckpointProgress:
            return self.client.checkpoint(requested.checkpoint_id)

        seconds = wait_for(lambda: progress().state == "done", PATIENCE, "the checkpoint is done")
        self.latencies.append(seconds)
        return progress()


@pytest.fixture(scope="module")
def orchestrator(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Orchestrator]:
    source = {"name": "experience", "type": "experience"}
    shared_installation.add_tenant(
        TENANT, profile="experience", embedder={"provider": "local"}, sources=[source]
    )
    shared_installation.synced(TENANT)
    claims: dict[str, Any] = {"sub": "conductor", "tenants": [TENANT], "role": "orchestrator"}
    token = jwt.encode(claims | {"exp": int(time.time()) + 3_000}, SECRET)
    log = tmp_path_factory.mktemp("service") / "log"
    with (
        running_daemon(shared_installation, watched=False) as daemon,
        started(shared_installation, log, **ENVIRONMENT) as (_, port),
        Client(f"http://127.0.0.1:{port}", token) as client,
    ):
        yield Orchestrator(client, daemon, [])


def solutions(patterns: tuple[Pattern, ...]) -> list[str]:
    return [pattern.solution for pattern in patterns]


def test_projects_learn_from_each_other(orchestrator: Orchestrator) -> None:
    client = orchestrator.client
    first, second, third = (orchestrator.project(name) for name in ("Harbor", "Meadow", "Summit"))

    client.capture_experience(
        "failure_solution",
        first,
        agent_type="tester",
        technology="playwright",
        failure_description="The login test times out in CI, and passes on every laptop",
        error_message="TimeoutError: Timeout 30000ms exceeded.\nwaiting for selector #welcome",
        solution_steps="Wait for the response of /api/session before the click.",
        success_verified=True,
    )
    assert orchestrator.learned(first, "phase_completion").embedded == 1
    question = "Our sign-in check hangs on the build server but is green locally"
    answer = client.experience_for_failure(question, agent_type="tester", project_id=second)
    assert solutions(answer.patterns) == ["Wait for the response of /api/session before the click."]
    assert [str(project) for project in answer.patterns[0].projects] == [first]
    assert client.experience_for_failure(question, project_id=first).patterns == ()
    counts = client.experience_feedback(answer.query_id, answer.patterns[0].id, "helped")
    assert (counts.success_count, counts.failure_count) == (2, 0)

    client.capture_experience(
        "gate_rejection",
        second,
        gate_type="ux",
        human_feedback="The form asks for an address before it says what delivery costs",
        revision_approach="Show the price of delivery first, from the postal code alone.",
    )
    assert orchestrator.learned(second, "project_completion").embedded == 1
    found = client.experience_for_task("Design the checkout with its shipping fees", max_results=3)
    assert "Show the price of delivery first, from the postal code alone." in solutions(
        found.patterns
    )

    client.capture_experience(
        "gate_approval",
        second,
        gate_type="architecture",
        approved_approach="One queue for each kind of mail, with retries and a dead-letter queue.",
    )
    assert orchestrator.learned(second, "manual").embedded == 1
    context = client.experience_context(
        {"description": "Plan how notification e-mails are delivered reliably"},
        basic_context="You are an architect.",
        project_id=third,
    )
    assert context.context.startswith("You are an architect.\n\n[ORCHESTRATOR CONTEXT: ")
    assert "- Problem: Pass the architecture gate at the first attempt" in context.context
    assert "- Solution: One queue for each kind of mail" in context.context
    assert context.tokens <= 1_500

    assert min(orchestrator.latencies) <= PROMISED_SECONDS
    reasons = {run.dagster_run.tags.get(REASON_TAG) for run in orchestrator.daemon.runs(TENANT)}
    # Two sensors notice a checkpoint, and either may be first.
    assert reasons & {"a checkpoint is waiting", "source 'experience' changed"}
