"""A workspace over the service: a tree of pages with a mark in each document, and its callers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jwt
from sqlalchemy import text
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.ingest.parsing.media_types import MARKDOWN
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.tenancy import reconcile_tenants
from rag_assets.retrieval import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.records import PushedRecord
from rag_assets.systems.registry import installed_systems
from tests.driving import Driver
from tests.installation import FAST, Installation

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("1000000/minute"),
    attempts=Rate.parse("1000000/minute"),
)
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Person:
    """Who asks: a subject with its groups and its role."""

    name: str
    role: str = "member"
    groups: tuple[str, ...] = ()

    @property
    def principals(self) -> tuple[str, ...]:
        """The names that grants may be for."""
        named = (self.name, *(f"group:{group}" for group in self.groups))
        return named if self.role == "guest" else (*named, "members")


@dataclass
class Workspace:
    """A tenant, its service, and the chain that indexes it."""

    id: str
    client: TestClient
    driver: Driver

    @property
    def catalog(self) -> Catalog:
        return self.driver.session.catalog

    def send(
        self, method: str, path: str, body: Any = None, *, by: Person, **parameters: Any
    ) -> Any:
        """What a request is answered with."""
        claims: dict[str, Any] = {"sub": by.name, "groups": list(by.groups), "role": by.role}
        claims |= {"tenants": [self.id], "exp": int(time.time()) + 3_000}
        headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}", **ACCEPT}
        return self.client.request(
            method, path, json=body, headers=headers, params=parameters or None
        )

    def put(self, uuid: str, **said: Any) -> dict[str, Any]:
        """Put a page, which is not refused."""
        answer = self.send("PUT", f"/rag/tree/{uuid}", said, by=ADMIN)
        assert answer.status_code == 200, answer.text
        done: dict[str, Any] = answer.json()
        return done

    def push(self, texts: Mapping[str, str], *, kind: str = "page", on: str | None = None) -> None:
        """Push a record of each id, on the page of its id or on another one; nothing is indexed."""
        ref = self.catalog.tenants.get(self.id).ref
        for source_id, content in texts.items():
            page = source_id if on is None else on
            metadata = SourceMetadata(title=content, metadata={"page": page} if page else {})
            record = PushedRecord("pushed", kind, source_id, content, MARKDOWN, metadata)
            self.catalog.records.put(ref, record, scope="public")

    def sync(self) -> None:
        """Index what was pushed, and let entries follow moved pages."""
        with self.driver.locked(self.id) as ctx:
            list_documents(ctx, self.driver.scanner)
        statement = """
            UPDATE rag_catalog.documents d SET page_uuid = metadata ->> 'page', access_scope =
              coalesce((SELECT scope FROM rag_catalog.pages p
                        WHERE p.tenant = d.tenant AND p.uuid = d.metadata ->> 'page'),
                       'tree:nobody')
            WHERE tenant = :tenant AND page_uuid IS NULL AND metadata ->> 'page' IS NOT NULL"""
        with self.catalog.database.begin() as connection:
            connection.execute(text(statement), {"tenant": self.id})
        self.driver.sync(self.id)

    def ask(self, by: Person, query: str, **body: Any) -> list[dict[str, Any]]:
        """The hits of a question by words."""
        given = {"query": query, "mode": "text", "top_k": 20, **body}
        answer = self.send("POST", "/rag/query", given, by=by)
        assert answer.status_code == 200, answer.text
        hits: list[dict[str, Any]] = answer.json()["hits"]
        return hits


ADMIN = Person("chief", "admin")


@contextmanager
def workspace_of(
    installation: Installation, driver: Driver, tenant: str, **config: Any
) -> Iterator[Workspace]:
    """A new workspace with a source of records."""
    sources = [{"name": "pushed", "type": "records"}]
    entry = {**FAST, "profile": "workspace", "sources": sources, **config}
    installation.add_tenant(tenant, **entry)
    reconcile_tenants(driver.session.catalog, driver.session.settings)
    session = installation.session()
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    models = ChatModels(session.catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(session.catalog, session.store, retriever, SETTINGS, models, blobs=blobs)
    routers = [*installed_systems().load("routers").values()]
    with TestClient(build_app(backend, routers=routers)) as client:
        yield Workspace(tenant, client, driver)


def marks_in(hits: Sequence[Mapping[str, Any]]) -> set[str]:
    """The words of hits that begin with `mark`."""
    return {word.strip(".") for hit in hits for word in hit["text"].split() if "mark" in word}
