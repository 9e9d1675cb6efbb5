"""The prompt of an agent: its own text, and its documentation or a hint at the tool for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from rag_assets.agents.cutting import Mask
from rag_assets.agents.globs import expand
from rag_assets.agents.preload import preload
from rag_assets.agents.sections import read_sections
from rag_assets.agents.settings import Agent, Configuration
from rag_assets.common.tokens import count_text
from rag_assets.retrieval.contexts import as_source, neutralised

TOOL: Final = "rag_search"
DESCRIPTION: Final = "Search this agent's documentation. Returns the passages nearest to the query."
SECONDS: Final = 30
_HINT_TOKENS: Final = 120
_MANY_FILES: Final = 60
_MOST_TOPICS: Final = 40


@dataclass(frozen=True, slots=True)
class AgentPrompt:
    """The prompt of an agent.

    Attributes:
        text: of the whole prompt.
        tokens: cl100k_base tokens of it.
        left_out: sections or files that are not in it; nothing where the tool finds them.
    """

    text: str
    tokens: int
    left_out: tuple[str, ...]


def has_tool(configuration: Configuration, agent: Agent) -> bool:
    """Whether an agent has the tool that searches: by its strategy, or as all agents have it."""
    if not agent.docs.sources.value:
        return False
    return agent.docs.strategy.value == "rag" or configuration.tool_for_all.value


def tool_categories(configuration: Configuration, agent: Agent) -> dict[str, bool]:
    """The tool categories that documentation decides."""
    return {"rag": has_tool(configuration, agent)}


def tool_schema() -> dict[str, Any]:
    """The tool as agents are told of it."""
    query = {"type": "string", "description": "What to look for, in plain words."}
    return {
        "name": TOOL,
        "description": DESCRIPTION,
        "inputSchema": {"type": "object", "properties": {"query": query}, "required": ["query"]},
        "annotations": {"readOnlyHint": True},
    }


def prompt_of(
    configuration: Configuration, agent: Agent, mask: Mask, *, searchable: bool = True
) -> AgentPrompt:
    """The prompt of an agent.

    Args:
        configuration: that the agent is of.
        agent: the agent.
        mask: finds credentials in what is preloaded.
        searchable: whether there is an embedder; without one, documentation is preloaded.
    """
    own = agent.prompt.strip()
    # What a project's file says comes from whoever wrote the project.
    parts = [own if agent.is_users else neutralised(own)]
    left_out: tuple[str, ...] = ()
    preloads = agent.docs.strategy.value == "preload" or not searchable
    if preloads and agent.docs.sources.value:
        found = expand(agent.docs.sources.value, agent.base)
        documentation = read_sections(found.files, mask)
        loaded = preload(documentation, agent.docs.budget.value)
        parts.append(loaded.text)
        left_out = (*loaded.left_out, *documentation.left_out)
    if searchable and has_tool(configuration, agent):
        parts.append(hint_of(agent))
    text = "\n\n".join(part for part in parts if part)
    return AgentPrompt(text, count_text(text), left_out)


def hint_of(agent: Agent) -> str:
    """What tells an agent of the tool, and what its documentation is about."""
    files = expand(agent.docs.sources.value, agent.base).files
    topics = _topics([file.path for file in files]) or list(agent.docs.sources.value)
    while topics and count_text(_hint(topics)) > _HINT_TOKENS:
        topics.pop()
    return _hint(topics)


def _hint(topics: Sequence[str]) -> str:
    about = f" about {as_source(', '.join(topics))}" if topics else ""
    return (
        f"You have the tool `{TOOL}`. It searches the documentation of this agent"
        f"{about}. Call it with a `query` before you answer a question about that or name a flag,"
        " an option or a file; say which source an answer comes from."
    )


def _topics(paths: Sequence[str]) -> list[str]:
    """Names of files; of very many the names of their folders, those of most files first."""
    pure = [PurePosixPath(path) for path in paths]
    folders = Counter(path.parent.name for path in pure if path.parent.name)
    if len(pure) > _MANY_FILES and len(folders) > 1:
        return [name for name, _ in folders.most_common(_MOST_TOPICS)]
    return list(dict.fromkeys(path.stem for path in pure))[:_MOST_TOPICS]
