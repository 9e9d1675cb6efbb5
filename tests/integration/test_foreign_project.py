"""As a guest in a team's Dagster project: nothing of theirs is deleted, counted or replaced."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import psutil
import pytest
import yaml
from dagster._core.events import EngineEventData
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration
from sqlalchemy import insert

import rag_assets.dagster
from rag_assets.cli.session import Session
from rag_assets.declarations import PLAIN
from rag_assets.definitions import build_defs, build_resources
from rag_assets.jobs.run_history import delete_old_runs, delete_partition
from rag_assets.resources.own_runs import (
    INSTALLATION_TAG,
    NO_RUN_RETRIES,
    PARTITION_TAG,
    RUN_TAGS,
    get_instance_id,
)
from rag_assets.runtime.program_processes import strip_driver
from rag_assets.sensors.source_files import source_files_sensor
from rag_assets.sensors.tenants import tenants_sensor
from rag_assets.storage.catalog.erasure.traces import dagster_histories
from rag_assets.storage.installation.markers import read_machine_name
from tests.databases import create_empty_database, drop_database
from tests.foreign_project.definitions import embeddings, sales, team_definitions
from tests.installation import FAST, Installation, new_installation
from tests.sensor_resources import sensor_resources

TENANTS = PLAIN.partitions_name
ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
import os
import pathlib
import dagster as dg
from rag_assets.dagster import build_defs

@dg.asset
def wiki_export():
    pathlib.Path(os.environ["WIKI"], "b.md").write_text("# Returns\\n\\nOf the eu.\\n")

@dg.job
def canary(): ...

secrets = dg.AssetCheckKey(dg.AssetKey(["kb", "chunks"]), "secrets")
knowledge = dg.define_asset_job(
    "knowledge",
    dg.AssetSelection.assets("kb/search_index").upstream().without_checks()
    | dg.AssetSelection.checks(secrets),
)
preloaded = {"start_method": {"forkserver": {"preload_modules": ["project"]}}}
defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[wiki_export],
        jobs=[canary, knowledge],
        executor=dg.multiprocess_executor.configured(preloaded),
        resources={"postgres": dg.ResourceDefinition.hardcoded_resource("theirs")},
    ),
    build_defs(name="kb", key_prefix="kb", upstream=["wiki_export"]),
    build_defs(name="other", key_prefix=["other"], automation="none"),
)
"""
"""A project as a team has it, with two installations and an executor of its own."""


class Guest:
    """An installation in a team's Dagster instance."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.team = team_definitions().get_repository_def()

    @property
    def session(self) -> Session:
        return self.installation.session()

    def run_team(self, instance: dg.DagsterInstance, job: str = "canary") -> str:
        done = self.team.get_job(job).execute_in_process(instance=instance)
        assert done.success
        return done.run_id

    def materialize(self, instance: dg.DagsterInstance, asset: dg.AssetsDefinition) -> str:
        done = self.team.get_job("__ASSET_JOB").execute_in_process(
            instance=instance, asset_selection=[asset.key], partition_key="eu"
        )
        assert done.success
        return done.run_id


STORAGES = pytest.mark.parametrize("guest", ["sqlite", "postgres"], indirect=True)
"""For tests of what is read from a team's instance or deleted there: queries differ by storage."""


