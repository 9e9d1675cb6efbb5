"""The assets `generations` and `retention` as their pages show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from rag_assets.pipeline.context import SliceLimits
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.builds import DOCUMENTS, prose
from tests.integration.test_generations import CHUNKED


def reported(installation: Installation, asset: str, tenant: str) -> list[dict[str, Any]]:
    """Return the metadata of every report on a tenant, the newest first."""
    records = installation.session().instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[tenant]), limit=100
    )
    found = []
    for record in records.records:
        materialization = record.asset_materialization
        assert materialization is not None
        values = {name: value.value for name, value in materialization.metadata.items()}
        found.append({**values, "description": materialization.description})
    return found


def test_builds_are_reported_while_one_is_made_and_daily(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    shared_installation.synced(tenant)
    assert reported(shared_installation, "generations", tenant) == []
    shared_installation.configure(tenant, publish="manual", **CHUNKED)
    Driver(shared_installation, SliceLimits(documents=2)).run_once(tenant)
    (files / "0.md").write_text(prose("zebras"))
    shared_installation.synced(tenant)
    newest = reported(shared_installation, "generations", tenant)[0]
    assert newest["description"].startswith(
        "build 2 is COMPLETE, 5 of 5 documents; build 1 answers"
    )
    assert (newest["serving build"], newest["progress"]) == (1, 1.0)
    assert "data:image/svg+xml" in newest["documents over time"]
    run_prune(shared_installation)
    [daily, *_] = reported(shared_installation, "generations", tenant)
    assert daily["builds"] == 2


def test_what_is_due_held_and_erased_is_reported_daily(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    run_prune(shared_installation)
    assert reported(shared_installation, "retention", tenant) == []
    shared_installation.configure(tenant, retention_days={"file": 5})
    held = shared_installation.command(
        "hold", "set", tenant, "--source", "files", "--reason", "why"
    )
    assert held.code == 0, held.err
    run_prune(shared_installation)
    [found] = reported(shared_installation, "retention", tenant)
    assert (found["held documents"], found["due within 7 days"]) == (DOCUMENTS, 0)
    assert found["rule"] == "retention_days: file 5"
    lifted = shared_installation.command(
        "hold", "lift", tenant, "--source", "files", "--reason", "w"
    )
    assert lifted.code == 0, lifted.err
    run_prune(shared_installation)
    [found, _] = reported(shared_installation, "retention", tenant)
    assert (found["held documents"], found["due within 7 days"]) == (0, DOCUMENTS)
    assert found["description"].startswith("next due: file, ")


def hold(installation: Installation, what: str, tenant: str) -> None:
    """Set or lift a hold on all of the tenant's documents."""
    result = installation.command("hold", what, tenant, "--source", "files", "--reason", "why")
    assert result.code == 0, result.err


def run_prune(installation: Installation) -> None:
    """Run the daily job `prune` for all tenants."""
    session = installation.session()
    from rag_assets.definitions import build_defs

    job = build_defs().resolve_job_def("prune")
    assert job.execute_in_process(instance=session.instance).success
