"""Documentation as a part of a prompt, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts
from rag_assets.retrieval.contexts import as_source
from rag_assets.systems.agent_docs.sections import Documentation, Section


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
