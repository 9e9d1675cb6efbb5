"""The MCP prompt `team_guidelines`: the guidelines of a team about a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import Field

from rag_assets.common.errors import UnknownProject
from rag_assets.mcp.tools import Knowledge, Prompt, PromptFunction, current_message
from rag_assets.search.model import MAX_QUERY
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from rag_assets.systems.team_guidelines.projects import PROFILE

_T = TypeVar("_T")

NO_GUIDELINES = "The team has no guidelines about this task."


def _build_prompt(knowledge: Knowledge) -> PromptFunction:
    catalog = knowledge.reader.catalog

    async def run(_tenant_id: str, _caller: str | None, work: Callable[[], _T]) -> _T:
        return await knowledge.in_thread(work)

    contexts = Contexts(catalog, knowledge, knowledge.reader, run_blocking=run)

    def find_project(tenant_id: str) -> TenantRecord:
        record = catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise UnknownProject(
                "this tenant is not a project with team guidelines",
                hint="connect to a project's tenant",
            )
        return record

    async def team_guidelines(
        task: Annotated[
            str, Field(max_length=MAX_QUERY, pattern=r"\S", description="What is to be done.")
        ],
    ) -> str:
        message = current_message()
        record = await knowledge.in_thread(lambda: find_project(message.tenant_id))
        context = await contexts.build(record, ContextRequest(task=task), message.caller)
        return context.section or NO_GUIDELINES

    return team_guidelines


TEAM_GUIDELINES = Prompt(
    name="team_guidelines",
    description="The guidelines of the team that bear on a task.",
    function=_build_prompt,
)
