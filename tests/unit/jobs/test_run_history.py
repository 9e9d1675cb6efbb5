"""Deletions from a Dagster instance that a team and other installations also use."""

import uuid
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from rag_assets.definitions import build_resources
from rag_assets.jobs.run_history import delete_partition
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.own_runs import (
    INSTALLATION_TAG,
    NO_RUN_RETRIES,
    PARTITION_TAG,
    RUN_TAGS,
    OwnRuns,
)
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import Workbench

OURS, OTHERS = str(uuid.uuid4()), str(uuid.uuid4())
REGIONS = dg.StaticPartitionsDefinition(["eu", "us"])
KEY = dg.AssetKey("embeddings")


@dg.asset(partitions_def=REGIONS)
def embeddings() -> None:
    """An asset with the key of one of ours."""


@dg.asset(partitions_def=REGIONS)
def sales() -> None:
    """A team's own asset."""


@dg.op
def report_eu(context: dg.OpExecutionContext) -> None:
    """Report on a partition of `embeddings`, as jobs for all tenants do."""
    context.log_event(dg.AssetMaterialization(KEY, partition="eu"))


@dg.op
def read_tenants(rag_assets_workbench: Workbench) -> None:
    """An op with the resource of all of ours."""


@dg.job
def costs_of_tenants() -> None:
    """A job that a schedule launches, without the installation's tag."""
    read_tenants()


@dg.job
def report_costs() -> None:
    """A job with the name of one of ours."""
    report_eu()


@dg.job
def team_daily() -> None:
    """A team's job."""
    report_eu()


@pytest.fixture
def own_runs(monkeypatch: pytest.MonkeyPatch) -> OwnRuns:
    own = property(lambda _self: {INSTALLATION_TAG: OURS})
    monkeypatch.setattr(OwnRuns, "installation_tags", own)
    postgres = PostgresResource(installation=InstallationResource())
    return OwnRuns.model_construct(postgres=postgres, jobs=["report_costs"], assets=["embeddings"])


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def run_job(instance: dg.DagsterInstance, job: dg.JobDefinition, tags: dict[str, str]) -> str:
    return job.execute_in_process(instance=instance, tags=tags).run_id


def materialize(instance: dg.DagsterInstance, tags: dict[str, str], *assets: Any) -> str:
    repository = dg.Definitions(assets=[embeddings, sales]).get_repository_def()
    job = repository.get_job("__ASSET_JOB")
    keys = [asset.key for asset in assets]
    done = job.execute_in_process(
        instance=instance, asset_selection=keys, partition_key="eu", tags=tags
    )
    return done.run_id


def partitions(instance: dg.DagsterInstance, run_id: str, key: dg.AssetKey = KEY) -> set[str]:
    """Return the partitions that a run materialized, according to its log."""
    events = (record.dagster_event for record in instance.all_logs(run_id))
    return {
        event.partition or ""
        for event in events
        if event is not None and event.is_step_materialization and event.asset_key == key
    }


def test_delete_partition_keeps_a_teams_asset_with_the_key_of_ours(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    from_ui = materialize(instance, {}, embeddings)
    from_job = run_job(instance, team_daily, {})
    delete_partition(instance, own_runs, "eu")
    assert partitions(instance, from_ui) == {"eu"}
    assert partitions(instance, from_job) == {"eu"}
    assert instance.get_materialized_partitions(KEY) == {"eu"}


def test_delete_partition_deletes_own_runs_and_own_events_of_other_runs(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    own = materialize(instance, {INSTALLATION_TAG: OURS}, embeddings)
    mixed = materialize(instance, {INSTALLATION_TAG: OURS}, embeddings, sales)
    over_all = run_job(instance, report_costs, RUN_TAGS)
    delete_partition(instance, own_runs, "eu")
    assert instance.get_run_by_id(own) is None
    assert partitions(instance, mixed) == set()
    assert partitions(instance, mixed, sales.key) == {"eu"}
    assert partitions(instance, over_all) == set()
    assert instance.get_materialized_partitions(KEY) == set()


def test_delete_partition_with_another_installation_deletes_only_tagged_runs(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    theirs = run_job(instance, report_costs, {**RUN_TAGS, INSTALLATION_TAG: OTHERS})
    unknown = run_job(instance, report_costs, RUN_TAGS)
    waiting = run_job(instance, report_costs, {**RUN_TAGS, PARTITION_TAG: "eu"})
    own = run_job(instance, report_costs, {**RUN_TAGS, INSTALLATION_TAG: OURS})
    delete_partition(instance, own_runs, "eu")
    kept = {run_id: partitions(instance, run_id) for run_id in (theirs, unknown, waiting, own)}
    assert kept == {theirs: {"eu"}, unknown: {"eu"}, waiting: {"eu"}, own: set()}


def test_a_mark_adds_only_the_installation(own_runs: OwnRuns, instance: dg.DagsterInstance) -> None:
    marked = []
    for assets in ([embeddings, sales], [embeddings]):
        run = instance.get_run_by_id(materialize(instance, {}, *assets))
        assert run is not None
        own_runs.add_missing_tags(instance, run)
        marked.append(instance.get_run_by_id(run.run_id))
    mixed, own = marked
    assert mixed is not None
    assert own is not None
    assert mixed.tags[INSTALLATION_TAG] == own.tags[INSTALLATION_TAG] == OURS
    assert not mixed.tags.items() & NO_RUN_RETRIES.items()
    assert own.tags.items() >= NO_RUN_RETRIES.items()
    assert own_runs.select_exclusive_runs(instance, [mixed, own]) == [own]


@pytest.mark.usefixtures("own_runs")
def test_a_run_with_the_workbench_is_marked(instance: dg.DagsterInstance) -> None:
    definitions = dg.Definitions(jobs=[costs_of_tenants], resources=build_resources())
    job = definitions.get_repository_def().get_job("costs_of_tenants")
    run = instance.get_run_by_id(run_job(instance, job, {}))
    assert run is not None
    assert run.tags[INSTALLATION_TAG] == OURS


def test_unfinished_omits_a_teams_asset_run_until_its_repository_runs_ours(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("team"), "__repository__")
    job = dg.Definitions(assets=[embeddings]).get_repository_def().get_job("__ASSET_JOB")
    run = instance.create_run_for_job(
        job,
        asset_selection=frozenset({KEY}),
        tags={PARTITION_TAG: "eu"},
        status=dg.DagsterRunStatus.STARTED,
        remote_job_origin=repository.get_job_origin("__ASSET_JOB"),
    )
    assert own_runs.list_busy_partitions(instance) == set()
    tags = {INSTALLATION_TAG: OURS, REPOSITORY_LABEL_TAG: repository.get_label()}
    run_job(instance, report_costs, tags)
    assert [found.run_id for found in own_runs.list_unfinished(instance)] == [run.run_id]


def test_installations_share_a_partition(own_runs: OwnRuns, instance: dg.DagsterInstance) -> None:
    run_job(instance, report_costs, {INSTALLATION_TAG: OURS, PARTITION_TAG: "eu"})
    run_job(instance, report_costs, {INSTALLATION_TAG: OTHERS, PARTITION_TAG: "us"})
    shared = {id_: own_runs.is_shared_partition(instance, id_) for id_ in ("eu", "us")}
    assert shared == {"eu": False, "us": True}
