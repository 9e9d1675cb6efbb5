"""`rag-assets serve` in a process of its own, with a real index, and raw connections to it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.driving import Driver
from tests.installation import FAST, Installation

TENANTS = ("acme", "other")
PAGE = 4_096


@dataclass
class Served:
    """A running service.

    Attributes:
        log: the file with its standard error.
        tokens: one for each tenant.
    """

    port: int
    process: subprocess.Popen[str]
    log: Path
    tokens: Mapping[str, str]

    @property
    def memory(self) -> int:
        """Return the resident memory of the process, in bytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * PAGE

    def connected(self, address: str = "127.0.0.1") -> socket.socket:
        """Connect from one of this machine's own addresses."""
        return socket.create_connection(("127.0.0.1", self.port), 10, (address, 0))

    def sent(self, data: bytes, address: str = "127.0.0.1") -> bytes:
        """Send data; return what is received until the service closes or stays silent."""
        received = b""
        with closing(self.connected(address)) as connection:
            connection.settimeout(2)
            # It may refuse before everything is sent.
            with suppress(ConnectionError):
                connection.sendall(data)
            with suppress(TimeoutError, ConnectionError):
                while part := connection.recv(65_536):
                    received += part
        return received

    def asked(
        self, body: bytes, *headers: str, path: str = "/rag/query", token: str | None = None
    ) -> Answer:
        """Send a question; return the response."""
        authorization = f"Authorization: Bearer {self.tokens['acme'] if token is None else token}"
        return answered(self.sent(post(body, authorization, *headers, path=path)))


@dataclass
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the JSON of the body."""
        return json.loads(self.body)


def answered(data: bytes) -> Answer:
    """Parse the first response in received bytes."""
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = dict(field.lower().split(": ", 1) for field in fields)
    return Answer(int(line.split()[1]), headers, body[: int(headers.get("content-length", 0))])


def get(path: str, *headers: str, version: str = "1.1") -> bytes:
    """Return a request without a body."""
    lines = [f"GET {path} HTTP/{version}", "Host: service.example", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def post(body: bytes, *headers: str, path: str = "/rag/query") -> bytes:
    """Return a request with a JSON body, after which the connection is closed."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: service.example",
        "Content-Type: application/json",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *headers,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


def tokens_of_tenants(installation: Installation) -> Mapping[str, str]:
    """Index the two tenants; return a token for each."""
    tokens = {}
    driver = Driver(installation)
    for tenant in TENANTS:
        folder = installation.add_tenant(tenant, **FAST)
        (folder / "valves.md").write_text(f"# Valves\n\nThe valve of {tenant} opens at 4 bar.\n")
        driver.sync(tenant)
        made = installation.command("tokens", "create", tenant, "--principal", "bot", "--json")
        tokens[tenant] = made.json["token"]
    return tokens


@contextmanager
def serving(installation: Installation, log: Path, **environment: str) -> Iterator[Served]:
    """Serve two small tenants."""
    tokens = tokens_of_tenants(installation)
    with started(installation, log, **environment) as (process, port):
        yield Served(port, process, log, tokens)


@contextmanager
def started(
    installation: Installation, log: Path, *options: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the service until the block ends; yield it as soon as it responds."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = int(listener.getsockname()[1])
    with log.open("w") as stream:
        process = installation.start(
            "serve", "--port", str(port), *options, stderr=stream, **environment
        )
        try:
            until = time.monotonic() + 60
            while not is_ready(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until
                time.sleep(0.1)
            yield process, port
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()


def is_ready(port: int) -> bool:
    """Return whether the service and its servers are ready."""
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), 5)) as connection:
        connection.sendall(get("/health/ready", "Connection: close"))
        return connection.recv(65_536).startswith(b"HTTP/1.1 200")
    return False
