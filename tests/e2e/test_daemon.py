"""The daemon's reactions to changes of files, of tenants.yaml and of servers.

No change watcher runs, so the daemon's sensors find all changes. Its runs are forks, which take a
tenth of the time; test_forks.py tests runs as processes of the code server.

The tests never call what the daemon should do itself. One daemon serves the module. Slow reactions
(backing off, repairing) are started by a fixture and verified by the last tests.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import Table, update

from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tables import documents, syncs
from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import FAST, Installation

SLOW = {"embedder": {"provider": "deterministic", "seconds_per_text": 0.2}}
"""An embedder like a provider's: 500 texts take it some 25 s."""
pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]
SUCCESS, FAILURE = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE
PROMISED_SECONDS = 60
"""From a change to searchable; other work of the machine may hold up one of several changes."""
ASSETS = ("raw_documents", "parsed_text", "chunks", "embeddings", "search_index")


@pytest.fixture(scope="module")
def trouble(shared_installation: Installation) -> dict[str, Path]:
    """Add tenants with problems that the daemon must solve while the other tests run."""
    installation = shared_installation
    folders = {name: installation.add_tenant(name, **FAST) for name in ("broken", "drifting")}
    folders["expiring"] = installation.add_tenant("expiring", retention_days=7, **FAST)
    for name, folder in folders.items():
        (folder / "page.md").write_text(f"# Page\n\nThe words of {name}.\n")
        installation.synced(name)
    # Delete an entry without the knowledge of the project.
    ctx = installation.context("drifting")
    serving = ctx.catalog.generations.serving("drifting")
    assert serving is not None
    ctx.store.entries.delete(serving.index_name, "drifting", list(installation.entries("drifting")))
    # Let eight days pass.
    past = datetime.now(UTC) - timedelta(days=8)
    _update(ctx.catalog, documents, "expiring", embedded_at=past)
    # Make the lake unreadable: a file replaces its folder.
    lake = _lake(installation)
    lake.rename(lake.with_name("broken.away"))
    lake.write_text("")
    (folders["broken"] / "page.md").write_text("# Page\n\nEdited while the lake is away.\n")
    return folders


@pytest.fixture(scope="module")
def daemon(shared_installation: Installation, trouble: dict[str, Path]) -> Iterator[Daemon]:
    with running_daemon(shared_installation, watched=False) as running:
        running.launch("detect_drift")
        yield running


def test_changes_are_followed(daemon: Daemon) -> None:
    installation = daemon.installation
    folder = installation.add_tenant("team", **FAST)
    page = folder / "page.md"
    page.write_text("# Page\n\nThe first version.\n")
    latencies = [daemon.searchable("team", "first version")]
    partitions = daemon.instance.get_dynamic_partitions("rag_assets_tenants")
    assert "team" in partitions, "tenants.yaml was all that changed"

    page.write_text("# Page\n\nThe second version.\n")
    (folder / "other.md").write_text("# Other\n\nAnother page.\n")
    latencies.append(daemon.searchable("team", "second version"))
    assert daemon.finds("team", "Another page")
    assert not daemon.finds("team", "first version")

    page.write_text("# Page\n\nThe first version.\n")
    (folder / "other.md").unlink()
    latencies.append(daemon.searchable("team", "first version"))
    daemon.gone("team", "Another page", within=5)
    assert not daemon.finds("team", "second version")
    daemon.idle("team")
    assert min(latencies) <= PROMISED_SECONDS
    assert {run.dagster_run.status for run in daemon.runs("team")} == {SUCCESS}


def test_documents_of_an_emptied_folder_are_kept_without_further_runs(daemon: Daemon) -> None:
    folder = daemon.installation.add_tenant("emptied", **FAST)
    (folder / "page.md").write_text("# Page\n\nIts disk is not mounted.\n")
    daemon.searchable("emptied", "disk is not mounted")
    (folder / "page.md").unlink()
    held = daemon.catalog.syncs.list_held
    wait_for(lambda: bool(held("emptied")), PATIENCE, "the deletion is held back")
    daemon.idle("emptied")
    before = len(daemon.runs("emptied"))
    daemon.ended(daemon.launch("prune"))  # let some ticks pass
    assert len(daemon.runs("emptied")) == before, "nothing loops"
    assert daemon.finds("emptied", "disk is not mounted")


