"""Requests byte for byte, as no client library would send them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Target:
    """A loopback server.

    Attributes:
        port: where it listens.
        seconds: how long an answer is waited for.
    """

    port: int
    seconds: float = 1.0

    @classmethod
    def of(cls, url: str) -> Self:
        """The server at this URL; its account, if any, is left out."""
        return cls(urlsplit(url).port or 0)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def request(
        self, method: str, path: str, *headers: str, body: bytes = b"", host: str | None = None
    ) -> bytes:
        """One request in bytes; its length is told unless the headers tell of one."""
        named = [f"Host: {self.host}"] if host is None else [f"Host: {host}"] if host else []
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{method} {path} HTTP/1.1", *named, *length, *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    def send(self, data: bytes, *, answers: int = 1) -> bytes:
        """Send bytes; returns what comes back until so many answers began, or nothing more does."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=self.seconds) as connection:
            connection.sendall(data)
            try:
                while part := connection.recv(_READ_BYTES):
                    received += part
                    if statuses_in(received) and len(statuses_in(received)) >= answers:
                        break
            except TimeoutError:
                pass
        return received

    def status(self, data: bytes) -> int:
        """The status of the first answer; 0 when the connection was closed without one."""
        return next(iter(statuses_in(self.send(data))), 0)


def statuses_in(received: bytes) -> list[int]:
    """The statuses of the answers in what came back."""
    lines = (line.rpartition(b"HTTP/") for line in received.split(b"\r\n"))
    found = [rest.split() for _, mark, rest in lines if mark]
    return [int(words[1]) for words in found if len(words) > 1 and words[1].isdigit()]
