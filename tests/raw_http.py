"""Raw HTTP requests, which no client library would send."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Target:
    """A server on loopback.

    Attributes:
        seconds: time limit of a response.
    """

    port: int
    seconds: float = 1.0

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the server of a URL, without its account."""
        return cls(urlsplit(url).port or 0)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def request(
        self, method: str, path: str, *headers: str, body: bytes = b"", host: str | None = None
    ) -> bytes:
        """Return the bytes of a request, with a Content-Length unless the headers have one."""
        named = [f"Host: {self.host}"] if host is None else [f"Host: {host}"] if host else []
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{method} {path} HTTP/1.1", *named, *length, *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    def send(self, data: bytes, *, answers: int = 1) -> bytes:
        """Send bytes; return what is received until the last response starts or the time is up."""
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
        """Return the status of the first response; 0 if the connection was closed without any."""
        return next(iter(statuses_in(self.send(data))), 0)


def statuses_in(received: bytes) -> list[int]:
    """Return the status codes of the responses in received bytes."""
    lines = (line.rpartition(b"HTTP/") for line in received.split(b"\r\n"))
    found = [rest.split() for _, mark, rest in lines if mark]
    return [int(words[1]) for words in found if len(words) > 1 and words[1].isdigit()]
