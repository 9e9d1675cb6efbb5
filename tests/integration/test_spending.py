"""Spending of syncs is recorded, and limited by the tenant's caps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_assets.common.errors import TenantGone
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage, UsageRow, today
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.status import NEVER
from tests.driving import Driver, tenant_named_after
from tests.installation import Installation

PRICED = {"provider": "deterministic", "price": {"per_million": 1_000}}
"""A thousandth of a dollar a token."""


def write(folder: Path, numbers: range) -> None:
    for number in numbers:
        text = f"# Page {number}\n\nWhat is said on page {number} of this handbook.\n"
        (folder / f"{number:03}.md").write_text(text)


def rows(driver: Driver, tenant: str) -> list[UsageRow]:
    return driver.session.catalog.usage.rows(today(), tenant)


def statuses(driver: Driver, tenant: str) -> dict[str, int]:
    return driver.session.catalog.documents.count_by_status(tenant)


def test_usage_adds_up_by_day_provider_and_model(
    driver: Driver, request: pytest.FixtureRequest, shared_installation: Installation
) -> None:
    tenant = tenant_named_after(request)
    shared_installation.add_tenant(tenant)
    with driver.locked(tenant) as ctx:
        usage, ref = ctx.catalog.usage, ctx.ref
    day = today().replace(day=15)
    once = Usage(2, 1, 100, 1_000, 0, 0, 0.02)
    usage.add(ref, "openai", "small", once, day=day)
    usage.add(ref, "openai", "small", once, day=day)
    usage.add(ref, "openai", "large", once, day=day)
    usage.add(ref, "openai", "small", once, day=day - timedelta(days=1))
    usage.add(ref, "openai", "small", once, day=day - timedelta(days=31))
    found = usage.rows(day - timedelta(days=1), tenant)
    assert [(row.day.day, row.model) for row in found] == [
        (15, "large"),
        (15, "small"),
        (14, "small"),
    ]
    assert found[1].used == once + once
    assert usage.read_spending(tenant, day) == SpendingTotals(run=0, day=0.06, month=0.08)
    assert usage.read_spending(tenant, day - timedelta(days=1)) == SpendingTotals(
        run=0, day=0.02, month=0.02
    )
    with pytest.raises(TenantGone):
        usage.add(TenantRef(tenant, ref.incarnation + 1), "openai", "small", once)


def test_the_cost_of_a_sync_is_recorded_and_reused_vectors_are_free(
    driver: Driver, request: pytest.FixtureRequest, shared_installation: Installation
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, embedder=PRICED)
    write(folder, range(5))
    driver.sync(tenant)
    [row] = rows(driver, tenant)
    assert (row.provider, row.model, row.used.texts) == ("deterministic", "hash", 5)
    assert row.used.requests == 1
    assert row.used.tokens > 0
    assert row.used.cost == pytest.approx(row.used.tokens / 1_000)
    spent = driver.session.catalog.usage.read_spending(tenant, today())
    assert spent == SpendingTotals(row.used.cost, row.used.cost, row.used.cost)
    (folder / "000.md").rename(folder / "moved.md")
    driver.sync(tenant)
    assert rows(driver, tenant) == [row]


def test_a_cap_stops_what_costs_and_nothing_else(
    driver: Driver, request: pytest.FixtureRequest, shared_installation: Installation
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, embedder=PRICED)
    write(folder, range(10))
    driver.sync(tenant)
    [row] = rows(driver, tenant)
    shared_installation.configure(tenant, caps={"per_day": row.used.cost})
    write(folder, range(10, 14))
    (folder / "000.md").rename(folder / "moved.md")
    (folder / "001.md").unlink()
    driver.sync(tenant)
    assert rows(driver, tenant) == [row]
    documents = {d.uri: d for d in driver.session.catalog.documents.all(tenant)}
    assert documents["files/moved.md"].status == "READY"
    waiting = [d for d in documents.values() if d.status == "FAILED"]
    assert {d.uri for d in waiting} == {f"files/{number:03}.md" for number in range(10, 14)}
    tomorrow = today() + timedelta(days=1)
    midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=UTC)
    assert {d.retry_at for d in waiting} == {midnight}
    assert "raise caps.per_day and sync" in (waiting[0].error_message or "")
    assert len(shared_installation.entries(tenant)) == 9
    [event] = driver.session.catalog.events.latest(tenant, kind="cap_reached")
    assert event.payload["cap"] == "per_day"
    shared_installation.configure(tenant, caps={"per_day": 10 * row.used.cost})
    driver.session.catalog.quarantine.retry_transient_failures(
        driver.session.catalog.tenants.get(tenant).ref
    )
    driver.sync(tenant)
    assert statuses(driver, tenant)["READY"] == 13


def test_once_a_cap_is_reached_no_further_slice_is_parsed(
    request: pytest.FixtureRequest, shared_installation: Installation
) -> None:
    from rag_assets.pipeline.context import SliceLimits

    driver = Driver(shared_installation, SliceLimits(documents=3))
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, embedder=PRICED, caps={"per_run": 0})
    write(folder, range(12))
    done = driver.sync(tenant)
    assert done["parsed"] == 3
    documents = driver.session.catalog.documents.all(tenant)
    assert {(d.status, d.retry_at) for d in documents} == {("FAILED", NEVER)}
