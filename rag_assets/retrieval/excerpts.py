"""Excerpts: the part of a passage that a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from rag_assets.retrieval.terms import content_words

EXCERPT = 280


def excerpt(text: str, question: str, length: int = EXCERPT) -> str:
    """The part of a text with most of the words of a question, and its surroundings.

    Args:
        text: white space in it is folded.
        question: in words.
        length: characters, about.
    """
    words = text.split()
    wanted = _question_terms(question)
    found = [
        (at, terms & wanted)
        for at, word in enumerate(words)
        if not wanted.isdisjoint(terms := _terms(word))
    ]
    start, end = _best(found, [0, *accumulate(len(word) + 1 for word in words)], length)
    start, end = _widened(words, start, end, length)
    before, after = "[...] " if start else "", " [...]" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def _best(
    found: Sequence[tuple[int, frozenset[str]]], places: Sequence[int], length: int
) -> tuple[int, int]:
    """From the first to the last word of the part with most different words of the question.

    Args:
        found: the words of the question, by place in the text.
        places: of every word's first character, and of the end.
        length: of the part, in characters.
    """
    best, most = (0, min(1, len(places) - 1)), 0
    for number, (start, _) in enumerate(found):
        met: set[str] = set()
        # Bounded by what fits into so many characters, however long the text is.
        for at, terms in found[number : number + length]:
            if at > start and places[at + 1] - places[start] > length:
                break
            met |= terms
            if len(met) > most:
                best, most = (start, at + 1), len(met)
    return best


def _widened(words: list[str], start: int, end: int, length: int) -> tuple[int, int]:
    """A part of a text with its surroundings: half before, half after, as far as they go."""

    def room() -> int:
        return length - len(" ".join(words[start:end]))

    def before() -> list[str]:
        # No more words than characters can fit.
        return words[max(0, start - length) : start][::-1]

    start -= _fitting(before(), room() // 2)
    end += _fitting(words[end : end + length], room())
    start -= _fitting(before(), room())
    return start, end


def _fitting(words: list[str], room: int) -> int:
    """How many of the words fit into so many characters, each with a space."""
    sizes = accumulate(len(word) + 1 for word in words)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


@lru_cache(maxsize=64)
def _question_terms(question: str) -> frozenset[str]:
    return content_words(question)


@lru_cache(maxsize=65_536)
def _terms(word: str) -> frozenset[str]:
    return content_words(word)
