"""The service in a process of its own, and a search by one of its callers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_assets.runtime.net import find_free_port

_START_SECONDS = 120
_CLI = (sys.executable, "-m", "rag_assets.cli")


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
    creation = subprocess.run([*_CLI, *created], check=True, capture_output=True, text=True)
    url = f"http://127.0.0.1:{(port := find_free_port())}"
    with (
        log.open("w") as lines,
        subprocess.Popen(
            [*_CLI, "serve", "--port", str(port)],
            env={**os.environ, "RAG_ASSETS_SERVICE_RATE": "1000000/minute"},
            stdout=lines,
            stderr=lines,
        ) as process,
    ):
        try:
            _wait_until_ready(f"{url}/health/ready", process, log)
            yield url, str(json.loads(creation.stdout)["token"])
        finally:
            process.terminate()


def is_found(url: str, token: str, word: str) -> bool:
    """Return whether a search for a word finds it in a document now."""
    body = json.dumps({"query": word, "mode": "text", "top_k": 20}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/rag/query", body, headers)  # noqa: S310
    with urllib.request.urlopen(request) as response:  # noqa: S310
        hits = json.load(response)["hits"]
    return any(word in hit["text"] for hit in hits)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url):  # noqa: S310
                return
        except urllib.error.URLError:
            time.sleep(0.2)
    raise RuntimeError(f"the service did not start at {url}: see {log}")
