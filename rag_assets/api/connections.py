"""Connections with time limits; idle connections are closed to make room for new ones.

Any client that reaches the service can open connections without a token. A connection is closed if
it sends no request or reads no answer in time. If there are too many connections, the one that has
waited longest for a request is closed.
"""

from __future__ import annotations

from asyncio import Transport
from asyncio.events import TimerHandle
from time import monotonic

from rag_assets.api.http_protocol import BoundedHttpProtocol


class Connection(BoundedHttpProtocol):
    """A client connection, used by uvicorn.

    Attributes:
        most: maximum number of connections; above it, connections that wait for a request are
            closed.
        head_seconds: time limit for the head of a request, counted from the start of the connection
            or of the head. The same limit applies to the rest of a body after the request was
            answered. Between requests, uvicorn's `timeout_keep_alive` applies.
        unread_seconds: time limit within which the client must read an answer.
        waiting_since: when the connection started to wait for a complete request; None otherwise.
    """

    most = 900
    head_seconds = 10.0
    unread_seconds = 60.0
    waiting_since: float | None = None

    _is_idle = False
    _request_due: TimerHandle | None = None
    _read_due: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # noqa: D102
        super().connection_made(transport)
        self._wait_for_request(self.head_seconds)
        if len(self.connections) > self.most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        self._forget(self._request_due, self._read_due)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:  # noqa: D102
        if self._is_idle:
            self._wait_for_request(self.head_seconds)
        super().on_message_begin()

    def on_headers_complete(self) -> None:  # noqa: D102
        self._forget(self._request_due)
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
        self._forget(self._read_due)
        self._read_due = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:  # noqa: D102
        super().resume_writing()
        self._forget(self._read_due)

    def _wait_idle(self) -> None:
        self._wait_for_request(self.timeout_keep_alive)
        self._is_idle = True

    def _wait_for_request(self, seconds: float) -> None:
        self._is_idle = False
        # The event loop's clock is coarser: many connections would have the same age.
        self.waiting_since = monotonic()
        self._forget(self._request_due)
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
    def _forget(*timers: TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()
