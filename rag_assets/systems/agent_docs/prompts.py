"""Prompts of agents: documentation within a token budget, or a hint to use the search tool.

The module also estimates the token costs of both strategies.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from rag_assets.common.errors import DocumentRejected, InvalidRequest
from rag_assets.common.formatting import format_count
from rag_assets.common.hashing import canonical
from rag_assets.common.tokens import count_text, count_tokens
from rag_assets.ingest.chunking.boundaries import find_unicode_sentence_cuts
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.search.contexts import escape_imitations, format_source
from rag_assets.storage.index.common_words import COMMON_WORDS
from rag_assets.systems.agent_docs.globs import MatchedFile, expand_patterns
from rag_assets.systems.agent_docs.passages import Mask, parse_file, read_file
from rag_assets.systems.agent_docs.settings import Agent, Configuration


@dataclass(frozen=True, slots=True)
class DocSection:
    """A part of a file from one heading to the next.

    Attributes:
        title: the heading; "" for the part above the first heading.
    """

    path: str
    title: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Documentation:
    """The sections of an agent's files.

    Attributes:
        left_out: files that cannot be read, and why.
    """

    files: tuple[tuple[DocSection, ...], ...]
    left_out: Mapping[str, str]

    @property
    def token_count(self) -> int:
        """Return the total number of tokens of all sections."""
        return sum(section.tokens for file in self.files for section in file)


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt, or the documentation in it.

    Attributes:
        left_out: sections that do not fit into the budget or were cut short, as `path` or
            `path: title`. For a whole prompt, also the files that cannot be read.
    """

    text: str
    tokens: int
    left_out: tuple[str, ...]


def read_sections(files: Sequence[MatchedFile], mask: Mask) -> Documentation:
    """Split files into sections, mask credentials, and escape imitations of our markers."""
    sections: list[tuple[DocSection, ...]] = []
    left_out: dict[str, str] = {}
    for file in files:
        try:
            parsed, _ = parse_file(file.path, read_file(Path(file.location)))
        except DocumentRejected as error:
            left_out[file.path] = error.advice
            continue
        parts = [
            (title, escape_imitations(text)) for title, text in _split_at_headings(mask(parsed))
        ]
        counts = count_tokens([text for _, text in parts])
        sections.append(
            tuple(
                DocSection(file.path, title, text, tokens)
                for (title, text), tokens in zip(parts, counts, strict=True)
            )
        )
    return Documentation(tuple(sections), left_out)


def _split_at_headings(parsed: ParsedText) -> Iterator[tuple[str, str]]:
    """Yield title and text of each section, without front matter."""
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


def preload(documentation: Documentation, budget: int) -> PromptText:
    """Fit sections into a token budget: whole sections in order, then sentences of the next one.

    Each file starts with a line `--- path ---`.
    """
    queue = [section for file in documentation.files for section in file]
    fitting = _find_largest(len(queue), lambda n: count_text(_join_sections(queue[:n])) <= budget)
    text = _join_sections(queue[:fitting])
    if fitting == len(queue):
        return PromptText(text, count_text(text), ())
    whole = _join_sections(queue[: fitting + 1])
    section = queue[fitting].text
    separator = whole[len(text) : len(whole) - len(section)]
    text += _fit_sentences(text, separator, section, budget)
    return PromptText(text, count_text(text), _list_section_names(queue[fitting:], documentation))


def _join_sections(sections: Sequence[DocSection]) -> str:
    parts: list[str] = []
    for index, section in enumerate(sections):
        is_first = index == 0 or sections[index - 1].path != section.path
        heading = f"--- {format_source(section.path)} ---\n" if is_first else ""
        parts.append(heading + section.text)
    return "\n\n".join(parts)


