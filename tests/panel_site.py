"""A panel as users have it: `rag-assets serve`, one organization, and an embedding server.

The chain runs only when a test starts it, in a thread, because the browser's thread has an event
loop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import psutil
from ruamel.yaml import YAML

from rag_assets.pipeline.context import SliceLimits
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation
from tests.security.service_process import started

SECRET = "an example secret of more than 32 bytes"
ORGANIZATION = "harbour"
ENVIRONMENT = {"RAG_ASSETS_JWT_SECRET": SECRET, "RAG_ASSETS_PRIVATE_ENDPOINTS": "127.0.0.1"}
KEY = "an-example-key-of-the-provider-WXYZ"


@dataclass
class PanelSite:
    """A running panel.

    Attributes:
        origin: of the service.
        server: the embedding server; see EmbeddingServer.cosine for words that are near each other.
    """

    installation: Installation
    driver: Driver
    origin: str
    server: EmbeddingServer
    client: httpx.Client
    process: psutil.Process

    def token(self, subject: str = "dana@harbour.example", **changes: Any) -> str:
        claims = {"sub": subject, "exp": int(time.time()) + 600, "role": "admin"}
        claims |= {"organization": ORGANIZATION, **changes}
        return jwt.encode({k: v for k, v in claims.items() if v is not None}, SECRET)

    def ask(self, method: str, path: str, body: Any = None, **claims: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token(**claims)}"}
        return self.client.request(method, path, json=body, headers=headers)

    def project(self, project: str, *, key: bool = False) -> str:
        """Create a project; return its tenant."""
        made = self.ask("PUT", f"/api/projects/{project}", {})
        assert made.status_code == 201, made.text
        if key:
            said = self.ask("PUT", f"/api/projects/{project}/keys/openai", {"key": KEY})
            assert said.status_code == 200, said.text
        return str(made.json()["tenant"])

    def upload(self, project: str, name: str, content: bytes) -> None:
        """Upload a document."""
        said = self.client.post(
            f"/api/projects/{project}/guidelines/upload",
            files={"file": (name, content)},
            headers={"Authorization": f"Bearer {self.token()}"},
        )
        assert said.status_code == 202, said.text

    def link(self, project: str, **claims: Any) -> str:
        """Return a sign-in link for a browser."""
        answer = self.ask("POST", "/panel/links", {"project": project}, **claims)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["url"])

    def sync(self, tenant_id: str, *, slices: int | None = None) -> None:
        """Sync a tenant as the daemon would, after so many `slices` of one document each."""
        one = Driver(self.installation, SliceLimits(documents=1))
        with ThreadPoolExecutor(1) as pool:
            for _ in range(slices or 0):
                pool.submit(one.run_once, tenant_id).result()
            if slices is None:
                pool.submit(self.driver.sync, tenant_id).result()


@contextmanager
def panel_site(installation: Installation, log: Path, *options: str) -> Iterator[PanelSite]:
    """Serve the panel of an empty installation whose organization has guidelines switched on."""
    with embedding_server(dimensions=1536) as server:
        providers = [
            {"provider": "openai", "base_url": server.url, "price": {"per_million": 0.02}},
            {"provider": "gemini", "base_url": server.origin, "price": {"per_million": 0.15}},
        ]
        with (installation.home / "tenants.yaml").open("w") as stream:
            described = {"threshold_from": "as described"}
            projects = {"embedder": {"providers": providers}, "retrieval": described}
            YAML().dump({"projects": projects}, stream)
        with started(installation, log, *options, **ENVIRONMENT) as (process, port):
            origin = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=origin, timeout=60) as client:
                driver, served = Driver(installation), psutil.Process(process.pid)
                site = PanelSite(installation, driver, origin, server, client, served)
                on = {"ragGuidelines": True}
                said = site.ask("PUT", f"/api/organizations/{ORGANIZATION}", on)
                assert said.status_code == 200, said.text
                yield site
