"""Floods on twenty connections: the service keeps responding, and its memory does not grow."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from tests.installation import Installation
from tests.security.flood import KINDS
from tests.security.service_process import Served, get, post, serving

pytestmark = pytest.mark.long

CONNECTIONS = 20
SECONDS = 3.0
HEALTHY_SECONDS = 0.2
MORE_BYTES = 48 * 1024 * 1024
"""Twenty connections may hold some 256 KiB each, and garbage waits to be collected."""


@pytest.fixture(scope="module")
def service(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "service.log"
    with serving(shared_installation, log) as service:
        service.asked(b'{"query": "valve"}')
        yield service


@contextmanager
def flooded(service: Served, kind: str, seconds: float = SECONDS) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.security.flood", str(service.port), kind]
    process = subprocess.Popen([*command, str(CONNECTIONS), str(seconds)])
    try:
        yield
    finally:
        process.wait(60)


def health_times(service: Served, seconds: float) -> list[float]:
    """Return the durations of consecutive health checks, sorted."""
    times = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        with closing(service.connected()) as connection:
            connection.sendall(get("/health/live", "Connection: close"))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        times.append(time.monotonic() - began)
        time.sleep(0.01)
    return sorted(times)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flood_neither_fills_memory_nor_keeps_others_waiting(service: Served, kind: str) -> None:
    before = service.memory
    slowest = []
    # Other programs on this machine may delay it once.
    for _ in range(3):
        with flooded(service, kind):
            times = health_times(service, SECONDS)
        assert service.memory - before < MORE_BYTES
        slowest.append(times[int(0.95 * len(times))])
        if slowest[-1] <= HEALTHY_SECONDS:
            break
    assert min(slowest) <= HEALTHY_SECONDS, slowest


def test_a_client_that_reads_no_responses_is_not_read_further(service: Served) -> None:
    sent = 0
    requests = get("/openapi.json") * 1_000
    with closing(service.connected()) as connection:
        connection.settimeout(1)
        with suppress(TimeoutError):
            while sent < 100_000_000:
                sent += connection.send(requests)
    # This is what the buffers of both kernels hold.
    assert sent < 20_000_000


def test_a_body_that_comes_too_slowly_is_given_up(service: Served) -> None:
    head = post(b"", f"Authorization: Bearer {service.tokens['acme']}")
    began = time.monotonic()
    received = b""
    with closing(service.connected()) as connection:
        connection.sendall(head.replace(b"Length: 0", b"Length: 100"))
        connection.settimeout(1)
        while time.monotonic() - began < 20 and not received:
            try:
                connection.sendall(b" ")
                received = connection.recv(65_536)
            except TimeoutError:
                continue
    assert received.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 15
