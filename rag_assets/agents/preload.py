"""Documentation as a part of a prompt, within a budget of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from rag_assets.agents.sections import Documentation, Section
from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts


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
    text = ""
    queue = [section for file in documentation.sections for section in file]
    for at, section in enumerate(queue):
        is_first = at == 0 or queue[at - 1].path != section.path
        before = _before(text, section.path if is_first else "")
        longer = f"{text}{before}{section.text}"
        if count_text(longer) > budget:
            text += _first_sentences(text, before, section.text, budget)
            return Preloaded(text, count_text(text), tuple(_names(queue[at:], documentation)))
        text = longer
    return Preloaded(text, count_text(text), ())


def _before(text: str, path: str) -> str:
    heading = f"--- {path} ---\n" if path else ""
    return ("\n\n" if text else "") + heading


def _first_sentences(text: str, before: str, section: str, budget: int) -> str:
    """The most sentences of a section that fit, with what is before it; nothing if none does."""
    ends = [cut for cut, _ in unicode_sentence_cuts(section, 0, len(section))]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(text + before + section[: ends[middle - 1]].rstrip()) <= budget:
            low = middle
        else:
            high = middle - 1
    return before + section[: ends[low - 1]].rstrip() if low else ""


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
