"""A disk that fills up while texts are embedded: no text is paid for twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driving import tenant_named_after
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import FAST, Installation
from tests.mounts import Mounts, with_mounts

pytestmark = pytest.mark.long

TEXTS = 300
DIMENSIONS = 2_048
TOO_SMALL, LARGE = 1_500, 50_000
"""Kilobytes: all vectors take 2,400."""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with pytest.MonkeyPatch.context() as patch, embedding_server() as made:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        made.dimensions = DIMENSIONS
        yield made


def test_sync_on_a_full_disk_pays_each_text_once(
    shared_installation: Installation, server: EmbeddingServer, request: pytest.FixtureRequest
) -> None:
    tenant = tenant_named_after(request)
    embedder = {
        "provider": "openai-compatible",
        "model": "house-model",
        "dimensions": DIMENSIONS,
        "base_url": server.url,
        "batch_size": 10,
    }
    folder = shared_installation.add_tenant(tenant, embedder=embedder)
    for number in range(TEXTS):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    lake = Path(shared_installation.session().settings.lake_url) / tenant

    def fill_the_disk(mounts: Mounts) -> None:
        mounts.mount(lake, TOO_SMALL)
        try:
            for attempt in range(3):
                failed = shared_installation.cli("sync", tenant)
                assert failed.code == 1, attempt
                assert f"the disk of {lake}" in failed.err, failed.err
                assert "rag-assets up`, or check" not in failed.err
                assert set(server.answered.values()) == {1}, "nothing is paid twice"
            paid = server.answered.total()
            assert 0 < paid < TEXTS, "requests stop before every text is paid for"
            mounts.resize(lake, LARGE)
            done = shared_installation.cli("sync", tenant, "--json")
            assert done.code == 0, done.err
            assert done.json["stages"]["embeddings"]["embedded"] == TEXTS - paid
        finally:
            mounts.unmount(lake)

    with_mounts(fill_the_disk)
    assert server.answered.total() == TEXTS
    assert set(server.answered.values()) == {1}
    assert len(shared_installation.entries(tenant)) == TEXTS


def test_nearly_full_disk_is_reported(
    shared_installation: Installation, request: pytest.FixtureRequest
) -> None:
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "page.md").write_text("# Page\n\nWords.\n")
    shared_installation.synced(tenant)
    uploads = Path(shared_installation.session().settings.blobs_url)
    reported = f"the disk of {uploads} is nearly full"

    def fill_the_disk(mounts: Mounts) -> None:
        mounts.mount(uploads, 8_000)
        try:
            (uploads / "large").write_bytes(bytes(7_900_000))
            status = shared_installation.cli("status", "--json").json
            assert any(reported in warning for warning in status["warnings"]), status
            checked = shared_installation.cli("check", tenant, "--json")
            [disk] = [one for one in checked.json["checks"] if one["check"] == "disk"]
            assert not disk["passed"]
            assert reported in disk["description"]
            # No server listens there, as after a server stopped because its disk was full.
            asked = shared_installation.cli(
                "search", tenant, "words", RAG_ASSETS_ELASTICSEARCH_URL="http://127.0.0.1:9"
            )
            assert reported in asked.err
            assert "start it with" not in asked.err
        finally:
            mounts.unmount(uploads)

    with_mounts(fill_the_disk)
    status = shared_installation.cli("status", "--json").json
    assert not any("nearly full" in warning for warning in status["warnings"])
