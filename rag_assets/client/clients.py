"""The blocking and the asynchronous client."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Generic, Self, TypeVar

import anyio
import httpx2

from rag_assets.client import (
    code_operations,
    experience_operations,
    guideline_operations,
    operations,
    workspace_operations,
)
from rag_assets.client.calls import Call, Pages, build_list_method, build_method
from rag_assets.client.exchange import (
    FAILURES,
    ClientSettings,
    Retry,
    from_environment,
    handle_failure,
    parse_outcome,
)
from rag_assets.client.guideline_operations import append_section

Http = TypeVar("Http")
T = TypeVar("T")
Item = TypeVar("Item")


class BaseClient(ABC, Generic[Http]):
    """A client of the service, with persistent connections.

    Args:
        url: address of the service, such as https://rag.example.
        token: a service token or a JWT; or a function, called before each request, that returns a
            valid token.
        tenant: default tenant of calls; required if the token covers several tenants.
        project: default project of calls about guidelines or code memory.
        timeout: seconds to wait for data from the service.
        retries: maximum number of further attempts, for repeatable requests and for requests above
            the rate limit.
        patience: longest wait before another attempt, in seconds.
        allow_http: whether the token may be sent unencrypted to another machine.

    Raises:
        ConfigurationError: the address is not usable.
    """

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        tenant: str | None = None,
        project: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        patience: float = 30.0,
        allow_http: bool = False,
    ) -> None:
        self._settings = ClientSettings(
            url, token, tenant, timeout, retries, patience, allow_http, project
        )
        self._http = self._create_http_client(self._settings.build_client_arguments())

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Create a client from environment variables; see ClientOptions.

        Args:
            options: arguments of the client, which override the variables.

        Raises:
            ConfigurationError: the token is missing, or the address is not usable.
        """
        return cls(**{**from_environment(), **options})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url!r})"

    @abstractmethod
    def _create_http_client(self, options: Mapping[str, Any]) -> Http:
        """Create the HTTP client, blocking or asynchronous, that sends requests."""

    query = build_method(operations.query)
    answer = build_method(operations.answer)
    documents = build_method(operations.documents)
    all_documents = build_list_method(operations.all_documents)
    delete_document = build_method(operations.delete_document)
    put_record = build_method(operations.put_record)
    put_typed_record = build_method(operations.put_typed_record)
    put_record_content = build_method(operations.put_record_content)
    write_records = build_method(operations.write_records)
    record = build_method(operations.record)
    records = build_method(operations.records)
    all_records = build_list_method(operations.all_records)
    reconcile = build_method(operations.reconcile)
    delete_record = build_method(operations.delete_record)
    upload = build_method(operations.upload)
    uploads = build_method(operations.uploads)
    delete_upload = build_method(operations.delete_upload)
    reindex = build_method(operations.reindex)
    events = build_method(operations.events)
    all_events = build_list_method(operations.all_events)
    status = build_method(operations.status)
    workspace_settings = build_method(workspace_operations.workspace_settings)
    change_workspace_settings = build_method(workspace_operations.change_workspace_settings)
    put_page = build_method(workspace_operations.put_page)
    change_page = build_method(workspace_operations.change_page)
    write_tree = build_method(workspace_operations.write_tree)
    reconcile_tree = build_method(workspace_operations.reconcile_tree)
    page = build_method(workspace_operations.page)
    pages = build_method(workspace_operations.pages)
    delete_page = build_method(workspace_operations.delete_page)
    page_access = build_method(workspace_operations.page_access)
    live = build_method(operations.live)
    ready = build_method(operations.ready)
    metrics = build_method(operations.metrics)
    upload_guideline = build_method(guideline_operations.upload_guideline)
    guidelines = build_method(guideline_operations.guidelines)
    all_guidelines = build_list_method(guideline_operations.all_guidelines)
    guideline = build_method(guideline_operations.guideline)
    delete_guideline = build_method(guideline_operations.delete_guideline)
    guideline_context = build_method(guideline_operations.guideline_context)
    guideline_text = build_method(guideline_operations.guideline_text)
    put_guideline_text = build_method(guideline_operations.put_guideline_text)
    put_run = build_method(code_operations.put_run)
    record_run_events = build_method(code_operations.record_run_events)
    retrieve = build_method(code_operations.retrieve)
    index_file = build_method(code_operations.index_file)
    reindex_project = build_method(code_operations.reindex_project)
    invalidate = build_method(code_operations.invalidate)
    put_project = build_method(experience_operations.put_project)
    capture_experience = build_method(experience_operations.capture_experience)
    request_checkpoint = build_method(experience_operations.request_checkpoint)
    checkpoint = build_method(experience_operations.checkpoint)
    experience_for_task = build_method(experience_operations.experience_for_task)
    experience_for_failure = build_method(experience_operations.experience_for_failure)
    experience_context = build_method(experience_operations.experience_context)
    experience_feedback = build_method(experience_operations.experience_feedback)
    patterns = build_method(experience_operations.patterns)
    all_patterns = build_list_method(experience_operations.all_patterns)
    pattern = build_method(experience_operations.pattern)
    merge_pattern = build_method(experience_operations.merge_pattern)
    split_pattern = build_method(experience_operations.split_pattern)
    delete_entry = build_method(experience_operations.delete_entry)
    retract_experience = build_method(experience_operations.retract_experience)
    experience_report = build_method(experience_operations.experience_report)


