"""The tool of agents' documentation, as `rag-assets agent mcp` has it."""

from __future__ import annotations

from rag_assets.ingest.sources.model import path_of
from rag_assets.mcp.knowledge import DISABLED, Knowledge
from rag_assets.mcp.tools import Tool, ToolFunction
from rag_assets.retrieval.contexts import results_text
from rag_assets.systems.agent_docs.prompts import DESCRIPTION, TOOL
from rag_assets.systems.agent_docs.server import Query, require_query
from rag_assets.systems.agent_docs.source import shown_path


def _search(knowledge: Knowledge) -> ToolFunction:
    async def rag_search(query: Query) -> str:
        require_query(query)
        answer = await knowledge.answer(query)
        if answer.disabled:
            return DISABLED
        return results_text(
            (hit.number, hit.score, shown_path(path_of(hit.uri)), hit.text) for hit in answer.hits
        )

    return rag_search


SEARCH = Tool(
    name=TOOL,
    description=DESCRIPTION,
    function=_search,
    profiles=frozenset({"agent-docs"}),
    read_only=True,
)
