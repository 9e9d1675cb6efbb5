"""Knowledge of tenants for agents, and the tools and prompts that offer it."""

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
    LARGEST_TOP_K,
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
    "This knowledge is disabled for now, so nothing can be found. Tell the user to ask one "
    "of its admins to enable it."
)


@dataclass(frozen=True, slots=True)
class MessageContext:
    """The tenant and the caller of one message.

    Attributes:
        caller: the caller; searches return only what this caller may read.
        request_id: id of the message in the log; None without one.
        profile: the tenant's profile; None if it was not read for this message.
    """

    tenant_id: str
    caller: Caller
    request_id: str = ""
    profile: str | None = None


class Search(Protocol):
    """A search of a tenant's knowledge (see AsyncRetriever)."""

    async def __call__(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = ...
    ) -> SearchAnswer:
        """Search one tenant's knowledge."""


class BlockingRunner(Protocol):
    """A runner of blocking work on behalf of a message's caller."""

    async def __call__(self, message: MessageContext, work: Callable[[], _T]) -> _T:
        """Run the work and return its result."""


# The SDK passes no context to resources. The variable has no default, so that reading raises an
# error if the caller is unknown.
_MESSAGE: ContextVar[MessageContext] = ContextVar("message")


def current_message() -> MessageContext:
    """Return the context of the message that is being answered.

    Raises:
        LookupError: no message is being answered.
    """
    return _MESSAGE.get()


@contextmanager
def message_context(message: MessageContext) -> Iterator[None]:
    """Set the context of the message that is answered within the `with` block."""
    before = _MESSAGE.set(message)
    try:
        yield
    finally:
        _MESSAGE.reset(before)


def advice(error: Exception, _: MessageContext) -> str:
    """Return the message and the hint of an error; raise an unexpected error again."""
    if isinstance(error, RagAssetsError):
        return error.advice
    raise error


@dataclass(frozen=True)
class Knowledge:
    """The services with which messages are answered.

    Attributes:
        seconds: time limit of an answer.
        error_text: returns the text of an error for the agent.
        run_blocking: function that runs blocking work outside the event loop.
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
            within: ids of pages of the tree; only these and all pages below them are searched.
        """
        message = current_message()
        filters = None if within is None else {"within": tuple(within)}
        request = SearchRequest.of(query=query, top_k=top_k, filters=filters, caller=message.caller)
        return await self.search(message.tenant_id, request)

    async def passages(
        self, query: str, top_k: int | None, within: Sequence[str] | None = None
    ) -> str:
        """Return the passages that were found, between markers; see answer."""
        answer = await self.answer(query, top_k, within)
        if answer.disabled:
            return DISABLED
        problems = [f"{warning.field}: {warning.problem}" for warning in answer.warnings]
        return "\n\n".join([format_hits(answer.hits), *map(escape_imitations, problems)])

    async def documents(self) -> str:
        """Return the first documents that the caller may read, as JSON."""
        message = current_message()
        found = await self.in_thread(
            lambda: self.reader.list(message.tenant_id, message.caller, limit=_MAX_DOCUMENTS)
        )
        listed = [
            {
                "document_id": document.document_id,
                "uri": document.uri,
                "title": document.title,
                "media_type": document.media_type,
            }
            for document in found
        ]
        return json.dumps(listed, ensure_ascii=False)

    async def document(self, document_id: str) -> str:
        """Return the indexed text of one document."""
        message = current_message()
        return await self.in_thread(
            lambda: escape_imitations(
                self.reader.read(message.tenant_id, message.caller, document_id).text
            )
        )

    async def profile_of(self, tenant_id: str) -> str:
        """Return the profile of a tenant; "" if the tenant no longer exists."""

        def read() -> str:
            found = self.reader.catalog.tenants.find_many([tenant_id])
            return found[0].profile if found else ""

        return await self.in_thread(read)

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
        name: name in the agent's list of prompts.
        description: what the prompt does, for the agent's user.
        function: creates the function that writes the prompt, as in Tool; all parameters of the
            created function are strings.
    """

    name: str
    description: str
    function: Callable[[Knowledge], PromptFunction]


ToolFunction: TypeAlias = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the server.

    Attributes:
        name: name by which agents call the tool.
        description: when agents should call it.
        function: creates the function that answers a call. The parameters of the created function,
            annotated with types and pydantic.Field, are the tool's parameters. The created function
            gets the tenant and the caller from `rag_assets.mcp.tools.current_message`, and
            raises RagAssetsErrors.
        roles: roles of the callers that may use the tool. For other callers it does not exist.
            Empty allows all roles.
        profiles: profiles of the tenants that have the tool; empty means all. For tenants of a
            named profile, it replaces a general tool of the same name.
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


def _search(knowledge: Knowledge) -> ToolFunction:
    async def rag_search(
        query: Annotated[str, Field(max_length=MAX_QUERY, description="What to look for.")],
        top_k: Annotated[
            int | None, Field(ge=1, le=LARGEST_TOP_K, description="Maximum number of passages.")
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
    function=_search,
    read_only=True,
)

DEFAULT_TOOLS: tuple[Tool, ...] = (SEARCH,)
"""The tools that every server has."""
