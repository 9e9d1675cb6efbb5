"""Prompts of agents: documentation within a token budget or a hint at the tool, and their costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from rag_assets.common.errors import DocumentRejected
from rag_assets.common.formatting import counted
from rag_assets.common.hashing import canonical
from rag_assets.common.tokens import count_text, count_tokens
from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.retrieval.contexts import as_source, neutralised
from rag_assets.storage.index.common_words import COMMON_WORDS
from rag_assets.systems.agent_docs.globs import FoundFile, expand
from rag_assets.systems.agent_docs.passages import Mask, parsed_text, read_bytes
from rag_assets.systems.agent_docs.settings import Agent, Configuration


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file from one heading to the next.

    Attributes:
        path: of the file.
        title: its heading; "" for what is above the first.
        text: with its heading.
        tokens: cl100k_base tokens of the text.
    """

    path: str
    title: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Documentation:
    """All sections of an agent's files, in order.

    Attributes:
        sections: by file.
        left_out: files that cannot be read, and why.
    """

    sections: tuple[tuple[Section, ...], ...]
    left_out: dict[str, str]

    @property
    def tokens(self) -> int:
        """Of all sections."""
        return sum(one.tokens for file in self.sections for one in file)


def read_sections(files: Sequence[FoundFile], mask: Mask) -> Documentation:
    """The sections of files in their order: credentials masked, forged marks escaped."""
    found: list[tuple[Section, ...]] = []
    left_out: dict[str, str] = {}
    for file in files:
        try:
            parsed, _ = parsed_text(file.path, read_bytes(file.file))
        except DocumentRejected as error:
            left_out[file.path] = error.advice
            continue
        cut = [(title, neutralised(text)) for title, text in _cut(mask(parsed))]
        counts = count_tokens([text for _, text in cut])
        sections = [
            Section(file.path, title, text, n) for (title, text), n in zip(cut, counts, strict=True)
        ]
        found.append(tuple(sections))
    return Documentation(tuple(found), left_out)


def _cut(parsed: ParsedText) -> Iterator[tuple[str, str]]:
    """Titles and texts of sections, without front matter."""
    blocks = [block for block in parsed.blocks if block.kind != "front_matter"]
    if not blocks:
        return
    starts = [(blocks[0].start, "")]
    for block in blocks:
        if block.kind == "heading":
            title = block.heading_path[-1] if block.heading_path else ""
            if block.start == starts[-1][0]:
                starts.pop()
            starts.append((block.start, title))
    ends = [start for start, _ in starts[1:]] + [blocks[-1].end]
    for (start, title), end in zip(starts, ends, strict=True):
        if text := parsed.text[start:end].strip():
            yield title, text


@dataclass(frozen=True, slots=True)
class Preloaded:
    """What of the documentation fits a prompt.

    Attributes:
        text: files in order, each under `--- path ---`.
        tokens: cl100k_base tokens of the text.
        left_out: sections that did not fit, as `path` or `path: title`; a cut one is among them.
    """

    text: str
    tokens: int
    left_out: tuple[str, ...]


def preload(documentation: Documentation, budget: int) -> Preloaded:
    """As many whole sections as fit a budget, in order; of the next one its first sentences.

    Args:
        documentation: the sections of an agent's files.
        budget: cl100k_base tokens of the whole text.
    """
    queue = [section for file in documentation.sections for section in file]
    fitting = _most(len(queue), lambda count: count_text(_joined(queue[:count])) <= budget)
    text = _joined(queue[:fitting])
    if fitting == len(queue):
        return Preloaded(text, count_text(text), ())
    whole = _joined(queue[: fitting + 1])
    section = queue[fitting].text
    before = whole[len(text) : len(whole) - len(section)]
    text += _first_sentences(text, before, section, budget)
    return Preloaded(text, count_text(text), tuple(_names(queue[fitting:], documentation)))


def _joined(sections: Sequence[Section]) -> str:
    """Sections one below another, each file under its path."""
    parts: list[str] = []
    for at, section in enumerate(sections):
        is_first = at == 0 or sections[at - 1].path != section.path
        heading = f"--- {as_source(section.path)} ---\n" if is_first else ""
        parts.append(heading + section.text)
    return "\n\n".join(parts)


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to a count that fits; what is smaller than it fits as well."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _first_sentences(text: str, before: str, section: str, budget: int) -> str:
    """The most sentences of a section that fit, with what is before it; nothing if none does."""
    ends = [cut for cut, _ in unicode_sentence_cuts(section, 0, len(section))]

    def text_of(count: int) -> str:
        return before + section[: ends[count - 1]].rstrip() if count else ""

    return text_of(_most(len(ends), lambda count: count_text(text + text_of(count)) <= budget))


def _names(sections: list[Section], documentation: Documentation) -> list[str]:
    """What is left out: whole files by their path, parts of others by their sections."""
    whole = {file[0].path: len(file) for file in documentation.sections if file}
    counts: dict[str, int] = {}
    for one in sections:
        counts[one.path] = counts.get(one.path, 0) + 1
    named = [
        one.path
        if counts[one.path] == whole[one.path]
        else f"{one.path}: {one.title or 'beginning'}"
        for one in sections
    ]
    return [named[0], *(b for a, b in pairwise(named) if a != b)]


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
