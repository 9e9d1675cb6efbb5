"""The client for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpx2

from rag_assets.client import operations
from rag_assets.client.base import BaseClient
from rag_assets.client.calls import Call, Pages
from rag_assets.client.exchange import FAILURES, Retry, outcome_of, outcome_of_failure
from rag_assets.client.signatures import described_by

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


def _operation(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """A method that sends the request of an operation."""

    @described_by(build)
    async def method(self: AsyncClient, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self.send(build(*arguments, **options))

    return method


def _listing(
    build: Callable[P, Pages[T, Item]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[Item]]:
    """A method that goes through the pages of a list."""

    @described_by(build)
    async def method(
        self: AsyncClient, /, *arguments: P.args, **options: P.kwargs
    ) -> AsyncIterator[Item]:
        pages = build(*arguments, **options)
        call: Call[T] | None = pages.first
        while call is not None:
            page = await self.send(call)
            for item in pages.items(page):
                yield item
            call = pages.following(page)

    return method


class AsyncClient(BaseClient[httpx2.AsyncClient]):
    """Calls the service over connections that are kept, of one event loop.

    Its arguments are those of BaseClient. Every method raises a ClientError; see
    rag_assets.client.errors.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """The answer to one call of rag_assets.client.operations.

        Raises:
            ClientError: there is none.
        """
        pauses = self._settings.pauses()
        while isinstance(outcome := await self._attempt(call, next(pauses)), Retry):
            await anyio.sleep(outcome.seconds)
        return outcome

    def _connections(self, options: Mapping[str, Any]) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**options)

    async def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = await self._http.request(**self._settings.request(call))
        except FAILURES as error:
            return outcome_of_failure(call, error, pause)
        return outcome_of(call, response, self._settings, pause)

    query = _operation(operations.query)
    answer = _operation(operations.answer)
    documents = _operation(operations.documents)
    all_documents = _listing(operations.all_documents)
    delete_document = _operation(operations.delete_document)
    put_record = _operation(operations.put_record)
    delete_record = _operation(operations.delete_record)
    reindex = _operation(operations.reindex)
    events = _operation(operations.events)
    all_events = _listing(operations.all_events)
    status = _operation(operations.status)
    live = _operation(operations.live)
    ready = _operation(operations.ready)
    metrics = _operation(operations.metrics)
