"""An embedder that fails midway, and servers that fail before and during a sync."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets import definitions
from rag_assets.billing.embedders import Embedders
from rag_assets.cli.sync import sync
from rag_assets.common.errors import ProviderUnavailable
from rag_assets.common.settings import Settings
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder
from rag_assets.models.providers.local import DeterministicEmbedder
from rag_assets.pipeline.drift import inspect_index
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.stores import EmbedderResource
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from tests.e2e.killing import ForkServer, Outcome, fork_server
from tests.installation import FAST, Installation, new_installation
from tests.proxy import Proxy, proxied

BATCH = 4
GOOD_CALLS = 2
REASON = "the provider says: quota used up"


class FailingEmbedder(DeterministicEmbedder):
    """A deterministic embedder that fails permanently after a few calls."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault
        self._calls = 0

    @property
    def limits(self) -> CallLimits:
        return CallLimits(texts=BATCH, concurrency=1)

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        self._calls += 1
        answer = await super().embed(texts, **options)
        if self._calls <= GOOD_CALLS:
            return answer
        if self._fault == "away":
            raise ProviderUnavailable(REASON)
        return replace(answer, vectors=np.full_like(answer.vectors, np.nan))


class FailingEmbedders(EmbedderResource):
    """Gives every tenant the failing embedder."""

    fault: str

    def embedders(self, catalog: Catalog) -> Embedders:
        return AllFailing(catalog, self.installation.settings, self.fault)


class AllFailing(Embedders):
    """Embedders of an installation that all fail after a few calls."""

    def __init__(self, catalog: Catalog, settings: Settings, fault: str) -> None:
        super().__init__(catalog, settings)
        self._fault = fault

    def get_embedder(self, ref: TenantRef, config: EmbedderConfig) -> Embedder:
        return FailingEmbedder(self._fault)


def page(name: str, version: int = 1) -> str:
    """Return a document of one chunk."""
    return f"# Page {name}\n\nWhat is said on page {name} in version {version}.\n"


@pytest.mark.ci
@pytest.mark.parametrize(("fault", "reason"), [("away", REASON), ("nan", "finite")])
def test_an_embedder_that_fails_midway(
    shared_installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    reason: str,
) -> None:
    installation, tenant = shared_installation, f"embedder-{fault}"
    folder = installation.add_tenant(tenant, **FAST)
    for name in ("kept", "changed", "removed"):
        (folder / f"{name}.md").write_text(page(name))
    installation.synced(tenant)
    (folder / "removed.md").unlink()
    for number in range(3 * BATCH):
        (folder / f"new-{number:02}.md").write_text(page(f"new-{number}"))
    (folder / "changed.md").write_text(page("changed", 2))
    with monkeypatch.context() as patch:
        failing = functools.partial(
            definitions.build_defs,
            {"embedders": FailingEmbedders(installation=InstallationResource(), fault=fault)},
        )
        patch.setattr(definitions, "build_defs", failing)
        assert not sync([tenant], every=False, repair=False, allow_deletes=False, as_json=True)
    assert reason in json.loads(capsys.readouterr().out)["error"]["message"]
    ctx = installation.context(tenant)
    kept = len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id))
    assert kept == 3 + GOOD_CALLS * BATCH
    found = texts_by_uri(installation, tenant)
    assert "files/removed.md" not in found
    assert "version 1" in found["files/kept.md"]
    documents = {d.uri: d for d in ctx.catalog.documents.all(tenant)}
    waiting = {uri for uri, document in documents.items() if document.status == "FAILED"}
    assert all(reason in (documents[uri].error_message or "") for uri in waiting)
    assert found.keys() == documents.keys() - waiting | (waiting & {"files/changed.md"})
    version = 1 if "files/changed.md" in waiting else 2
    assert f"version {version}" in found["files/changed.md"]
    assert 0 < len(waiting) == 3 + 1 + 3 * BATCH - kept
    again = installation.synced(tenant)
    assert again["embeddings"]["embedded"] == len(waiting)
    assert set(texts_by_uri(installation, tenant)) == documents.keys()
    assert ctx.catalog.documents.count_by_status(tenant)["READY"] == len(documents)


def texts_by_uri(installation: Installation, tenant: str) -> dict[str, str]:
    """Return the texts that searches find, by URI; each document must have one chunk."""
    hits = installation.search(tenant, "What is said on page", top_k=50, mode="text")
    assert len({hit.uri for hit in hits}) == len(hits)
    return {hit.uri: hit.text for hit in hits}


@dataclass
class Frail:
    """An installation whose servers can be disconnected."""

    installation: Installation
    server: ForkServer
    postgres: Proxy
    elasticsearch: Proxy
    folder: Path

    def sync(self) -> Outcome:
        """Sync as a user would."""
        return self.server.run("sync", "frail", "--json")

    def assert_sound(self, state: dict[str, str]) -> None:
        """Fail unless every document is indexed correctly."""
        ctx = self.installation.context("frail")
        assert all(found.is_healthy for found in inspect_index(ctx))
        assert ctx.catalog.documents.count_by_status("frail")["READY"] == len(state)
        found = texts_by_uri(self.installation, "frail")
        assert found.keys() == {f"files/{name}" for name in state}
        assert all(found[f"files/{name}"] in text for name, text in state.items())


@pytest.fixture(scope="module")
def frail(
    postgres_url: str, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Frail]:
    home = tmp_path_factory.mktemp("frail") / "home"
    with (
        proxied(postgres_url) as postgres,
        proxied(elasticsearch_url) as elasticsearch,
        new_installation(home, postgres.url, elasticsearch.url) as installation,
        fork_server({**installation.environment, "RAG_ASSETS_DEBUG": ""}) as server,
    ):
        folder = installation.add_tenant("frail", **FAST)
        (folder / "first.md").write_text(page("first"))
        made = Frail(installation, server, postgres, elasticsearch, folder)
        assert made.sync().code == 0
        yield made


@pytest.mark.parametrize(
    ("away", "moment"),
    [
        ("Elasticsearch", None),
        ("Postgres", None),
        ("Elasticsearch", "elasticsearch PUT _bulk"),
        ("Elasticsearch", "elasticsearch POST _refresh"),
        ("Postgres", "lake chunks"),
    ],
)
def test_a_server_that_is_away(frail: Frail, away: str, moment: str | None) -> None:
    way = {"Elasticsearch": frail.elasticsearch, "Postgres": frail.postgres}[away]
    known = len(list(frail.folder.iterdir()))
    (frail.folder / f"new-{known}.md").write_text(page(f"new-{known}"))
    (frail.folder / "first.md").write_text(page("first", known + 1))
    before = texts_by_uri(frail.installation, "frail")
    if moment is None:
        way.cut()
        outcome = frail.sync()
    else:
        with frail.server.stopped("sync", "frail", "--json", before=moment) as go_on:
            way.cut()
            outcome = go_on()
    way.restore()
    said = outcome.out + outcome.err
    assert outcome.code == 1, said
    assert f"{away} does not answer" in said, said
    assert "rag-assets up" in said
    assert "Traceback" not in said
    assert texts_by_uri(frail.installation, "frail") == before
    again = frail.sync()
    assert again.code == 0, again.err
    assert again.json["stages"]["embeddings"]["embedded"] <= 2
    frail.assert_sound({path.name: path.read_text() for path in frail.folder.iterdir()})