class Client(BaseClient[httpx2.Client]):
    """A blocking client of the service, with persistent connections; threads may share it.

    See BaseClient for the arguments. Every method may raise a ClientError; see
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
        """Send a call and return its answer; see rag_assets.client.operations."""
        pauses = self._settings.iter_pauses()
        while isinstance(outcome := self._attempt(call, next(pauses)), Retry):
            time.sleep(outcome.seconds)
        return outcome

    def items(self, pages: Pages[T, Item]) -> Iterator[Item]:
        """Iterate over the items of a paged list, fetching page by page.

        The functions in rag_assets.client.operations build `pages`.
        """
        call: Call[T] | None = pages.first
        while call is not None:
            page = self.send(call)
            yield from pages.items(page)
            call = pages.build_next_call(page)

    def with_guidelines(
        self,
        system_prompt: str,
        task: str,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        project: str | None = None,
    ) -> str:
        """Append the team's guidelines about a task to a system prompt.

        Without guidelines, the prompt stays unchanged. Failures of the embedding provider or the
        index do not raise an error.

        Args:
            top_k, token_budget, project: see guideline_context.

        Raises:
            ClientError: the request is not valid, or the service does not answer.
        """
        context = self.guideline_context(
            task, top_k=top_k, token_budget=token_budget, project=project
        )
        return append_section(system_prompt, context)

    def _create_http_client(self, options: Mapping[str, Any]) -> httpx2.Client:
        return httpx2.Client(**options)

    def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = self._http.request(**self._settings.build_request_arguments(call))
        except FAILURES as error:
            return handle_failure(call, error, pause)
        return parse_outcome(call, response, self._settings, pause)


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
        """Send a call and return its answer; see rag_assets.client.operations."""
        pauses = self._settings.iter_pauses()
        while isinstance(outcome := await self._attempt(call, next(pauses)), Retry):
            await anyio.sleep(outcome.seconds)
        return outcome

    async def items(self, pages: Pages[T, Item]) -> AsyncIterator[Item]:
        """Iterate over the items of a paged list, fetching page by page.

        The functions in rag_assets.client.operations build `pages`.
        """
        call: Call[T] | None = pages.first
        while call is not None:
            page = await self.send(call)
            for item in pages.items(page):
                yield item
            call = pages.build_next_call(page)

    async def with_guidelines(
        self,
        system_prompt: str,
        task: str,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        project: str | None = None,
    ) -> str:
        """Append the team's guidelines about a task to a system prompt; see Client."""
        context = await self.guideline_context(
            task, top_k=top_k, token_budget=token_budget, project=project
        )
        return append_section(system_prompt, context)

    def _create_http_client(self, options: Mapping[str, Any]) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**options)

    async def _attempt(self, call: Call[T], pause: float | None) -> T | Retry:
        try:
            response = await self._http.request(**self._settings.build_request_arguments(call))
        except FAILURES as error:
            return handle_failure(call, error, pause)
        return parse_outcome(call, response, self._settings, pause)
