"""`sync --all` with a fork server: tenants in parallel, each as if it were synced alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.cli.sync_lanes import split_tenants
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import PROCESS_TAG
from tests.installation import FAST, Installation

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs pidfd")

TENANTS = [f"team-{number}" for number in range(12)]
PATIENCE = 120


@pytest.fixture(scope="module")
def forking(shared_installation: Installation) -> Iterator[Installation]:
    """Start an installation whose commands are forks."""
    os.environ["RAG_ASSETS_FORK_SERVER"] = "1"
    server = shared_installation.session().stack.fork_server
    server.start()
    try:
        yield shared_installation
    finally:
        server.process.stop()
        os.environ["RAG_ASSETS_FORK_SERVER"] = "0"


def write(path: Path, text: str) -> None:
    """Write a file with an old modification time: a recently saved file would be read once more."""
    path.write_text(text)
    os.utime(path, (1_600_000_000, 1_600_000_000))


def runs_of(installation: Installation, tenant_id: str) -> list[dg.DagsterRun]:
    wanted = dg.RunsFilter(tags={PARTITION_TAG: tenant_id}, job_name="sync_tenant")
    return list(installation.session().instance.get_runs(wanted))


def test_tenants_are_synced_side_by_side(forking: Installation) -> None:
    for number, tenant_id in enumerate(TENANTS):
        folder = forking.add_tenant(tenant_id, **FAST)
        for file in range(number + 1):
            write(folder / f"{file}.md", f"# Page\n\nPage {file} of {tenant_id}.\n")
    broken = forking.add_tenant("broken", **FAST)
    broken.rmdir()

    synced = forking.cli("sync", "--all", "--json")
    results = {result["tenant"]: result for result in json.loads(synced.out)["tenants"]}
    assert set(results) == {*TENANTS, "broken"}
    assert synced.code == 1
    assert "broken" in results["broken"]["error"]["message"] or results["broken"]["error"]["hint"]
    for number, tenant_id in enumerate(TENANTS):
        result = results[tenant_id]
        assert result["error"] is None
        assert result["stages"]["search_index"]["upserted"] == number + 1
        [run] = runs_of(forking, tenant_id)
        assert result["runs"] == [run.run_id]
        [hit] = forking.search(tenant_id, f"Page {number} of {tenant_id}", mode="text", top_k=1)
        assert hit.text.endswith(f"Page {number} of {tenant_id}.")
    processes = {runs_of(forking, tenant_id)[0].tags[PROCESS_TAG] for tenant_id in TENANTS}
    assert len(processes) > 1, "in several processes"

    parts = split_tenants([*TENANTS, "broken"], len(os.sched_getaffinity(0)))
    assert len(processes) <= len(list(parts)), "a fork syncs its tenants itself"

    forking.configure("broken", sources=None)
    again = json.loads(forking.cli("sync", *TENANTS, "--json").out)
    assert all(result["nothing_to_do"] for result in again["tenants"])


def test_the_printed_result_is_that_of_one_process(forking: Installation) -> None:
    for tenant_id in TENANTS[:3]:
        folder = forking.home.parent / "sources" / tenant_id
        write(folder / "more.md", f"# More\n\nMore of {tenant_id}.\n")
    printed = forking.cli("sync", *TENANTS[:3])
    assert printed.code == 0
    for tenant_id in TENANTS[:3]:
        assert f"{tenant_id}: 1 run, " in printed.out
    for line in printed.err.splitlines():
        assert line.startswith("  team-"), "progress names the tenant"
    assert printed.out.count("upserted 1  deleted 0") == 3


def test_a_tenant_that_alone_has_work_reports_it(forking: Installation) -> None:
    write(forking.home.parent / "sources" / TENANTS[0] / "last.md", "# Last\n\nWork.\n")
    results = json.loads(forking.cli("sync", *TENANTS, "--json").out)["tenants"]
    assert [result["nothing_to_do"] for result in results] == [False] + [True] * (len(TENANTS) - 1)
    assert results[0]["stages"]["search_index"]["upserted"] == 1


def test_ctrl_c_ends_all_of_them(forking: Installation) -> None:
    slow = {"embedder": {"provider": "deterministic", "seconds_per_text": 2.0}}
    for name in ("slow-1", "slow-2"):
        folder = forking.add_tenant(name, **slow)
        for file in range(30):
            write(folder / f"{file}.md", f"# Page\n\nSlow page {file} of {name}.\n")
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it
    try:
        command = subprocess.Popen(
            [sys.executable, "-m", "rag_assets.cli", "sync", "slow-1", "slow-2"],
            env={**os.environ, **forking.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with command:
        catalog = forking.session().catalog
        deadline = time.monotonic() + PATIENCE
        while not all(catalog.lock.is_held(name) for name in ("slow-1", "slow-2")):
            assert time.monotonic() < deadline, "both tenants are synced at once"
            assert command.poll() is None
            time.sleep(0.1)
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE) == 130
    for name in ("slow-1", "slow-2"):
        assert not catalog.lock.is_held(name)
        [run] = runs_of(forking, name)
        assert run.is_finished
        assert run.status is not dg.DagsterRunStatus.SUCCESS
