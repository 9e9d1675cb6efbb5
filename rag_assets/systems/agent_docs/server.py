"""The MCP server of an agent over standard input and output, with the tool `rag_search`."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import anyio
from anyio.to_thread import run_sync
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Tool, ToolAnnotations
from pydantic import Field, ValidationError

from rag_assets.common.errors import RagAssetsError
from rag_assets.mcp.messages import (
    preserve_root_logger,
    refuse_other_arguments,
    serve_stdio,
)
from rag_assets.systems.agent_docs.errors import DamagedIndex
from rag_assets.systems.agent_docs.manager import RagIndexManager, format_results
from rag_assets.systems.agent_docs.prompts import (
    DESCRIPTION,
    MAX_QUERY,
    QUERY_DESCRIPTION,
    TIMEOUT_SECONDS,
    TOOL,
    require_query,
)
from rag_assets.systems.agent_docs.settings import Agent

if TYPE_CHECKING:
    from collections.abc import Callable


class RefreshingIndex:
    """An agent's index that is rebuilt when files change; the previous index answers meanwhile.

    Args:
        report_failure: called with a message if a build fails.
    """

    def __init__(
        self, manager: RagIndexManager, agent: Agent, report_failure: Callable[[str], None]
    ) -> None:
        self._manager = manager
        self._agent = agent
        self._report_failure = report_failure
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failure: RagAssetsError | None = None

    def answer(self, query: str) -> str:
        """Return the passages that answer a question, as text.

        Raises:
            RagAssetsError: the query is empty or cannot be embedded, or there is no index and
                building one failed.
        """
        require_query(query)
        self.refresh()
        try:
            return self._search(query)
        except DamagedIndex:
            self.refresh()
            return self._search(query)

    def _search(self, query: str) -> str:
        if self._failure is not None and not self._manager.can_answer(self._agent.id):
            raise self._failure
        results = self._manager.search_agent(self._agent, query)
        if self._manager.needs_rebuild(self._agent.id):
            self.refresh()
            results = results or self._manager.search_agent(self._agent, query)
        return format_results(results)

    @property
    def timeout_message(self) -> str:
        """Return the message for a search that exceeds the time limit."""
        thread = self._thread
        if thread is None or not thread.is_alive() or self._manager.can_answer(self._agent.id):
            return f"the search took longer than {TIMEOUT_SECONDS} seconds"
        return "the documentation is being indexed for the first time; try again in a minute"

    def refresh(self) -> None:
        """Start a build if files have changed; wait for it if no index can answer."""
        agent = self._agent
        if self._manager.is_current(agent.id, agent.docs.sources.value, agent.base):
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                # A daemon thread, so that the process can end during a build.
                self._thread = threading.Thread(target=self._run_build, daemon=True)
                self._thread.start()
            thread = self._thread
        if not self._manager.can_answer(agent.id):
            thread.join()

    def _run_build(self) -> None:
        agent = self._agent
        try:
            self._manager.ensure_index(agent.id, agent.docs.sources.value, agent.base)
            self._failure = None
        except RagAssetsError as error:
            self._failure = error
            self._report_failure(f"the index of @{agent.id} was not built: {error.advice}")
        except OSError as error:
            why = f"the index cannot be written: {error.strerror}"
            self._failure = RagAssetsError(why, hint="check the folder in `rag.path`")
            self._report_failure(f"the index of @{agent.id} was not written: {error.strerror}")


class _AgentServer(MCPServer[None]):
    """The SDK's server, with errors that never repeat the client's input."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools, whose input schemas refuse unknown arguments."""
        return [refuse_other_arguments(tool) for tool in await super().list_tools()]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call the tool; errors describe valid arguments instead of repeating the input."""
        if name != TOOL:
            raise ToolError(f"unknown tool; the only tool is {TOOL}")
        invalid = ToolError(
            f"{TOOL} takes a query of 1 to {MAX_QUERY:,} characters and nothing else"
        )
        # The SDK ignores unknown arguments.
        if arguments.keys() - {"query"}:
            raise invalid
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise invalid from None


def build_server(index: RefreshingIndex | None, instructions: str | None = None) -> MCPServer[None]:
    """Create an MCP server, with the search tool if there is an index."""
    with preserve_root_logger():
        server = _AgentServer("rag-assets", subscriptions=False, instructions=instructions)
    if index is None:
        return server

    async def rag_search(
        query: Annotated[str, Field(max_length=MAX_QUERY, description=QUERY_DESCRIPTION)],
    ) -> str:
        try:
            with anyio.fail_after(TIMEOUT_SECONDS):
                return await run_sync(index.answer, query, abandon_on_cancel=True)
        except TimeoutError:
            raise ToolError(index.timeout_message) from None
        except RagAssetsError as error:
            raise ToolError(error.advice) from None

    server.tool(name=TOOL, description=DESCRIPTION, annotations=ToolAnnotations(readOnlyHint=True))(
        rag_search
    )
    return server


def serve(index: RefreshingIndex | None, instructions: str | None = None) -> NoReturn:
    """Answer messages until the host closes standard input; see build_server."""
    if index is not None:

        def refresh() -> None:
            # The first answer reports a failure.
            with suppress(RagAssetsError, OSError):
                index.refresh()

        threading.Thread(target=refresh, daemon=True).start()
    anyio.run(serve_stdio, build_server(index, instructions))
    # Exit without waiting for a build, which may be interrupted at any point.
    sys.stdout.flush()
    os._exit(0)
