"""A service for a tenant of experience, whose embedding server returns cosines stated in texts.

An entry with the words "cosine 0.81" has this cosine with every question without such words.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import jwt
import pytest
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from tests.databases import as_service
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation, new_installation
from tests.integration.api.conftest import running

SECRET = "an example secret of more than 32 bytes"
KEY = "sk-proj-" + "planted0123456789abcdefWXYZ"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
YEAR = timedelta(days=365)


def asked_cosine(text: str) -> float | None:
    found = re.search(r"cosine (\d\.\d+)", text)
    return float(found[1]) if found else None


@dataclass
class Learning:
    """A tenant of experience, through its endpoints."""

    client: TestClient
    driver: Driver
    tenant: str
    projects: list[str] = field(default_factory=list)

    def headers(self, role: str, name: str = "conductor") -> dict[str, str]:
        claims = {"sub": name, "exp": int(time.time()) + 3_000, "tenants": [self.tenant]}
        return {"Authorization": f"Bearer {jwt.encode(claims | {'role': role}, SECRET)}"}

    def send(
        self, method: str, path: str, body: Any = None, *, role: str = "orchestrator", **more: Any
    ) -> Any:
        return self.client.request(
            method, f"/rag/experience{path}", json=body, headers=self.headers(role), **more
        )

    def ok(self, method: str, path: str, body: Any = None, *, role: str = "orchestrator") -> Any:
        answer = self.send(method, path, body, role=role)
        assert answer.is_success, answer.text
        return answer.json()

    def project(self, name: str = "Harbor") -> str:
        made = str(uuid.uuid4())
        self.ok("PUT", f"/projects/{made}", {"name": name})
        self.projects.append(made)
        return made

    def failure(self, project: str, description: str, steps: str, **more: Any) -> str:
        body = {
            "entry_type": "failure_solution",
            "project_id": project,
            "agent_type": "backend-developer",
            "failure_description": description,
            "solution_steps": steps,
            "success_verified": True,
        }
        return str(self.ok("POST", "/entries", body | more)["id"])

    def checkpoint(self, project: str, kind: str = "phase_completion") -> str:
        body = {"checkpoint_type": kind, "project_id": project}
        return str(self.ok("POST", "/checkpoints", body)["checkpoint_id"])

    def learned(self, project: str, kind: str = "phase_completion") -> dict[str, Any]:
        """Request a checkpoint, and run the sync that the daemon would run for it."""
        made = self.checkpoint(project, kind)
        self.driver.sync(self.tenant)
        found: dict[str, Any] = self.ok("GET", f"/checkpoints/{made}")
        return found

    def ask(self, description: str, **more: Any) -> list[dict[str, Any]]:
        body = {"failure_description": description, **more}
        found: list[dict[str, Any]] = self.ok("POST", "/failure", body)["patterns"]
        return found

    def task(self, description: str, **more: Any) -> list[dict[str, Any]]:
        body = {"task_description": description, **more}
        found: list[dict[str, Any]] = self.ok("POST", "/task", body)["patterns"]
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(cosine=asked_cosine) as found:
        yield found


@pytest.fixture(scope="module")
def installed(
    postgres_url: str,
    elasticsearch_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    server: EmbeddingServer,
) -> Iterator[Installation]:
    home = tmp_path_factory.mktemp("experience") / "home"
    with (
        new_installation(home, postgres_url, elasticsearch_url) as made,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        environment.setenv("OPENAI_API_KEY", KEY)
        yield made


@pytest.fixture(scope="module")
def driver(installed: Installation) -> Driver:
    return Driver(installed)


@pytest.fixture(scope="module")
def service(installed: Installation) -> Iterator[TestClient]:
    application = build_app(
        _backend(installed),
        routers=[*installed_systems().load("routers").values()],
        tools=[*installed_systems().load("tools").values()],
    )
    with TestClient(application, raise_server_exceptions=True) as client:
        yield client


@pytest.fixture
def address(installed: Installation) -> Iterator[str]:
    """Yield the address of the same service over real connections."""
    with running(_backend(installed)) as address:
        yield address


def _backend(installed: Installation) -> Backend:
    """Return a backend for another event loop."""
    session = installed.session()
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    chat_models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    return Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)


@pytest.fixture
def learning(
    installed: Installation,
    driver: Driver,
    service: TestClient,
    server: EmbeddingServer,
) -> Learning:
    """Create a tenant without experience."""
    return new_learning(installed, driver, service, server)


def new_learning(
    installed: Installation, driver: Driver, service: TestClient, server: EmbeddingServer
) -> Learning:
    """Create a tenant whose embedding server returns the cosines stated in texts."""
    embedder = {
        "provider": "openai",
        "base_url": server.url,
        "model": "text-embedding-3-small",
        "dimensions": 16,
        "price": {"per_million": 1},
        "api_key": "$OPENAI_API_KEY",
    }
    return _learning(installed, driver, service, embedder)


@pytest.fixture
def local_learning(installed: Installation, driver: Driver, service: TestClient) -> Learning:
    """Create a tenant without experience that uses the shipped model."""
    return _learning(installed, driver, service, {"provider": "local"})


def _learning(
    installed: Installation, driver: Driver, service: TestClient, embedder: dict[str, Any]
) -> Learning:
    tenant = f"t{uuid.uuid4().hex[:12]}"
    installed.add_tenant(
        tenant,
        root=installed.home.parent / "unused",
        profile="experience",
        embedder=embedder,
        sources=[{"name": "experience", "type": "experience"}],
    )
    driver.sync(tenant)
    return Learning(service, driver, tenant)
