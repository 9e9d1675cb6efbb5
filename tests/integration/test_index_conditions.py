"""Faulty states of Elasticsearch, each on a separate server: commands and the service name them.

An operator reads which index is affected and what to do, but no error of a library, and no text of
a document.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from elasticsearch import Elasticsearch
from starlette.testclient import TestClient

from rag_assets.api.backend import Backend
from rag_assets.billing.chat_models import ChatModels
from rag_assets.pipeline.drift import inspect_index
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.search import AsyncRetriever, Retriever
from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.storage.blobs.store import open_blobs
from tests.driving import Driver
from tests.installation import FAST, CommandResult, Installation, new_installation
from tests.integration.api.conftest import ISSUER, SECRET, SETTINGS, application
from tests.integration.builds import serving
from tests.servers import server_directory

pytestmark = pytest.mark.long

TENANT = "acme"
SECRET_WORDS = "the confidential merger"
ALLOCATION = "cluster.routing.allocation.disk.watermark"


@dataclass
class Site:
    """An installation with its own Elasticsearch."""

    server: EmbeddedElasticsearch
    installation: Installation
    folder: Path
    client: Elasticsearch

    @property
    def index(self) -> str:
        return serving(self.driver, TENANT).index_name

    @property
    def driver(self) -> Driver:
        return Driver(self.installation)

    @property
    def files(self) -> Path:
        """Return the folder of the index's files."""
        settings = self.client.indices.get_settings(index=self.index, name="index.uuid")
        uuid = settings[self.index]["settings"]["index"]["uuid"]
        return self.server.directory / "data" / "indices" / uuid

    def write(self, name: str, text: str) -> None:
        """Write a file with an old modification time, so that every later change is noticed."""
        file = self.folder / name
        file.write_text(f"# {name}\n\n{text}\n")
        written = time.time() - 60 + len(text) / 1_000
        os.utime(file, (written, written))

    def run(self, *arguments: str) -> CommandResult:
        """Run a command as a user does: an unexpected error is not raised."""
        return self.installation.command(*arguments, RAG_ASSETS_DEBUG="")

    def ask(self, question: str) -> SearchAnswer:
        session = self.installation.session()
        retriever = Retriever(session.catalog, session.store, session.embedders)
        try:
            request = SearchRequest.of(query=question, mode="text", top_k=50)
            return retriever.search(TENANT, request)
        finally:
            retriever.close()

    def block(self, name: str, value: bool | None) -> None:
        self.client.indices.put_settings(index=self.index, settings={f"index.blocks.{name}": value})

    def configure_cluster(self, **settings: Any) -> None:
        self.client.cluster.put_settings(persistent=settings)


@pytest.fixture(scope="module")
def site(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("conditions") / "home"
    with server_directory() as directory:
        server = EmbeddedElasticsearch(directory, heap="512m")
        with (
            new_installation(home, postgres_url, server.start()) as made,
            Elasticsearch(server.url, request_timeout=60) as client,
        ):
            folder = made.add_tenant(TENANT, **FAST)
            site = Site(server, made, folder, client)
            for number in range(6):
                site.write(f"{number}.md", f"The valve {number} is about {SECRET_WORDS} {number}.")
            site.driver.sync(TENANT)
            yield site


@pytest.fixture(autouse=True)
def restored(site: Site) -> Iterator[None]:
    """Restore the index at the end, and fail unless the tenant has nothing to do."""
    yield
    said = site.run("sync", TENANT, "--repair")
    assert said.code == 0, said.err
    with site.driver.locked(TENANT) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))


def require_named(said: CommandResult, *words: str) -> None:
    """Fail unless a command failed with these words, and without any unhelpful ones."""
    assert said.code == 1, said.out + said.err
    text = said.out + said.err
    for word in words:
        assert word in text, text
    for unwanted in ("unexpected", "please report", "Traceback", "merger", "does not answer"):
        assert unwanted not in text, text


