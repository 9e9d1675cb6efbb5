"""Several generations of one tenant: which one serves, what a change costs, and their removal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from rag_assets.common.clock import Clock
from rag_assets.pipeline import recipes
from rag_assets.pipeline.context import SliceLimits
from rag_assets.pipeline.drift import inspect_index
from rag_assets.pipeline.mark_keeper import accept_catalog
from rag_assets.pipeline.repair import repair_index
from rag_assets.pipeline.upkeep import GRACE_PERIOD, compact_lake, drop_old_generations
from rag_assets.storage.index.elasticsearch import mapping
from rag_assets.storage.index.model import SCHEMA_VERSION
from tests.driving import Driver, tenant_named_after
from tests.dumps import lose_changes
from tests.installation import FAST, Installation

CHUNKED = {"chunker": {"chunker": "heading", "max_tokens": 40, "overlap": 8}}
SPARSE = {"embedder": {"provider": "deterministic", "dimensions": 64}}


@pytest.fixture
def files(shared_installation: Installation, request: pytest.FixtureRequest) -> Path:
    """Create a tenant with three documents; return its folder."""
    folder = shared_installation.add_tenant(tenant_named_after(request), **FAST)
    for name in ("one", "two", "three"):
        prose = " ".join(f"Sentence {n} of {name} is about topic {n}." for n in range(30))
        (folder / f"{name}.md").write_text(f"# About {name}\n\n{prose}\n")
    return folder


@pytest.fixture
def tenant(files: Path, request: pytest.FixtureRequest) -> str:
    return tenant_named_after(request)


def test_the_old_build_answers_until_the_new_one_is_complete(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    slowly = Driver(shared_installation, SliceLimits(documents=1))
    for left in (2, 1):
        assert slowly.run_once(tenant)["pending"] == left
        assert shared_installation.entries(tenant) == before
        assert shared_installation.search(tenant, "Sentence 7 of two", mode="text")
    assert slowly.run_once(tenant)["pending"] == 0
    after = shared_installation.entries(tenant)
    assert len(after) > len(before)
    assert after.keys().isdisjoint(before)
    assert shared_installation.search(tenant, "Sentence 7 of two", mode="text")


@pytest.mark.parametrize("change", [CHUNKED, SPARSE], ids=["chunker", "embedder"])
def test_changing_back_costs_nothing(
    shared_installation: Installation, driver: Driver, change: dict[str, Any]
) -> None:
    tenant = f"back-{'chunker' if 'chunker' in change else 'embedder'}"
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text("# A\n\n" + "Every word counts. " * 60)
    (folder / "b.md").write_text("# B\n\n" + "No word counts. " * 60)
    driver.sync(tenant)
    first = shared_installation.entries(tenant)
    shared_installation.configure(tenant, **change)
    assert driver.sync(tenant)["embedded"] > 0
    shared_installation.configure(tenant, chunker=None, **FAST)
    back = driver.sync(tenant)
    assert (back["parsed"], back["chunks"], back["embedded"], back["upserted"]) == (0, 0, 0, 0)
    assert shared_installation.entries(tenant) == first
    (folder / "a.md").touch()
    shared_installation.synced(tenant)
    assert_nothing_to_do(shared_installation, tenant)


def test_what_happened_meanwhile_is_in_the_build_that_is_gone_back_to(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    (files / "one.md").unlink()
    (files / "two.md").write_text("# About two\n\nOnly this is left.\n")
    driver.sync(tenant)
    shared_installation.configure(tenant, chunker=None)
    driver.sync(tenant)
    found = {uri for uri, _, _ in shared_installation.entries(tenant).values()}
    assert found == {"files/two.md", "files/three.md"}
    hits = shared_installation.search(tenant, "Only this is left", mode="text", top_k=50)
    assert sum(hit.uri == "files/two.md" for hit in hits) == 1


def test_deletions_reach_every_build_that_is_kept(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    (files / "one.md").unlink()
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        for generation in ctx.catalog.generations.live(tenant):
            stored = ctx.store.entries.stored(generation.index_name, ctx.owner(generation))
            assert {hit.fields["uri"] for hit in stored} == {"files/two.md", "files/three.md"}
        assert all(state.is_healthy for state in inspect_index(ctx))


def test_another_access_scope_moves_entries_of_every_build_and_embeds_nothing(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    shared_installation.configure(tenant, access={"scope": "team-only"}, **CHUNKED)
    moved = driver.sync(tenant)
    assert (moved["parsed"], moved["chunks"], moved["embedded"]) == (0, 0, 0)
    with driver.locked(tenant) as ctx:
        assert len(ctx.catalog.generations.live(tenant)) == 2
        for generation in ctx.catalog.generations.live(tenant):
            owner = ctx.owner(generation)
            stored = list(ctx.store.entries.stored(generation.index_name, owner))
            assert stored
            assert {hit.fields["access_scope"] for hit in stored} == {"team-only"}
        assert all(state.is_healthy for state in inspect_index(ctx))


def test_old_builds_go_after_their_grace_and_abandoned_ones_too(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    Driver(shared_installation, SliceLimits(documents=1)).run_once(tenant)  # it is never completed
    shared_installation.configure(tenant, chunker=None, **SPARSE)
    driver.sync(tenant)
    kept = shared_installation.entries(tenant)
    with driver.locked(tenant) as ctx:
        assert drop_old_generations(ctx) == 0
        later = Clock(ahead=GRACE_PERIOD + timedelta(hours=1))
        old = ctx.catalog.generations.live(tenant)[:-1]
        assert len(old) == 2
        assert drop_old_generations(replace(ctx, clock=later)) == 2
        for generation in old:
            assert ctx.store.entries.count(generation.index_name, ctx.owner(generation)) == 0
    assert shared_installation.entries(tenant) == kept
    # When one build is left, the lake deletes what only the others needed.
    with driver.locked(tenant) as ctx:
        compact_lake(ctx)
        other = "deterministic/hash@384"
        hashes = {text for _, text, _ in kept.values()}
        assert ctx.lake.find_missing_vectors(other, hashes) == hashes
        assert ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, hashes) == set()
    assert driver.sync(tenant)["embedded"] == 0


@pytest.mark.parametrize("kind", ["hnsw", "bbq_hnsw"])
def test_each_kind_of_vector_index_finds(
    shared_installation: Installation, driver: Driver, kind: str
) -> None:
    tenant = f"kind-{kind.replace('_', '-')}"
    config = {**FAST, "index": {"vector_index": kind}}
    folder = shared_installation.add_tenant(tenant, **config)
    for n in range(12):
        (folder / f"{n}.md").write_text(f"# Number {n}\n\nThe text of number {n}.\n")
    driver.sync(tenant)
    hits = shared_installation.search(tenant, "Number 5\nThe text of number 5.", mode="knn")
    assert len(hits) == 5
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))


def test_leaving_the_kind_of_index_open_rebuilds_nothing(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    """The tenant is from a version in which int8_hnsw was the default."""
    shared_installation.configure(tenant, index={"vector_index": "int8_hnsw"})
    driver.sync(tenant)
    first = shared_installation.entries(tenant)
    shared_installation.configure(tenant, index=None)
    assert_nothing_to_do(shared_installation, tenant)
    assert driver.sync(tenant)["upserted"] == 0
    shared_installation.configure(tenant, index={"vector_index": "bbq_hnsw"})
    moved = driver.sync(tenant)
    assert (moved["embedded"], moved["upserted"]) == (0, len(first))
    shared_installation.configure(tenant, index=None)
    assert driver.sync(tenant)["upserted"] == 0
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        assert serving.number == 2
        assert ctx.index_spec(serving).vector_index == "bbq_hnsw"


@pytest.mark.parametrize(("dimensions", "kind"), [(383, "int8_hnsw"), (384, "bbq_hnsw")])
def test_a_lost_index_is_replaced_by_one_of_the_kind_that_suits(
    installation: Installation, dimensions: int, kind: str
) -> None:
    folder = installation.add_tenant(
        "open", embedder={"provider": "deterministic", "dimensions": dimensions}
    )
    (folder / "a.md").write_text("# A\n\nEvery word counts.\n")
    driver = Driver(installation)
    driver.sync("open")
    for _ in range(2):
        with driver.locked("open") as ctx:
            serving = ctx.catalog.generations.serving("open")
            assert serving is not None
            assert kind_of(installation, serving.index_name) == kind
            ctx.store.indexes.drop(serving.index_name)
            assert [state.index_lost for state in repair_index(ctx)] == [True]
            assert kind_of(installation, serving.index_name) == kind
        driver.sync("open")
    assert len(installation.search("open", "Every word counts.", mode="knn")) == 1


def test_a_lost_index_waits_while_the_catalog_was_set_back(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    shared_installation.configure(tenant, index={"placement": "dedicated"})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        lose_changes(ctx)
        ctx.store.indexes.drop(serving.index_name)
        assert any(state.index_lost for state in repair_index(ctx))
        assert accept_catalog(ctx)
        repair_index(ctx)
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))


def test_a_dedicated_tenant_has_an_index_alone(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    shared = shared_installation.entries(tenant)
    shared_installation.configure(tenant, index={"placement": "dedicated"})
    moved = driver.sync(tenant)
    assert moved["embedded"] == 0
    assert sorted(shared_installation.entries(tenant).values()) == sorted(shared.values())
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        assert serving.index_name in ctx.store.indexes.dedicated(tenant)
        assert ctx.store.indexes.owners(serving.index_name) == [(tenant, ctx.ref.incarnation)]
    assert shared_installation.search(tenant, "Sentence 7 of two", mode="text")
    shared_installation.configure(tenant, index=None)
    back = driver.sync(tenant)
    assert (back["parsed"], back["chunks"], back["embedded"]) == (0, 0, 0)
    assert sorted(shared_installation.entries(tenant).values()) == sorted(shared.values())


def test_a_new_schema_is_written_from_the_lake(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    with monkeypatch.context() as patched:
        for module in (recipes, mapping):
            patched.setattr(module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
        slowly = Driver(shared_installation, SliceLimits(documents=1))
        made = slowly.run_once(tenant)
        # The former build is read-only now: it answers until the new one is complete.
        assert shared_installation.entries(tenant) == before
        (files / "one.md").unlink()
        made += slowly.sync(tenant)
        assert (made["parsed"], made["chunks"], made["embedded"]) == (0, 0, 0)
        uris = {uri for uri, _, _ in shared_installation.entries(tenant).values()}
        assert uris == {"files/two.md", "files/three.md"}
        with driver.locked(tenant) as ctx:
            former, present = ctx.catalog.generations.live(tenant)
            assert (former.state, present.state) == ("RETIRED", "SERVING")
            assert former.index_name != present.index_name
            assert f"-v{SCHEMA_VERSION + 1}-" in present.index_name


def kind_of(installation: Installation, index_name: str) -> str:
    """Return the kind of an index according to Elasticsearch."""
    with Elasticsearch(installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:
        [index] = client.indices.get_mapping(index=index_name).values()
    options: dict[str, Any] = index["mappings"]["properties"]["vector"]["index_options"]
    return str(options["type"])


def assert_nothing_to_do(installation: Installation, tenant_id: str) -> None:
    """Fail if the planning of sync and daemon sees a reason for a run."""
    from rag_assets.common.settings import Settings
    from rag_assets.sensors.due import explain_due
    from rag_assets.sensors.state import read_tenant_state
    from rag_assets.tenants.model import Tenant

    catalog = installation.session().catalog
    record = catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(record.config)
    state = read_tenant_state(catalog, record, tenant, Settings.from_environment())
    reason = explain_due(state, datetime.now(UTC))
    assert reason is None or "may have changed again" in reason
