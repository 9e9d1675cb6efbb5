"""Advises how an agent's documentation is best given to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rag_assets.common.hashing import canonical
from rag_assets.common.tokens import count_text
from rag_assets.systems.agent_docs.cutting import Mask
from rag_assets.systems.agent_docs.globs import expand
from rag_assets.systems.agent_docs.prompts import hint_of, tool_schema
from rag_assets.systems.agent_docs.sections import read_sections
from rag_assets.systems.agent_docs.settings import Agent, Configuration

Way: TypeAlias = Literal["preload", "rag", "dagster"]

MAX_FILES: Final = 30
MAX_TOKENS: Final = 12_000
MAX_CHUNKS: Final = 20_000
_CHARACTERS_A_TOKEN: Final = 4
_RESULT_TOKENS: Final = 20
"""Tokens of the line above a passage."""


@dataclass(frozen=True, slots=True)
class Advice:
    """How the documentation of an agent is best given to it.

    Attributes:
        agent_id: of the agent.
        way: preload, rag, or rag with Dagster.
        files, tokens, chunks: of its documentation; chunks are an estimate.
        preload_tokens: that preloading adds to every question.
        rag_tokens: that a question which needs the documentation costs with the tool.
        reason: of the advice.
        empty: patterns that match no file.
    """

    agent_id: str
    way: Way
    files: int
    tokens: int
    chunks: int
    preload_tokens: int
    rag_tokens: int
    reason: str
    empty: tuple[str, ...]


def advise(configuration: Configuration, agent: Agent, mask: Mask) -> Advice:
    """Count an agent's documentation, and advise.

    Args:
        configuration: that the agent is of.
        agent: the agent.
        mask: finds credentials.
    """
    matches = expand(agent.docs.sources.value, agent.base)
    documentation = read_sections(matches.files, mask)
    rag = configuration.rag
    step = max(1, rag.chunk_size.value - rag.chunk_overlap.value)
    files, tokens = len(documentation.sections), documentation.tokens
    chunks = sum(-(-sum(len(one.text) for one in file) // step) for file in documentation.sections)
    way, reason = _way(files, tokens, chunks)
    a_passage = min(rag.chunk_size.value // _CHARACTERS_A_TOKEN, tokens // max(1, chunks))
    fixed = count_text(canonical(tool_schema())) + count_text(hint_of(agent))
    found = min(agent.docs.top_k.value, chunks)
    return Advice(
        agent.id,
        way,
        files,
        tokens,
        chunks,
        preload_tokens=min(tokens, agent.docs.budget.value),
        rag_tokens=fixed + found * (a_passage + _RESULT_TOKENS),
        reason=reason,
        empty=matches.empty,
    )


def _way(files: int, tokens: int, chunks: int) -> tuple[Way, str]:
    if chunks > MAX_CHUNKS:
        return "dagster", f"over {MAX_CHUNKS:,} chunks are for the Dagster way"
    if files < MAX_FILES and tokens < MAX_TOKENS:
        return "preload", f"under {MAX_FILES} files and {MAX_TOKENS:,} tokens fit every prompt"
    many = f"{files} files" if files >= MAX_FILES else f"{tokens:,} tokens"
    return "rag", f"{many} are more than a prompt should have"
