"""The protocol of the fork server: one request with descriptors, and replies as lines of JSON.

It imports little, and only from the standard library: every command imports this module first.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SOCKET = os.path.join(".local", "forkserver", "socket")  # noqa: PTH118
"""Path of the socket of the fork server, in the home folder of an installation."""
COMMAND, RUN, SYNC = "command", "run", "sync"
"""Kinds of requests: a user's command, a run that the daemon launched, syncs of changed tenants.

A command ends with its client; runs and syncs outlive their client.
"""
DESCRIPTORS = {COMMAND: 4, RUN: 0, SYNC: 1}
"""Number of descriptors in a request. A command sends its working folder and standard streams; a
sync sends the socket that receives its requests."""

_LENGTH = struct.Struct("!I")
_MAX_BYTES = 16 * 1024 * 1024
_MAX_DESCRIPTORS = 8
_CREDENTIALS = struct.Struct("3i")
# Libraries read these variables during import, so a fork cannot apply a later change of them.
_READ_AT_IMPORT = (
    *("PYTHON", "LD_", "DYLD_", "MALLOC", "GLIBC_", "OMP_", "OPENBLAS_", "MKL_", "NUMEXPR_"),
    *("POLARS_", "RAYON_", "TOKIO_", "TOKENIZERS_", "ORT_", "RUST_", "LC_", "LANG", "COVERAGE_"),
)
_APPLIED_LATE = ("PYTHONUNBUFFERED", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE")


class Stream(NamedTuple):
    """The text settings of a standard stream: encoding, error handling and buffering."""

    encoding: str
    errors: str
    line_buffering: bool
    write_through: bool


class Request(NamedTuple):
    """A request for a fork.

    Attributes:
        kind: COMMAND, RUN or SYNC.
        streams: standard input, output and error; empty unless the kind is COMMAND.
        ignored: numbers of the signals that the fork ignores.
    """

    kind: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    umask: int
    streams: Sequence[Stream] = ()
    ignored: Sequence[int] = ()


def select_import_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that libraries read during import."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_IMPORT) and name not in _APPLIED_LATE
    }


def connect(path: str, timeout: float) -> socket.socket:
    """Connect to a fork server.

    Raises:
        OSError: no server runs, or the server belongs to another user.
    """
    folder, name = os.path.split(path)
    folder_descriptor = os.open(folder, os.O_PATH)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        # The socket is addressed through the folder's descriptor, because the path of a socket may
        # have at most 107 bytes.
        connection.connect(f"/proc/self/fd/{folder_descriptor}/{name}")
        if read_peer_user(connection) != os.geteuid():
            raise PermissionError("the fork server belongs to another user")  # noqa: TRY301
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(folder_descriptor)
    return connection


def read_peer_user(connection: socket.socket) -> int:
    """Return the user id of the process at the other end of a connection."""
    size = _CREDENTIALS.size
    _, user, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return int(user)


def send_request(
    connection: socket.socket, request: Request, descriptors: Sequence[int] = ()
) -> None:
    """Send a request and the descriptors for the fork: a working folder and standard streams."""
    body = json.dumps(request._asdict()).encode("utf-8", "surrogateescape")
    socket.send_fds(connection, [_LENGTH.pack(len(body))], descriptors)
    connection.sendall(body)


def receive_request(connection: socket.socket) -> tuple[Request, list[int]]:
    """Receive a request and its descriptors, which the caller closes.

    Raises:
        OSError: the client disconnected, or sent something else.
    """
    header, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, _MAX_DESCRIPTORS)
    try:
        body = _receive_exactly(connection, _parse_length(header))
        fields: dict[str, Any] = json.loads(body.decode("utf-8", "surrogateescape"))
        streams = [Stream(*stream) for stream in fields.pop("streams")]
        return Request(**fields, streams=streams), descriptors
    except BaseException as error:
        for descriptor in descriptors:
            os.close(descriptor)
        if isinstance(error, (ValueError, TypeError, KeyError, AttributeError)):
            raise ConnectionError("the client sent no valid request") from None
        raise


def _parse_length(header: bytes) -> int:
    if len(header) < _LENGTH.size:
        raise ConnectionError("the client has disconnected")
    (length,) = _LENGTH.unpack(header)
    if length > _MAX_BYTES:
        raise ConnectionError("the request is too long")
    return int(length)


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise ConnectionError("the client has disconnected")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def send_start_signal(connection: socket.socket) -> None:
    """Let the fork start. Until then, the fork does no work, so the client may still give up."""
    connection.sendall(b"\n")


def wait_for_start_signal(connection: socket.socket) -> bool:
    """Wait until the client lets this fork start; return False if the client gave up."""
    try:
        return connection.recv(1) == b"\n"
    except OSError:
        return False


def send_reply(connection: socket.socket, **reply: Any) -> None:
    """Send a reply with these fields, as a line of JSON."""
    connection.sendall(json.dumps(reply).encode() + b"\n")


def get_pid_namespace() -> str:
    """Return the PID namespace of this process; "" if the system has no namespaces."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


class Replies:
    """A reader of the replies on a connection, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def read_pid(self) -> int:
        """Return the pid of the fork, which is the first reply.

        Raises:
            OSError: the connection broke; or the fork runs in another container, whose server's
                socket is in a shared folder, so that the pid would belong to a different process
                here.
            KeyError: the reply lacks the pid.
        """
        reply = self.read_next()
        if reply["namespace"] != get_pid_namespace():
            raise ConnectionError("the fork server runs in another container")
        return int(reply["pid"])

    def read_next(self) -> dict[str, Any]:
        """Return the next reply; empty after the last."""
        while b"\n" not in self._rest:
            part = self._connection.recv(4096)
            if not part:
                return {}
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply
