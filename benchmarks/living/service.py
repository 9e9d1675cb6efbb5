"""The service in a process of its own, and a search by one of its callers."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import servers
from benchmarks.measure import CLI


@contextmanager
def run_service(tenant_id: str, log: Path) -> Iterator[tuple[str, str]]:
    """Run `rag-assets serve` for the installation of the environment until the block ends.

    Args:
        tenant_id: the tenant for which a token is created.
        log: file for the service's output.

    Yields:
        its address, and the token.
    """
    created = ("tokens", "create", tenant_id, "--principal", "trial", "--json")
    creation = subprocess.run([*CLI, *created], check=True, capture_output=True, text=True)
    with servers.run_service(log, RAG_ASSETS_SERVICE_RATE="1000000/minute") as (port, _):
        yield f"http://127.0.0.1:{port}", str(json.loads(creation.stdout)["token"])


def is_found(url: str, token: str, word: str) -> bool:
    """Return whether a search for a word finds it in a document now."""
    body = json.dumps({"query": word, "mode": "text", "top_k": 20}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/rag/query", body, headers)  # noqa: S310
    with urllib.request.urlopen(request) as response:  # noqa: S310
        hits = json.load(response)["hits"]
    return any(word in hit["text"] for hit in hits)
