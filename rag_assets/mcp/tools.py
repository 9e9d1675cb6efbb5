"""The tools that agents call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from rag_assets.mcp.knowledge import Knowledge
from rag_assets.search.model import LARGEST_TOP_K, MAX_QUERY, Role

ToolFunction: TypeAlias = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the server.

    Attributes:
        name: name by which agents call the tool.
        description: when agents should call it.
        function: creates the function that answers a call. The parameters of the created function,
            annotated with types and pydantic.Field, are the tool's parameters. The created function
            gets the tenant and the caller from `rag_assets.mcp.knowledge.current_message`, and
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

    def is_for(self, role: Role | None) -> bool:
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
