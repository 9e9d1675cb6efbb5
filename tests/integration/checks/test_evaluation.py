"""Automatic checks: what schedule and sensor evaluate, and where results are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.base import PartitionKeyFilter
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageTable,
)
from sqlalchemy import delete, select, update

from rag_assets.checks.tenant_check import CheckContext, TenantCheck, build_checks
from rag_assets.checks.verdict import Verdict
from rag_assets.cli.session import Session
from rag_assets.common.errors import ConfigurationError, TenantGone
from rag_assets.declarations import PLAIN, AssetJob
from rag_assets.definitions import build_defs, build_resources
from rag_assets.jobs.run_history import delete_old_runs
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.tables import check_results, documents
from tests.installation import FAST, Installation
from tests.integration.checks.faults import ALL
from tests.sensor_resources import sensor_resources


class Clock:
    """Ticks schedules and sensors as the daemon does, and executes the requested runs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.repository = build_defs().get_repository_def()

    def tick_schedule(self, name: str) -> list[bool]:
        """Tick a schedule; return whether each requested run succeeded."""
        schedule = self.repository.get_schedule_def(name)
        with dg.build_schedule_context(
            instance=self.session.instance, scheduled_execution_time=datetime.now(UTC)
        ) as context:
            requests = schedule.evaluate_tick(context).run_requests or []
        return [self._run(schedule.job_name, request) for request in requests]

    def tick_sensor(self, name: str) -> list[bool]:
        """Tick a sensor; return whether each requested run succeeded."""
        sensor = self.repository.get_sensor_def(name)
        # An unclosed context would replace another test's instance when it is collected.
        with dg.build_sensor_context(
            instance=self.session.instance,
            repository_def=self.repository,
            sensor_name=name,
            resources=sensor_resources(),
        ) as context:
            requests = sensor.evaluate_tick(context).run_requests or []
        return [self._run(sensor.job_name, request) for request in requests]

    def _run(self, job_name: str, request: dg.RunRequest) -> bool:
        job = self.repository.get_job(job_name)
        return job.execute_in_process(
            instance=self.session.instance,
            run_config=request.run_config,
            tags=dict(request.tags or {}),
            raise_on_error=False,
        ).success

    def evaluations(self, check: str, tenant_id: str) -> list[tuple[bool, str]]:
        """Return result and run of each evaluation in Dagster's history, oldest first."""
        asset, name = check.split(".")
        history = self.session.instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey(asset), name),
            limit=20,
            partition_filter=PartitionKeyFilter(key=tenant_id),
        )
        return [
            (record.event.dagster_event.asset_check_evaluation_data.passed, record.run_id)
            for record in reversed(history)
            if record.event is not None and record.event.dagster_event is not None
        ]

    def results(self, tenant_id: str) -> dict[str, CheckResult]:
        """Return the results of a tenant's checks in the catalog."""
        found = self.session.catalog.check_results.list(tenant_id)
        return {f"{result.asset}.{result.name}": result for result in found}


@pytest.fixture(scope="module")
def three(shared_installation: Installation) -> Installation:
    """Create three synced tenants."""
    for name in ("first", "second", "third"):
        folder = shared_installation.add_tenant(name, **FAST)
        (folder / "page.md").write_text(f"# Page\n\nWords of {name}.\n")
        shared_installation.synced(name)
    return shared_installation


@pytest.fixture
def clock(three: Installation) -> Iterator[Clock]:
    """Create a clock for an installation whose checks have never been evaluated."""
    with Session() as session:
        with session.catalog.database.begin() as connection:
            connection.execute(delete(check_results))
        storage = session.instance.event_log_storage
        assert isinstance(storage, SqlEventLogStorage)
        with storage.index_connection() as connection:
            connection.execute(delete(AssetCheckExecutionsTable))
        yield Clock(session)


def age(clock: Clock, *tenant_ids: str, hours: int) -> None:
    """Make the last evaluations of tenants so many hours old."""
    with clock.session.catalog.database.begin() as connection:
        connection.execute(
            update(check_results)
            .where(check_results.c.tenant.in_(tenant_ids))
            .values(evaluated_at=datetime.now(UTC) - timedelta(hours=hours))
        )


NIGHTLY = {
    "embeddings.lake",
    "raw_documents.catalog",
    "raw_documents.contents",
    "raw_documents.stored",
    "search_index.drift",
    "search_index.relations",
    "search_index.vectors_beside",
}


