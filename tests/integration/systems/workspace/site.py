"""A workspace behind the service: an admin pushes records, and its members search."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jwt
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.panel.application import build_panel
from rag_assets.panel.settings import PanelSettings
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
LINES = "application/x-ndjson"
ORIGIN = "http://127.0.0.1"


class Site:
    """A workspace, and requests to it.

    Args:
        tenant: its id.
        client: of the service.
        installation: to which it belongs.
        driver: syncs it.
    """

    def __init__(
        self, tenant: str, client: TestClient, installation: Installation, driver: Driver
    ) -> None:
        self.id, self.client = tenant, client
        self.installation, self.driver = installation, driver
        self.catalog = driver.session.catalog

    def headers(self, role: str = "admin", subject: str = "ann") -> dict[str, str]:
        """Return headers with a token."""
        claims = {"sub": subject, "tenants": [self.id], "role": role}
        claims["exp"] = int(time.time()) + 3_000
        return {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request, by default as an admin."""
        return self.client.request(method, path, json=body, headers=self.headers(**more))

    def put(self, source_type: str, source_id: str, body: Mapping[str, Any]) -> str:
        """Push a record; return the outcome."""
        answer = self.send("PUT", f"/rag/records/{source_type}/{source_id}", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["outcome"])

    def lines(self, lines: Sequence[Any]) -> list[dict[str, Any]]:
        """Push many records; return the outcome of each."""
        content = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        answer = self.client.post(
            "/rag/records", content=content, headers={**self.headers(), "Content-Type": LINES}
        )
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["lines"]
        return found

    def put_content(self, source_id: str, content: bytes) -> Any:
        """Push the content of a file."""
        path = f"/rag/records/file/{source_id}/content"
        return self.client.put(path, content=content, headers=self.headers())

    def grant(self, *pages: str, principal: str = "ann") -> None:
        """Push pages that only one person reads."""
        for page in pages:
            said = {"inherit": False, "read": [principal]}
            answer = self.send("PUT", f"/rag/tree/{page}", said)
            assert answer.status_code == 200, answer.text

    def hits(self, query: str, **body: Any) -> list[dict[str, Any]]:
        """Return the hits of a question."""
        answer = self.send("POST", "/rag/query", {"query": query, "mode": "text", **body})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["hits"]
        return found

    def status(self) -> dict[str, Any]:
        """Return the status of the workspace."""
        found: dict[str, Any] = self.send("GET", "/rag/status").json()
        return found

    def sync(self) -> Any:
        """Sync until nothing is left."""
        return self.driver.sync(self.id)

    def embedded(self) -> int:
        """Sync; return the number of embedded texts."""
        return int(self.sync()["embedded"])


@contextmanager
def workspace(installation: Installation, tenant: str, **config: Any) -> Iterator[Site]:
    """A workspace with records alone."""
    root = installation.home.parent / "sources" / tenant
    root.mkdir(parents=True)
    sources = [{"name": "pushed", "type": "records"}]
    fast = {name: value for name, value in FAST.items() if name != "chunker"}
    config = {"profile": "workspace", "sources": sources, **config}
    installation.add_tenant(tenant, root=root, **{**fast, **config})
    driver = Driver(installation)
    driver.sync(tenant)
    session = driver.session
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    chat_models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    systems = installed_systems()
    panel = build_panel(backend, PanelSettings(), systems.load("panels").values())
    routers = [*systems.load("routers").values(), panel.router]
    app = build_app(backend, routers=routers, pages=panel.routes)
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=True) as client:
        yield Site(tenant, client, installation, driver)
