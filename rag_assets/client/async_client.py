"""The client for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, TypeVar

import anyio
import httpx2

from rag_assets.client.base import BaseClient
from rag_assets.client.calls import Call, Pages
from rag_assets.client.exchange import FAILURES, Retry, outcome_of, outcome_of_failure
from rag_assets.client.guideline_operations import with_section

T = TypeVar("T")
Item = TypeVar("Item")


class AsyncClient(BaseClient[httpx2.AsyncClient]):
    """An asynchronous client of the service, with persistent connections, for one event loop.

    See BaseClient for the arguments. Every method may raise a ClientError; see
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
        """Send a call of rag_assets.client.operations and return its answer.

        Raises:
            ClientError: no answer came, or the service refused the request.
        """
        pauses = self._settings.pauses()
        while isinstance(outcome := await self._attempt(call, next(pauses)), Retry):
            await anyio.sleep(outcome.seconds)
        return outcome

    async def items(self, pages: Pages[T, Item]) -> AsyncIterator[Item]:
        """Iterate over a list of rag_assets.client.operations, fetching page by page.

        Raises:
            ClientError: a page cannot be fetched.
        """
        call: Call[T] | None = pages.first
        while call is not None:
            page = await self.send(call)
            for item in pages.items(page):
                yield item
            call = pages.following(page)

    async def with_guidelines(
        self,
        system_prompt: str,
        task: str,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        project: str | None = None,
    ) -> str:
        """Append the team's guidelines about a task to a system prompt.

        Without guidelines the prompt stays unchanged. A failing embedding provider or index
        does not raise an error; a service that does not answer does.

        Args:
            system_prompt: the prompt without guidelines.
            task: description of the task.
            top_k, token_budget, project: see guideline_context.

        Raises:
            ClientError: the request is not valid, or the service does not answer.
        """
        context = await self.guideline_context(
            task, top_k=top_k, token_budget=token_budget, project=project
        )
        return with_section(system_prompt, context)

    def _connections(self, options: Mapping[str, Any]) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**options)

    async def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = await self._http.request(**self._settings.request(call))
        except FAILURES as error:
            return outcome_of_failure(call, error, pause)
        return outcome_of(call, response, self._settings, pause)