@pytest.fixture
def guest(
    request: pytest.FixtureRequest,
    postgres_url: str,
    elasticsearch_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Guest]:
    """Create an installation in a team's instance, by default with Postgres as its storage."""
    team_home, name = tmp_path / "team", f"team{uuid.uuid4().hex[:12]}"
    team_home.mkdir()
    settings: dict[str, object] = {"telemetry": {"enabled": False}}
    storage = getattr(request, "param", "postgres")
    if storage == "postgres":
        database = strip_driver(create_empty_database(postgres_url, name))
        url = database.replace("postgresql://", "postgresql+psycopg2://")
        settings["storage"] = {"postgres": {"postgres_url": url}}
    (team_home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("DAGSTER_HOME", str(team_home))
    monkeypatch.delenv("DAGSTER_STORAGE_DIR", raising=False)
    with new_installation(tmp_path / "home", postgres_url, elasticsearch_url) as made:
        made.add_tenant("eu", **FAST).joinpath("a.md").write_text("# Sales\n\nOf the eu.\n")
        yield Guest(made)
    if storage == "postgres":
        drop_database(postgres_url, name)


@STORAGES
def test_removing_a_tenant_keeps_the_teams_partition_of_the_same_name(guest: Guest) -> None:
    instance = guest.session.instance
    theirs = {guest.materialize(instance, asset) for asset in (sales, embeddings)}
    guest.installation.synced("eu")
    checking = build_defs().get_repository_def().get_job("check_all_tenants")
    over_all = checking.execute_in_process(instance=instance)
    assert over_all.success
    assert evaluations(instance, over_all.run_id)
    ours = instance.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))
    assert ours
    assert all(run.tags[INSTALLATION_TAG] for run in ours)

    removed = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert removed.code == 0, removed.err

    assert {run.run_id for run in instance.get_runs()} >= theirs
    assert not instance.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))
    assert instance.get_materialized_partitions(sales.key) == {"eu"}
    assert instance.get_latest_materialization_event(sales.key) is not None
    assert instance.get_materialized_partitions(dg.AssetKey("raw_documents")) == set()
    assert not instance.has_dynamic_partition(TENANTS, "eu")
    all_events = [record for run in instance.get_runs() for record in instance.all_logs(run.run_id)]
    assert all_events, "those of the team's runs, and of the run over all tenants"
    made = [record.dagster_event for record in all_events if record.dagster_event is not None]
    about = {(str(event.asset_key), event.partition) for event in made if event.partition}
    assert about == {(str(sales.key), "eu"), (str(embeddings.key), "eu")}, "the team's"
    assert evaluations(instance, over_all.run_id) == []


@STORAGES
def test_the_sensor_of_tenants_deletes_what_a_removal_elsewhere_left(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = guest.session.instance
    guest.installation.synced("eu")
    theirs = guest.materialize(instance, sales)
    instance.add_dynamic_partitions(TENANTS, ["other-installations-tenant"])
    with monkeypatch.context() as elsewhere:
        elsewhere.delenv("DAGSTER_HOME")
        removed = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert removed.code == 0, removed.err
    assert f"in the instance {tmp_path / 'home' / '.local' / 'dagster'} on " in removed.out
    assert f"Out of reach: runs in the Dagster instance {tmp_path / 'team'} on " in removed.out
    session = guest.session
    [receipt] = session.catalog.receipts.all("eu")
    [other] = receipt.proof["other Dagster instances"]
    assert other["id"] == get_instance_id(instance)
    assert other["place"] == f"{tmp_path / 'team'} on {read_machine_name()}"
    assert session.catalog.dagster_histories.tenants(get_instance_id(instance)) == {"eu"}
    assert instance.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))

    with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
        result = tenants_sensor.build(PLAIN)(context)

    assert isinstance(result, dg.SensorResult)
    [request] = result.dynamic_partitions_requests or []
    assert isinstance(request, dg.DeleteDynamicPartitionsRequest)
    assert list(request.partition_keys) == ["eu"]
    assert [run.run_id for run in instance.get_runs()] == [theirs]
    assert session.catalog.dagster_histories.instances("eu") == []


def test_a_removal_names_the_instances_that_still_hold_runs_of_the_tenant(
    guest: Guest, tmp_path: Path
) -> None:
    catalog, first = guest.session.catalog, guest.session.instance
    second_home = tmp_path / "second"
    second_home.mkdir()
    guest.installation.synced("eu")
    folder = guest.installation.home.parent / "sources" / "eu"
    folder.joinpath("b.md").write_text("# Returns\n\nOf the eu.\n")
    synced = guest.installation.cli("sync", "eu", DAGSTER_HOME=str(second_home))
    assert synced.code == 0, synced.err
    held = [
        instance.place.partition(" on ")[0]
        for instance in catalog.dagster_histories.instances("eu")
    ]
    assert held == [str(second_home), str(tmp_path / "team")], "the one that ran it last first"

    removed = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert removed.code == 0, removed.err
    [receipt] = catalog.receipts.all("eu")
    [other] = receipt.proof["other Dagster instances"]
    assert other["place"] == f"{second_home} on {read_machine_name()}"
    assert "postgresql" not in str(receipt.proof), "no address of a database"
    with dg.DagsterInstance.from_config(str(second_home)) as second:
        assert other["id"] == get_instance_id(second) != get_instance_id(first)
        assert second.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))
        with dg.build_sensor_context(instance=second, resources=sensor_resources()) as context:
            tenants_sensor.build(PLAIN)(context)
        assert second.get_runs() == []
    assert catalog.dagster_histories.instances("eu") == []


