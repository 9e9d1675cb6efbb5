"""Several workers: they share what one of them learns, and each may die."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from tests.installation import Installation
from tests.security.service_process import (
    Answer,
    Served,
    answered,
    get,
    is_ready,
    post,
    started,
    tokens_of_tenants,
)

WORKERS = 2
QUESTION = b'{"query": "valve"}'


@pytest.fixture(scope="module")
def tokens(shared_installation: Installation) -> Mapping[str, str]:
    return tokens_of_tenants(shared_installation)


@pytest.fixture
def service(
    shared_installation: Installation, tokens: Mapping[str, str], tmp_path: Path
) -> Iterator[Served]:
    limits = {
        "RAG_ASSETS_SERVICE_WORKERS": str(WORKERS),
        "RAG_ASSETS_SERVICE_RATE": "30/hour",
        "RAG_ASSETS_SERVICE_ATTEMPTS": "5/hour",
    }
    log = tmp_path / "service.log"
    with started(shared_installation, log, **limits) as (process, port):
        yield Served(port, process, log, tokens)


@pytest.fixture
def connections(service: Served) -> Iterator[dict[int, socket.socket]]:
    """Yield an open connection to each worker, by its process id."""
    with ExitStack() as opened:
        yield to_each_worker(service, opened)


def to_each_worker(service: Served, opened: ExitStack) -> dict[int, socket.socket]:
    """Connect until every worker has a connection, since the kernel chooses the worker."""
    found: dict[int, socket.socket] = {}
    until = time.monotonic() + 60
    while len(found) < WORKERS:
        assert time.monotonic() < until
        connection = opened.enter_context(closing(service.connected()))
        connection.settimeout(60)
        connection.sendall(get("/health/live"))
        assert answer_on(connection).status == 200
        found[at_the_other_end(service, connection)] = connection
    return found


def at_the_other_end(service: Served, connection: socket.socket) -> int:
    """Return the process that accepted a connection."""
    here = connection.getsockname()
    for process in psutil.Process(service.process.pid).children():
        if any(
            tuple(net_connection.raddr) == here for net_connection in process.net_connections("tcp")
        ):
            return process.pid
    raise AssertionError("nobody is at the other end")


def ask(connection: socket.socket, token: str) -> Answer:
    """Ask over a connection, which stays open."""
    request = post(QUESTION, f"Authorization: Bearer {token}")
    connection.sendall(request.replace(b"Connection: close\r\n", b""))
    return answer_on(connection)


def answer_on(connection: socket.socket) -> Answer:
    """Return the next response on a connection that stays open."""
    received = b""
    while not complete(received):
        part = connection.recv(65_536)
        assert part
        received += part
    return answered(received)


def complete(received: bytes) -> bool:
    _, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return False
    return len(body) >= int(answered(received).headers["content-length"])


def counted(service: Served, status: int) -> float:
    """Return the number of questions with a status, from the metrics of one worker."""
    received = answered(service.sent(get("/metrics", "Connection: close")))
    return sum(
        float(line.split()[-1])
        for line in received.body.decode().splitlines()
        if line.startswith("rag_assets_http_requests_total")
        and 'route="/rag/query"' in line
        and f'status="{status}"' in line
    )


def test_limits_and_revocations_hold_in_both(
    service: Served,
    connections: dict[int, socket.socket],
    shared_installation: Installation,
) -> None:
    asked = Counter(
        ask(connection, service.tokens["acme"]).status
        for _ in range(20)
        for connection in connections.values()
    )
    assert asked == {200: 30, 429: 10}
    # The metrics of any worker cover all of them.
    assert {counted(service, 200) for _ in range(8)} == {30.0}
    assert counted(service, 429) == 10.0

    made = shared_installation.command("tokens", "create", "other", "--json").json
    assert [ask(each, made["token"]).status for each in connections.values()] == [200, 200]
    shared_installation.command("tokens", "revoke", "other", made["token_id"])
    assert [ask(each, made["token"]).status for each in connections.values()] == [401, 401]

    # An address has its attempts in both workers together, one of which was the revoked token; a
    # token that one worker has seen is known in the other.
    guessed = Counter(
        ask(connection, "rag_guess").status for _ in range(5) for connection in connections.values()
    )
    assert guessed == {401: 4, 429: 6}
    assert {ask(each, service.tokens["other"]).status for each in connections.values()} == {200}


@pytest.mark.long
def test_a_killed_worker_is_replaced_without_a_refused_connection(
    service: Served, connections: dict[int, socket.socket]
) -> None:
    killed, survivor = connections
    os.kill(killed, signal.SIGKILL)
    # The kernel sends some of these to the dead worker's socket.
    with ExitStack() as opened:
        for number in range(16):
            connection = opened.enter_context(closing(service.connected()))
            connection.settimeout(60)
            token = service.tokens["acme" if number % 2 else "other"]
            assert ask(connection, token).status == 200
    with ExitStack() as opened:
        replaced = to_each_worker(service, opened)
    assert killed not in replaced
    assert survivor in replaced
    lines = [json.loads(line) for line in service.log.read_text().splitlines() if line[0] == "{"]
    [death] = [line for line in lines if "ended unexpectedly" in line["event"]]
    assert (death["level"], death["reason"]) == ("warning", "signal 9")
    # The dead worker's counts remain.
    assert counted(service, 200) == 16.0


def test_requests_end_before_the_workers_do(
    service: Served, connections: dict[int, socket.socket]
) -> None:
    request = post(QUESTION, f"Authorization: Bearer {service.tokens['acme']}")
    for connection in connections.values():
        connection.sendall(request[:-1])
    time.sleep(0.5)
    service.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert not is_ready(service.port)
    for connection in connections.values():
        connection.sendall(request[-1:])
        assert answer_on(connection).status == 200
    assert service.process.wait(30) == 0
    assert not any(map(psutil.pid_exists, connections))
    lines = [line for line in service.log.read_text().splitlines() if line[0] == "{"]
    ours = [json.loads(line) for line in lines]
    assert [each["status"] for each in ours if each.get("route") == "/rag/query"] == [200, 200]


def test_an_address_that_is_taken_is_refused(
    service: Served, shared_installation: Installation
) -> None:
    options = ("--port", str(service.port), "--workers", "2")
    taken = shared_installation.command("serve", *options)
    assert (taken.code, "cannot listen at" in taken.err) == (1, True)
