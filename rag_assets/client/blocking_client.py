"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from rag_assets.client import operations
from rag_assets.client.base import BaseClient
from rag_assets.client.calls import Call, Pages
from rag_assets.client.exchange import FAILURES, Again, failed, judged
from rag_assets.client.signatures import described_by

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


def _asks(build: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """A method that sends what an operation asks."""

    @described_by(build)
    def method(self: Client, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self.send(build(*arguments, **options))

    return method


def _lists(
    build: Callable[P, Pages[T, Item]],
) -> Callable[Concatenate[Client, P], Iterator[Item]]:
    """A method that goes through the pages of a list."""

    @described_by(build)
    def method(self: Client, /, *arguments: P.args, **options: P.kwargs) -> Iterator[Item]:
        pages = build(*arguments, **options)
        call: Call[T] | None = pages.first
        while call is not None:
            page = self.send(call)
            yield from pages.items(page)
            call = pages.following(page)

    return method


class Client(BaseClient[httpx2.Client]):
    """Asks the service, over connections that are kept. Several threads may share one.

    Its arguments are those of BaseClient. Every method raises a ClientError; see
    rag_assets.client.errors.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """The answer to one call of rag_assets.client.operations.

        Raises:
            ClientError: there is none.
        """
        pauses = self._wanted.pauses()
        while isinstance(outcome := self._attempt(call, next(pauses)), Again):
            time.sleep(outcome.seconds)
        return outcome

    def _connections(self, options: Mapping[str, Any]) -> httpx2.Client:
        return httpx2.Client(**options)

    def _attempt(self, call: Call[T], pause: float | None) -> T | Again:
        try:
            response = self._http.request(**self._wanted.request(call))
        except FAILURES as error:
            return failed(call, error, pause)
        return judged(call, response, self._wanted, pause)

    query = _asks(operations.query)
    answer = _asks(operations.answer)
    documents = _asks(operations.documents)
    all_documents = _lists(operations.all_documents)
    delete_document = _asks(operations.delete_document)
    put_record = _asks(operations.put_record)
    delete_record = _asks(operations.delete_record)
    reindex = _asks(operations.reindex)
    events = _asks(operations.events)
    all_events = _lists(operations.all_events)
    status = _asks(operations.status)
    live = _asks(operations.live)
    ready = _asks(operations.ready)
    metrics = _asks(operations.metrics)
