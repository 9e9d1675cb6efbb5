"""Projects of team guidelines whose embedding server returns cosines stated in texts.

A passage with the words "cosine 0.81" has this cosine with every task.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import SecretStr
from ruamel.yaml import YAML

from rag_assets.api.guideline_responses import GuidelinesContext
from rag_assets.billing.key_ring import KeyRing
from rag_assets.pipeline.tenancy import Projects
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.tenants.settings import OrganizationRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.store import VectorStore
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.texts import GuidelineTexts
from rag_assets.tenants.projects import Project, ProjectSettings
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation, new_installation
from tests.integration.api.conftest import address, api, installed

__all__ = ["address", "api", "installed"]  # fixtures of the service

PROFILE = "team-guidelines"
KEY = "sk-proj-" + "planted0123456789abcdefWXYZ"
T = TypeVar("T")


def asked_cosine(text: str) -> float | None:
    found = re.search(r"cosine (\d\.\d+)", text)
    return float(found[1]) if found else None


@dataclass
class Guidelines:
    """An installation with projects."""

    installation: Installation
    server: EmbeddingServer
    folder: Path

    @cached_property
    def driver(self) -> Driver:
        return Driver(self.installation)

    @property
    def catalog(self) -> Any:
        return self.driver.session.catalog

    @property
    def texts(self) -> GuidelineTexts:
        return GuidelineTexts(self.catalog.database)

    @property
    def ring(self) -> KeyRing:
        return KeyRing(self.catalog, self.driver.session.settings)

    def begin_with(self, **beginning: Any) -> None:
        """Set the settings of new projects, in addition to the gateways."""
        providers = [
            {"provider": "openai", "base_url": self.server.url, "price": {"per_million": 1}},
            {"provider": "gemini", "base_url": self.server.origin, "price": {"per_million": 1}},
        ]
        path = self.installation.home / "tenants.yaml"
        described = {"retrieval": {"threshold_from": "as described"}}
        beginning = {"embedder": {"providers": providers}, **described, **beginning}
        document = {"tenants": [], "projects": beginning}
        with path.open("w") as stream:
            YAML().dump(document, stream)

    def switch(self, organization: str, *, on: bool) -> None:
        self.projects.put_organization(organization, has_opted_in=on)

    def give_key(self, organization: str, provider: str = "openai") -> None:
        self.ring.set(OrganizationRef(organization), provider, SecretStr(KEY))

    @property
    def projects(self) -> Projects:
        return Projects(self.catalog, self.driver.session.settings)

    def put(self, organization: str, project: str, **settings: Any) -> TenantRecord:
        named = Project(PROFILE, organization, project)
        return self.projects.put(named, ProjectSettings(**settings)).record

    def project(self, organization: str, project: str, **files: str) -> TenantRecord:
        """Create a synced project with a key, these files, and guidelines switched on."""
        record = self.put(organization, project)
        self.switch(organization, on=True)
        self.give_key(organization)
        self.upload(record, **files)
        return self.catalog.tenants.get(record.id)

    def upload(self, record: TenantRecord, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / f"{name}.md"
            path.write_text(text)
            added = self.installation.command("uploads", "add", record.id, str(path))
            assert added.code == 0, added.err
        if files:
            self.driver.sync(record.id)

    def within(
        self, work: Callable[[Contexts], Awaitable[T]], store: VectorStore | None = None
    ) -> T:
        """Build contexts in an event loop."""
        session = self.driver.session

        async def run() -> T:
            retriever = AsyncRetriever(session.catalog, store or session.store, session.embedders)
            try:
                reader = DocumentReader(session.catalog, store or session.store, retriever.policy)
                return await work(Contexts(session.catalog, retriever, reader))
            finally:
                await retriever.close()

        return asyncio.run(run())

    def context(
        self, record: TenantRecord, task: str = "locators", *, store: Any = None, **given: Any
    ) -> GuidelinesContext:
        """Return the context of a task for the project in its present state."""
        request = ContextRequest(task=task, **given)
        present = self.catalog.tenants.get(record.id)
        return self.within(lambda contexts: contexts.build(present, request, Caller()), store)

    def set_text(self, record: TenantRecord, text: str) -> None:
        present = self.texts.get(record.id)
        replaces = None if present is None else {present.version}
        self.texts.put(record.ref, text, by="ada", replaces=replaces)


@pytest.fixture(scope="module")
def guidelines(
    postgres_url: str, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guidelines]:
    folder = tmp_path_factory.mktemp("guidelines")
    with (
        embedding_server(dimensions=1536, cosine=asked_cosine) as server,
        new_installation(folder / "home", postgres_url, elasticsearch_url) as installation,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        made = Guidelines(installation, server, folder)
        made.begin_with()
        yield made


@pytest.fixture(autouse=True)
def _healthy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the server's faults after each test."""
    yield
    if "guidelines" in request.fixturenames:
        server: EmbeddingServer = request.getfixturevalue("guidelines").server
        server.always = None
        server.faults.clear()
        server.seconds = 0.0
