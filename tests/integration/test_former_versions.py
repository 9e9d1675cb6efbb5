"""A document whose new content fails keeps answering in its former version, also in a new build.

Each test changes the model of a tenant in which a replacement has failed before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.storage.lake.model import DeadKeys
from tests.driving import Driver, stages_of
from tests.embedding_server import EmbeddingServer, Status, embedding_server
from tests.installation import FAST, Installation
from tests.integration.builds import found, remote, serving
from tests.integration.test_generations import CHUNKED, SPARSE, assert_nothing_to_do

SEALS = "# Seals\n\nThe keeper counted seventeen grey seals at dawn.\n"
BOATS = "# Boats\n\nEvery boat is moored with two lines before nightfall.\n"
BROKEN = b"%PDF-1.7\nnothing that could be read follows\n"


# This must run before anything reads the settings.
@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield started


@pytest.fixture
def failed(shared_installation: Installation, driver: Driver, tenant: str) -> Path:
    """Create a tenant with two documents, one of which was replaced with a broken file."""
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "seals.md").write_text(SEALS)
    (folder / "boats.md").write_text(BOATS)
    driver.sync(tenant)
    (folder / "seals.md").write_bytes(BROKEN)
    assert driver.sync(tenant)["failed"] == 1
    assert status(driver, tenant) == "FAILED"
    return folder


def status(driver: Driver, tenant: str) -> str:
    documents = driver.session.catalog.documents.all(tenant)
    return next(d.status for d in documents if d.uri == "files/seals.md")


@pytest.mark.parametrize("change", [CHUNKED, SPARSE], ids=["chunker", "embedder"])
def test_the_former_version_answers_from_the_new_build(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    failed: Path,
    change: dict[str, object],
) -> None:
    shared_installation.configure(tenant, **change)
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert found(shared_installation, tenant, "grey seals") >= {"files/seals.md"}
    assert status(driver, tenant) == "FAILED"
    assert_nothing_to_do(shared_installation, tenant)
    (failed / "seals.md").write_text(SEALS.replace("grey", "white"))
    driver.sync(tenant)
    assert status(driver, tenant) == "READY"
    assert serving(driver, tenant).number == 2


def test_a_killed_run_loses_no_former_version(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "seals.md").write_text(SEALS)
    driver.sync(tenant)
    (folder / "seals.md").write_bytes(BROKEN)
    driver.sync(tenant)
    shared_installation.configure(tenant, **SPARSE)
    with driver.locked(tenant) as ctx:
        stages = stages_of(ctx, driver.scanner)
        next(stages)
        assert next(stages)["failed"] == 1  # as if the process were killed here
        stages.close()
    assert serving(driver, tenant).number == 1
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert found(shared_installation, tenant, "grey seals") == {"files/seals.md"}


def test_what_the_lake_has_lost_holds_back_no_build(
    shared_installation: Installation, driver: Driver, tenant: str, failed: Path
) -> None:
    with driver.locked(tenant) as ctx:
        [version] = ctx.catalog.former_versions.find(
            tenant, 1, 99, [d.document_id for d in ctx.catalog.documents.all(tenant)]
        )
        ctx.lake.compact(dead=DeadKeys(parsed={version.parse_key}))
    assert failed.is_dir()
    shared_installation.configure(tenant, **SPARSE)
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert found(shared_installation, tenant, "boat is moored") == {"files/boats.md"}


def test_a_text_that_the_provider_rejects_leaves_the_former_version_in_every_build(
    shared_installation: Installation, driver: Driver, tenant: str, server: EmbeddingServer
) -> None:
    folder = shared_installation.add_tenant(tenant, embedder=remote(server))
    (folder / "seals.md").write_text(SEALS)
    driver.sync(tenant)
    server.rejects = lambda text: "poison" in text
    (folder / "seals.md").write_text("# Seals\n\nA poison for models.\n")
    driver.sync(tenant)
    assert status(driver, tenant) == "FAILED"
    shared_installation.configure(tenant, embedder={**remote(server), "model": "another"})
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert found(shared_installation, tenant, "grey seals") == {"files/seals.md"}
    assert status(driver, tenant) == "FAILED"


def test_a_build_waits_until_a_former_version_can_be_embedded(
    shared_installation: Installation, driver: Driver, tenant: str, server: EmbeddingServer
) -> None:
    folder = shared_installation.add_tenant(tenant, embedder=remote(server))
    (folder / "seals.md").write_text(SEALS)
    driver.sync(tenant)
    (folder / "seals.md").write_bytes(BROKEN)
    driver.sync(tenant)
    shared_installation.configure(tenant, embedder={**remote(server), "model": "another"})
    server.always = Status(401)
    driver.sync(tenant)
    assert serving(driver, tenant).number == 1
    server.always = None
    driver.session.catalog.quarantine.retry_transient_failures(
        driver.session.catalog.tenants.get(tenant).ref
    )
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert found(shared_installation, tenant, "grey seals") == {"files/seals.md"}
