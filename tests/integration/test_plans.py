"""A plan's estimates use measurements of the tenant, and name those that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.builds import prose
from tests.integration.test_generations import CHUNKED, SPARSE


def planned(installation: Installation, tenant: str) -> Any:
    result = installation.command("plan", tenant, "--json")
    assert result.code == 0, result.err
    return result.json


def test_what_was_never_measured_is_unknown(shared_installation: Installation, tenant: str) -> None:
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "1.md").write_text(prose("1"))
    estimate = planned(shared_installation, tenant)["estimate"]
    assert estimate["seconds"] is estimate["bytes"] is None
    assert "texts embedded per second by deterministic/hash@384" in estimate["rates_lacking"]
    assert "bytes of a vector" in estimate["sizes_lacking"]
    shown = shared_installation.command("plan", tenant).out
    assert "unknown until a sync has measured: texts embedded per second" in shown


def test_a_plan_tells_duration_disk_and_what_edits_cost_twice(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    (files / "0.md").write_text(prose("zebras"))
    edit = planned(shared_installation, tenant)
    assert edit["estimate"]["seconds"] > edit["preparing_seconds"] > 0
    assert edit["twice"] is None
    shared_installation.configure(tenant, index={"placement": "dedicated"})
    moved = planned(shared_installation, tenant)
    assert (moved["new_generation"], moved["embeddings"]) == (True, 1)
    assert moved["estimate"]["seconds"] > 0
    assert moved["twice"]["embedded"] is False
    shared_installation.configure(tenant, index=None, **SPARSE)
    other = planned(shared_installation, tenant)
    lacking = other["estimate"]["rates_lacking"]
    assert lacking == ["texts embedded per second by deterministic/hash@64"]
    assert other["estimate"]["bytes"] > 0
    assert other["twice"]["embedded"] is True
    shared_installation.configure(tenant, **FAST, **CHUNKED)
    cut = planned(shared_installation, tenant)
    assert cut["cut"] == cut["documents"] > 1
    assert cut["twice"]["texts_wanted"] > cut["twice"]["texts_serving"] == 1
    assert "an edit is embedded for both builds" in shared_installation.command("plan", tenant).out


def test_an_estimate_of_disk_is_near_what_is_added(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    folder = shared_installation.add_tenant(tenant, index={"placement": "dedicated"}, **FAST)
    for number in range(60):
        (folder / f"{number}.md").write_text(prose(str(number)))
    driver.sync(tenant)
    for number in range(60, 120):
        (folder / f"{number}.md").write_text(prose(str(number)))
    estimate = planned(shared_installation, tenant)["estimate"]
    before = lake_bytes(driver, tenant)
    entries = driver.sync(tenant)["upserted"]
    added = lake_bytes(driver, tenant) - before
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        added += round(entries * (ctx.store.indexes.bytes_per_entry(serving.index_name) or 0))
    assert estimate["bytes"] / 3 < added < 3 * estimate["bytes"]


def test_a_plan_measures_the_cpu_time_of_embedding_on_this_machine(
    shared_installation: Installation, tenant: str
) -> None:
    folder = shared_installation.add_tenant(tenant, embedder={"model": DEFAULT_MODEL})
    texts = [f"{number} {prose(str(number))} " * 3 for number in range(12)]
    for number, text in enumerate(texts):
        (folder / f"{number}.md").write_text(text)
    found = planned(shared_installation, tenant)
    each = found["embedding_cpu_seconds"] / found["embeddings"]
    assert 0.001 < each < 1
    shown = shared_installation.command("plan", tenant).out
    assert "of a core for embedding" in shown
    assert "ms per text" in shown


def lake_bytes(driver: Driver, tenant: str) -> int:
    with driver.locked(tenant) as ctx:
        return sum(size.bytes for size in ctx.lake.size().values())
