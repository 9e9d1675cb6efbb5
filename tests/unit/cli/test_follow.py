"""Stopping our sensor stops the change watcher, in an instance with other code locations."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from rag_assets.cli import follow
from rag_assets.cli.follow import TenantFollower, find_stopped_sensor
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.own_runs import INSTALLATION_TAG, OwnRuns
from rag_assets.resources.stores import PostgresResource

OURS, OTHERS = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))


@dg.job
def any_job() -> None:
    """A job of any code location."""


@pytest.fixture
def own_runs(monkeypatch: pytest.MonkeyPatch) -> OwnRuns:
    own = property(lambda _self: {INSTALLATION_TAG: OURS})
    monkeypatch.setattr(OwnRuns, "installation_tags", own)
    return OwnRuns.model_construct(
        postgres=PostgresResource(installation=InstallationResource()), jobs=[], assets=[]
    )


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


def origin_of(module: str) -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(executable_path="python", module_name=module)
    location = InProcessCodeLocationOrigin(target, location_name=module)
    return RemoteRepositoryOrigin(location, "__repository__")


def add_sensor(
    instance: dg.DagsterInstance,
    module: str,
    name: str = "source_files",
    status: InstigatorStatus = InstigatorStatus.STOPPED,
) -> None:
    origin = origin_of(module).get_instigator_origin(name)
    instance.add_instigator_state(InstigatorState(origin, InstigatorType.SENSOR, status))


def add_run(instance: dg.DagsterInstance, module: str, installation: str) -> None:
    tags = {REPOSITORY_LABEL_TAG: origin_of(module).get_label(), INSTALLATION_TAG: installation}
    instance.create_run_for_job(any_job, tags=tags)


def test_find_stopped_sensor_ignores_a_teams_sensor_of_the_same_name(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    add_sensor(instance, "team.ingest")
    add_sensor(instance, "rag_assets.definitions", status=InstigatorStatus.RUNNING)
    assert find_stopped_sensor(instance, own_runs) is None


def test_our_stopped_sensor_is_found(own_runs: OwnRuns, instance: dg.DagsterInstance) -> None:
    add_sensor(instance, "rag_assets.definitions")
    assert find_stopped_sensor(instance, own_runs) == "__repository__@rag_assets.definitions"


def test_find_stopped_sensor_in_a_teams_location_with_ours_finds_it(
    own_runs: OwnRuns, instance: dg.DagsterInstance
) -> None:
    add_sensor(instance, "team.all")
    add_sensor(instance, "team.all", "tenants", InstigatorStatus.RUNNING)
    assert find_stopped_sensor(instance, own_runs) is not None


@pytest.mark.parametrize(("installation", "is_found"), [(OURS, True), (OTHERS, False)])
def test_find_stopped_sensor_with_runs_decides_by_their_installation(
    own_runs: OwnRuns, instance: dg.DagsterInstance, installation: str, is_found: bool
) -> None:
    add_sensor(instance, "rag_assets.definitions")
    add_run(instance, "rag_assets.definitions", installation)
    add_run(instance, "elsewhere", OURS)
    assert (find_stopped_sensor(instance, own_runs) is not None) is is_found


def test_follower_logs_once_that_the_sensor_is_stopped(
    own_runs: OwnRuns, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(follow, "warn", lines.append)
    monkeypatch.setattr(follow, "_STATE_SECONDS", -1.0)
    add_sensor(instance, "rag_assets.definitions")
    follower: Any = SimpleNamespace(
        _stopped=(0.0, False), _session=SimpleNamespace(instance=instance), _own_runs=own_runs
    )
    assert [TenantFollower._is_stopped(follower) for _ in range(2)] == [True, True]
    [line] = lines
    assert "source_files of __repository__@rag_assets.definitions is stopped" in line
