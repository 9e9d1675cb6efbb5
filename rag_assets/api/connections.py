"""Connections with time limits; idle connections are closed to make room for new ones.

Clients can open connections without a token. A connection is closed if its client does not send a
request, or read an answer, in time. If there are too many connections, the connection that has
waited longest for a request is closed.

The parser itself has no limits, so it gets its input in small slices. Parsing stops as soon as a
limit is exceeded or a complete request waits for its answer.
"""

from __future__ import annotations

import uuid
from asyncio import AbstractEventLoop, Transport
from asyncio.events import TimerHandle
from collections import Counter
from time import monotonic
from typing import Any, Protocol

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rag_assets.api.problems import build_problem_response, get_http_kind

SLICE = 1_024
"""Bytes parsed at once."""

DRAINED_BYTES = 262_144
"""Maximum bytes of a refused body that are read to keep the connection, as in Go's net/http."""

_LINGER_BYTES = 8_388_608
_LINGER_SECONDS = 5.0
_DROP_SECONDS = 0.05
_BAD_REQUEST = 400
_URL_TOO_LONG = 414
_HEAD_TOO_LARGE = 431
_VERSIONS = frozenset({"1.0", "1.1"})
_UNREPEATABLE = frozenset(
    {b"host", b"authorization", b"content-type", b"content-encoding", b"expect"}
)
"""Headers that must not be repeated: a proxy and this service might use different values."""


class _RequestRefused(Exception):
    """Stops the parser because the request is refused."""


class _Parser(Protocol):
    @property
    def unparsed(self) -> bytes: ...
    def parse(self) -> None: ...


class _Flow(FlowControl):
    """Flow control that resumes reading only after all bytes that were read have been parsed."""

    def __init__(self, transport: Transport, connection: _Parser, loop: AbstractEventLoop) -> None:
        super().__init__(transport)
        self._connection = connection
        self._loop = loop

    def resume_reading(self) -> None:
        if self._connection.unparsed:
            self._loop.call_soon(self._connection.parse)
        else:
            super().resume_reading()


class BoundedHttpProtocol(HttpToolsProtocol):
    """An HTTP protocol with limits, which parses a request only after the previous answer.

    Attributes:
        max_head_bytes: maximum bytes of a request line with its headers, and of the framing of a
            body: chunk sizes, chunk extensions and trailers.
        max_headers: maximum number of headers.
        unparsed: bytes that were read but not parsed yet; meanwhile, reading pauses.
    """

    max_head_bytes = 65_536
    max_headers = 100
    unparsed = b""

    _status = _BAD_REQUEST
    _in_head = True
    _head_size = 0
    _header_count = 0
    _overhead = 0
    _unread_bytes = 0
    _is_close_announced = False
    _ignores_input = False
    _dropped = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # noqa: D102
        super().connection_made(transport)
        self.flow = _Flow(transport, self, self.loop)
        self._wrapped_app: Any = self.app
        self.app = self._answer

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        self._ignores_input = True
        super().connection_lost(exc)
        # This breaks a reference cycle.
        self.unparsed = self.url = b""
        self.headers = []
        if self.cycle is not None:
            self.cycle.body = bytearray()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        if self._ignores_input:
            self._drop(data)
            return
        self.unparsed = self.unparsed + data if self.unparsed else data
        self.parse()

    def parse(self) -> None:
        """Parse `unparsed` until a request is refused or must be processed before the next bytes.

        If bytes remain, reading from the socket pauses.
        """
        data, at = self.unparsed, 0
        while at < len(data) and self._should_continue():
            part = data[at : at + SLICE]
            at += len(part)
            super().data_received(part)
            self._overhead += len(part)
            if self._overhead > self.max_head_bytes and self._should_continue():
                self._refuse(_HEAD_TOO_LARGE)
        self.unparsed = b"" if self._ignores_input else data[at:]
        if self.unparsed:
            self.flow.pause_reading()
        elif at:
            self._resume_reading()

    def on_message_begin(self) -> None:  # noqa: D102
        self._in_head = True
        self._head_size = self._header_count = self._overhead = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:  # noqa: D102
        self._require_small_head(len(url), _URL_TOO_LONG)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:  # noqa: D102
        # Trailers arrive here as well, but must not be treated as headers.
        if not self._in_head:
            return
        self._header_count += 1
        self._require_small_head(len(name) + len(value) + len(b": \r\n"), _HEAD_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:  # noqa: D102
        self._in_head = False
        self._overhead = 0
        self._require_unambiguous()
        self._unread_bytes = self._get_body_length()
        super().on_headers_complete()
        if self.parser.should_upgrade():
            # The answer uses HTTP/1.1, but the client may use another protocol in the bytes that
            # follow.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:  # noqa: D102
        self._overhead -= len(body)
        self._unread_bytes -= len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:  # noqa: D102
        if self._is_close_announced:
            # The client must repeat later requests on another connection.
            self.pipeline.clear()
            self._hang_up()
        elif self.is_draining:
            self.cycle.body = bytearray()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: D102
        self._refuse(self._status)

    def _unsupported_upgrade_warning(self) -> None:
        self._ignores_input = True

    @property
    def is_draining(self) -> bool:
        """Return whether a request is answered, but part of its body is still to arrive."""
        cycle = self.cycle
        return cycle is not None and cycle.response_complete and cycle.more_body

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and announce in the response if the connection will be closed."""

        async def announce(message: Message) -> None:
            cycle = self.cycle
            is_whole = cycle is None or cycle.scope is not scope or not cycle.more_body
            if message["type"] != "http.response.start" or is_whole:
                await send(message)
                return
            # A body may be read to its end if the rest is short and will arrive.
            if self._unread_bytes > DRAINED_BYTES or cycle.waiting_for_100_continue:
                cycle.keep_alive = False
            await send(message)
            if not cycle.keep_alive:
                self._is_close_announced = True
                # The base class would close immediately, and lose the answer if the client still
                # sends. _hang_up() waits for the client.
                cycle.keep_alive = True

        await self._wrapped_app(scope, receive, announce)

    def _get_body_length(self) -> int:
        """Return the length of the body in bytes; for a chunked body, more than can be drained."""
        headers = dict(self.headers)
        if b"transfer-encoding" in headers:
            return DRAINED_BYTES + self.max_head_bytes
        return int(headers.get(b"content-length", b"0"))

    def _require_small_head(self, size: int, status: int) -> None:
        self._head_size += size
        if self._head_size > self.max_head_bytes or self._header_count > self.max_headers:
            self._status = status
            raise _RequestRefused

    def _require_unambiguous(self) -> None:
        """Refuse requests that a proxy might interpret differently."""
        version = self.parser.get_http_version()
        counts = Counter(name for name, _ in self.headers if name in _UNREPEATABLE)
        if version not in _VERSIONS or any(count > 1 for count in counts.values()):
            raise _RequestRefused
        if version == "1.1" and not counts[b"host"]:
            raise _RequestRefused
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            raise _RequestRefused

    def _should_continue(self) -> bool:
        if self._ignores_input or self.transport.is_closing():
            return False
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return cycle.more_body and len(cycle.body) <= HIGH_WATER_LIMIT

    def _resume_reading(self) -> None:
        """Resume reading if no received body still waits to be consumed."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or len(cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def _refuse(self, status: int) -> None:
        """Answer with a problem and end the connection, after answering earlier requests."""
        self._ignores_input = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not cycle.more_body:
                cycle.keep_alive = False
                return
            if cycle.response_started or self.pipeline:
                self.transport.close()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_build_response(status))
        self._hang_up()

    def _hang_up(self) -> None:
        self._ignores_input = True
        if not self.transport.is_closing():
            # Closing immediately would lose the answer if the client still sends.
            self.transport.write_eof()
            self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _drop(self, data: bytes) -> None:
        self._dropped += len(data)
        if self._dropped > _LINGER_BYTES:
            self.transport.abort()
            return
        # Reading at full speed would delay all other connections.
        self.flow.pause_reading()
        self.loop.call_later(_DROP_SECONDS, self.flow.resume_reading)


