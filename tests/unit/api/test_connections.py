"""Connections that send nothing, or an incomplete request, over real sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from rag_assets.api.connections import DRAINED_BYTES, Connection
from rag_assets.api.guard import read_body
from rag_assets.api.middleware import RequestMetrics, RequestMiddleware
from rag_assets.api.problems import handle_problems

WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"


class Hasty(Connection):
    head_seconds = 0.1


class Few(Connection):
    max_connections = 3


class Brief(Connection):
    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.timeout_keep_alive = 0.1


def _reading() -> ASGIApp:
    async def here(request: Request) -> Response:
        await read_body(request, seconds=0.1)
        return PlainTextResponse("here")

    async def refuse(_: Request) -> Response:
        return PlainTextResponse("refused", 429)

    app = FastAPI()
    app.add_route("/", here, methods=["GET", "POST"])
    app.add_route("/refuse", refuse, methods=["POST"])
    handle_problems(app)
    return app


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    app = RequestMiddleware(_reading(), RequestMetrics())
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http=request.param, ws="none", lifespan="off", log_config=None)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.001)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while data := connection.recv(65_536):
        received += data
    return received


def is_answered(connection: socket.socket) -> bool:
    connection.sendall(WHOLE)
    try:
        return connection.recv(65_536).startswith(b"HTTP/1.1 200")
    except ConnectionError:
        return False


@pytest.mark.parametrize("port", [Hasty], indirect=True)
@pytest.mark.parametrize("partial_head", [b"", b"\r\n", WHOLE[:-2], WHOLE + WHOLE[:-2]])
def test_a_connection_without_a_whole_head_ends(port: int, partial_head: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(partial_head)
        assert (b"here" in read_to_end(connection)) == (WHOLE in partial_head)


@pytest.mark.parametrize("port", [Connection], indirect=True)
def test_half_a_body_is_answered_by_a_problem_and_the_connections_end(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HALF_A_BODY)
        received = read_to_end(connection)
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"urn:rag-assets:problem:too-slow" in received


def _post(*fields: str) -> bytes:
    return "\r\n".join(["POST /refuse HTTP/1.1", "Host: x", *fields, "", ""]).encode()


def _answer(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\nrefused" not in received:
        received += connection.recv(65_536)
    return received


@pytest.mark.parametrize("port", [Connection], indirect=True)
@pytest.mark.parametrize("size", [10, DRAINED_BYTES])
def test_a_refusal_before_a_small_body_keeps_the_connection(port: int, size: int) -> None:
    with connected(port) as connection:
        for _ in range(2):
            connection.sendall(_post(f"Content-Length: {size}"))
            answer = _answer(connection)
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"connection: close" not in answer
            connection.sendall(b"a" * size)
        assert is_answered(connection)


@pytest.mark.parametrize("port", [Connection], indirect=True)
@pytest.mark.parametrize(
    ("fields", "rest"),
    [
        ([f"Content-Length: {DRAINED_BYTES + 1}"], b"a" * (DRAINED_BYTES + 1)),
        (["Content-Length: 2000000", "Connection: close"], b"a" * 2_000_000),
        (["Transfer-Encoding: chunked"], b"1\r\na\r\n0\r\n\r\n"),
        (["Content-Length: 1", "Expect: 100-continue"], b""),
        (["Content-Length: 10", "Connection: close"], b"a" * 10),
    ],
)
def test_a_refusal_announces_the_connections_end(port: int, fields: list[str], rest: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(_post(*fields))
        time.sleep(0.05)
        connection.sendall(rest)
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 ")
    assert head.count(b"connection: close") == 1
    assert body == b"refused"


@pytest.mark.parametrize("port", [Hasty], indirect=True)
def test_an_idle_connection_lasts_longer_than_a_head_may(port: int) -> None:
    with connected(port) as connection:
        for _ in range(2):
            assert is_answered(connection)
            time.sleep(0.25)
        connection.sendall(WHOLE[:-2])
        assert connection.recv(65_536) == b""


@pytest.mark.parametrize(
    ("port", "sent"),
    [(Hasty, _post("Content-Length: 10")), (Brief, _post("Content-Length: 1") + b"a")],
    indirect=["port"],
    ids=["a body that never comes", "nothing after the answer"],
)
def test_a_connection_on_which_nothing_comes_ends(port: int, sent: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(sent)
        _answer(connection)
        assert connection.recv(65_536) == b""


@pytest.mark.parametrize("port", [Few], indirect=True)
def test_idle_connections_make_room_for_new_ones(port: int) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(port)) for _ in range(3)]
        assert all(is_answered(connection) for connection in (*idle, idle[0]))
        assert all(is_answered(stack.enter_context(connected(port))) for _ in range(2))
        # Those that have asked nothing for longest go first.
        assert [is_answered(connection) for connection in idle] == [True, False, False]