def require_service_unavailable(site: Site) -> None:
    """Fail unless the service responds that a server is unavailable, without details."""
    session = site.installation.session()
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    chat_models = ChatModels(session.catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(session.catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    claims = {"sub": "eve", "iss": ISSUER, "exp": int(time.time()) + 300, "tenants": [TENANT]}
    headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}
    body = {"query": "valve", "mode": "text"}
    with TestClient(application(backend)) as client:
        answer = client.post("/rag/query", json=body, headers=headers)
    problem = "urn:rag-assets:problem:unavailable"
    assert (answer.status_code, answer.json()["type"]) == (503, problem)
    assert "merger" not in answer.text
    assert site.index not in answer.text


Condition = Callable[[Site], Callable[[], object]]
"""Makes a condition; returns what ends it."""


def closed(site: Site) -> Callable[[], object]:
    index = site.index
    site.client.indices.close(index=index)

    def reopen() -> None:
        site.client.indices.open(index=index)
        site.client.cluster.health(index=index, wait_for_status="green")

    return reopen


def unreadable(site: Site) -> Callable[[], object]:
    site.block("read", value=True)
    return lambda: site.block("read", value=None)


def red(site: Site) -> Callable[[], object]:
    """Delete the index's commit, so that Elasticsearch finds no copy of it."""
    index, files = site.index, site.files
    site.client.indices.close(index=index)
    for commit in files.glob("0/index/segments_*"):
        commit.unlink()
    site.client.indices.open(index=index, wait_for_active_shards="0")
    _await(lambda: site.client.cluster.health(index=index)["status"] == "red")
    # As the hint says, where the files are lost.
    return lambda: site.client.indices.delete(index=index)


def _await(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.25)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (closed, ("is closed", "/_open")),
        pytest.param(
            unreadable,
            ("is blocked by the setting index.blocks.read", '"index.blocks.read": null'),
            marks=pytest.mark.nightly,
        ),
        (red, ("is red", "allocation/explain")),
    ],
)
def test_an_index_that_cannot_be_searched_is_named_by_all_commands(
    site: Site, condition: Condition, words: tuple[str, ...]
) -> None:
    index = site.index
    end = condition(site)
    try:
        started = time.monotonic()
        for arguments in (
            ("sync", TENANT),
            ("search", TENANT, "valve"),
            ("check", TENANT),
            ("sync", TENANT, "--repair"),
        ):
            require_named(site.run(*arguments), index, *words)
        assert time.monotonic() - started < 120, "a red index is not waited for"
        warned = site.run("status", "--json")
        assert any(index in line and words[0] in line for line in warned.json["warnings"])
        require_service_unavailable(site)
        site.write("0.md", f"The valve 0 was changed, {SECRET_WORDS}.")
        require_named(site.run("sync", TENANT), index, *words)
    finally:
        end()
    assert site.run("sync", TENANT).code == 0
    assert any("was changed" in hit.text for hit in site.ask("valve").hits)


def test_a_removal_is_not_certified_while_an_index_is_closed(site: Site) -> None:
    """Its entries cannot be searched, but still exist."""
    folder = site.installation.add_tenant("leaving", **FAST, index={"placement": "dedicated"})
    (folder / "a.md").write_text(f"# A\n\nText of {SECRET_WORDS}.\n")
    assert site.run("sync", "leaving").code == 0
    index = serving_index(site, "leaving")
    site.client.indices.close(index=index)
    require_named(site.run("tenants", "remove", "leaving", "--yes"), index, "is closed")
    site.client.indices.open(index=index)
    removed = site.run("tenants", "remove", "leaving", "--yes")
    assert removed.code == 0, removed.err
    assert not site.client.indices.exists(index=index)


def serving_index(site: Site, tenant: str) -> str:
    return serving(site.driver, tenant).index_name