def test_edits_overtake_an_import_and_outlive_its_process(daemon: Daemon) -> None:
    installation = daemon.installation
    folder = installation.add_tenant("importing", **SLOW)
    for number in range(2_000):
        (folder / f"{number:04d}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    # Without a fork, the killed process is the one that writes.
    command = installation.start("sync", "importing", RAG_ASSETS_FORK_SERVER="0")
    wait_for(lambda: _count(daemon, "importing", "READY") > 0, PATIENCE, "documents are ready")
    _edit(daemon, folder, "READY", "an indexed page, edited")
    _edit(daemon, folder, "PROCESSING", "a waiting page, edited")
    daemon.searchable("importing", "an indexed page, edited")
    daemon.searchable("importing", "a waiting page, edited")
    assert _count(daemon, "importing", "PROCESSING") > 0, "bulk still waits"

    orphan = _kill_in_a_run(daemon, "importing", command)
    _edit(daemon, folder, "READY", "edited after the kill")
    daemon.searchable("importing", "edited after the kill")
    assert daemon.record(orphan).dagster_run.status is FAILURE
    assert _count(daemon, "importing", "PROCESSING") > 0, "bulk still waits"

    assert installation.cli("tenants", "disable", "importing").code == 0
    daemon.idle("importing")
    before = len(daemon.runs("importing"))
    (folder / "late.md").write_text("# Late\n\nNobody reads this.\n")
    daemon.ended(daemon.launch("prune"))  # let some ticks pass
    assert len(daemon.runs("importing")) == before, "a disabled tenant gets no run"


def test_materializing_a_partition_in_the_ui_does_what_sync_does(daemon: Daemon) -> None:
    folder = daemon.installation.add_tenant("ui", **FAST)
    (folder / "page.md").write_text("# Page\n\nSeen from the browser.\n")
    wait_for(
        lambda: daemon.instance.has_dynamic_partition("rag_assets_tenants", "ui"),
        PATIENCE,
        "the tenant is a partition",
    )
    runs = [daemon.launch("__ASSET_JOB", "ui", *ASSETS), daemon.launch("sync_tenant", "ui")]
    records = [daemon.ended(run_id) for run_id in runs]
    assert [r.dagster_run.status for r in records] == [SUCCESS] * 2
    assert daemon.finds("ui", "Seen from the browser")

    spans = sorted((r.start_time or 0.0, r.end_time or 0.0) for r in daemon.runs("ui"))
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start, "one run per tenant: the others wait in the queue"

    metadata = daemon.graphql(
        """{ assetNodes(group: {groupName: "knowledge", repositoryName: "__repository__",
                                repositoryLocationName: "rag_assets"}) {
               assetKey { path } description kinds owners { __typename }
               hasAssetChecks
               assetMaterializations(partitions: ["ui"], limit: 10) {
                 metadataEntries { label __typename ... on IntMetadataEntry { intValue } } } } }"""
    )["assetNodes"]
    nodes = {node["assetKey"]["path"][-1]: node for node in metadata}
    assert set(nodes) == set(ASSETS)
    assert all(node["description"] and node["kinds"] and node["owners"] for node in nodes.values())
    upserted = [
        entry["intValue"]
        for materialization in nodes["search_index"]["assetMaterializations"]
        for entry in materialization["metadataEntries"]
        if entry["label"] == "upserted"
    ]
    assert sum(upserted) == 1, "indexed once, whoever launched it"


def test_a_backfill_over_all_tenants_completes_beside_a_disabled_one(daemon: Daemon) -> None:
    folders = {name: daemon.installation.add_tenant(name, **FAST) for name in ("awake", "asleep")}
    for name, folder in folders.items():
        (folder / "page.md").write_text(f"# Page\n\nFilled for {name}.\n")
        daemon.searchable(name, f"Filled for {name}")
    assert daemon.installation.cli("tenants", "disable", "asleep").code == 0
    for name in folders:
        daemon.idle(name)
    (folders["awake"] / "page.md").write_text("# Page\n\nFilled again.\n")
    launched = daemon.graphql(
        """mutation($params: LaunchBackfillParams!) {
             launchPartitionBackfill(backfillParams: $params) {
               __typename ... on LaunchBackfillSuccess { backfillId } } }""",
        {
            "params": {
                "partitionNames": list(folders),
                "assetSelection": [{"path": [asset]} for asset in ASSETS],
            }
        },
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched

    def backfill() -> Any:
        return daemon.instance.get_backfill(launched["backfillId"])

    wait_for(lambda: backfill().status.name.startswith("COMPLETED"), PATIENCE, "the backfill ended")
    of_backfill = dg.RunsFilter(tags={"dagster/backfill": launched["backfillId"]})
    runs = daemon.instance.get_runs(filters=of_backfill)
    assert {run.tags["dagster/partition"]: run.status for run in runs} == dict.fromkeys(
        folders, SUCCESS
    )
    assert backfill().status.name == "COMPLETED_SUCCESS"
    newest = daemon.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("search_index"), asset_partitions=["asleep"]), limit=1
    ).records[0]
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.metadata["skipped"].value == "disabled"
    assert daemon.finds("awake", "Filled again")


def test_drift_is_found_and_repaired(daemon: Daemon, trouble: dict[str, Path]) -> None:
    daemon.searchable("drifting", "words of drifting")
    repairs = daemon.runs("drifting", "repair_index")
    # One repair for the counts, and a second one if the nightly comparison ends later.
    assert [r.dagster_run.status for r in repairs] in ([SUCCESS], [SUCCESS] * 2)
    assert not daemon.runs("expiring", "repair_index"), "only offenders are repaired"


