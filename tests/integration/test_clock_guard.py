"""A clock that jumps ahead expires nothing, until it is right again or accepted.

A test cannot set the servers' clocks. A jump of 400 days is equivalent to a trusted time and data
that are 400 days old on a machine that has been running for a minute since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text, update

from rag_assets.common.clock import BootTime, Clock, read_boot_time
from rag_assets.common.errors import ClockDoubted
from rag_assets.jobs.run_history import delete_old_runs
from rag_assets.pipeline.clock_guard import accept_time
from rag_assets.pipeline.retention import prune_tenant
from rag_assets.pipeline.upkeep import compact_lake, drop_old_generations
from rag_assets.pipeline.uploads import sweep_blobs
from rag_assets.storage.catalog.accounts.panel_sessions import TokenHolder
from rag_assets.storage.catalog.accounts.tables import panel_sessions
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.installation.clock import (
    select_latest_trusted_time,
    select_time_to_record,
)
from rag_assets.storage.catalog.tables import documents, generations
from tests.driving import Driver, tenant_named_after
from tests.installation import FAST, Installation
from tests.integration.test_generations import CHUNKED
from tests.integration.test_incremental import due
from tests.integration.test_uploads import BOATS, SEALS, UploadTenant

YEAR = {"retention_days": 365}
UPLOADS = {"sources": [{"name": "uploads", "type": "uploads"}]}
SIX = {f"page{number}.md": f"# Page {number}\n\nThe tide of day {number}.\n" for number in range(6)}
ONE = {"page.md": "# Page\n\nThe tide of a day.\n"}
JUMP = timedelta(days=400)


@dataclass
class JumpingClock:
    """Simulates clock jumps by setting the trusted time of an installation."""

    catalog: Catalog

    def trust(self, at: datetime, *, running: timedelta | None = timedelta(minutes=1)) -> None:
        """Set the trusted time, and for how long the machine has been running since."""
        boot = read_boot_time()
        then = None
        if boot is not None and running is not None:
            then = BootTime(boot.boot_id, boot.seconds - running.total_seconds())
        self.catalog.clock.replace(at, then)

    @property
    def trusted_at(self) -> datetime:
        return self.catalog.clock.read().at

    def age(self, tenant_id: str, by: timedelta) -> None:
        """Make all contents of a tenant older."""
        self._write(
            update(documents)
            .where(documents.c.tenant == tenant_id)
            .values(embedded_at=documents.c.embedded_at - by)
        )

    def _write(self, statement: Any) -> None:
        with self.catalog.database.begin() as connection:
            connection.execute(statement)

    def jump(self, tenant_id: str) -> None:
        """Simulate a jump of 400 days ahead: everything becomes older at once."""
        self.age(tenant_id, JUMP)
        self.trust(datetime.now(UTC) - JUMP)

    def jump_back(self, tenant_id: str) -> None:
        """Undo the jump."""
        self.age(tenant_id, -JUMP)
        self.trust(datetime.now(UTC))


@pytest.fixture
def clock(driver: Driver) -> Iterator[JumpingClock]:
    jumping = JumpingClock(driver.session.catalog)
    jumping.trust(datetime.now(UTC))
    yield jumping
    jumping.trust(datetime.now(UTC))


Make = Callable[..., UploadTenant]


@pytest.fixture
def make(shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest) -> Make:
    def made(files: dict[str, str], **config: Any) -> UploadTenant:
        tenant_id = tenant_named_after(request)
        shared_installation.add_tenant(tenant_id, **{**FAST, **UPLOADS, **YEAR, **config})
        tenant = UploadTenant(driver, shared_installation, tenant_id)
        with tenant.within():
            pass
        for name, content in files.items():
            tenant.add(name, content.encode())
        shared_installation.synced(tenant_id)
        return tenant

    return made


@pytest.mark.parametrize("share", [0.5, None])
def test_sync_after_a_jump_ahead_keeps_uploads_and_says_so(
    shared_installation: Installation, make: Make, clock: JumpingClock, share: float | None
) -> None:
    tenant = make(SIX, prune_share=share)
    clock.jump(tenant.id)
    tenant.add("seals.md", SEALS)
    assert due(shared_installation, tenant.id) == "source 'uploads' changed"
    said = shared_installation.command("sync", tenant.id)
    assert said.code == 0, said.err
    assert "nothing is deleted because of its age" in said.err
    assert "rag-assets installation accept-clock" in said.err
    assert len(tenant.blobs()) == 7
    assert tenant.found("tide") == {f"Page {number}" for number in range(6)}
    assert tenant.found("grey seals") == {"Seals"}, "indexing goes on"
    assert due(shared_installation, tenant.id) is None, "retention requests no run meanwhile"
    assert clock.trusted_at < datetime.now(UTC) - timedelta(days=399), "a doubted time is not kept"
    clock.jump_back(tenant.id)
    said = shared_installation.command("sync", tenant.id)
    assert (said.code, said.err) == (0, ""), "a clock that is right again needs no confirmation"
    assert len(tenant.blobs()) == 7


def test_prune_after_a_jump_ahead_is_refused_with_the_command_that_accepts_the_clock(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    clock.jump(tenant.id)
    said = shared_installation.command("prune", tenant.id)
    assert said.code == 0
    assert "400 days after the last trusted time" in said.err
    said = shared_installation.command("prune", tenant.id, "--confirm")
    assert said.code == 1
    assert "hint: " in said.err
    assert "accept-clock" in said.err
    assert len(tenant.blobs()) == 1


def test_accept_clock_shows_what_is_due_and_lets_deletions_go_on(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(SIX)
    clock.jump(tenant.id)
    command = ("installation", "accept-clock")
    said = shared_installation.command(*command)
    assert said.code == 1
    [row] = [line for line in said.out.splitlines() if line.startswith(tenant.id)]
    assert row.split()[1:] == ["6", "6", "0"]
    assert "rag-assets installation accept-clock --yes" in said.out
    shown = shared_installation.command(*command, "--json").json
    assert (shown["accepted"], shown["doubt"]) == (False, "ahead")
    assert {"tenant": tenant.id, "due": 6, "unconfirmed": 6, "later_times": 0} in shown["tenants"]
    assert shared_installation.command("prune", tenant.id, "--json").json["documents"] == 0
    assert shared_installation.command(*command, "--yes").code == 0
    [accepted] = clock.catalog.events.latest(tenant.id, kind="clock_accepted")
    assert accepted.payload["by"].startswith("operator ")
    assert shared_installation.command(*command).code == 0, "nothing is left to accept"
    assert shared_installation.command("prune", tenant.id, "--json").json["documents"] == 6
    assert tenant.blobs() == set()


def test_weeks_between_two_syncs_of_a_running_machine_need_no_confirmation(
    make: Make, clock: JumpingClock
) -> None:
    if read_boot_time() is None:
        pytest.skip("this system does not say how long it has been running")
    tenant = make(ONE)
    clock.age(tenant.id, JUMP)
    weeks = timedelta(days=21)
    clock.trust(datetime.now(UTC) - weeks, running=weeks)
    with tenant.within() as ctx:
        assert prune_tenant(ctx, by="a test").documents == 1
    assert datetime.now(UTC) - clock.trusted_at < timedelta(minutes=1)


def test_a_machine_that_was_off_for_days_waits_for_a_person(
    make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    clock.age(tenant.id, JUMP)
    clock.trust(datetime.now(UTC) - timedelta(days=3), running=None)
    with tenant.within() as ctx:
        report = prune_tenant(ctx, by="a test")
    assert report.doubt is not None
    assert (report.documents, report.doubt.kind) == (0, "ahead")


def test_every_deletion_by_age_waits_while_the_clock_is_doubted(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    removed = tenant.add("boats.md", BOATS).upload.id
    shared_installation.synced(tenant.id)
    tenant.remove(removed)
    shared_installation.synced(tenant.id)
    shared_installation.configure(tenant.id, **CHUNKED)
    shared_installation.synced(tenant.id)
    ref, catalog = tenant.context.ref, clock.catalog
    long_ago = datetime.now(UTC) - JUMP
    _age_everything(catalog, ref, long_ago)
    stray = tenant.path_of("ab" + 62 * "0")
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"of nobody")
    tenant.clock = replace(tenant.clock, ahead=timedelta(days=2))

    def remaining() -> dict[str, int]:
        with catalog.database.begin() as connection:
            rows = connection.scalars(
                select(documents.c.document_id).where(
                    documents.c.tenant == ref.id, documents.c.document_id == removed
                )
            ).all()
        return {
            "deleted documents": len(rows),
            "questions": len(catalog.events.latest(ref.id, kind="rag_search_started")),
            "former builds": len(catalog.generations.live(ref.id)) - 1,
            "nobody's blobs": int(stray.exists()),
            "sessions of the panel": _session_count(catalog, ref),
            "runs": len(tenant.driver.session.instance.get_runs()),
        }

    def delete_by_age() -> None:
        with tenant.within() as ctx:
            prune_tenant(ctx, by="a test")
            drop_old_generations(ctx)
            compact_lake(ctx)
            sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock)
        session = tenant.driver.session
        delete_old_runs(catalog, session.instance, session.own_runs, ["sync_tenant"], days=-1)
        catalog.panel_sessions.begin(ref, b"another", TokenHolder("eve"))
        catalog.panel_sessions.end(b"another")

    before = remaining()
    assert min(before.values()) > 0, before
    clock.trust(long_ago - timedelta(days=10))
    delete_by_age()
    assert remaining() == before
    clock.trust(datetime.now(UTC))
    delete_by_age()
    assert set(remaining().values()) == {0}


def _age_everything(catalog: Catalog, ref: TenantRef, long_ago: datetime) -> None:
    """Add a deleted document, a question, a former build and a session that expired long ago."""
    asked = ("rag_search_started", long_ago, {"query": "tide"})
    catalog.events.append(ref, [asked])
    catalog.panel_sessions.begin(ref, b"expired", TokenHolder("eve"))
    with catalog.database.begin() as connection:
        for table, values in (
            (documents, {"updated_at": long_ago}),
            (generations, {"retired_at": long_ago}),
            (panel_sessions, {"expires_at": long_ago}),
        ):
            connection.execute(update(table).where(table.c.tenant == ref.id).values(**values))


def _session_count(catalog: Catalog, ref: TenantRef) -> int:
    query = select(panel_sessions.c.session_sha256).where(panel_sessions.c.tenant == ref.id)
    with catalog.database.begin() as connection:
        return len(connection.scalars(query).all())


def test_times_from_the_future_are_reported_and_ages_count_from_then(
    make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    ref, catalog = tenant.context.ref, clock.catalog
    now = datetime.now(UTC)
    clock.age(tenant.id, -JUMP)
    catalog.panel_sessions.begin(ref, b"of the future", TokenHolder("eve"))
    catalog.service_tokens.add(
        ref, "made later", b"0" * 32, role="member", principals=(), lifetime=timedelta(days=30)
    )
    ahead = "+ interval '400 days'"
    for table, column in (
        ("panel_sessions", "created_at"),
        ("panel_sessions", "expires_at"),
        ("service_tokens", "created_at"),
        ("service_tokens", "expires_at"),
        ("documents", "retry_at"),
        ("syncs", "retry_at"),
    ):
        with catalog.database.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE rag_catalog.{table} SET {column} = coalesce({column}, now()) {ahead}"  # noqa: S608
                f" WHERE tenant = '{tenant.id}'"
            )
    assert catalog.panel_sessions.find(b"of the future", use=False) is None
    with tenant.within() as ctx:
        ctx.catalog.documents.read_again(ref)
        report = prune_tenant(ctx, by="a test")
    assert report.corrected >= 3
    assert report.documents == 0
    assert "times in the future" in report.warnings(tenant.id)[0]
    assert len(catalog.events.latest(tenant.id, kind="times_corrected")) == 1
    with catalog.database.begin() as connection:
        row = connection.execute(select(documents).where(documents.c.tenant == tenant.id)).one()
    soon = now + timedelta(minutes=5)
    assert now <= row.embedded_at < soon
    assert row.retry_at < soon
    [token] = catalog.service_tokens.all(tenant.id)
    assert token.expires_at is not None
    assert token.expires_at < soon + timedelta(days=30)
    assert all(
        sync.retry_at and sync.retry_at < soon for sync in catalog.syncs.all(tenant.id).values()
    )
    tenant.clock = replace(tenant.clock, ahead=timedelta(days=364))
    with tenant.within() as ctx:
        assert (prune_tenant(ctx, by="a test").documents, len(tenant.blobs())) == (0, 1)
    tenant.clock = replace(tenant.clock, ahead=timedelta(days=366))
    with tenant.within() as ctx:
        report = prune_tenant(ctx, by="a test")
    assert (report.documents, report.corrected) == (1, 0)


def test_a_sync_notices_an_age_that_counts_from_the_future(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    clock.age(tenant.id, -JUMP)
    tenant.add("seals.md", SEALS)
    shared_installation.synced(tenant.id)
    assert len(clock.catalog.events.latest(tenant.id, kind="times_corrected")) == 1
    assert not clock.catalog.clock.has_future_ages(tenant.id, datetime.now(UTC))


def test_what_is_embedded_while_the_clock_is_behind_is_not_older_than_the_trusted_time(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    right_time = datetime.now(UTC) + JUMP
    clock.trust(right_time)
    tenant = make(ONE)
    with tenant.within() as ctx:
        report = prune_tenant(ctx, by="a test")
    assert report.doubt is not None
    assert (report.doubt.kind, report.corrected) == ("behind", 0)
    with clock.catalog.database.begin() as connection:
        [row] = connection.execute(select(documents).where(documents.c.tenant == tenant.id))
    assert row.embedded_at >= right_time, "it would be pruned as soon as the clock is right"
    assert row.changed_at >= right_time


def test_times_by_which_the_catalog_records_and_forgets_stay_near_the_trusted_time(
    clock: JumpingClock,
) -> None:
    def times() -> tuple[datetime, datetime]:
        with clock.catalog.database.begin() as connection:
            recorded, latest = connection.execute(
                select(select_time_to_record(), select_latest_trusted_time())
            ).one()
        return recorded, latest

    now = datetime.now(UTC)
    clock.trust(now - timedelta(days=10))
    recorded, latest = times()
    assert (recorded >= now, latest) == (True, now - timedelta(days=9))
    clock.trust(now + timedelta(days=10))
    recorded, latest = times()
    assert (recorded, now <= latest < now + timedelta(minutes=1)) == (
        now + timedelta(days=10),
        True,
    )


def test_a_day_has_24_hours_when_the_time_zone_of_postgres_changes_to_winter_time(
    clock: JumpingClock,
) -> None:
    before_the_change = datetime(2025, 10, 25, 12, tzinfo=UTC)
    clock.trust(before_the_change)
    with clock.catalog.database.begin() as connection:
        connection.execute(text("SET LOCAL TIME ZONE 'Europe/Berlin'"))
        latest = connection.scalar(select(select_latest_trusted_time()))
    assert latest == before_the_change + timedelta(days=1)


def test_accept_clock_after_it_was_ahead_corrects_what_was_recorded(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    clock.age(tenant.id, -JUMP)
    clock.trust(datetime.now(UTC) + JUMP)
    shown = shared_installation.command("installation", "accept-clock", "--json").json
    assert shown["doubt"] == "behind"
    [counts] = [row for row in shown["tenants"] if row["tenant"] == tenant.id]
    assert (counts["due"], counts["later_times"]) == (0, 1)
    assert shared_installation.command("installation", "accept-clock", "--yes").code == 0
    assert clock.trusted_at < datetime.now(UTC) + timedelta(minutes=1)
    assert clock.catalog.clock.count_future_times(tenant.id, datetime.now(UTC)) == 0


def test_accept_clock_of_a_machine_far_from_postgres_is_refused(
    clock: JumpingClock,
) -> None:
    wrong = Clock(machine=lambda: datetime.now(UTC) + timedelta(hours=2))
    before = clock.trusted_at
    with pytest.raises(ClockDoubted, match="Postgres's clock"):
        accept_time(clock.catalog, wrong, by="a test")
    assert clock.trusted_at == before


def test_status_and_the_daily_job_say_that_the_clock_is_doubted(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    from rag_assets.definitions import build_defs

    tenant = make(ONE)
    assert shared_installation.command("status", "--json").json["clock"] is None
    clock.jump(tenant.id)
    assert "400 days after" in shared_installation.command("status", "--json").json["clock"]
    shown = shared_installation.command("status").out
    assert "Warning: nothing is deleted because of its age" in shown
    job = build_defs().get_repository_def().get_job("prune")
    result = job.execute_in_process(instance=tenant.driver.session.instance)
    assert result.success
    assert len(tenant.blobs()) == 1
    logs = tenant.driver.session.instance.all_logs(result.run_id)
    warnings = [log.user_message for log in logs if log.level == logging.WARNING]
    assert len(warnings) == 1, "one for all tenants"
    assert warnings[0].startswith("nothing is deleted because of its age")


def test_check_of_a_doubted_clock_warns(
    shared_installation: Installation, make: Make, clock: JumpingClock
) -> None:
    tenant = make(ONE)
    clock.jump(tenant.id)
    assert shared_installation.command("check", tenant.id).code == 0, "searches stay correct"
    [found] = [one for one in clock.catalog.check_results.list(tenant.id) if one.name == "clock"]
    assert (found.passed, found.severity) == (False, "WARN")
    assert "accept-clock" in (found.description or "")
