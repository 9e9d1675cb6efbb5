"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar

import httpx2

from rag_assets.client.base import BaseClient
from rag_assets.client.calls import Call, Pages
from rag_assets.client.exchange import FAILURES, Retry, outcome_of, outcome_of_failure

T = TypeVar("T")
Item = TypeVar("Item")


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

    def items(self, pages: Pages[T, Item]) -> Iterator[Item]:
        """Every item of a list of rag_assets.client.operations, page by page.

        Raises:
            ClientError: a page cannot be fetched.
        """
        call: Call[T] | None = pages.first
        while call is not None:
            page = self.send(call)
            yield from pages.items(page)
            call = pages.following(page)

    def _connections(self, options: Mapping[str, Any]) -> httpx2.Client:
        return httpx2.Client(**options)

    def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = self._http.request(**self._settings.request(call))
        except FAILURES as error:
            return outcome_of_failure(call, error, pause)
        return outcome_of(call, response, self._settings, pause)
