"""While a build is made, the serving build stays up to date with its own settings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import update

from rag_assets.pipeline.context import SliceLimits, TenantContext
from rag_assets.pipeline.drift import inspect_index
from rag_assets.pipeline.generations import CheckFinding
from rag_assets.pipeline.repair import repair_index
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.tables import generations
from tests.batch_server import BatchServer
from tests.driving import Driver, run_slice
from tests.embedding_server import Status, embedding_server
from tests.installation import FAST, Installation
from tests.integration.builds import DOCUMENTS, found, prose, remote
from tests.integration.test_batches import embedder as batch_embedder
from tests.integration.test_generations import CHUNKED, SPARSE, assert_nothing_to_do

pytestmark = pytest.mark.long

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock


@pytest.fixture
def slowly(shared_installation: Installation) -> Driver:
    """Return a driver whose runs process one document each."""
    return Driver(shared_installation, SliceLimits(documents=1))


def builds(driver: Driver, tenant: str) -> dict[int, Generation]:
    return {g.number: g for g in driver.session.catalog.generations.live(tenant)}


def finish(driver: Driver, tenant: str) -> Counter[str]:
    """Run until nothing is pending; return the counts."""
    return driver.sync(tenant)


@pytest.mark.parametrize("change", [CHUNKED, SPARSE], ids=["chunker", "embedder"])
def test_what_changes_is_found_while_a_build_is_made(
    shared_installation: Installation, slowly: Driver, change: dict[str, Any]
) -> None:
    tenant = f"changes-{'chunker' if 'chunker' in change else 'embedder'}"
    folder = shared_installation.add_tenant(tenant, **FAST)
    for number in range(DOCUMENTS):
        (folder / f"{number}.md").write_text(prose(str(number)))
    slowly.sync(tenant)
    shared_installation.configure(tenant, **change)
    slowly.run_once(tenant)
    (folder / "3.md").write_text(prose("zebras"))
    (folder / "4.md").unlink()
    (folder / "new.md").write_text(prose("yaks"))
    assert slowly.run_once(tenant)["embedded"] == 1
    served = found(shared_installation, tenant, "of zebras") | found(
        shared_installation, tenant, "of yaks"
    )
    assert len(served) == 1
    slowly.run_once(tenant)  # the new build's turn: builds take turns
    slowly.run_once(tenant)
    assert found(shared_installation, tenant, "of zebras") == {"files/3.md"}
    assert found(shared_installation, tenant, "of yaks") == {"files/new.md"}
    assert found(shared_installation, tenant, "Sentence 5 of 3") == set()
    assert found(shared_installation, tenant, "Sentence 5 of 4") == set()
    assert [g.state for g in builds(slowly, tenant).values()] == ["SERVING", "BUILDING"]
    with slowly.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
    finish(slowly, tenant)
    assert [g.state for g in builds(slowly, tenant).values()] == ["RETIRED", "SERVING"]
    assert found(shared_installation, tenant, "of zebras") == {"files/3.md"}
    assert_nothing_to_do(shared_installation, tenant)


def test_each_text_is_embedded_once_for_each_embedder(
    shared_installation: Installation, slowly: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **SPARSE)
    embedded = Counter[str]()
    for turn in range(4):
        embedded += slowly.run_once(tenant)
        (files / "0.md").write_text(prose(f"turn {turn}"))
    embedded += finish(slowly, tenant)
    served = {text for _, text, _ in shared_installation.entries(tenant).values()}
    with slowly.locked(tenant) as ctx:
        made = [ctx.for_build(g) for g in ctx.catalog.generations.live(tenant)]
        kept = [ctx.lake.read_vector_hashes(build.embedder.embedder_id) for build in made]
    assert len({build.embedder.embedder_id for build in made}) == 2
    assert served <= kept[1]
    # The vectors of the first sync are reused.
    assert embedded["embedded"] == len(kept[0]) - DOCUMENTS + len(kept[1])


def test_edits_without_end_do_not_keep_a_build_from_its_end(
    shared_installation: Installation, slowly: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    for turn in range(2 * DOCUMENTS + 2):
        (files / "0.md").write_text(prose(f"turn {turn}"))
        slowly.run_once(tenant)
    held = slowly.session.catalog.index.stream_versions(tenant, max(builds(slowly, tenant)))
    assert len(list(held)) == DOCUMENTS


def test_a_document_that_cannot_be_read_is_tried_once_for_each_build(
    shared_installation: Installation, driver: Driver, slowly: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    slowly.run_once(tenant)
    (files / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing\n")
    (files / "empty.docx").write_bytes(b"PK\x03\x04nothing")
    failed = driver.sync(tenant)["failed"]
    statuses = driver.session.catalog.documents.count_by_status(tenant)
    assert statuses == {"READY": DOCUMENTS, "FAILED": 2}
    assert failed == 4
    assert driver.run_once(tenant)["failed"] == 0


def test_an_embedder_that_is_gone_does_not_stop_its_successor(
    shared_installation: Installation, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
    driver = Driver(shared_installation)
    slowly = Driver(shared_installation, SliceLimits(documents=1))
    with embedding_server() as server:
        folder = shared_installation.add_tenant(tenant, embedder=remote(server))
        for number in range(DOCUMENTS):
            (folder / f"{number}.md").write_text(prose(str(number)))
        assert driver.sync(tenant)["embedded"] == DOCUMENTS
        server.always = Status(401)
        shared_installation.configure(tenant, **FAST)
        slowly.run_once(tenant)
        (folder / "0.md").write_text(prose("zebras"))
        asked = len(server.requests)
        # What it lacks needs a decision; it does not keep the tenant due.
        finish(slowly, tenant)
        assert len(server.requests) - asked == 1
    assert found(shared_installation, tenant, "of zebras") == {"files/0.md"}
    assert driver.session.catalog.documents.count_by_status(tenant) == {"READY": DOCUMENTS}


@pytest.mark.filterwarnings("ignore:.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning")
def test_an_edit_is_found_while_the_new_build_is_in_batches(
    shared_installation: Installation,
    tenant: str,
    files: Path,
    llmock: LLMock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = BatchServer(llmock, monkeypatch)
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", urlsplit(server.base_url).netloc)
    monkeypatch.setenv("BATCH_TEST_KEY", "sk-of-the-tenant")
    driver = Driver(shared_installation)
    shared_installation.configure(tenant, embedder=batch_embedder(server, "$BATCH_TEST_KEY"))
    driver.sync(tenant)
    assert [len(texts) for texts in server.texts] == [DOCUMENTS]
    assert driver.session.catalog.quarantine.count_deferred(tenant) == DOCUMENTS
    (files / "2.md").write_text(prose("zebras"))
    # Once by the serving build's embedder, and once by the new build's.
    assert driver.sync(tenant)["embedded"] == 2
    assert found(shared_installation, tenant, "of zebras") == {"files/2.md"}
    assert len(server.batches) == 1
    assert driver.session.catalog.quarantine.count_deferred(tenant) == DOCUMENTS - 1
    assert driver.sync(tenant)["embedded"] == 0
    server.finish()
    catalog = driver.session.catalog
    from rag_assets.pipeline.batches import poll_batches

    poll_batches(catalog, driver.session.embedders, catalog.batches.list_open(tenant))
    assert driver.sync(tenant)["embedded"] == 0
    assert [g.state for g in builds(driver, tenant).values()] == ["RETIRED", "SERVING"]
    assert found(shared_installation, tenant, "of zebras") == {"files/2.md"}


@pytest.mark.parametrize("damage", ["index lost", "entries lost"])
def test_the_build_that_answers_is_repaired_by_its_own_recipe(
    shared_installation: Installation, slowly: Driver, damage: str
) -> None:
    tenant = f"damaged-{damage.replace(' ', '-')}"
    folder = shared_installation.add_tenant(tenant, index={"placement": "dedicated"}, **FAST)
    for number in range(DOCUMENTS):
        (folder / f"{number}.md").write_text(prose(str(number)))
    slowly.sync(tenant)
    before = shared_installation.entries(tenant)
    shared_installation.configure(tenant, **CHUNKED)
    slowly.run_once(tenant)
    with slowly.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        if damage == "index lost":
            ctx.store.indexes.drop(serving.index_name)
        else:
            ctx.store.entries.delete(serving.index_name, tenant, sorted(before)[:2])
        repair_index(ctx)
    assert finish(slowly, tenant)["parsed"] == 0
    with slowly.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
        first = ctx.catalog.generations.live(tenant)[0]
        stored = ctx.store.entries.stored(first.index_name, ctx.owner(first))
        assert {entry.id for entry in stored} == set(before)


def test_a_build_is_published_although_the_run_that_completed_it_died(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    def dies(ctx: TenantContext, build: Generation) -> list[CheckFinding]:
        raise RuntimeError("killed")

    shared_installation.configure(tenant, **CHUNKED)
    (files / "0.md").write_text(prose("zebras"))
    with driver.locked(tenant) as ctx, pytest.raises(RuntimeError, match="killed"):
        run_slice(ctx, SecretScanner(ctx.settings.local / "cache"), judge=dies)
    # Now only the serving build lacks something.
    driver.sync(tenant)
    assert [g.state for g in builds(driver, tenant).values()] == ["RETIRED", "SERVING"]
    assert_nothing_to_do(shared_installation, tenant)


def test_builds_of_an_earlier_version_get_their_recipe_before_the_configuration_changes(
    shared_installation: Installation, slowly: Driver, tenant: str, files: Path
) -> None:
    with slowly.session.catalog.database.begin() as connection:
        connection.execute(
            update(generations).where(generations.c.tenant == tenant).values(recipe=None)
        )
    shared_installation.configure(tenant, **CHUNKED)
    slowly.run_once(tenant)
    assert all(g.recipe is not None for g in builds(slowly, tenant).values())
    (files / "3.md").write_text(prose("zebras"))
    slowly.run_once(tenant)
    assert found(shared_installation, tenant, "of zebras") == {"files/3.md"}


def test_a_build_whose_recipe_is_not_known_answers_until_its_successor_is_complete(
    shared_installation: Installation, slowly: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    slowly.run_once(tenant)
    with slowly.session.catalog.database.begin() as connection:
        connection.execute(
            update(generations)
            .where(generations.c.tenant == tenant, generations.c.state == "SERVING")
            .values(recipe=None)
        )
    (files / "3.md").write_text(prose("zebras"))
    (files / "4.md").unlink()
    slowly.run_once(tenant)
    assert found(shared_installation, tenant, "of zebras") == set()
    assert found(shared_installation, tenant, "Sentence 5 of 4") == set()
    finish(slowly, tenant)
    assert found(shared_installation, tenant, "of zebras") == {"files/3.md"}