@pytest.mark.parametrize("block", ["write", "read_only", "metadata"])
def test_an_index_that_somebody_blocked_is_named_where_it_is_written(
    site: Site, block: str
) -> None:
    index = site.index
    site.block(block, value=True)
    try:
        assert site.run("search", TENANT, "valve").code == 0, "reading goes on"
        site.write("1.md", f"The valve 1 was changed by {block}, {SECRET_WORDS}.")
        said = site.run("sync", TENANT)
        require_named(said, index, f"index.blocks.{block}", "is blocked by the setting")
        assert any(f"index.blocks.{block}" in line for line in status_warnings(site))
    finally:
        site.block(block, value=None)
    assert site.run("sync", TENANT).code == 0
    assert any(f"by {block}" in hit.text for hit in site.ask("valve").hits)


def status_warnings(site: Site) -> list[str]:
    warnings: list[str] = site.run("status", "--json").json["warnings"]
    return warnings


def test_a_disk_that_is_nearly_full_is_named_with_its_free_space(site: Site) -> None:
    full = {f"{ALLOCATION}.{name}": "100000gb" for name in ("low", "high", "flood_stage")}
    before = {f"{ALLOCATION}.low": "3gb", f"{ALLOCATION}.high": "2gb"}
    index = site.index
    site.configure_cluster(**full, **{"cluster.info.update.interval": "10s"})
    try:
        setting = "index.blocks.read_only_allow_delete"
        _await(
            lambda: (
                setting
                in site.client.indices.get_settings(index=index, flat_settings=True)[index][
                    "settings"
                ]
            )
        )
        assert site.run("sync", TENANT).code == 0, "nothing is to be written"
        assert site.run("search", TENANT, "valve").code == 0
        assert site.run("check", TENANT).code == 0
        site.write("2.md", f"The valve 2 was changed, {SECRET_WORDS}.")
        said = site.run("sync", TENANT)
        require_named(said, index, "disk of Elasticsearch is nearly full", "GB free", "free or add")
        assert any("nearly full" in line for line in status_warnings(site))
    finally:
        site.configure_cluster(**before, **{f"{ALLOCATION}.flood_stage": "1gb"})
        site.configure_cluster(**dict.fromkeys(full))
    _await(lambda: site.run("sync", TENANT).code == 0)
    site.configure_cluster(**{"cluster.info.update.interval": None})
    assert any("2 was changed" in hit.text for hit in site.ask("valve").hits)


@pytest.mark.parametrize("setting", ["read_only", "read_only_allow_delete"])
def test_a_cluster_that_was_made_read_only_is_named(site: Site, setting: str) -> None:
    name = f"cluster.blocks.{setting}"
    site.configure_cluster(**{name: True})
    try:
        site.write("3.md", f"The valve 3 was changed by {setting}, {SECRET_WORDS}.")
        require_named(site.run("sync", TENANT), name, "/_cluster/settings")
    finally:
        site.configure_cluster(**{name: None})
    assert site.run("sync", TENANT).code == 0


def test_a_cluster_with_as_many_shards_as_it_may_have_is_named(site: Site) -> None:
    site.configure_cluster(**{"cluster.max_shards_per_node": 1})
    site.installation.add_tenant("other", **FAST, index={"placement": "dedicated"})
    try:
        said = site.run("sync", "other")
        require_named(said, "its maximum number of shards", "cluster.max_shards_per_node")
    finally:
        site.configure_cluster(**{"cluster.max_shards_per_node": None})
    assert site.run("sync", "other").code == 0
    assert site.run("tenants", "remove", "other", "--yes").code == 0


def test_an_index_with_another_mapping_is_named(site: Site) -> None:
    """The index was created again, with its entries, but with fields that reject our writes."""
    index = site.index
    body = site.client.indices.get(index=index)[index]
    mappings = {**body["mappings"], "properties": {**body["mappings"]["properties"]}}
    mappings["properties"]["text"] = {"type": "integer"}
    site.client.indices.delete(index=index)
    settings = {"analysis": body["settings"]["index"]["analysis"]}
    site.client.indices.create(index=index, mappings=mappings, settings=settings)
    require_named(site.run("sync", TENANT), index, "was replaced by a different index", "--repair")
    catalog = site.driver.session.catalog
    found = site.client.indices.get_settings(index=index, name="index.uuid")
    uuid = found[index]["settings"]["index"]["uuid"]
    ref = catalog.tenants.get(TENANT).ref
    catalog.generations.move(ref, serving(site.driver, TENANT), index, uuid)
    site.write("4.md", f"The valve 4 was changed, {SECRET_WORDS}.")
    with pytest.MonkeyPatch.context() as environment:
        # Written as it is: what a person would see who has repairs switched off.
        environment.setenv("RAG_ASSETS_DEBUG", "")
        site.installation.configure(TENANT, auto_repair=False)
        require_named(site.run("sync", TENANT), "build", "--repair")
    site.installation.configure(TENANT, auto_repair=None)


