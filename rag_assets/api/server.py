"""The sockets and connections of the service, and its warning about cleartext."""

from __future__ import annotations

import resource
import socket
from errno import EADDRNOTAVAIL, EAFNOSUPPORT
from typing import TYPE_CHECKING

from rag_assets.api.authentication import is_loopback
from rag_assets.api.connections import Connection
from rag_assets.api.settings import KEEP_ALIVE_SECONDS, Cleartext
from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

_BACKLOG = 2_048
GRACE_SECONDS = 10
"""Seconds in which running requests may end when the service stops."""

_MAX_CONNECTIONS = 2_000
_RESERVED_DESCRIPTORS = 124
"""File descriptors reserved for servers, models and logs."""


def build_config(app: ASGIApp, keep_alive_seconds: int = KEEP_ALIVE_SECONDS) -> uvicorn.Config:
    """Return the configuration with which uvicorn serves an application."""
    import uvicorn

    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        http=_build_connection_class(),
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=keep_alive_seconds,
    )


def open_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Open a listening socket.

    Args:
        shared: whether other sockets may listen at the same address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=_BACKLOG, reuse_port=shared
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen at {host}, port {port}: {error.strerror or 'no such address'}",
            hint="choose a different address with --port or --host",
        ) from None


def open_sockets(host: str, port: int, workers: int) -> list[socket.socket]:
    """Open a socket for each worker, all listening at the same address.

    The kernel distributes connections among them. The process that forks the workers should keep
    the sockets open, so that connections to a dead worker wait for its replacement.
    """
    # Only an exclusive socket detects another service of the same user.
    alone = open_socket(host, port)
    if workers == 1:
        return [alone]
    alone.close()
    return [open_socket(host, port, shared=True) for _ in range(workers)]


def open_other_loopback(host: str, port: int, workers: int) -> list[socket.socket] | None:
    """Open sockets at the other loopback address (127.0.0.1 or ::1).

    Browsers try both addresses for names below `.localhost`, so another program that listens there
    would get their requests, including cookies.

    Returns:
        The sockets; empty if the machine lacks the address; None if another program listens there.
    """
    try:
        return open_sockets(host, port, workers)
    except ConfigurationError as error:
        cause = error.__context__
        is_missing = isinstance(cause, OSError) and cause.errno in {EADDRNOTAVAIL, EAFNOSUPPORT}
        return [] if is_missing else None


def find_cleartext_warning(host: str, cleartext: Cleartext) -> str | None:
    """Return a warning if tokens and documents would cross a network unencrypted, else None.

    Raises:
        ConfigurationError: the settings refuse unencrypted traffic.
    """
    if cleartext == "allow" or is_loopback(host):
        return None
    problem = f"{host} can be reached from other machines, and the service does not support TLS"
    how = "put a proxy with TLS in front of the service, and set RAG_ASSETS_SERVICE_CLEARTEXT=allow"
    if cleartext == "refuse":
        raise ConfigurationError(problem, hint=f"{how}; or listen at 127.0.0.1")
    return f"warning: {problem}: others on the network can read tokens and documents; {how}"


def _build_connection_class() -> type[Connection]:
    """Return a class of connections whose maximum number fits the limit of open files.

    The process's limit of open files is raised first, as far as possible.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted_descriptors = _MAX_CONNECTIONS + _RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted_descriptors:
        soft = (
            wanted_descriptors if hard == resource.RLIM_INFINITY else min(hard, wanted_descriptors)
        )
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    max_files = (
        wanted_descriptors if soft == resource.RLIM_INFINITY else min(soft, wanted_descriptors)
    )

    class _Connection(Connection):
        pass

    _Connection.max_connections = max(max_files - _RESERVED_DESCRIPTORS, 1)
    return _Connection