def _find_largest(maximum: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 0 to a maximum that fits; all smaller numbers must fit too."""
    return bisect_left(range(1, maximum + 1), True, key=lambda number: not fits(number))


def _fit_sentences(text: str, separator: str, section: str, budget: int) -> str:
    """Return the first sentences of a section that fit after a text, preceded by the separator.

    The result is "" if not even the first sentence fits.
    """
    ends = [cut for cut, _ in find_unicode_sentence_cuts(section, 0, len(section))]

    def cut(count: int) -> str:
        return separator + section[: ends[count - 1]].rstrip() if count else ""

    return cut(_find_largest(len(ends), lambda count: count_text(text + cut(count)) <= budget))


def _list_section_names(
    sections: list[DocSection], documentation: Documentation
) -> tuple[str, ...]:
    """Return the names of sections: `path: title`, or one `path` for all sections of a file."""
    totals = {file[0].path: len(file) for file in documentation.files if file}
    counts = Counter(section.path for section in sections)
    names = [
        section.path
        if counts[section.path] == totals[section.path]
        else f"{section.path}: {section.title or 'beginning'}"
        for section in sections
    ]
    return (names[0], *(name for previous, name in pairwise(names) if name != previous))


TOOL: Final = "rag_search"
DESCRIPTION: Final = "Search this agent's documentation. Returns the passages nearest to the query."
QUERY_DESCRIPTION: Final = "What to look for, in plain words."
MAX_QUERY: Final = 4_000
"""Maximum characters of a query; the tool refuses longer queries."""
TIMEOUT_SECONDS: Final = 30
_MAX_HINT_TOKENS: Final = 120
"""Maximum tokens of a hint; topics that do not fit are dropped."""
_MAX_DESCRIPTION_TOKENS: Final = 40
"""Maximum tokens of a description; a longer description is cut."""
_MAX_NAMED_FILES: Final = 12
"""Maximum number of files that are described by their names."""
_MAX_TOPICS: Final = 40
"""Maximum number of topics in a description; further topics are dropped."""
_HEAD_BYTES: Final = 4_096
_HEADING: Final = re.compile(r"^#{1,2}[ \t]+(?P<title>[^\n]{1,200})", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W\d_][^\W_]*")


def require_query(query: str) -> None:
    """Refuse a blank query.

    Raises:
        InvalidRequest: the query is blank.
    """
    if not query.strip():
        raise InvalidRequest("the query is empty", hint="enter the words to search for")


def has_search_tool(configuration: Configuration, agent: Agent) -> bool:
    """Return whether an agent has the search tool.

    It does if it has sources, and its strategy is `rag` or all agents get the tool.
    """
    if not agent.docs.sources.value:
        return False
    return agent.docs.strategy.value == "rag" or configuration.tool_for_all.value


def build_tool_schema() -> dict[str, Any]:
    """Return the definition of the search tool that agents receive."""
    query = {"type": "string", "description": QUERY_DESCRIPTION}
    return {
        "name": TOOL,
        "description": DESCRIPTION,
        "inputSchema": {"type": "object", "properties": {"query": query}, "required": ["query"]},
        "annotations": {"readOnlyHint": True},
    }


def build_prompt(
    configuration: Configuration, agent: Agent, mask: Mask, *, can_search: bool = True
) -> PromptText:
    """Build the whole prompt of an agent.

    Args:
        can_search: whether an embedder can be loaded; if not, documentation is preloaded.
    """
    docs, own = agent.docs, agent.prompt.strip()
    # The prompt in a project's file is untrusted text.
    parts = [own if agent.is_user_file else escape_imitations(own)]
    left_out: tuple[str, ...] = ()
    if docs.sources.value and (docs.strategy.value == "preload" or not can_search):
        documentation = read_sections(expand_patterns(docs.sources.value, agent.base).files, mask)
        loaded = preload(documentation, docs.budget.value)
        parts.append(loaded.text)
        left_out = (*loaded.left_out, *documentation.left_out)
    if can_search and has_search_tool(configuration, agent):
        parts.append(build_hint(agent))
    text = "\n\n".join(part for part in parts if part)
    return PromptText(text, count_text(text), left_out)


def build_hint(agent: Agent) -> str:
    """Build the sentences of a prompt that name the search tool and describe its documents."""
    docs = agent.docs
    files = expand_patterns(docs.sources.value, agent.base).files
    description = format_source(docs.description.value or agent.description)
    while count_text(description) > _MAX_DESCRIPTION_TOKENS:
        description = description[: len(description) * 3 // 4].rsplit(" ", 1)[0] + "…"
    topics = [] if docs.description.value else _describe_files(files) or list(docs.sources.value)
    while topics and count_text(_format_hint(len(files), description, topics)) > _MAX_HINT_TOKENS:
        topics.pop()
    return _format_hint(len(files), description, topics)


def _format_hint(file_count: int, description: str, topics: Sequence[str]) -> str:
    about = f" about {format_source(', '.join(topics))}" if topics else ""
    size = f" ({format_count(file_count, 'file')})" if file_count > _MAX_NAMED_FILES else ""
    sentence = f" {description.rstrip('.')}." if description else ""
    return (
        f"You have the tool `{TOOL}`. It searches the documentation of this agent{size}{about}."
        f"{sentence} Call it with a `query` before you answer a question about that or name a"
        " flag, an option or a file; say which source an answer comes from."
    )


def _describe_files(files: Sequence[MatchedFile]) -> list[str]:
    """Return topics of files: the names of a few files, or common features of many.

    The common features are, in this order: the words that are in most names and titles, the largest
    folders, the words that are in some names and titles (by frequency), and a sample of names.
    """
    paths = [PurePosixPath(file.path) for file in files]
    stems = list(dict.fromkeys(path.stem for path in paths))
    if len(files) <= _MAX_NAMED_FILES:
        return stems
    words = Counter(
        word
        for file, path in zip(files, paths, strict=True)
        for word in {*_split_words(path.stem), *_read_title_words(file)}
    )
    frequent = [word for word, count in words.most_common() if 2 * count > len(files)]
    folders = _find_folders(paths)
    known = {*frequent, *(word for folder in folders for word in _split_words(folder))}
    # A word in a single file does not describe the others.
    some = [word for word, count in words.most_common(_MAX_TOPICS) if count > 1]
    topics = [*frequent, *folders, *(word for word in some if word not in known)]
    sample = stems[:: max(1, len(stems) // _MAX_NAMED_FILES)]
    return list(dict.fromkeys([*topics, *sample]))[:_MAX_TOPICS]


def _find_folders(paths: Sequence[PurePosixPath]) -> list[str]:
    """Return the folders at the first level where the paths differ, by number of files.

    The result is empty if there are fewer than two such folders.
    """
    parents = [path.parent.parts for path in paths]
    levels = zip(*parents, strict=False)
    depth = sum(1 for _ in takewhile(lambda level: len({*level}) == 1, levels))
    counts = Counter(parts[depth] for parts in parents if len(parts) > depth)
    return [name for name, _ in counts.most_common(_MAX_NAMED_FILES)] if len(counts) > 1 else []


def _read_title_words(file: MatchedFile) -> list[str]:
    """Return the words of a file's first heading; empty if it cannot be read."""
    try:
        with Path(file.location).open("rb") as opened:
            head = opened.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    heading = _HEADING.search(head)
    return _split_words(heading["title"]) if heading else []


def _split_words(text: str) -> list[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return [word for word in words if word not in COMMON_WORDS and len(word) > 1]


Recommendation: TypeAlias = Literal["preload", "rag", "dagster"]
_MAX_PRELOAD_FILES: Final = 30
_MAX_PRELOAD_TOKENS: Final = 12_000
"""Number of tokens from which `rag` is recommended over `preload`."""
_MAX_LOCAL_CHUNKS: Final = 20_000
"""Number of passages above which Dagster is recommended."""
_CHARACTERS_PER_TOKEN: Final = 4
_HEADER_TOKENS: Final = 20
"""Tokens of the line above a passage."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommended way to provide an agent's documentation, with its token costs.

    Attributes:
        way: preload, rag, or rag with Dagster.
        chunks: estimated number of passages.
        preload_tokens: tokens that preloading adds to every question.
        rag_tokens: tokens that the tool adds to a question that needs the documentation.
    """

    agent_id: str
    way: Recommendation
    files: int
    tokens: int
    chunks: int
    preload_tokens: int
    rag_tokens: int
    reason: str
    empty: tuple[str, ...]


def advise(configuration: Configuration, agent: Agent, mask: Mask) -> Advice:
    """Estimate the costs of an agent's documentation, and recommend how to provide it."""
    docs, rag = agent.docs, configuration.rag
    matches = expand_patterns(docs.sources.value, agent.base)
    documentation = read_sections(matches.files, mask)
    files, tokens = len(documentation.files), documentation.token_count
    step = max(1, rag.chunk_size.value - rag.chunk_overlap.value)
    lengths = (sum(len(section.text) for section in file) for file in documentation.files)
    chunks = sum(-(-length // step) for length in lengths)
    chunk_tokens = min(rag.chunk_size.value // _CHARACTERS_PER_TOKEN, tokens // max(1, chunks))
    fixed_tokens = count_text(canonical(build_tool_schema())) + count_text(build_hint(agent))
    way, reason = _recommend_strategy(files, tokens, chunks)
    return Advice(
        agent.id,
        way,
        files,
        tokens,
        chunks,
        preload_tokens=min(tokens, docs.budget.value),
        rag_tokens=fixed_tokens + min(docs.top_k.value, chunks) * (chunk_tokens + _HEADER_TOKENS),
        reason=reason,
        empty=matches.empty,
    )


def _recommend_strategy(files: int, tokens: int, chunks: int) -> tuple[Recommendation, str]:
    """Return the recommended strategy for documentation of this size, and the reason."""
    if chunks > _MAX_LOCAL_CHUNKS:
        return "dagster", f"over {_MAX_LOCAL_CHUNKS:,} chunks are for the Dagster way"
    if files < _MAX_PRELOAD_FILES and tokens < _MAX_PRELOAD_TOKENS:
        limits = f"under {_MAX_PRELOAD_FILES} files and {_MAX_PRELOAD_TOKENS:,} tokens"
        return "preload", f"{limits} fit every prompt"
    size = f"{files} files" if files >= _MAX_PRELOAD_FILES else f"{tokens:,} tokens"
    return "rag", f"{size} are more than a prompt should have"
