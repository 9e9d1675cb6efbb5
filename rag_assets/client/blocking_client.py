"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from rag_assets.client import operations
from rag_assets.client.base import BaseClient
from rag_assets.client.calls import Call, Pages
from rag_assets.client.exchange import FAILURES, Retry, outcome_of, outcome_of_failure
from rag_assets.client.signatures import described_by

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


def _operation(build: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """A method that sends the request of an operation."""

    @described_by(build)
    def method(self: Client, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self.send(build(*arguments, **options))

    return method


def _listing(
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
    """Calls the service over connections that are kept. Several threads may share one.

    Its arguments are those of BaseClient. Every method raises a ClientError; see
    rag_assets.client.errors.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """The answer to one call of rag_assets.client.operations.

        Raises:
            ClientError: there is none.
        """
        pauses = self._settings.pauses()
        while isinstance(outcome := self._attempt(call, next(pauses)), Retry):
            time.sleep(outcome.seconds)
        return outcome

    def _connections(self, options: Mapping[str, Any]) -> httpx2.Client:
        return httpx2.Client(**options)

    def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = self._http.request(**self._settings.request(call))
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
