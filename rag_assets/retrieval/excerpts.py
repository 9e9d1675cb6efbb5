"""The part of a passage that a question is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from rag_assets.retrieval.words import content_words

EXCERPT = 280


def excerpt(text: str, question: str, length: int = EXCERPT) -> str:
    """The part of a text that has most of the words of a question, with what stands around it.

    Args:
        text: white space in it is folded.
        question: what was asked.
        length: characters, about.
    """
    words = text.split()
    asked = content_words(question)
    met = [_terms(word) & asked for word in words]
    start, end = _best(words, met, length)
    found = [at for at in range(start, end) if met[at]] or [start]
    start, end = _widened(words, found[0], found[-1] + 1, length)
    before, after = "[...] " if start else "", " [...]" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def _best(words: Sequence[str], met: Sequence[frozenset[str]], length: int) -> tuple[int, int]:
    """The window of so many characters that meets most different words; the first of equals.

    One pass over the words: a window grows at its end and shrinks at its beginning.
    """
    best, most = (0, min(1, len(words))), -1
    held: Counter[str] = Counter()
    end = size = 0
    for start, word in enumerate(words):
        while end < len(words) and (end == start or size + len(words[end]) + 1 <= length):
            held.update(met[end])
            size += len(words[end]) + 1
            end += 1
        if len(held) > most:
            best, most = (start, end), len(held)
        size -= len(word) + 1
        for term in met[start]:
            held[term] -= 1
            if not held[term]:
                del held[term]
    return best


def _widened(words: list[str], start: int, end: int, length: int) -> tuple[int, int]:
    """A part of a text with what stands around it: half before, half behind, as far as it goes."""

    def room() -> int:
        return length - len(" ".join(words[start:end]))

    start -= _fitting(words[:start][::-1], room() // 2)
    end += _fitting(words[end:], room())
    start -= _fitting(words[:start][::-1], room())
    return start, end


def _fitting(words: list[str], room: int) -> int:
    """How many of the words fit into so many characters, each with a space."""
    sizes = accumulate(len(word) + 1 for word in words)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


@lru_cache(maxsize=65_536)
def _terms(word: str) -> frozenset[str]:
    return content_words(word)