def _build_response(status: int) -> bytes:
    """Return a complete response with a problem document, as bytes."""
    request_id = uuid.uuid4().hex
    problem = build_problem_response(request_id, get_http_kind(status))
    headers = [
        *problem.raw_headers,
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return STATUS_LINE[status] + head + b"\r\n" + bytes(problem.body)


class Connection(BoundedHttpProtocol):
    """The connection of a client: uvicorn's protocol with time limits.

    Attributes:
        max_connections: maximum number of connections; above it, connections that wait for a
            request are closed.
        head_seconds: time limit for the head of a request, counted from the start of the connection
            or of the head. The same limit applies to the rest of a body after the request was
            answered. Between requests, uvicorn's `timeout_keep_alive` applies.
        unread_seconds: time limit for reading an answer.
        waiting_since: when the connection started to wait for a complete request; None if it does
            not wait.
    """

    max_connections = 900
    head_seconds = 10.0
    unread_seconds = 60.0
    waiting_since: float | None = None

    _is_idle = False
    _request_due: TimerHandle | None = None
    _read_due: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # noqa: D102
        super().connection_made(transport)
        self._wait_for_request(self.head_seconds)
        if len(self.connections) > self.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        self._cancel(self._request_due, self._read_due)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:  # noqa: D102
        if self._is_idle:
            self._wait_for_request(self.head_seconds)
        super().on_message_begin()

    def on_headers_complete(self) -> None:  # noqa: D102
        self._cancel(self._request_due)
        super().on_headers_complete()

    def on_message_complete(self) -> None:  # noqa: D102
        is_drained = self.is_draining
        if not self.cycle.response_complete:
            self.waiting_since = None
        super().on_message_complete()
        if is_drained:
            self.cycle.more_body = False
            self._wait_idle()

    def on_response_complete(self) -> None:  # noqa: D102
        super().on_response_complete()
        if not self.cycle.response_complete:
            return
        if self.is_draining or self._in_head:
            self._wait_for_request(self.head_seconds)
        else:
            self._wait_idle()

    def pause_writing(self) -> None:  # noqa: D102
        super().pause_writing()
        self._cancel(self._read_due)
        self._read_due = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:  # noqa: D102
        super().resume_writing()
        self._cancel(self._read_due)

    def _wait_idle(self) -> None:
        self._wait_for_request(self.timeout_keep_alive)
        self._is_idle = True

    def _wait_for_request(self, seconds: float) -> None:
        self._is_idle = False
        # The event loop's clock is coarser: many connections would have the same age.
        self.waiting_since = monotonic()
        self._cancel(self._request_due)
        self._request_due = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        # The answer may still be on its way.
        self.transport.close()
        self._request_due = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def _make_room(self) -> None:
        waiting = [
            (connection.waiting_since, connection)
            for connection in self.connections
            if isinstance(connection, Connection) and connection.waiting_since is not None
        ]
        _, longest = min(waiting, key=lambda pair: pair[0])
        # The connection is removed only later, by the loop.
        longest.waiting_since = None
        longest.transport.abort()

    @staticmethod
    def _cancel(*timers: TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()