def test_a_server_starts_with_an_index_that_is_red(site: Site) -> None:
    index, files = site.index, site.files
    site.server.stop()
    for commit in files.glob("0/index/segments_*"):
        commit.unlink()
    started = time.monotonic()
    site.server.start()
    assert time.monotonic() - started < 120
    assert any(index in line and "is red" in line for line in status_warnings(site))
    require_named(site.run("sync", TENANT), index, "is red")
    # As the hint says, where the files are lost.
    site.client.indices.delete(index=index)
    said = site.run("sync", TENANT)
    assert said.code == 0, said.err
    assert len(site.ask("valve").hits) == 6


def test_a_server_whose_files_were_rolled_back_answers_no_former_version(
    site: Site, tmp_path: Path
) -> None:
    """A former copy of the data folder is restored, with entries of former versions."""
    data, before = site.server.directory / "data", tmp_path / "before"
    site.server.stop()
    shutil.copytree(data, before)
    site.server.start()
    for number in range(3):
        site.write(f"{number}.md", f"The valve {number} is new by now.")
    (site.folder / "5.md").unlink()
    site.write("6.md", "The valve 6 is new by now.")
    assert site.run("sync", TENANT).code == 0
    entries = site.installation.entries(TENANT)

    site.server.stop()
    shutil.rmtree(data)
    shutil.copytree(before, data)
    for path in (data, *data.rglob("*")):
        shutil.chown(path, os.geteuid())
    site.server.start()

    answer = site.ask("valve")
    shown = {hit.uri.removeprefix("files/"): hit.text for hit in answer.hits}
    assert set(shown) == {"3.md", "4.md"}, "those that are as the catalog has them"
    assert answer.degraded == ("index-incomplete",)
    said = site.run("sync", TENANT, "--json")
    assert said.code == 0, said.err
    assert said.json["stages"]["embeddings"]["embedded"] == 0
    assert site.installation.entries(TENANT) == entries
    assert site.ask("valve").degraded == ()
    assert len(site.ask("valve").hits) == 6
    assert site.run("sync", TENANT).out.startswith(f"{TENANT}: nothing to do")


def test_entries_that_a_snapshot_brought_back_are_noticed_and_repaired(site: Site) -> None:
    """A restored index has another identity, and its former entries."""
    index = site.index
    site.client.indices.refresh(index=index)
    hits = site.client.search(index=index, size=100, source_exclude_vectors=False)["hits"]["hits"]
    body = site.client.indices.get(index=index)[index]
    site.write("4.md", "The valve 4 is newer than the snapshot.")
    assert site.run("sync", TENANT).code == 0
    entries = site.installation.entries(TENANT)
    site.client.indices.delete(index=index)
    settings = {"analysis": body["settings"]["index"]["analysis"]}
    site.client.indices.create(index=index, mappings=body["mappings"], settings=settings)
    for hit in hits:
        site.client.index(
            index=index, id=hit["_id"], routing=hit["_routing"], document=hit["_source"]
        )
    site.client.indices.refresh(index=index)

    answer = site.ask("valve")
    assert "files/4.md" not in {hit.uri for hit in answer.hits}
    assert answer.degraded == ("index-incomplete",)
    require_named(site.run("sync", TENANT), index, "was replaced by a different index", "--repair")
    assert site.run("sync", TENANT, "--repair").code == 0
    assert site.run("sync", TENANT).code == 0
    assert site.installation.entries(TENANT) == entries
