"""Load a loopback port with requests, in a separate process, for a limited time.

python -m tests.security.flood PORT KIND CONNECTIONS SECONDS
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

HOST = b"Host: service.example\r\n"
GUESSED = b"POST /rag/query HTTP/1.1\r\nAuthorization: Bearer guessed\r\n" + HOST
CHUNKED = GUESSED + b"Transfer-Encoding: chunked\r\n\r\n"


def _headers() -> Iterator[bytes]:
    yield b"GET /health/live HTTP/1.1\r\n" + HOST
    while True:
        yield b"a:\r\n" * 16_000


def _one_header() -> Iterator[bytes]:
    yield b"GET /health/live HTTP/1.1\r\n" + HOST + b"a: "
    while True:
        yield b"b" * 65_536


def _address() -> Iterator[bytes]:
    yield b"GET /"
    while True:
        yield b"a" * 65_536


def _pipelined() -> Iterator[bytes]:
    while True:
        yield (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 1_000


def _extensions() -> Iterator[bytes]:
    yield CHUNKED + b"1;a="
    while True:
        yield b"b" * 65_536


def _trailers() -> Iterator[bytes]:
    yield CHUNKED + b"0\r\n"
    while True:
        yield b"a: b\r\n" * 10_000


def _small_chunks() -> Iterator[bytes]:
    yield CHUNKED
    while True:
        yield b"1\r\na\r\n" * 10_000


def _slow_bodies() -> Iterator[bytes]:
    yield GUESSED + b"Content-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.2)
        yield b"a"


KINDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "headers": _headers,
    "one header": _one_header,
    "address": _address,
    "pipelined, answers unread": _pipelined,
    "chunk extensions": _extensions,
    "trailers": _trailers,
    "small chunks": _small_chunks,
    "slow bodies": _slow_bodies,
}


def attack(port: int, kind: str, until: float) -> None:
    """Send without reading, and connect again whenever the connection ends."""
    while time.monotonic() < until:
        with (
            suppress(OSError),
            closing(socket.create_connection(("127.0.0.1", port), 5)) as connection,
        ):
            connection.settimeout(1)
            for data in KINDS[kind]():
                _send(connection, memoryview(data), until)
                if time.monotonic() > until:
                    break


def _send(connection: socket.socket, data: memoryview, until: float) -> None:
    while data and time.monotonic() < until:
        with suppress(TimeoutError):
            data = data[connection.send(data) :]


def main() -> None:
    """Attack the port over several connections."""
    port, kind, connections, seconds = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    threads = [
        threading.Thread(target=attack, args=(int(port), kind, until))
        for _ in range(int(connections))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
