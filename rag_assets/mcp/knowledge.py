"""The knowledge that messages of agents are answered from, each in the name of its caller."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from anyio.to_thread import run_sync

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.privacy.masker import Masker
from rag_assets.retrieval.contexts import as_results, neutralised
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller, SearchAnswer, SearchRequest
from rag_assets.retrieval.patience import Patience

_SECONDS = 30.0
_MAX_DOCUMENTS = 1_000
_T = TypeVar("_T")

DISABLED = (
    "This knowledge is disabled for now: nothing of it is searched."
    " Tell the user to have one of its admins enable it."
)


@dataclass(frozen=True, slots=True)
class MessageContext:
    """Whose knowledge one message is answered from, and in whose name.

    Attributes:
        tenant_id: the tenant.
        caller: only what these principals may read is found.
        request_id: the message's id in the log, if it has one.
        profile: of the tenant, where it was read for this very message.
    """

    tenant_id: str
    caller: Caller
    request_id: str = ""
    profile: str | None = None


class Search(Protocol):
    """Searches a tenant's knowledge (see AsyncRetriever)."""

    async def __call__(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = ...
    ) -> SearchAnswer:
        """Search one tenant's knowledge."""


class BlockingRunner(Protocol):
    """Runs blocking work on behalf of a message's caller."""

    async def __call__(self, message: MessageContext, work: Callable[[], _T]) -> _T:
        """The result of the work."""


# Resources get no context from the SDK. Without a default: an unknown caller gets nothing.
_MESSAGE: ContextVar[MessageContext] = ContextVar("message")


def current_message() -> MessageContext:
    """The context of the message that is being answered.

    Raises:
        LookupError: none is.
    """
    return _MESSAGE.get()


@contextmanager
def message_context(message: MessageContext) -> Iterator[None]:
    """Answer one message in this context."""
    before = _MESSAGE.set(message)
    try:
        yield
    finally:
        _MESSAGE.reset(before)


def advice(error: Exception, _: MessageContext) -> str:
    """The message and hint of an error; an unexpected error is raised."""
    if isinstance(error, RagAssetsError):
        return error.advice
    raise error


@dataclass(frozen=True)
class Knowledge:
    """What messages are answered from.

    Attributes:
        search: searches a tenant's knowledge.
        reader: reads documents.
        seconds: after which an answer is given up.
        error_text: the agent's text of an error.
        run_blocking: runs blocking work elsewhere than in the event loop.
        masker: finds credentials in what agents write; None: nothing is written.
        require_trust: raises while grants do not count; called for each message.
        settings: of the installation; None: nothing outside of the catalog and the index is read.
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
        """Search in the name of the message's caller; of a workspace, within pages."""
        message = current_message()
        filters = None if within is None else {"within": tuple(within)}
        request = SearchRequest.of(query=query, top_k=top_k, filters=filters, caller=message.caller)
        return await self.search(message.tenant_id, request)

    async def passages(
        self, query: str, top_k: int | None, within: Sequence[str] | None = None
    ) -> str:
        """Return the passages found, between markers; of a workspace, within pages."""
        answer = await self.answer(query, top_k, within)
        if answer.disabled:
            return DISABLED
        problems = [f"{one.field}: {one.problem}" for one in answer.warnings]
        return "\n\n".join([as_results(answer.hits), *map(neutralised, problems)])

    async def documents(self) -> str:
        """The first documents that the caller may read, as JSON."""
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
        """The indexed text of one document."""
        message = current_message()
        return await self.in_thread(
            lambda: neutralised(
                self.reader.read(message.tenant_id, message.caller, document_id).text
            )
        )

    async def profile_of(self, tenant_id: str) -> str:
        """The profile of a tenant; "" for one that is gone."""

        def read() -> str:
            found = self.reader.catalog.tenants.named([tenant_id])
            return found[0].profile if found else ""

        return await self.in_thread(read)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """The result of blocking work."""
        if self.run_blocking is not None:
            return await self.run_blocking(current_message(), work)
        return await run_sync(work, abandon_on_cancel=True)