def test_expired_documents_go_once(daemon: Daemon, trouble: dict[str, Path]) -> None:
    daemon.gone("expiring", "words of expiring")
    assert (trouble["expiring"] / "page.md").exists()
    wait_for(
        lambda: not daemon.catalog.documents.all("expiring", deleted=True),
        PATIENCE,
        "the same run takes it out of Postgres, too",
    )
    assert not daemon.installation.entries("expiring")
    by_daemon = len(daemon.runs("expiring")) - 1
    assert by_daemon <= 2, "nothing loops"


def test_a_failing_run_backs_off_and_recovers(daemon: Daemon, trouble: dict[str, Path]) -> None:
    def failures() -> list[dg.RunRecord]:
        return [r for r in daemon.runs("broken", "sync_tenant") if r.dagster_run.status is FAILURE]

    def counted() -> int:
        return daemon.catalog.syncs.all("broken")["files"].attempts

    # A run fails a moment before the failure is counted.
    wait_for(lambda: 0 < counted() == len(failures()), PATIENCE, "failures are counted")
    failed = failures()
    spans = sorted((r.end_time or 0.0, r.start_time or 0.0) for r in failed)
    for number, ((end, _), (_, start)) in enumerate(itertools.pairwise(spans)):
        assert start - end >= 30 << number, "it waits 30 s, then 60 s, then 120 s"
    sync = daemon.catalog.syncs.all("broken")["files"]
    assert sync.retry_at is not None
    assert "lake" in (sync.last_error or ""), "the reason is noted"
    assert not daemon.finds("broken", "Edited while")
    assert daemon.finds("broken", "words of broken"), "what was searchable stays so"

    lake = _lake(daemon.installation)
    lake.unlink()
    lake.with_name("broken.away").rename(lake)
    _update(daemon.catalog, syncs, "broken", retry_at=datetime.now(UTC))  # that time passes
    daemon.searchable("broken", "Edited while the lake is away")
    daemon.idle("broken")
    sync = daemon.catalog.syncs.all("broken")["files"]
    assert (sync.attempts, sync.retry_at, sync.last_error) == (0, None, None)


def test_upkeep_runs_over_all_tenants(daemon: Daemon, trouble: dict[str, Path]) -> None:
    run_ids = [daemon.launch(job) for job in ("prune", "compact")]
    for run_id in run_ids:
        assert daemon.ended(run_id).dagster_run.status is SUCCESS


def test_a_removed_tenant_leaves_no_partition(daemon: Daemon, trouble: dict[str, Path]) -> None:
    assert daemon.installation.cli("tenants", "remove", "drifting", "--yes").code == 0
    assert not daemon.instance.has_dynamic_partition("rag_assets_tenants", "drifting")
    # A sensor may have requested one more run while the tenant was removed.
    wait_for(lambda: not daemon.runs("drifting"), PATIENCE, "its runs are deleted")


def test_nothing_is_wrong_in_the_logs(daemon: Daemon, trouble: dict[str, Path]) -> None:
    for log in sorted(daemon.logs.glob("dagster-*.log")):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text()).splitlines()
        wrong = [
            line
            for line in lines
            if re.search(r"- (ERROR|CRITICAL) -|Traceback|Warning:|[Dd]eprecat", line)
            and not re.search(r"- [0-9a-f-]{36} -", line)  # logs of runs: some fail on purpose
        ]
        assert not wrong, "\n".join(wrong[:20])
        assert not [line for line in lines if "Checking for new runs" in line], "idle ticks"


def _update(catalog: Catalog, table: Table, tenant_id: str, **values: object) -> None:
    with catalog.database.begin() as connection:
        connection.execute(update(table).where(table.c.tenant == tenant_id).values(**values))


def _lake(installation: Installation) -> Path:
    return installation.home / ".local" / "lake" / "broken"


def _count(daemon: Daemon, tenant_id: str, status: str) -> int:
    return daemon.catalog.documents.count_by_status(tenant_id).get(status, 0)


def _edit(daemon: Daemon, folder: Path, status: str, words: str) -> None:
    rows = daemon.catalog.documents.all("importing")
    last = [row for row in rows if row.status == status][-1]
    (folder / last.uri.partition("/")[2]).write_text(f"# Edited\n\n{words}\n")


def _kill_in_a_run(daemon: Daemon, tenant_id: str, command: subprocess.Popen[str]) -> str:
    """Kill the command during a run; return that run's id."""
    for _ in range(200):
        os.kill(command.pid, signal.SIGSTOP)
        holder = daemon.catalog.lock.holder(tenant_id)
        if holder is not None and holder.pid == command.pid and holder.run_id is not None:
            os.kill(command.pid, signal.SIGKILL)
            command.communicate(timeout=30)  # none of its children keeps its output open
            return holder.run_id
        os.kill(command.pid, signal.SIGCONT)
        time.sleep(0.1)
    pytest.fail("the command never held the lock")
