"""A workspace and its service: a tree of pages, a mark in each document, and callers."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jwt
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.server import build_config, open_socket
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.cli.session import Session
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from tests.databases import as_service
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
    """A caller: a subject with its groups and its role."""

    name: str
    role: str = "member"
    groups: tuple[str, ...] = ()

    @property
    def principals(self) -> tuple[str, ...]:
        """Return the names to which scopes can be granted."""
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

    def token(self, person: Person) -> str:
        """Return a person's token."""
        claims: dict[str, Any] = {"sub": person.name, "groups": [*person.groups]}
        claims |= {"role": person.role, "tenants": [self.id], "exp": int(time.time()) + 3_000}
        return jwt.encode(claims, SECRET)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        by: Person,
        lines: Sequence[Any] = (),
        **parameters: Any,
    ) -> Any:
        """Send a request; return the response."""
        headers = {"Authorization": f"Bearer {self.token(by)}", **ACCEPT}
        given: dict[str, Any] = {"json": body}
        if lines:
            headers["Content-Type"] = "application/x-ndjson"
            given = {"content": "\n".join(json.dumps(line) for line in lines).encode()}
        return self.client.request(
            method, path, headers=headers, params=parameters or None, **given
        )

    def put(self, uuid: str, **said: Any) -> dict[str, Any]:
        """Push a page; fail if it is refused."""
        answer = self.send("PUT", f"/rag/tree/{uuid}", said, by=ADMIN)
        assert answer.status_code == 200, answer.text
        done: dict[str, Any] = answer.json()
        return done

    def put_lines(self, lines: Sequence[Any], *, by: Person | None = None) -> list[dict[str, Any]]:
        """Push pages as lines; return the outcome of each."""
        answer = self.send("POST", "/rag/tree", by=by or ADMIN, lines=lines)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["lines"]
        return found

    def push(self, texts: Mapping[str, str], *, kind: str = "page", on: str = "") -> None:
        """Push a record with each id and text; all except pages and templates belong to a page."""
        lines = [
            {"op": "put", "type": kind, "id": source_id, **_body(kind, content, on)}
            for source_id, content in texts.items()
        ]
        answer = self.send("POST", "/rag/records", by=ADMIN, lines=lines)
        assert answer.status_code == 200, answer.text
        outcomes = {one["outcome"] for one in answer.json()["lines"]}
        assert outcomes <= {"queued", "unchanged"}, answer.text

    def sync(self) -> Counter[str]:
        """Index pushed records, and move entries with their pages; return the counts."""
        return self.driver.sync(self.id)

    def ask(self, by: Person, query: str, **body: Any) -> list[dict[str, Any]]:
        """Return the hits of a word search."""
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
    """Create a workspace with a source of records."""
    sources = [{"name": "pushed", "type": "records"}]
    entry = {**FAST, "profile": "workspace", "sources": sources, **config}
    installation.add_tenant(tenant, **entry)
    driver.session.reconcile()
    session = installation.session()
    with TestClient(service_of(session)) as client:
        yield Workspace(tenant, client, driver)


def service_of(session: Session) -> FastAPI:
    """Build the service as `serve` does."""
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, models, blobs=blobs)
    return build_app(backend, routers=[*installed_systems().load("routers").values()])


@contextmanager
def served(session: Session) -> Iterator[str]:
    """Run the service over real connections within the block; yield its address."""
    server = uvicorn.Server(build_config(service_of(session)))
    listener = open_socket("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _body(kind: str, content: str, on: str) -> dict[str, Any]:
    if kind == "page":
        block = {"block_id": "b1", "type": "paragraph", "text": content}
        return {"title": content, "blocks": [block]}
    if kind == "comment":
        return {"page_uuid": on, "text": content}
    if kind == "db_row":
        return {"database_uuid": on, "values": [{"name": "text", "value_text": content}]}
    return {"name": content}


def marks_in(hits: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the words with `mark` in the texts of hits."""
    return {word.strip(".") for hit in hits for word in hit["text"].split() if "mark" in word}
