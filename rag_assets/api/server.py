"""How the service listens: its address, its connections, and that cleartext stays at home."""

from __future__ import annotations

import resource
import socket
from errno import EADDRNOTAVAIL, EAFNOSUPPORT
from typing import TYPE_CHECKING

from rag_assets.api.client_addresses import is_loopback
from rag_assets.api.connections import Connection
from rag_assets.api.settings import KEEP_ALIVE_SECONDS, Cleartext
from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

_BACKLOG = 2_048
GRACE_SECONDS = 10
"""Time in which requests end after the service is told to stop."""

_MAX_CONNECTIONS = 2_000
_OTHER_FILES = 124
"""Descriptors that are not connections: of servers, models, logs."""


def config(app: ASGIApp, keep_alive_seconds: int = KEEP_ALIVE_SECONDS) -> uvicorn.Config:
    """Return how uvicorn serves an application.

    Args:
        app: the application.
        keep_alive_seconds: for which a connection may be idle between requests.
    """
    import uvicorn

    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        http=_connection(),
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=keep_alive_seconds,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        ConfigurationError: the address cannot be listened at.
    """
    return _listening(host, port)


def listening_together(host: str, port: int, workers: int) -> list[socket.socket]:
    """Sockets that listen at one address, one for each worker.

    The kernel deals connections out among them: with one socket for all, whichever worker wakes
    first would accept all that have come. Let the process that forks the workers keep them open:
    connections to a worker that dies then wait for the one that takes its place.

    Raises:
        ConfigurationError: the address cannot be listened at.
    """
    # Sockets of one user that share an address do not notice another service there; this does.
    alone = _listening(host, port)
    if workers == 1:
        return [alone]
    alone.close()
    return [_listening(host, port, shared=True) for _ in range(workers)]


def listening_beside(host: str, port: int, workers: int) -> list[socket.socket] | None:
    """Return sockets at loopback's other address; none where the machine does not have it.

    Browsers try both addresses for a name below `.localhost`: whoever listens at the other one gets
    what they send, with its cookies.

    Returns:
        None if another program listens there.
    """
    try:
        return listening_together(host, port, workers)
    except ConfigurationError as error:
        cause = error.__context__
        is_missing = isinstance(cause, OSError) and cause.errno in {EADDRNOTAVAIL, EAFNOSUPPORT}
        return [] if is_missing else None


def _listening(host: str, port: int, *, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=_BACKLOG, reuse_port=shared
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen at {host}, port {port}: {error.strerror or 'no such address'}",
            hint="choose another with --port or --host",
        ) from None


def cleartext_warning(host: str, cleartext: Cleartext) -> str | None:
    """What to warn of where tokens and documents would cross a network as they are.

    Raises:
        ConfigurationError: it is not to be.
    """
    if cleartext == "allow" or is_loopback(host):
        return None
    what = f"{host} can be reached from other machines, and the service speaks no TLS"
    how = "put a proxy before it that does, and set RAG_ASSETS_SERVICE_CLEARTEXT=allow"
    if cleartext == "refuse":
        raise ConfigurationError(what, hint=f"{how}; or listen at 127.0.0.1")
    return f"warning: {what}: tokens and documents can be read on the way; {how}"


def _connection() -> type[Connection]:
    """Connections, as many at once as the process may have descriptors for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)

    class _Connection(Connection):
        pass

    _Connection.most = max(most - _OTHER_FILES, 1)
    return _Connection