def test_a_check_that_cannot_be_evaluated_stops_no_other_of_its_step(clock: Clock) -> None:
    def fails(_: CheckContext) -> Verdict:
        raise ConfigurationError("its file is gone", hint="bring it back")

    def passes(_: CheckContext) -> Verdict:
        return Verdict(passed=True, description="well", compared=())

    verdicts = {"a": fails, "b": passes, "c": fails, "unselected": fails}
    checks = [TenantCheck("chunks", name, "", verdict) for name, verdict in verdicts.items()]
    [step] = build_checks(checks, PLAIN)
    selected = [check.key(PLAIN) for check in checks[:3]]
    job = AssetJob("some", "", lambda *_: dg.AssetSelection.checks(*selected), checks_alone=True)
    defs = dg.Definitions(asset_checks=[step], jobs=[job.build(PLAIN)], resources=build_resources())
    instance = clock.session.instance
    done = defs.resolve_job_def("some").execute_in_process(
        instance=instance, partition_key="first", raise_on_error=False
    )
    assert [event.step_key for event in done.get_step_failure_events()] == ["chunks_checks"]
    [failure] = done.get_step_failure_events()
    told = failure.step_failure_data.user_failure_data
    assert told is not None
    assert told.description == "not evaluated: a, c\nits file is gone\nbring it back"
    assert [result.check_name for result in done.get_asset_check_evaluations()] == ["b"]
    results = clock.results("first")
    assert {name: result.passed for name, result in results.items()} == {
        "chunks.a": None,
        "chunks.b": True,
        "chunks.c": None,
    }


@pytest.mark.long
def test_a_night_and_a_day_evaluate_each_check_of_each_tenant_once(clock: Clock) -> None:
    assert clock.tick_schedule("nightly_drift") == [True], "one run for all tenants"
    assert set(clock.results("first")) == NIGHTLY
    assert clock.tick_schedule("daily_checks") == [True], "one run for all tenants"
    runs = set()
    for tenant_id in ("first", "second", "third"):
        assert set(clock.results(tenant_id)) == ALL
        for check in ALL:
            [(passed, run_id)] = clock.evaluations(check, tenant_id)
            assert passed, (tenant_id, check)
            runs.add(run_id)
    assert len(runs) == 2


def test_a_tenant_that_fails_stops_no_other(clock: Clock, three: Installation) -> None:
    three.configure("first", parser={"passwords": ["$A_VARIABLE_THAT_IS_NOT_SET"]})
    three.session().catalog  # noqa: B018 - reads tenants.yaml again
    assert clock.tick_schedule("daily_checks") == [False], "a check could not be evaluated"
    first = clock.results("first")
    assert first["chunks.secrets"].error is not None
    assert first["search_index.dimensions"].passed, "what needs no parsed text is evaluated"
    for tenant_id in ("second", "third"):
        assert all(result.passed for result in clock.results(tenant_id).values())
        assert clock.evaluations("chunks.secrets", tenant_id)[-1][0]
    three.configure("first", parser=None)
    three.session().catalog  # noqa: B018 - reads tenants.yaml again
    assert clock.tick_schedule("daily_checks") == [True]
    assert clock.results("first")["chunks.secrets"].error is None


def test_the_nightly_comparison_records_the_drift_check(clock: Clock, three: Installation) -> None:
    ctx = three.context("second")
    serving = ctx.catalog.generations.serving("second")
    assert serving is not None
    ctx.store.entries.delete(serving.index_name, "second", list(three.entries("second")))
    assert clock.tick_schedule("nightly_drift") == [True]
    found = {
        tenant_id: clock.evaluations("search_index.drift", tenant_id)[-1][0]
        for tenant_id in ("first", "second", "third")
    }
    assert found == {"first": True, "second": False, "third": True}
    assert clock.results("second")["search_index.drift"].passed is False
    assert len(ctx.catalog.events.latest("second", kind="drift_found")) == 1
    assert not ctx.catalog.events.latest("first", kind="drift_found")
    three.synced("second", repair=True)


def test_a_tenant_that_was_never_checked_is_checked_at_the_next_tick(clock: Clock) -> None:
    assert clock.results("first") == {}, "a sync evaluates two checks, and is no check of a tenant"
    assert clock.tick_sensor("staleness") == [True]
    assert set(clock.results("third")) == ALL
    assert clock.tick_sensor("staleness") == []


