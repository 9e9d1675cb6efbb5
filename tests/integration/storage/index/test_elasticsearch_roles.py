"""The smallest roles, on an Elasticsearch that enforces them with its own security."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.server import (
    build_role,
    check_elasticsearch,
)
from rag_assets.storage.index.store import StoreConfig, open_store
from tests.installation import FAST, Installation, new_installation
from tests.secured_server import PASSWORD, SecuredServer, secured_server
from tests.servers import server_directory
from tests.tls_gateway import tls_gateway
from tests.vector_stores import SPEC

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

PREFIX = "rag"
READ_ONLY = {"indices": [{"names": ["rag-*"], "privileges": ["read"]}]}


@pytest.fixture(scope="module")
def server() -> Iterator[SecuredServer]:
    roles = {
        "indexing": build_role("indexing", PREFIX),
        "searching": build_role("searching", PREFIX),
        "reading": READ_ONLY,
    }
    with server_directory() as directory, secured_server(directory, roles) as started:
        yield started


@pytest.fixture
def secured(
    server: SecuredServer, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    with new_installation(tmp_path / "home", postgres_url, server.url("indexing")) as made:
        # The roles contain the prefix.
        made.environment = {**made.environment, "RAG_ASSETS_INDEX_PREFIX": PREFIX}
        monkeypatch.setenv("RAG_ASSETS_INDEX_PREFIX", PREFIX)
        yield made


def test_one_role_indexes_and_erases_and_the_other_searches(
    server: SecuredServer, secured: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = secured.add_tenant("acme", **FAST)
    (folder / "a.md").write_text("# Alpha\n\nThe turbine runs at night.\n")
    (folder / "b.md").write_text("# Beta\n\nThe valve is closed by hand.\n")
    secured.synced("acme")
    (folder / "b.md").unlink()
    secured.synced("acme", allow_deletes=True)
    purged = secured.command("purge", "acme", "--document", document_of(secured, "a.md"), "--yes")
    assert purged.code == 0, purged.err
    secured.release()
    (folder / "c.md").write_text("# Gamma\n\nThe turbine runs at night.\n")
    secured.synced("acme")
    secured.release()

    account = b64encode(f"searching:{PASSWORD}".encode()).decode()
    keys = {"key-of-the-test": f"Basic {account}"}
    with tls_gateway(server.url("searching"), tmp_path / "tls", keys=keys) as gateway:
        found = secured.cli("search", "acme", "turbine", **gateway.environment("key-of-the-test"))
    assert found.code == 0, found.err
    assert "files/c.md" in found.out

    removed = secured.command("tenants", "remove", "acme", "--yes")
    assert removed.code == 0, removed.err


def test_the_role_for_searching_writes_nothing(server: SecuredServer) -> None:
    with closing(open_store(StoreConfig(server.url("searching"), prefix=PREFIX))) as store:
        with pytest.raises(ServiceUnavailable, match="refuses the account"):
            store.indexes.place(SPEC, "acme", "shared")
        with pytest.raises(ServiceUnavailable, match="refuses the account"):
            store.notes.write("note", "text")


@pytest.mark.parametrize(
    ("role", "lacks"),
    [
        ("indexing", {"indexing": [], "searching": []}),
        (
            "searching",
            {
                "indexing": ["delete on rag-*", "index on rag-*", "manage on rag-*"],
                "searching": [],
            },
        ),
        (
            "reading",
            {
                "indexing": ["delete on rag-*", "index on rag-*", "manage on rag-*", "monitor"],
                "searching": ["monitor", "view_index_metadata on rag-*"],
            },
        ),
    ],
)
def test_the_check_names_the_privileges_that_an_account_lacks(
    server: SecuredServer, role: str, lacks: dict[str, list[str]]
) -> None:
    found = check_elasticsearch(ElasticsearchConnection.from_url(server.url(role)), PREFIX)
    assert found.missing == lacks
    lines = [line for line in found.problems if "lacks privileges" in line]
    assert len(lines) == sum(map(bool, lacks.values()))
    assert all("rag-assets elasticsearch role" in line for line in lines)
    if role != "reading":
        assert found.licence == "basic, active"


def test_an_account_with_a_wrong_password_is_refused_without_naming_it(
    server: SecuredServer,
) -> None:
    wrong = server.url("indexing").replace(PASSWORD, "another-password")
    with pytest.raises(ServiceUnavailable, match="refuses the account") as refused:
        check_elasticsearch(ElasticsearchConnection.from_url(wrong), PREFIX)
    assert "another-password" not in str(refused.value)


def document_of(installation: Installation, name: str) -> str:
    context = installation.context("acme")
    documents = context.catalog.documents.all(context.ref.id)
    return next(document.document_id for document in documents if document.uri.endswith(name))
