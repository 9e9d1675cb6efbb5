"""The daemon with a fork server and a change watcher: what is faster, and what stays the same."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.resources.tenant_lock import WORKER_TAG
from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import FAST, Installation

pytestmark = pytest.mark.ci
SLOW = {"embedder": {"provider": "deterministic", "seconds_per_text": 2.0}}
"""An embedder like a slow provider's, so that a run lasts."""
SUCCESS = dg.DagsterRunStatus.SUCCESS
PROMISED_SECONDS = 60
"""From a change to searchable, by the daemon alone."""
TERMINATE = """mutation Terminate($id: String!) { terminateRun(runId: $id) {
    __typename ... on TerminateRunFailure { message }
} }"""


@pytest.fixture(scope="module")
def daemon(shared_installation: Installation) -> Iterator[Daemon]:
    with running_daemon(shared_installation, watched=True) as running:
        yield running


def test_a_saved_file_is_searchable_within_seconds(daemon: Daemon) -> None:
    folder = daemon.installation.add_tenant("quick", **FAST)
    page = folder / "page.md"
    page.write_text("# Page\n\nAt first.\n")
    daemon.searchable("quick", "At first")
    daemon.idle("quick")
    latencies = []
    for number in range(3):
        time.sleep(2)
        page.write_text(f"# Page\n\nEdit number {number}.\n")
        latencies.append(daemon.searchable("quick", f"Edit number {number}"))
    daemon.idle("quick")
    reasons = {run.dagster_run.tags["rag_assets/reason"] for run in daemon.runs("quick")}
    assert "source 'files' changed" in reasons
    assert min(latencies) <= PROMISED_SECONDS / 4
    assert {run.dagster_run.status for run in daemon.runs("quick")} == {SUCCESS}


def test_runs_are_forks_and_processes_of_the_code_server_where_none_can_be(daemon: Daemon) -> None:
    def launched() -> bool:
        record = daemon.ended(daemon.launch("prune"))
        assert record.dagster_run.status is SUCCESS
        return WORKER_TAG in record.dagster_run.tags

    assert launched(), "in a fork"
    server = daemon.installation.session().stack.fork_server
    found = server.process.find()
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    assert not launched(), "nobody answers, so the code server executes it"
    wait_for(server.answers, PATIENCE, "the fork server came back")
    wait_for(launched, PATIENCE, "runs are forks again")


def test_a_run_is_terminated_from_the_ui(daemon: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "endless"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number:04d}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    # Add the tenant after its files: a run over only the first few would end too soon.
    daemon.installation.add_tenant("endless", root=folder, **SLOW)

    def started() -> list[str]:
        runs = [record.dagster_run for record in daemon.runs("endless")]
        return [r.run_id for r in runs if r.status is dg.DagsterRunStatus.STARTED]

    terminated: list[str] = []

    def terminate() -> bool:
        # If a slice ends before it is terminated, the next one is terminated.
        for run_id in started():
            answer = daemon.graphql(TERMINATE, {"id": run_id})["terminateRun"]
            if answer["__typename"] == "TerminateRunSuccess":
                terminated.append(run_id)
        return bool(terminated)

    wait_for(terminate, PATIENCE, "a run was terminated")
    assert daemon.ended(terminated[0]).dagster_run.status is dg.DagsterRunStatus.CANCELED
    assert daemon.installation.cli("tenants", "disable", "endless").code == 0
    daemon.idle("endless")
    wait_for(lambda: not daemon.catalog.lock.is_held("endless"), PATIENCE, "the lock is free")
