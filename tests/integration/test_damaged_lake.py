"""Damaged files in a tenant's lake: an ordinary sync continues, and pays for nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.driving import tenant_named_after
from tests.dumps import invert_bytes
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation
from tests.integration.checks.faults import ALL

pytestmark = pytest.mark.long

DOCUMENTS = 6
NEW = "# News\n\nA sentence that came later, about herons.\n"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with pytest.MonkeyPatch.context() as patch, embedding_server() as made:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield made


@pytest.fixture
def tenant(
    shared_installation: Installation, server: EmbeddingServer, request: pytest.FixtureRequest
) -> str:
    """Create a synced tenant whose embeddings were paid for."""
    name = tenant_named_after(request)
    embedder = {
        "provider": "openai-compatible",
        "model": "house-model",
        "dimensions": server.dimensions,
        "base_url": server.url,
    }
    folder = shared_installation.add_tenant(name, embedder=embedder)
    for number in range(DOCUMENTS):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    shared_installation.synced(name)
    return name


def lake_of(installation: Installation, tenant: str) -> Path:
    return Path(installation.context(tenant).lake._location.url)


def invert_first_pages(lake: Path) -> None:
    for file in data_files(lake):
        invert_bytes(file, 20, 40)


def invert_vectors(lake: Path) -> None:
    for file in data_files(lake / "embeddings"):
        invert_bytes(file, file.stat().st_size // 2, 8)


def invert_footers(lake: Path) -> None:
    for file in data_files(lake):
        invert_bytes(file, file.stat().st_size - 60, 40)


def invert_logs(lake: Path) -> None:
    for log in lake.rglob("_delta_log/*0.json"):
        invert_bytes(log, 20, 40)


def data_files(folder: Path) -> list[Path]:
    files = [file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert files
    return files


@pytest.mark.parametrize(
    "damage",
    [invert_first_pages, invert_vectors, invert_footers, invert_logs],
    ids=["pages", "vectors", "footers", "logs"],
)
def test_sync_with_damaged_lake_heals_it_and_pays_nothing(
    shared_installation: Installation,
    tenant: str,
    server: EmbeddingServer,
    damage: Callable[[Path], None],
) -> None:
    before = shared_installation.entries(tenant)
    paid = texts_paid(server)
    damage(lake_of(shared_installation, tenant))

    checked = shared_installation.command("check", tenant, "--deep", "--json")
    assert checked.code == 1, checked.err
    [found] = [one for one in checked.json["checks"] if one["check"] == "lake"]
    assert "embeddings/" in str(found["metadata"]), found
    assert len(checked.json["checks"]) == len(ALL), "the other checks are evaluated as well"

    folder = shared_installation.home.parent / "sources" / tenant
    (folder / "new.md").write_text(NEW)
    shared_installation.synced(tenant)
    assert "new.md" in {uri.split("/")[-1] for uri, *_ in entries(shared_installation, tenant)}
    (folder / "0.md").write_text("# Page 0\n\nOther words of page 0.\n")
    shared_installation.synced(tenant)
    shared_installation.synced(tenant, repair=True)
    assert texts_paid(server) - paid == 2, "the new page, and the changed one"

    after = shared_installation.entries(tenant)
    kept = {id_ for id_, (uri, *_) in before.items() if not uri.endswith("/0.md")}
    assert {id_: after[id_] for id_ in kept} == {id_: before[id_] for id_ in kept}
    checked = shared_installation.command("check", tenant, "--deep", "--json")
    assert checked.code == 0, checked.out


def texts_paid(server: EmbeddingServer) -> int:
    """Return the number of document texts that were sent; checks send sentences of their own."""
    return sum("# Page" in text or "# News" in text for sent in server.requests for text in sent)


def entries(installation: Installation, tenant: str) -> list[tuple[str, str, int]]:
    return list(installation.entries(tenant).values())
