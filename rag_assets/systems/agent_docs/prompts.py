"""The prompt of an agent: its own text, and its documentation or a hint at the tool for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, Final

from rag_assets.common.formatting import counted
from rag_assets.common.tokens import count_text
from rag_assets.retrieval.contexts import as_source, neutralised
from rag_assets.storage.index.common_words import COMMON_WORDS
from rag_assets.systems.agent_docs.cutting import Mask
from rag_assets.systems.agent_docs.globs import FoundFile, expand
from rag_assets.systems.agent_docs.preload import preload
from rag_assets.systems.agent_docs.sections import read_sections
from rag_assets.systems.agent_docs.settings import Agent, Configuration

TOOL: Final = "rag_search"
DESCRIPTION: Final = "Search this agent's documentation. Returns the passages nearest to the query."
SECONDS: Final = 30
_HINT_TOKENS: Final = 120
_DESCRIPTION_TOKENS: Final = 40
_FEW_FILES: Final = 12
"""Files that are described by their names."""
_MOST_TOPICS: Final = 40
_HEAD_BYTES: Final = 4_096
_HEADING: Final = re.compile(r"^#{1,2}[ \t]+(?P<title>[^\n]{1,200})", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W\d_][^\W_]*")


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
    """Return the sentences that name the tool and describe what its documentation is about."""
    files = expand(agent.docs.sources.value, agent.base).files
    described = as_source(agent.docs.description.value or agent.description)
    while count_text(described) > _DESCRIPTION_TOKENS:
        described = described[: len(described) * 3 // 4].rsplit(" ", 1)[0] + "…"
    topics = _topics(files) or list(agent.docs.sources.value)
    if agent.docs.description.value:
        topics = []
    while topics and count_text(_hint(len(files), described, topics)) > _HINT_TOKENS:
        topics.pop()
    return _hint(len(files), described, topics)


def _hint(number: int, described: str, topics: Sequence[str]) -> str:
    about = f" about {as_source(', '.join(topics))}" if topics else ""
    size = f" ({counted(number, 'file')})" if number > _FEW_FILES else ""
    description = f" {described.rstrip('.')}." if described else ""
    return (
        f"You have the tool `{TOOL}`. It searches the documentation of this agent{size}{about}."
        f"{description} Call it with a `query` before you answer a question about that or name a"
        " flag, an option or a file; say which source an answer comes from."
    )


def _topics(files: Sequence[FoundFile]) -> list[str]:
    """Describe files: a few by their names, many by what they have in common.

    Of many these are the words that most of them share, their largest folders, and the words that
    some share, those of most files first: names in the order of the alphabet would describe
    its first letters.
    """
    paths = [PurePosixPath(file.path) for file in files]
    stems = list(dict.fromkeys(path.stem for path in paths))
    if len(files) <= _FEW_FILES:
        return stems
    words = Counter(
        word for file in files for word in {*_words(PurePosixPath(file.path).stem), *_title(file)}
    )
    shared = [word for word, count in words.most_common() if 2 * count > len(files)]
    folders = _folders(paths)
    known = {*shared, *(word for folder in folders for word in _words(folder))}
    # In one file a word says nothing of the others.
    some = [word for word, count in words.most_common(_MOST_TOPICS) if count > 1]
    listed = [*shared, *folders, *(word for word in some if word not in known)]
    sample = stems[:: max(1, len(stems) // _FEW_FILES)]
    return list(dict.fromkeys([*listed, *sample]))[:_MOST_TOPICS]


def _folders(paths: Sequence[PurePosixPath]) -> list[str]:
    """Return the folders in which the files part, those of most files first."""
    parents = [path.parent.parts for path in paths]
    levels = zip(*parents, strict=False)
    depth = sum(1 for _ in takewhile(lambda level: len({*level}) == 1, levels))
    counts = Counter(parts[depth] for parts in parents if len(parts) > depth)
    return [name for name, _ in counts.most_common(_FEW_FILES)] if len(counts) > 1 else []


def _title(file: FoundFile) -> list[str]:
    """Return the words of a file's first heading; none of one that cannot be read."""
    try:
        with file.file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    heading = _HEADING.search(head)
    return _words(heading["title"]) if heading else []


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in _WORD.findall(text))
    return [word for word in found if word not in COMMON_WORDS and len(word) > 1]
