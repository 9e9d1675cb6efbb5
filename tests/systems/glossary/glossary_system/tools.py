"""`glossary_define` and the prompt `glossary_terms`, for agents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rag_assets.mcp.tools import (
    Knowledge,
    Prompt,
    PromptFunction,
    Tool,
    ToolFunction,
    current_message,
)
from rag_assets.search.model import SearchRequest


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


def _terms(knowledge: Knowledge) -> PromptFunction:
    async def glossary_terms(
        about: Annotated[str, Field(max_length=100, description="What they are about.")],
    ) -> str:
        message = current_message()
        request = SearchRequest.of(query=about, mode="text", caller=message.caller)
        answer = await knowledge.search(message.tenant_id, request)
        return "\n".join(hit.text for hit in answer.hits)

    return glossary_terms


TERMS = Prompt(
    name="glossary_terms", description="Terms about a matter, and what they mean.", function=_terms
)
