"""Documents that failed because of a setting are retried by processes with another setting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from rag_assets.cli.follow import TenantFollower
from rag_assets.common.environment import compute_environment_key
from rag_assets.common.settings import Settings
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation
from tests.integration.test_providers import HANDBOOK, remote, write

ENDPOINTS = "RAG_ASSETS_PRIVATE_ENDPOINTS"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as started:
        yield started


def documents(installation: Installation, tenant: str) -> list[Document]:
    return installation.session().catalog.documents.all(tenant)


def follow(installation: Installation, tenant: str) -> None:
    """Follow a tenant as a new daemon process does, which reads its settings at the start."""
    session = installation.session()
    session.reconcile()
    follower = TenantFollower(session)
    for _ in range(3):
        follower.follow(tenant)


def test_documents_that_failed_for_a_setting_are_tried_again_with_another(
    installation: Installation, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINTS, "10.0.0.0/8")
    folder = installation.add_tenant("endpoints", embedder=remote(server))
    write(folder, HANDBOOK)
    follow(installation, "endpoints")
    failed = documents(installation, "endpoints")
    assert {(d.status, d.retry_at) for d in failed} == {("FAILED", NEVER)}
    assert "RAG_ASSETS_PRIVATE_ENDPOINTS" in (failed[0].error_message or "")
    attempts = {d.attempts for d in failed}
    follow(installation, "endpoints")
    assert {d.attempts for d in documents(installation, "endpoints")} == attempts

    # Another wrong setting: tried once, and not again under the first one.
    monkeypatch.setenv(ENDPOINTS, "10.0.0.0/9")
    follow(installation, "endpoints")
    twice = {d.attempts for d in documents(installation, "endpoints")}
    assert twice == {2 * count for count in attempts}
    monkeypatch.setenv(ENDPOINTS, "10.0.0.0/8")
    follow(installation, "endpoints")
    assert {d.attempts for d in documents(installation, "endpoints")} == twice
    assert server.requests == []

    monkeypatch.setenv(ENDPOINTS, "127.0.0.1")
    follow(installation, "endpoints")
    assert {d.status for d in documents(installation, "endpoints")} == {"READY"}


def test_the_key_of_an_environment_changes_with_its_settings_alone(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key() -> str:
        return compute_environment_key(Settings.from_environment())

    names = ("HOUSE_KEY", ENDPOINTS, "HTTPS_PROXY", "RAG_ASSETS_MASTER_KEY")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    # Other processes may install packages meanwhile.
    packages = installation.home / "packages"
    packages.mkdir()
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(packages))
    first = key()
    monkeypatch.setenv("SSH_CONNECTION", datetime.now(UTC).isoformat())
    assert key() == first
    (installation.home / "tenants.yaml").write_text("tenants: [{id: a, api_key: $HOUSE_KEY}]\n")
    assert key() == first
    keys = {first}
    for name in names:
        monkeypatch.setenv(name, "127.0.0.1")
        keys.add(key())
    assert len(keys) == 5
