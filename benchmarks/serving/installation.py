"""An installation with tenants of several sizes, and the service in front of it.

It stays in its folder between benchmarks, so that documents are indexed only once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.measure import PROJECT
from benchmarks.servers import Servers, run_service
from benchmarks.serving.questions import read_questions

QUESTIONS = 20_000
"""Questions per tenant: none is sent twice unless a case repeats it."""
FILES = {"small": 250, "bench": 2_000, "large": 6_200}
"""Number of documents by tenant: about 2,000, 16,000 and 50,000 chunks."""

_TENANT = """\
  - id: {tenant}
    sources: [{{name: files, type: files, root: {folder}}}]
    chunker: {{chunker: heading, max_tokens: {max_tokens}, overlap: {overlap}}}
    index: {{placement: dedicated}}
"""


@dataclass(frozen=True, slots=True)
class RunningService:
    """The service in a process of its own.

    Attributes:
        pid: id of its process.
        tokens: tokens by tenant.
    """

    url: str
    pid: int
    tokens: Mapping[str, str]


class ServingInstallation:
    """Tenants whose documents are indexed by the product, with its shipped model.

    Args:
        work: folder for everything that the benchmark makes.
        tenants: names in FILES.
    """

    def __init__(self, servers: Servers, work: Path, tenants: list[str]) -> None:
        self._work, self._tenants = work, tenants
        home = work / "home"
        home.mkdir(parents=True, exist_ok=True)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "RAG_ASSETS_HOME": str(home),
            "RAG_ASSETS_DATABASE_URL": servers.postgres_url,
            "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
            # A high limit: the benchmark measures answers, not refusals.
            "RAG_ASSETS_SERVICE_RATE": "1000000/minute",
        }
        entries = [
            _TENANT.format(
                tenant=tenant,
                folder=self._folder(tenant),
                max_tokens=corpus.MAX_TOKENS,
                overlap=corpus.OVERLAP,
            )
            for tenant in tenants
        ]
        (home / "tenants.yaml").write_text("tenants:\n" + "".join(entries))

    def index_tenants(self) -> dict[str, int]:
        """Index all tenants and draw their questions; return chunks by tenant."""
        self._run_command("rag_assets.cli", "up", "--no-dagster")
        chunks = {}
        for tenant in self._tenants:
            if not self._folder(tenant).exists():
                corpus.write_corpus(self._folder(tenant), FILES[tenant])
            print(f"{tenant}: indexing {FILES[tenant]:,} files", flush=True)
            self._run_command("rag_assets.cli", "sync", tenant, "--json")
            self._run_command(
                "benchmarks.serving.questions",
                *(str(self.get_questions_path(tenant)), tenant, str(self._folder(tenant))),
                *("--count", str(QUESTIONS)),
            )
            chunks[tenant] = read_questions(self.get_questions_path(tenant)).target.chunks
        return chunks

    def get_questions_path(self, tenant: str) -> Path:
        """Return the file of a tenant's questions."""
        return self._work / f"questions-{tenant}.json"

    @contextmanager
    def run_service(self, workers: int) -> Iterator[RunningService]:
        """Run `rag-assets serve` until the block ends."""
        tokens = {tenant: self._create_token(tenant) for tenant in self._tenants}
        log = self._work / "service.log"
        with run_service(log, "--workers", str(workers), **self._environment) as (port, pid):
            yield RunningService(f"http://127.0.0.1:{port}", pid, tokens)

    def _create_token(self, tenant: str) -> str:
        answer: dict[str, Any] = json.loads(
            self._run_command(
                "rag_assets.cli", "tokens", "create", tenant, "--principal", "load", "--json"
            )
        )
        return str(answer["token"])

    def _folder(self, tenant: str) -> Path:
        return self._work / f"corpus-{tenant}"

    def _run_command(self, module: str, *arguments: str) -> str:
        process = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=PROJECT,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if process.returncode:
            raise SystemExit(f"{module} {' '.join(arguments)} failed: {process.stdout.strip()}")
        return process.stdout
