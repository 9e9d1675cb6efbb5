"""Loopback ports, simple HTTP health requests, and URLs without secrets for printing."""

from __future__ import annotations

import json
import random
import re
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"

# Below the ports of outgoing connections (from 32768 on Linux), a port stays free until the next
# start.
_PORTS = range(20_000, 32_000)
_MAX_PORT_ATTEMPTS = 200

_PASSWORD_IN_USERINFO = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_SECRET_IN_QUERY = re.compile(r"(?i)([?&](?:ssl)?password=|[?&]api_?key=|[?&]token=)[^&]*")
_DEFAULT_PORTS = {"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432}


def is_port_free(port: int) -> bool:
    """Return whether a server can listen on this loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Otherwise connections of a stopped server in TIME_WAIT would look like a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def find_free_port(preferred: int | None = None) -> int:
    """Return the preferred loopback port if it is free; otherwise any free port."""
    if preferred is not None and is_port_free(preferred):
        return preferred
    for port in random.sample(_PORTS, k=_MAX_PORT_ATTEMPTS):
        if is_port_free(port):
            return port
    raise OSError("no free port on the loopback interface")


def open_listening_socket(first: int) -> socket.socket:
    """Open a socket that listens at the first free loopback port from ``first`` upwards.

    No other process can take the port before the server that inherits the socket has started.
    """
    for port in range(first, min(first + _MAX_PORT_ATTEMPTS, 65_536)):
        with suppress(OSError):
            return socket.create_server((LOOPBACK, port))
    raise OSError(f"no free port on the loopback interface in the range that begins at {first}")


def get_json(
    port: int, path: str, *, authorization: str | None = None, timeout: float = 2.0
) -> Any:
    """Return the parsed JSON answer of a loopback server; None without a valid answer.

    A proxy from the environment is not used.
    """
    status, body = send_get(port, path, authorization=authorization, timeout=timeout)
    try:
        return json.loads(body) if status == HTTPStatus.OK else None
    except ValueError:
        return None


def send_get(
    port: int, path: str, *, authorization: str | None = None, timeout: float = 2.0
) -> tuple[int, bytes]:
    """Send a GET request to a loopback server, and return the status and the body.

    Without an answer, return 0 and b"".
    """
    import http.client

    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    headers = {} if authorization is None else {"Authorization": authorization}
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def accepts_connections(url: str, *, timeout: float = 2.0) -> bool:
    """Return whether a server listens at an http or postgresql URL, without logging in.

    One listening host is enough if the URL names several (``host1:5432,host2``).
    """
    parts = urlsplit(url)
    default_port = _DEFAULT_PORTS.get(parts.scheme.partition("+")[0], 0)
    hosts = parts.netloc.rpartition("@")[2] or ",".join(parse_qs(parts.query).get("host", []))
    return any(_listens(host, default_port, timeout) for host in (hosts or LOOPBACK).split(","))


def _listens(host: str, default_port: int, timeout: float) -> bool:
    try:
        if host.startswith("/"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(timeout)
                probe.connect(f"{host}/.s.PGSQL.{default_port}")
            return True
        location = urlsplit(f"//{host}")
        address = (location.hostname or LOOPBACK, location.port or default_port)
        with socket.create_connection(address, timeout=timeout):
            return True
    except (OSError, ValueError):
        return False


def mask_url(url: str) -> str:
    """Return a URL with masked passwords and tokens, for a terminal or a log."""
    return _SECRET_IN_QUERY.sub(r"\1***", _PASSWORD_IN_USERINFO.sub(r"\1:***", url))
