"""`glossary_define`, for agents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rag_assets.mcp.knowledge import Knowledge, current_message
from rag_assets.mcp.tools import Tool, ToolFunction
from rag_assets.retrieval.model import SearchRequest


def _define(knowledge: Knowledge) -> ToolFunction:
    async def glossary_define(
        term: Annotated[str, Field(max_length=100, description="The term.")],
    ) -> str:
        message = current_message()
        request = SearchRequest.of(query=term, top_k=1, mode="text", caller=message.caller)
        answer = await knowledge.search(message.tenant_id, request)
        return answer.hits[0].text if answer.hits else "This term is not defined."

    return glossary_define


DEFINE = Tool(
    name="glossary_define", description="Tells what a term of this project means.", function=_define
)
