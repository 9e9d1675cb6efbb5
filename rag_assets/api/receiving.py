"""Receiving of uploaded files in constant memory, within limits of size, rate and number.

A sender below the minimum rate is refused, because a sender of only a byte now and then would
occupy a turn forever. The time that the service needs to store the bytes does not count.
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
"""Minimum rate of a sender, in bytes per second."""

PATIENCE = 10.0
"""Seconds by which a sender may be slower than the minimum rate."""

_AROUND_BYTES = 64 * 1024
"""Maximum bytes of a form in addition to its file."""

_WRITE_BYTES = 256 * 1024
_LINGER_SECONDS = 5.0
_THREADS = 4
_TOO_SLOW = 408


class Content(Protocol):
    """A parser of a body that contains a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return the pieces of the file that the next bytes of the body contain."""
        ...


class RawContent:
    """A body that is a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return all bytes."""
        return (data,)


class Receiving:
    """The receiving of files, with a limit on concurrent files.

    Args:
        turns: limits on the number of files that are received at once.
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
        """Receive the whole file of a form; it is discarded at the end unless it was stored.

        Args:
            request: the request with the form.
            form: parses the body.
            source: limits the size of the file.
            tenant_id, caller: tenant and caller for whom a turn is taken.
            receive: creates the file to write to.

        Raises:
            Overloaded: too many other files are being received.
            UploadTooLarge, UploadRefused: see UploadForm and require_size.
            Refused: the body arrives too slowly.
            ClientGone: the client has disconnected.
            ServiceUnavailable: the file cannot be stored now.
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
                    "the parts of the form other than the file are too large",
                    hint="send only the file and the documented fields",
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
        """Yield the body as it arrives."""
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
                slow = f"a file must arrive with at least {LEAST_RATE // 1024} KiB per second"
                raise Refused(_TOO_SLOW, slow, {"Connection": "close"}) from None
            waited += time.monotonic() - began
            size += len(data)
            yield data


async def _read_away(stream: AsyncIterator[bytes]) -> None:
    """Read and drop the rest of a body: otherwise a reset connection would lose the answer."""
    with anyio.move_on_after(_LINGER_SECONDS), suppress(Refused, ClientGone):
        async for _ in stream:
            pass