@pytest.mark.parametrize("guest", ["sqlite"], indirect=True)
def test_a_removal_with_runs_left_in_the_homes_own_instance_names_it(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.delenv("DAGSTER_HOME")
        synced = guest.installation.cli("sync", "eu")
    assert synced.code == 0, synced.err
    refused = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert refused.code == 1
    ours = tmp_path / "home" / ".local" / "dagster"
    assert f"once the Dagster instance {ours} on " in refused.err
    with monkeypatch.context() as elsewhere:
        elsewhere.delenv("DAGSTER_HOME")
        removed = guest.installation.cli("tenants", "remove", "eu", "--yes")
    assert removed.code == 0, removed.err
    assert guest.session.catalog.dagster_histories.instances("eu") == []


@STORAGES
def test_the_sensor_of_tenants_deletes_runs_of_a_tenant_without_a_partition(guest: Guest) -> None:
    instance, catalog = guest.session.instance, guest.session.catalog
    guest.installation.synced("eu")
    assert guest.installation.command("tenants", "remove", "eu", "--yes").code == 0
    assert not instance.has_dynamic_partition(TENANTS, "eu")
    late = instance.create_run_for_job(
        build_defs().get_repository_def().get_job("sync_tenant"),
        tags={PARTITION_TAG: "eu", **RUN_TAGS, **guest.session.own_runs.installation_tags},
        status=dg.DagsterRunStatus.SUCCESS,
    )
    with catalog.database.begin() as connection:
        connection.execute(
            insert(dagster_histories).values(
                tenant="eu", incarnation=1, instance=get_instance_id(instance), place="team"
            )
        )
    with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
        tenants_sensor.build(PLAIN)(context)
    assert instance.get_run_by_id(late.run_id) is None
    assert catalog.dagster_histories.instances("eu") == []


def test_removing_a_tenant_with_an_unusable_dagster_home_removes_nothing(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nowhere"))
    refused = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert refused.code != 0
    assert "DAGSTER_HOME is not a folder" in refused.err
    record = guest.session.catalog.tenants.get("eu")
    assert record.state == "ACTIVE"


@STORAGES
def test_deleting_old_runs_keeps_the_teams_job_of_the_same_name(guest: Guest) -> None:
    session = guest.session
    theirs = guest.run_team(session.instance)
    ours = build_defs().get_repository_def().get_job("canary")
    assert ours.execute_in_process(instance=session.instance).success
    deleted = delete_old_runs(
        session.catalog, session.instance, session.own_runs, ["canary"], days=-1
    )
    assert deleted == 1
    assert [run.run_id for run in session.instance.get_runs()] == [theirs]


@STORAGES
def test_another_installation_in_the_same_instance_keeps_its_runs(guest: Guest) -> None:
    session = guest.session
    tags = {PARTITION_TAG: "eu", **RUN_TAGS, INSTALLATION_TAG: str(uuid.uuid4())}
    job = build_defs().get_repository_def().get_job("canary")
    theirs = session.instance.create_run_for_job(job, tags=tags)
    delete_partition(session.instance, session.own_runs, "eu")
    assert session.instance.get_run_by_id(theirs.run_id) is not None


@STORAGES
def test_a_run_of_the_teams_partition_does_not_make_the_tenant_busy(guest: Guest) -> None:
    session = guest.session
    instance, own_runs = session.instance, session.own_runs
    # Only a launch through a code location can be recorded as QUEUED.
    started = dg.DagsterRunStatus.STARTED
    instance.create_run_for_job(
        guest.team.get_job("canary"), tags={PARTITION_TAG: "eu"}, status=started
    )
    assert own_runs.list_busy_partitions(instance) == set()
    ours = build_defs().get_repository_def().get_job("sync_tenant")
    instance.create_run_for_job(ours, tags={PARTITION_TAG: "eu", **RUN_TAGS}, status=started)
    assert own_runs.list_busy_partitions(instance) == {"eu"}


@STORAGES
def test_a_run_that_never_started_makes_its_tenant_busy_for_a_while_only(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = guest.session
    instance, own_runs = session.instance, session.own_runs
    ours = build_defs().get_repository_def().get_job("check_tenant")
    instance.create_run_for_job(
        ours,
        tags={PARTITION_TAG: "eu", **RUN_TAGS},
        status=dg.DagsterRunStatus.NOT_STARTED,
    )
    instance.create_run_for_job(
        ours, tags={PARTITION_TAG: "us", **RUN_TAGS}, status=dg.DagsterRunStatus.STARTED
    )
    assert own_runs.list_busy_partitions(instance) == {"eu", "us"}

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(hours=1)

    monkeypatch.setattr("rag_assets.resources.own_runs.datetime", Later)
    assert own_runs.list_busy_partitions(instance) == {"us"}, "its process may still run"


def test_run_monitoring_as_on_the_page_ends_a_killed_run_and_frees_its_tenant(guest: Guest) -> None:
    page = (ROOT / "docs" / "dagster-project.md").read_text()
    settings = yaml.safe_load(
        page.split("## Your instance")[1].split("```")[1].removeprefix("yaml")
    )
    only_enabled = {"run_monitoring": {"enabled": True}}
    own_runs = guest.session.own_runs
    for overrides, busy in ((only_enabled, {"eu"}), (settings, set())):
        with dg.instance_for_test(overrides=overrides) as instance:
            killed = start_run(instance, hours_ago=5)
            process = SimpleNamespace(instance=instance, create_request_context=lambda: None)
            errors = list(execute_run_monitoring_iteration(process, logging.getLogger()))  # type: ignore[arg-type]
            assert errors == [None]
            assert own_runs.list_busy_partitions(instance) == busy
            assert _run(instance, killed).is_finished == (not busy)


def test_the_sensor_of_tenants_keeps_partitions_that_it_does_not_know(guest: Guest) -> None:
    instance = guest.session.instance
    instance.add_dynamic_partitions(TENANTS, ["other-installations-tenant"])
    with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
        result = tenants_sensor.build(PLAIN)(context)
    assert isinstance(result, dg.SensorResult)
    [request] = result.dynamic_partitions_requests or []
    assert isinstance(request, dg.AddDynamicPartitionsRequest)
    assert list(request.partition_keys) == ["eu"]


def test_commands_use_the_teams_instance_and_leave_its_settings(
    guest: Guest, tmp_path: Path
) -> None:
    before = (tmp_path / "team" / "dagster.yaml").read_text()
    done = guest.installation.cli("sync", "eu")
    assert done.code == 0, done.err
    assert (tmp_path / "team" / "dagster.yaml").read_text() == before
    assert not list((tmp_path / "home").rglob("dagster.yaml"))
    runs = guest.session.instance.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS]


def test_a_run_from_the_ui_is_not_retried_by_dagster(guest: Guest) -> None:
    instance = guest.session.instance
    guest.installation.synced("eu")
    if not instance.has_dynamic_partition(TENANTS, "eu"):
        instance.add_dynamic_partitions(TENANTS, ["eu"])
    folder = guest.installation.home.parent / "sources" / "eu"
    folder.rename(folder.with_name("elsewhere"))
    asset = dg.AssetKey("raw_documents")
    job = build_defs().get_repository_def().get_job("__ASSET_JOB")
    done = job.execute_in_process(
        instance=instance, asset_selection=[asset], partition_key="eu", raise_on_error=False
    )
    folder.with_name("elsewhere").rename(folder)
    assert not done.success
    run = instance.get_run_by_id(done.run_id)
    assert run is not None
    assert run.tags.items() >= NO_RUN_RETRIES.items()


def test_a_folder_that_went_missing_fails_one_run(guest: Guest) -> None:
    folder = guest.installation.home.parent / "sources" / "eu"
    for path in folder.iterdir():
        # A recent file would be read again, because its time may not show a second write.
        os.utime(path, (written := path.stat().st_mtime - 3_600, written))
    guest.installation.synced("eu")
    instance = guest.session.instance
    folder.rename(folder.with_name("elsewhere"))
    cursor, requested = None, []
    for back in (False, False, True, False):
        if back:
            folder.with_name("elsewhere").rename(folder)
        elif folder.exists():
            folder.rename(folder.with_name("elsewhere"))
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, resources=sensor_resources()
        ) as context:
            result = source_files_sensor.build(PLAIN)(context)
        assert isinstance(result, dg.SensorResult)
        requested.append(
            [request.tags["rag_assets/reason"] for request in result.run_requests or []]
        )
        cursor = result.cursor
    assert requested == [
        ["sources cannot be listed: files"],
        [],
        [],
        ["sources cannot be listed: files"],
    ]
    assert guest.installation.sync("eu").error is not None, "the run that is requested fails"


def test_definitions_merge_with_the_teams() -> None:
    merged = dg.Definitions.merge(team_definitions(with_our_names=False), build_defs())
    dg.Definitions.validate_loadable(merged)
    repository = merged.get_repository_def()
    job = repository.get_job("__ASSET_JOB")
    assert job.executor_def.name != "in_process", "ours has not become theirs"
    assert repository.get_job("sync_tenant").executor_def.name == "in_process"
    ours = set(build_defs().resources or {})
    assert all(re.match("rag_assets_", name) for name in ours)
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(
            instance=instance, asset_selection=[sales.key], partition_key="eu"
        )
    [made] = done.get_asset_materialization_events()
    assert made.materialization.metadata["stored in"].value == "the team's database"


def test_the_checks_of_a_tenant_are_ours_alone() -> None:
    merged = dg.Definitions.merge(team_definitions(with_our_names=False), build_defs())
    job = merged.get_repository_def().get_job("check_tenant")
    selected = job.asset_layer.asset_graph.asset_check_keys
    assert {key.asset_key.to_user_string() for key in selected} <= set(own_assets())
    assert selected
    assert job.partitions_def == PLAIN.partitions


def test_two_code_locations_share_an_instance(guest: Guest) -> None:
    session = guest.session
    theirs = guest.run_team(session.instance)
    guest.installation.synced("eu")
    assert session.catalog.dagster_histories.tenants(get_instance_id(session.instance)) == {"eu"}
    assert not session.own_runs.owns(_run(session.instance, theirs))
    synced = session.instance.get_runs(filters=dg.RunsFilter(job_name="sync_tenant"))
    assert synced
    assert all(session.own_runs.owns(run) for run in synced)


def evaluations(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    events = (record.dagster_event for record in instance.all_logs(run_id))
    return [
        str(event.event_specific_data)
        for event in events
        if event is not None and event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]


def start_run(instance: dg.DagsterInstance, *, hours_ago: int) -> str:
    """Record a started run of the tenant `eu` that has no process."""
    run = instance.create_run_for_job(
        build_defs().get_repository_def().get_job("sync_tenant"),
        tags={PARTITION_TAG: "eu", **RUN_TAGS},
    )
    started = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name)
    at = datetime.now(UTC) - timedelta(hours=hours_ago)
    instance.run_storage.handle_run_event(run.run_id, started, update_timestamp=at)
    return run.run_id


def own_assets() -> list[str]:
    assets: list[str] = build_resources()["rag_assets_runs"].assets
    return assets


def _run(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRun:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run


def test_commands_follow_the_names_of_the_teams_project(guest: Guest) -> None:
    instance = guest.session.instance

    @dg.asset
    def wiki_export() -> None: ...

    theirs = dg.Definitions.merge(
        dg.Definitions(assets=[wiki_export]),
        rag_assets.dagster.build_defs(name="kb", key_prefix="kb", upstream=[wiki_export]),
    )
    with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
        tenants_sensor.build(PLAIN)(context)
    instance.add_dynamic_partitions("kb_tenants", ["eu"])
    job = theirs.get_repository_def().get_job("kb_refresh")
    refreshed = job.execute_in_process(instance=instance, partition_key="eu")
    assert refreshed.success

    folder = guest.installation.home.parent / "sources" / "eu"
    folder.joinpath("b.md").write_text("# Returns\n\nOf the eu.\n")
    guest.installation.synced("eu")
    [synced] = instance.get_runs(filters=dg.RunsFilter(job_name="kb_sync_tenant"))
    assert synced.is_success
    assert instance.get_materialized_partitions(dg.AssetKey(["kb", "raw_documents"])) == {"eu"}
    assert instance.get_dynamic_partitions(TENANTS) == []

    removed = guest.installation.command("tenants", "remove", "eu", "--yes")
    assert removed.code == 0, removed.err
    assert [run.run_id for run in instance.get_runs()] == [refreshed.run_id]
    assert instance.get_latest_materialization_event(wiki_export.key) is not None
    for name in ("raw_documents", "search_index"):
        assert instance.get_materialized_partitions(dg.AssetKey(["kb", name])) == set()
    assert instance.get_dynamic_partitions("kb_tenants") == []


@pytest.mark.slow
def test_dagster_validates_a_scaffolded_project(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-f", "project.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DAGSTER_HOME": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "currently in beta" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("guest", ["sqlite"], indirect=True)
def test_a_scaffolded_projects_daemon_syncs_a_tenant(guest: Guest, project: Path) -> None:
    instance = guest.session.instance
    synced = dg.RunsFilter(job_name="kb_sync_tenant")
    with run_dagster(guest, project, "dagster._daemon", "run", "-m", "project") as daemon:
        deadline = time.monotonic() + 150
        while not any(run.is_success for run in instance.get_runs(filters=synced)):
            assert daemon.poll() is None, (project / "output").read_text()
            assert time.monotonic() < deadline, (project / "output").read_text()
            time.sleep(0.2)
        assert len(processes_in(project)) > 1, "the daemon has a code server"
    sensors = {run.tags["dagster/sensor_name"] for run in instance.get_runs(filters=synced)}
    assert sensors == {"kb_source_files"}
    assert instance.get_dynamic_partitions("kb_tenants") == ["eu"]
    assert instance.get_dynamic_partitions("other_tenants") == [], "it has no automation"
    assert "Sales" in guest.installation.search("eu", "sales")[0].text


@pytest.mark.slow
def test_a_scaffolded_projects_executor_runs_each_step_in_a_process(
    guest: Guest, project: Path
) -> None:
    instance = guest.session.instance
    with dg.build_sensor_context(instance=instance, resources=sensor_resources()) as context:
        tenants_sensor.build(PLAIN)(context)
    instance.add_dynamic_partitions("kb_tenants", ["eu"])
    partition = json.dumps({"dagster/partition": "eu"})
    arguments = ("job", "execute", "-m", "project", "-j", "knowledge", "--tags", partition)
    with run_dagster(guest, project, "dagster", *arguments) as command:
        assert command.wait(150) == 0, (project / "output").read_text()
    assert "currently in beta" not in (project / "output").read_text()
    [run] = instance.get_runs(filters=dg.RunsFilter(job_name="knowledge"))
    assert run.is_success
    events = [
        record.dagster_event
        for record in instance.all_logs(run.run_id)
        if record.dagster_event is not None
    ]
    materialized = [
        str(event.asset_key.to_user_string())
        for event in events
        if event.event_type_value == "ASSET_MATERIALIZATION" and event.asset_key is not None
    ]
    assert materialized[:2] == ["wiki_export", "kb/raw_documents"]
    assert len(evaluations(instance, run.run_id)) == 1
    workers = [
        event.event_specific_data
        for event in events
        if event.event_type_value == "STEP_WORKER_STARTED"
    ]
    pids = {data.metadata["pid"].value for data in workers if isinstance(data, EngineEventData)}
    assert len(pids) == len(workers) == len(materialized) + 1
    assert "Returns" in guest.installation.search("eu", "returns")[0].text


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """Create the folder of a team's project; no process of it may run after the test."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "project.py").write_text(PROJECT)
    yield folder
    left = processes_in(folder)
    for process in left:
        process.kill()
    assert left == []


@contextmanager
def run_dagster(
    guest: Guest, project: Path, module: str, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a Dagster command in a project; at the end wait for all its processes."""
    environment = {
        **os.environ,
        **guest.installation.environment,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{project}",
        "WIKI": str(guest.installation.home.parent / "sources" / "eu"),
    }
    with (project / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=project,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            deadline = time.monotonic() + 60
            while process.poll() is None or processes_in(project):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.2)


def processes_in(folder: Path) -> list[psutil.Process]:
    """Return the processes whose working directory is this folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
