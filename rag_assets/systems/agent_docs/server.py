"""The tool `rag_search` of one agent, over standard input and output."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, TypeAlias

import anyio
from anyio.to_thread import run_sync
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field, ValidationError

from rag_assets.common.errors import DamagedIndex, InvalidRequest, RagAssetsError
from rag_assets.mcp.messages import root_logger_unchanged, serve_stdio
from rag_assets.systems.agent_docs.manager import RagIndexManager, as_text
from rag_assets.systems.agent_docs.prompts import DESCRIPTION, SECONDS, TOOL
from rag_assets.systems.agent_docs.settings import Agent

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_QUERY: Final = 4_000

Query: TypeAlias = Annotated[
    str, Field(max_length=_MAX_QUERY, description="What to look for, in plain words.")
]
"""What the tool takes."""


class Refreshed:
    """An agent's index that follows its files; while a new one is built, the former answers.

    Args:
        manager: of indexes.
        agent: the agent.
        failed: takes the message of a build that failed.
    """

    def __init__(
        self, manager: RagIndexManager, agent: Agent, failed: Callable[[str], None]
    ) -> None:
        self._manager = manager
        self._agent = agent
        self._failed = failed
        self._lock = threading.Lock()
        self._build: threading.Thread | None = None
        self._failure: RagAssetsError | None = None

    def answer(self, query: str) -> str:
        """The passages that answer a question, as text.

        Raises:
            RagAssetsError: the question is empty, or cannot be embedded; or there is no index, and
                none could be built.
        """
        require_query(query)
        self.refresh()
        try:
            return self._found(query)
        except DamagedIndex:
            self.refresh()
            return self._found(query)

    def _found(self, query: str) -> str:
        agent, docs = self._agent, self._agent.docs
        if self._failure is not None and not self._manager.answers(agent.id):
            raise self._failure
        search = partial(
            self._manager.search,
            *(agent.id, query, docs.top_k.value),
            mode=docs.mode.value,
            min_score=docs.min_score.value,
        )
        found = search()
        if self._manager.is_doubted(agent.id):
            self.refresh()
            found = found or search()
        return as_text(found)

    @property
    def late(self) -> str:
        """What is told of a search that takes too long."""
        build = self._build
        if build is None or not build.is_alive() or self._manager.answers(self._agent.id):
            return f"the search took longer than {SECONDS} seconds"
        return "the documentation is indexed for the first time; ask again in a minute"

    def refresh(self) -> None:
        """Begin a build if files have changed; wait for it if there is no index to answer."""
        agent, sources = self._agent, self._agent.docs.sources.value
        if self._manager.is_current(agent.id, sources, agent.base):
            return
        with self._lock:
            if self._build is None or not self._build.is_alive():
                # A daemon: the process ends with its host, not with a build.
                self._build = threading.Thread(target=self._built, daemon=True)
                self._build.start()
            build = self._build
        # Vectors of another model answer nothing.
        if not self._manager.answers(agent.id):
            build.join()

    def refreshed(self) -> None:
        """Refresh; what fails is told by the first answer."""
        with suppress(RagAssetsError, OSError):
            self.refresh()

    def _built(self) -> None:
        agent = self._agent
        try:
            self._manager.ensure_index(agent.id, agent.docs.sources.value, agent.base)
            self._failure = None
        except RagAssetsError as error:
            self._failure = error
            self._failed(f"the index of @{agent.id} was not built: {error.advice}")
        except OSError as error:
            why = f"the index cannot be written: {error.strerror}"
            self._failure = RagAssetsError(why, hint="check the folder that rag.path names")
            self._failed(f"the index of @{agent.id} was not written: {error.strerror}")


def require_query(query: str) -> None:
    """Refuse a question without a word.

    Raises:
        InvalidRequest: it is empty.
    """
    if not query.strip():
        raise InvalidRequest("the query is empty", hint="say what to look for")


class _Server(MCPServer[None]):
    """The SDK's server, with errors that repeat nothing of what was sent."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call the tool; errors name invalid arguments without repeating their values."""
        if name != TOOL:
            raise ToolError(f"there is no such tool; {TOOL} is")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(
                f"{TOOL} takes a query of 1 to {_MAX_QUERY:,} characters and nothing else"
            ) from None


def build_server(index: Refreshed | None, instructions: str | None = None) -> MCPServer[None]:
    """A server with the one tool, or without it where nothing can be searched.

    Args:
        index: of the agent.
        instructions: what the host is told of the tool.
    """
    with root_logger_unchanged():
        server = _Server("rag-assets", subscriptions=False, instructions=instructions)
    if index is None:
        return server

    async def rag_search(query: Query) -> str:
        try:
            with anyio.fail_after(SECONDS):
                return await run_sync(index.answer, query, abandon_on_cancel=True)
        except TimeoutError:
            raise ToolError(index.late) from None
        except RagAssetsError as error:
            raise ToolError(error.advice) from None

    server.tool(name=TOOL, description=DESCRIPTION, annotations=ToolAnnotations(readOnlyHint=True))(
        rag_search
    )
    return server


def serve(index: Refreshed | None, instructions: str | None = None) -> NoReturn:
    """Answer messages until the host closes standard input; see build_server."""
    if index is not None:
        threading.Thread(target=index.refreshed, daemon=True).start()
    anyio.run(serve_stdio, build_server(index, instructions))
    # The threads of a build that is under way are not waited for: a builder may end anywhere.
    sys.stdout.flush()
    os._exit(0)
