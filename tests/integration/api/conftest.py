"""A service for two tenants, and tokens for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.server import build_config, open_socket
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.storage.blobs.store import open_blobs
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation, new_installation

SECRET = "an example secret of more than 32 bytes"
ISSUER = "https://sign.example"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET, issuer=ISSUER),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
    mcp_origins=frozenset({"https://app.example"}),
)


@dataclass
class Api:
    """A running service, with tokens and requests."""

    client: TestClient
    installation: Installation
    driver: Driver
    backend: Backend

    def another(self, settings: ServiceSettings) -> Backend:
        """Return a backend with the same servers, for another event loop."""
        session = self.driver.session
        catalog = as_service(session)
        retriever = AsyncRetriever(catalog, session.store, session.embedders)
        chat_models = ChatModels(catalog, session.settings)
        blobs = open_blobs(session.settings)
        return Backend(catalog, session.store, retriever, settings, chat_models, blobs=blobs)

    def core(self, tenant: str, request: SearchRequest) -> SearchAnswer:
        """Return the core's answer, without the HTTP interface."""
        return self.installation.retriever.search(tenant, request)

    def token(self, subject: str = "eve", *tenants: str, **changes: Any) -> str:
        """Return a JWT, by default for the tenant acme."""
        claims = {"sub": subject, "iss": ISSUER, "exp": int(time.time()) + 300}
        claims |= {"tenants": list(tenants or ["acme"]), **changes}
        return jwt.encode(claims, SECRET)

    def ask(self, token: str, **body: Any) -> Any:
        """Send a question; return the response."""
        return self.client.post(
            "/rag/query",
            json={"query": "valve", "top_k": 50, **body},
            headers={"Authorization": f"Bearer {token}"},
        )

    def get(self, token: str, path: str, **parameters: Any) -> Any:
        """Send a GET request; return the response."""
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.get(path, params=parameters, headers=headers)

    def send(self, method: str, path: str, body: Any = None, *, token: str = "") -> Any:
        """Send a write, by default as an admin of acme; return the response."""
        bearer = token or self.token("chief", role="admin")
        headers = {"Authorization": f"Bearer {bearer}"}
        return self.client.request(method, path, json=body, headers=headers)

    def uris(self, token: str, **body: Any) -> set[str]:
        """Return the URIs of the hits."""
        return {hit["uri"] for hit in self.ask(token, **body).json()["hits"]}


@pytest.fixture(scope="module")
def installed(
    postgres_url: str, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Create an installation that allows addresses on loopback."""
    home = tmp_path_factory.mktemp("service") / "home"
    with (
        new_installation(home, postgres_url, elasticsearch_url) as made,
        pytest.MonkeyPatch.context() as environment,
    ):
        # Chat models answer on loopback.
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield made


@pytest.fixture(scope="module")
def api(installed: Installation) -> Iterator[Api]:
    driver = Driver(installed)
    for tenant in ("acme", "other", "asleep"):
        root = installed.home.parent / "sources" / tenant
        sources = []
        for scope in ("public", "board"):
            folder = root / scope
            folder.mkdir(parents=True)
            (folder / f"{tenant}.md").write_text(f"# Valves\n\nThe {scope} valve of {tenant}.\n")
            sources.append({"name": scope, "root": str(folder), "scope": scope})
        if tenant == "acme":
            sources.append({"name": "pushed", "type": "records"})
            sources.append({"name": "uploads", "type": "uploads", "max_bytes": 4_000_000})
        installed.add_tenant(tenant, root=root, **{**FAST, "sources": sources})
        driver.sync(tenant)
    installed.configure("asleep", enabled=False)
    with serving(installed, driver) as made:
        yield made


@contextmanager
def serving(installed: Installation, driver: Driver) -> Iterator[Api]:
    """Run the service of an installation within the block."""
    session = installed.session()
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    chat_models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    with TestClient(application(backend), raise_server_exceptions=True) as client:
        yield Api(client, installed, driver, backend)


@pytest.fixture(scope="module")
def address(api: Api) -> Iterator[str]:
    """Yield the address of the same service over real connections."""
    with running(api.another(SETTINGS)) as address:
        yield address


def application(backend: Backend) -> FastAPI:
    """Build the service with the endpoints of the installed systems, as `serve` does."""
    return build_app(backend, routers=[*installed_systems().load("routers").values()])


@contextmanager
def running(backend: Backend) -> Iterator[str]:
    """Run a service with its own event loop within the block; yield its address."""
    server = uvicorn.Server(build_config(application(backend)))
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