def test_checks_that_the_daily_run_missed_are_evaluated_later(clock: Clock) -> None:
    assert clock.tick_sensor("staleness") == [True]
    age(clock, "second", hours=31)
    assert clock.tick_sensor("staleness") == [True]
    assert len(clock.evaluations("chunks.secrets", "second")) == 2
    assert len(clock.evaluations("chunks.secrets", "first")) == 1, "only what is overdue"


def test_staleness_costs_a_query_until_it_changes(clock: Clock) -> None:
    assert clock.tick_sensor("staleness") == [True]
    age(clock, "first", "second", "third", hours=2)
    assert clock.tick_sensor("staleness") == [], "nothing changed: no run"
    looked_at = clock.results("first")["search_index.staleness"].evaluated_at
    assert looked_at is not None
    assert datetime.now(UTC) - looked_at < timedelta(minutes=5)

    past = datetime.now(UTC) - timedelta(days=2)
    behind = {"status": "PROCESSING", "changed_at": past}
    with clock.session.catalog.database.begin() as connection:
        mine = documents.c.tenant == "second"
        connection.execute(update(documents).where(mine).values(**behind))
    assert clock.tick_sensor("staleness") == [True]
    assert clock.results("second")["search_index.staleness"].passed is False
    recorded = [passed for passed, _ in clock.evaluations("search_index.staleness", "second")]
    assert recorded == [True, False]
    assert clock.tick_sensor("staleness") == [], "recorded once, not at every tick"
    assert len(clock.evaluations("search_index.staleness", "first")) == 1

    with clock.session.catalog.database.begin() as connection:
        connection.execute(update(documents).where(mine).values(status="READY"))
    assert clock.tick_sensor("staleness") == [True]
    assert clock.results("second")["search_index.staleness"].passed


def test_a_disabled_tenant_is_left_alone(clock: Clock, three: Installation) -> None:
    assert three.command("tenants", "disable", "second").code == 0
    assert clock.tick_schedule("nightly_drift") == [True]
    assert clock.tick_schedule("daily_checks") == [True]
    assert clock.results("second") == {}
    assert clock.tick_sensor("staleness") == []
    assert three.command("tenants", "enable", "second").code == 0


def test_old_runs_of_checks_go_with_their_evaluations(clock: Clock) -> None:
    assert clock.tick_schedule("daily_checks") == [True]
    jobs = ("check_all_tenants",)
    stores = clock.session.catalog, clock.session.instance, clock.session.own_runs
    assert delete_old_runs(*stores, jobs, days=30) == 0
    assert clock.evaluations("search_index.isolation", "first")
    assert delete_old_runs(*stores, jobs, days=-1) >= 1
    assert clock.evaluations("search_index.isolation", "first") == []
    assert clock.results("first"), "the last result stays"


def test_a_check_in_a_removed_tenant_records_nothing(clock: Clock) -> None:
    catalog = clock.session.catalog
    ref = catalog.tenants.get("first").ref
    former = TenantRef(ref.id, ref.incarnation - 1)
    with pytest.raises(TenantGone):
        catalog.check_results.record(former, [CheckResult("chunks", "secrets", passed=True)])
    assert catalog.check_results.list("first") == []


@pytest.mark.long
def test_a_removed_tenant_leaves_no_evaluation_in_runs_over_all_tenants(
    clock: Clock, three: Installation
) -> None:
    folder = three.add_tenant("leaving", **FAST)
    (folder / "unmistakable.md").write_text("")
    three.synced("leaving")
    assert clock.tick_schedule("daily_checks") == [True]
    assert clock.tick_schedule("nightly_drift") == [True]
    assert "unmistakable" in history(clock)
    assert three.command("tenants", "remove", "leaving", "--yes").code == 0
    assert "unmistakable" not in history(clock)
    assert clock.evaluations("search_index.quarantine", "leaving") == []
    assert clock.evaluations("search_index.quarantine", "first"), "the others' stay"


def history(clock: Clock) -> str:
    """Return all events and evaluations that Dagster stores, as text."""
    storage = clock.session.instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    with storage.index_connection() as connection:
        events = connection.scalars(select(SqlEventLogStorageTable.c.event)).all()
        evaluations = connection.scalars(select(AssetCheckExecutionsTable.c.evaluation_event)).all()
    return " ".join(filter(None, [*events, *evaluations]))
