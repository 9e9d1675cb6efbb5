"""A proxy that can be cut, so that clients lose the server even during a request.

It sets the Host of each request to the server's, because the embedded Elasticsearch accepts no
other.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

_READ_BYTES = 65_536


class Proxy:
    """A proxy that forwards connections to a server until it is cut."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        assert self._parts.hostname
        assert self._parts.port
        self._target = (self._parts.hostname, self._parts.port)
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._port = 0
        self.restore()

    @property
    def url(self) -> str:
        """Return the URL of the server behind the proxy."""
        account = self._parts.netloc.rpartition("@")[0]
        netloc = f"{account}@" if account else ""
        return urlunsplit(self._parts._replace(netloc=f"{netloc}127.0.0.1:{self._port}"))

    def cut(self) -> None:
        """Refuse new connections, and break the open ones."""
        assert self._listener is not None
        listener, self._listener = self._listener, None
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def restore(self) -> None:
        """Accept connections again, at the same address."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
                for one, other in ((client, server), (server, client)):
                    self._open.add(one)
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        host = "127.0.0.1:{}\r\n".format
        named, own = host(self._port).encode(), host(self._target[1]).encode()
        with suppress(OSError):
            while data := source.recv(_READ_BYTES):
                target.sendall(data.replace(named, own))
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """Start a proxy for a server."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.cut()
