"""Tools and prompts for agents, and the knowledge of tenants behind them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeAlias, TypeVar

from anyio.to_thread import run_sync
from pydantic import Field

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.privacy.masker import Masker
from rag_assets.search.access import DocumentReader
from rag_assets.search.contexts import escape_imitations, format_hits
from rag_assets.search.model import (
    MAX_ACCEPTED_TOP_K,
    MAX_QUERY,
    Caller,
    Role,
    SearchAnswer,
    SearchRequest,
)
from rag_assets.search.progress import Patience

_SECONDS = 30.0
_MAX_DOCUMENTS = 1_000
_T = TypeVar("_T")

DISABLED = (
    "This knowledge is disabled, so searches find nothing. Tell the user to ask an admin to "
    "enable it."
)


@dataclass(frozen=True, slots=True)
class MessageContext:
    """The tenant and the caller of one message.

    Attributes:
        caller: searches return only passages that this caller may read.
        request_id: id of the message in the log; empty without one.
        profile: the tenant's profile; None if it was not read for this message.
    """

    tenant_id: str
    caller: Caller
    request_id: str = ""
    profile: str | None = None


class Search(Protocol):
    """A function that searches a tenant's knowledge (see AsyncRetriever)."""

    async def __call__(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = ...
    ) -> SearchAnswer:
        """Search one tenant's knowledge."""


class BlockingRunner(Protocol):
    """A function that runs blocking work on behalf of a message's caller."""

    async def __call__(self, message: MessageContext, work: Callable[[], _T]) -> _T:
        """Run the work and return its result."""


# The SDK passes no context to resources. Without a default, reading the variable fails if the
# caller is unknown.
_MESSAGE: ContextVar[MessageContext] = ContextVar("message")


def current_message() -> MessageContext:
    """Return the context of the current message.

    Raises:
        LookupError: there is no current message.
    """
    return _MESSAGE.get()


@contextmanager
def message_context(message: MessageContext) -> Iterator[None]:
    """Set the context of the current message within the `with` block."""
    token = _MESSAGE.set(message)
    try:
        yield
    finally:
        _MESSAGE.reset(token)


def advice(error: Exception, _: MessageContext) -> str:
    """Return the message and the hint of an expected error; raise any other error."""
    if isinstance(error, RagAssetsError):
        return error.advice
    raise error


@dataclass(frozen=True)
class Knowledge:
    """The services that answer messages.

    Attributes:
        seconds: time limit of an answer.
        error_text: returns the text of an error for the agent.
        run_blocking: runs blocking work outside the event loop.
        masker: finds credentials in texts that agents write; None if agents cannot write.
        require_trust: called for each message; raises an error while grants may be invalid.
        settings: settings of the installation; None if only the catalog and the index are used.
    """

    search: Search
    reader: DocumentReader
    seconds: float = _SECONDS
    error_text: Callable[[Exception, MessageContext], str] = advice
    run_blocking: BlockingRunner | None = None
    masker: Masker | None = None
    require_trust: Callable[[], None] | None = None
    settings: Settings | None = None

    async def answer(
        self, query: str, top_k: int | None = None, within: Sequence[str] | None = None
    ) -> SearchAnswer:
        """Search on behalf of the message's caller.

        Args:
            within: ids of pages of the tree, which restrict the search to them and all pages below.
        """
        message = current_message()
        filters = None if within is None else {"within": tuple(within)}
        request = SearchRequest.of(query=query, top_k=top_k, filters=filters, caller=message.caller)
        return await self.search(message.tenant_id, request)

    async def passages(
        self, query: str, top_k: int | None, within: Sequence[str] | None = None
    ) -> str:
        """Search like `answer`, and return the text of the found passages between markers."""
        answer = await self.answer(query, top_k, within)
        if answer.disabled:
            return DISABLED
        problems = [f"{warning.field}: {warning.problem}" for warning in answer.warnings]
        return "\n\n".join([format_hits(answer.hits), *map(escape_imitations, problems)])

    async def documents(self) -> str:
        """Return the first 1,000 documents that the caller may read, as JSON."""
        message = current_message()
        documents = await self.in_thread(
            lambda: self.reader.list(message.tenant_id, message.caller, limit=_MAX_DOCUMENTS)
        )
        listed_documents = [
            {
                "document_id": document.document_id,
                "uri": document.uri,
                "title": document.title,
                "media_type": document.media_type,
            }
            for document in documents
        ]
        return json.dumps(listed_documents, ensure_ascii=False)

    async def document(self, document_id: str) -> str:
        """Return the indexed text of one document."""
        message = current_message()
        return await self.in_thread(
            lambda: escape_imitations(
                self.reader.read(message.tenant_id, message.caller, document_id).text
            )
        )

    async def get_profile(self, tenant_id: str) -> str:
        """Return the profile of a tenant; "" for a missing tenant."""

        def read_profile() -> str:
            records = self.reader.catalog.tenants.find_many([tenant_id])
            return records[0].profile if records else ""

        return await self.in_thread(read_profile)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Run blocking work in a thread and return its result."""
        if self.run_blocking is not None:
            return await self.run_blocking(current_message(), work)
        return await run_sync(work, abandon_on_cancel=True)


PromptFunction: TypeAlias = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the server.

    Attributes:
        description: effect of the prompt, for the agent's user.
        function: creates the function that writes the prompt, as in Tool; its parameters are
            strings.
    """

    name: str
    description: str
    function: Callable[[Knowledge], PromptFunction]


ToolFunction: TypeAlias = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the server.

    Attributes:
        description: when agents should call it.
        function: creates the function that answers a call. The parameters of the created function,
            annotated with types and pydantic.Field, are the tool's parameters. The created function
            gets the tenant and the caller from current_message(), and raises RagAssetsErrors.
        roles: roles of callers that see the tool; empty for all.
        profiles: profiles of tenants with the tool; empty for all. For these tenants, the tool
            replaces a general tool of the same name.
        read_only: whether calls never change data.
    """

    name: str
    description: str
    function: Callable[[Knowledge], ToolFunction]
    roles: frozenset[Role] = frozenset()
    profiles: frozenset[str] = frozenset()
    read_only: bool = False

    def allows_role(self, role: Role | None) -> bool:
        """Return whether callers of a role may use the tool."""
        return not self.roles or role in self.roles

    def suits(self, profile: str) -> bool:
        """Return whether tenants of a profile have the tool."""
        return not self.profiles or profile in self.profiles


def _build_search(knowledge: Knowledge) -> ToolFunction:
    async def rag_search(
        query: Annotated[str, Field(max_length=MAX_QUERY, description="Text to search for.")],
        top_k: Annotated[
            int | None,
            Field(ge=1, le=MAX_ACCEPTED_TOP_K, description="Maximum number of passages."),
        ] = None,
        within: Annotated[
            list[str] | None,
            Field(
                max_length=100,
                description=(
                    "Only for workspaces: ids of pages; only these pages and all pages below "
                    "them are searched."
                ),
            ),
        ] = None,
    ) -> str:
        return await knowledge.passages(query, top_k, within)

    return rag_search


SEARCH = Tool(
    name="rag_search",
    description="Search this documentation; returns passages with their sources.",
    function=_build_search,
    read_only=True,
)

DEFAULT_TOOLS: tuple[Tool, ...] = (SEARCH,)
"""The tools that every server has."""
