"""Costs as users see them: plan, sync, usage, the checks of a run, and the cost report."""

from __future__ import annotations

import functools
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets import definitions
from rag_assets.cli.runs import Runner, RunResult
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.stores import (
    ElasticsearchResource,
    EmbedderResource,
    LakeResource,
    PostgresResource,
)
from rag_assets.resources.workbench import Workbench
from rag_assets.storage.catalog.accounts.usage import Usage, today
from tests.installation import Installation

PRICED = {"provider": "deterministic", "price": {"per_million": 1_000}}
"""A thousandth of a dollar a token."""
SLICE = 16


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    own = InstallationResource()
    workbench = Workbench(
        postgres=PostgresResource(installation=own),
        own_runs=definitions.build_resources()["rag_assets_runs"],
        elasticsearch=ElasticsearchResource(installation=own),
        lake=LakeResource(installation=own),
        embedders=EmbedderResource(installation=own),
        slice_documents=SLICE,
    )
    made = functools.partial(definitions.build_defs, {"workbench": workbench})
    monkeypatch.setattr(definitions, "build_defs", made)


def write(folder: Path, numbers: range) -> None:
    for number in numbers:
        text = f"# Page {number}\n\nWhat is said on page {number} of this handbook.\n"
        (folder / f"{number:03}.md").write_text(text)


def run(installation: Installation, tenant: str) -> RunResult:
    """Run the chain once, as the daemon does."""
    session = installation.session()
    session.get_active_tenant(tenant)
    return Runner(session).run("sync_tenant", tenant)


def counts(installation: Installation, tenant: str) -> dict[str, int]:
    return installation.context(tenant).catalog.documents.count_by_status(tenant)


def used(installation: Installation, tenant: str) -> dict[str, Any]:
    answer = installation.command("usage", tenant, "--json").json
    [total] = answer["totals"]
    assert total["tokens"] == sum(row["tokens"] for row in answer["usage"])
    return total


@pytest.mark.usefixtures("small_slices")
def test_a_cap_per_run_stops_a_sync_midway_and_the_next_one_goes_on(
    shared_installation: Installation,
) -> None:
    installation, tenant = shared_installation, "per-run"
    folder = installation.add_tenant(tenant, embedder=PRICED)
    (folder / "kept.md").write_text("# Kept\n\nA page of another kind.\n")
    installation.synced(tenant)
    before = used(installation, tenant)
    (folder / "kept.md").rename(folder / "moved.md")
    write(folder, range(4 * SLICE))
    plan = installation.command("plan", tenant, "--json").json
    assert plan["embeddings"] == 4 * SLICE
    assert plan["cost"] == pytest.approx(plan["tokens"] / 1_000)
    assert plan["cap"] is None
    # This suffices for one and a half slices.
    cap = round(plan["cost"] * 0.4, 2)
    installation.configure(tenant, caps={"per_run": cap})
    shown = installation.command("plan", tenant).out
    assert f"The cap of ${cap:.2f} a run would stop it early" in shown

    first = installation.sync(tenant).as_json()
    assert f"the cap of ${cap:.2f} a run is reached" in first["error"]["message"]
    assert f"`rag-assets sync {tenant}` continues" in first["error"]["hint"]
    spent = first["stages"]["embeddings"]
    assert 0 < spent["cost"] <= cap
    assert spent["embedded"] > 0
    standing = counts(installation, tenant)
    assert first["error"]["message"].startswith(f"{standing['FAILED']} documents wait")
    # Work without embedding is done, and no slice is parsed in vain.
    assert standing["READY"] == 1 + spent["embedded"]
    assert "files/moved.md" in {uri for uri, _, _ in installation.entries(tenant).values()}
    assert first["stages"]["parsed_text"]["parsed"] <= 2 * SLICE

    syncs = [first]
    while syncs[-1]["error"] and len(syncs) < 5:
        syncs.append(installation.sync(tenant).as_json())
    assert syncs[-1]["error"] is None
    costs = [sync["stages"]["embeddings"]["cost"] for sync in syncs]
    assert max(costs) <= cap
    assert counts(installation, tenant) == {"READY": 1 + 4 * SLICE, "DELETED": 1}
    total = used(installation, tenant)
    assert total["tokens"] - before["tokens"] == plan["tokens"]
    assert total["cost"] == pytest.approx(before["cost"] + sum(costs))


def test_a_cap_per_day_warns_until_it_is_raised(shared_installation: Installation) -> None:
    installation, tenant = shared_installation, "per-day"
    folder = installation.add_tenant(tenant, embedder=PRICED, caps={"per_day": 0.01})
    write(folder, range(3))
    stopped = run(installation, tenant)
    assert stopped.failure is not None
    [spending] = [check for check in stopped.checks if check.check == "spending"]
    assert (spending.passed, spending.severity) == (False, "WARN")
    assert "3 documents wait; wait until" in (spending.description or "")
    installation.configure(tenant, caps={"per_day": 1.0})
    result = installation.command("sync", tenant)
    assert result.code == 0, result.err
    assert "spent: " in result.out
    shown = installation.command("usage", tenant).out
    assert "the cap of $1.00 a day" in shown
    assert "deterministic" in shown
    passed = run(installation, tenant)
    assert [check.passed for check in passed.checks if check.check == "spending"] == [True]


def test_a_question_is_counted_too(shared_installation: Installation) -> None:
    installation, tenant = shared_installation, "question"
    folder = installation.add_tenant(tenant, embedder=PRICED)
    write(folder, range(1))
    installation.synced(tenant)
    before = used(installation, tenant)
    assert installation.command("search", tenant, "what is said on page 0?").code == 0
    after = used(installation, tenant)
    assert (after["texts"], after["requests"]) == (before["texts"] + 1, before["requests"] + 1)
    assert after["cost"] > before["cost"]


def test_usage_without_a_known_price_is_not_free(shared_installation: Installation) -> None:
    installation, tenant = shared_installation, "unpriced"
    installation.add_tenant(tenant)
    ctx = installation.context(tenant)
    ctx.catalog.usage.add(ctx.ref, "openai-compatible", "m", Usage(1, 0, 1, 50, 0, 50, 0.0))
    assert "no price known" in installation.command("usage").out
    assert used(installation, tenant)["cost"] is None
    assert installation.command("usage", "nobody").code == 1


def test_costs_are_reported_for_all_tenants_by_one_run(shared_installation: Installation) -> None:
    installation, tenant = shared_installation, "reported"
    installation.add_tenant(tenant)
    ctx = installation.context(tenant)
    yesterday = today() - timedelta(days=1)
    ctx.catalog.usage.add(ctx.ref, "openai", "m", Usage(1, 0, 1, 50, 0, 0, 0.25), day=yesterday)
    instance = installation.session().instance
    job = definitions.build_defs().get_repository_def().get_job("report_costs")
    assert job.execute_in_process(instance=instance).success
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("embedding_cost"), asset_partitions=[tenant]), limit=2
    ).records
    assert len(records) == 1
    told = records[0].asset_materialization
    assert told is not None
    assert told.metadata["yesterday in $"].value == 0.25
    assert json.dumps(told.metadata["by model"].records[0].data)
