"""The definitions that Dagster loads are consistent, complete and documented."""

import re
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from rag_assets.definitions import build_defs
from rag_assets.plugins.registry import Systems

ROOT = Path(__file__).resolve().parents[2]
ASSETS = {
    "raw_documents": "knowledge",
    "parsed_text": "knowledge",
    "chunks": "knowledge",
    "embeddings": "knowledge",
    "search_index": "knowledge",
    "embedding_cost": "cost",
    "generations": "builds",
    "retention": "retention",
    "retrieval_quality": "quality",
}
CHECKS = {
    "chunks.expectations", "chunks.secrets", "embeddings.canary", "embeddings.languages",
    "embeddings.dimensions", "embeddings.expectations", "embeddings.spending",
    "raw_documents.catalog", "raw_documents.deletions", "raw_documents.clock",
    "raw_documents.contents", "raw_documents.stored", "raw_documents.programs",
    "raw_documents.ticks", "embeddings.lake", "retrieval_quality.retrieval_quality",
    "search_index.dimensions", "search_index.disk", "search_index.drift", "search_index.isolation",
    "search_index.quarantine", "search_index.vectors_beside", "search_index.thresholds",
    "search_index.staleness",
}  # fmt: skip
JOBS = {
    *("canary", "check_all_tenants", "check_tenant", "compact", "detect_drift", "end_removals"),
    *("expectations", "measure_quality", "prune", "publish_generation", "repair_index"),
    *("report_costs", "sync_tenant"),
}
SENSORS = {
    *("drift_offenders", "embedding_batches", "lost_entries", "published_builds", "removals"),
    *("run_failures", "source_files", "staleness", "tenants"),
}
SCHEDULES = {
    "daily_canary", "daily_checks", "daily_costs", "daily_pruning", "nightly_drift",
    "weekly_compaction", "weekly_quality",
}  # fmt: skip


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_defs(systems=Systems(())).get_repository_def()


def rows(page: str, pattern: str) -> set[str]:
    """Return the matches of a pattern at the start of table rows on a page."""
    return set(re.findall(rf"^\| {pattern}", (ROOT / "docs" / page).read_text(), re.MULTILINE))


def test_everything_that_the_webserver_and_the_daemon_load_fits_together() -> None:
    dg.Definitions.validate_loadable(build_defs())


def test_dagster_processes_do_not_load_the_service() -> None:
    code = "import sys, rag_assets.definitions; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "rag_assets.systems.workspace.pulling.pull" in modules
    assert not modules & {"fastapi", "mcp", "rag_assets.api.backend"}


def test_assets_are_these_in_these_groups(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    keys = graph.get_all_asset_keys()
    assert {key.to_user_string(): graph.get(key).group_name for key in keys} == ASSETS


def test_checks_are_these(repository: dg.RepositoryDefinition) -> None:
    keys = repository.asset_graph.asset_check_keys
    assert {f"{key.asset_key.to_user_string()}.{key.name}" for key in keys} == CHECKS


def test_jobs_are_these(repository: dg.RepositoryDefinition) -> None:
    assert {j.name for j in repository.get_all_jobs()} - {"__ASSET_JOB"} == JOBS
    assert rows("operations.md", r"job `(\w+)` \|") == JOBS


def test_sensors_are_these_and_run(repository: dg.RepositoryDefinition) -> None:
    found = {sensor.name: sensor.default_status for sensor in repository.sensor_defs}
    assert found == dict.fromkeys(SENSORS, dg.DefaultSensorStatus.RUNNING)
    assert rows("operations.md", r"sensor `(\w+)` \|") == SENSORS


def test_schedules_are_these_and_run(repository: dg.RepositoryDefinition) -> None:
    found = {schedule.name: schedule.default_status for schedule in repository.schedule_defs}
    assert found == dict.fromkeys(SCHEDULES, dg.DefaultScheduleStatus.RUNNING)
    assert rows("operations.md", r"schedule `(\w+)` \|") == SCHEDULES


@pytest.mark.parametrize(
    ("name", "shown", "cron"),
    [
        ("daily_pruning", "`daily_pruning` at 03:00", "0 3 * * *"),
        ("weekly_compaction", "`weekly_compaction`, Sunday 04:00", "0 4 * * 0"),
    ],
)
def test_schedules_run_when_the_page_about_retention_says(
    repository: dg.RepositoryDefinition, name: str, shown: str, cron: str
) -> None:
    page = (ROOT / "docs" / "retention.md").read_text()
    assert shown in page
    assert repository.get_schedule_def(name).cron_schedule == cron


@pytest.mark.parametrize("page", ["generations.md", "retention.md"])
def test_what_pages_about_living_indexes_name_is_loaded(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    schedules = re.findall(r"`((?:daily|weekly|nightly|monthly)_[a-z_]+)`", text)
    assert set(schedules) <= SCHEDULES
    assets = re.findall(r"asset `(\w+)`", text)
    assert set(assets) <= set(ASSETS)
    assert schedules
    assert assets


def test_four_runs_at_once_and_one_of_each_tenant_are_carried_out() -> None:
    instance = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    runs = instance["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == 4
    assert runs["tag_concurrency_limits"] == [
        {"key": "dagster/partition", "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]
