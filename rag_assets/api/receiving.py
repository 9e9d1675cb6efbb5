"""Receives uploaded files in constant memory, within limits of size, rate and number.

A sender that is slower than the least rate is sent away: whoever sends a byte now and then would
hold a turn for ever. What this side needs to store what came counts for nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request
from starlette.requests import ClientDisconnect

from rag_assets.api.admission import Admission, ClientGone
from rag_assets.api.guard import promised_bytes
from rag_assets.api.problems import Refused
from rag_assets.common.errors import RagAssetsError, UploadTooLarge
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.uploads import require_size
from rag_assets.storage.blobs.store import ReceivedFile

LEAST_RATE = 16 * 1024
"""Bytes a second."""

PATIENCE = 10.0
"""Seconds that a sender may lose before its rate counts."""

_AROUND_BYTES = 64 * 1024
"""Of a form around its file at most."""

_WRITE_BYTES = 256 * 1024
_LINGER_SECONDS = 5.0
_THREADS = 4
_TOO_SLOW = 408


class Content(Protocol):
    """A body that holds a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """What of the file came with the next bytes of the body."""
        ...


class RawContent:
    """A body that is a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """All of it."""
        return (data,)


class Receiving:
    """Receives files, some at once.

    Args:
        turns: how many.
        patience: see PATIENCE.
    """

    def __init__(self, turns: Admission, patience: float = PATIENCE) -> None:
        self._turns = turns
        self._patience = patience
        self._threads = CapacityLimiter(_THREADS)

    @asynccontextmanager
    async def file(
        self,
        request: Request,
        form: Content,
        source: UploadsConfig,
        *,
        tenant_id: str,
        caller: str,
        receive: Callable[[], ReceivedFile],
    ) -> AsyncIterator[ReceivedFile]:
        """The file of a form, received as a whole; what is not kept of it is gone at the end.

        Args:
            request: holds the form.
            form: parses it.
            source: that takes the file.
            tenant_id, caller: whose turn it is.
            receive: makes a file to be written.

        Raises:
            Overloaded: too many others are received.
            UploadTooLarge, UploadRefused: see UploadForm and require_size.
            Refused: it comes too slowly.
            ClientGone: the client has disconnected.
            ServiceUnavailable: it cannot be stored now.
        """
        if promised_bytes(request) > source.max_bytes + _AROUND_BYTES:
            require_size(promised_bytes(request), source)
        async with self._turns.turn(tenant_id, caller):
            received = await run_sync(receive, limiter=self._threads)
            try:
                await self._take(request, form, source, received)
                yield received
            finally:
                with anyio.CancelScope(shield=True):
                    await run_sync(received.discard, limiter=self._threads)

    async def _take(
        self, request: Request, form: Content, source: UploadsConfig, received: ReceivedFile
    ) -> None:
        stream = self._data(request)
        try:
            await self._write_all(stream, form, source, received)
        except RagAssetsError:
            await _read_away(stream)
            raise

    async def _write_all(
        self,
        stream: AsyncIterator[bytes],
        form: Content,
        source: UploadsConfig,
        received: ReceivedFile,
    ) -> None:
        gathered = bytearray()
        around = 0
        async for data in stream:
            size = len(gathered)
            for piece in form.feed(data):
                gathered += piece
            around += len(data) - (len(gathered) - size)
            if around > _AROUND_BYTES:
                raise UploadTooLarge(
                    "the form is too large around its file", hint="send the file alone"
                )
            require_size(received.size + len(gathered), source)
            if len(gathered) >= _WRITE_BYTES:
                await self._write(received, gathered)
        await self._write(received, gathered)

    async def _write(self, received: ReceivedFile, gathered: bytearray) -> None:
        piece = bytes(gathered)
        gathered.clear()
        if piece:
            await run_sync(partial(received.write, piece), limiter=self._threads)

    async def _data(self, request: Request) -> AsyncIterator[bytes]:
        """The body as it comes."""
        stream = aiter(request.stream())
        waited, size = 0.0, 0
        while True:
            began = time.monotonic()
            left = self._patience + size / LEAST_RATE - waited
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    data = await anext(stream)
            except StopAsyncIteration:
                return
            except ClientDisconnect:
                raise ClientGone from None
            except TimeoutError:
                slow = f"a file must come with {LEAST_RATE // 1024} KiB a second at least"
                raise Refused(_TOO_SLOW, slow, {"Connection": "close"}) from None
            waited += time.monotonic() - began
            size += len(data)
            yield data


async def _read_away(stream: AsyncIterator[bytes]) -> None:
    """Read what a sender goes on sending: it would find a reset connection, and no answer."""
    with anyio.move_on_after(_LINGER_SECONDS), suppress(Refused, ClientGone):
        async for _ in stream:
            pass
