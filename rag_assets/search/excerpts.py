"""Excerpts: the part of a passage that a question is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import accumulate, repeat, takewhile
from operator import add

from rag_assets.search.terms import content_words
from rag_assets.storage.index.identifiers import analysis_of

EXCERPT = 280


def excerpt(text: str, question: str, length: int = EXCERPT, *, language: str | None = None) -> str:
    """Return the part of a text that has most of the question's words, with its surroundings.

    Args:
        text: the text; its white space is collapsed.
        length: approximate number of characters.
        language: language of the text's document, as indexed; None if uncertain.
    """
    words = text.split()
    analysis = analysis_of(text, language)
    return _join_words(
        words, *_widen_range(words, *_best_part(words, question, length, analysis), length)
    )


def excerpt_of_part(
    text: str,
    question: str,
    start: int,
    end: int,
    length: int = EXCERPT,
    *,
    language: str | None = None,
) -> str:
    """Return an excerpt of a text about one part of it; it contains the whole part if that fits.

    Args:
        text, question, length, language: as in excerpt().
        start, end: character offsets of the part.
    """
    before, part, after = text[:start].split(), text[start:end].split(), text[end:].split()
    words = [*before, *part, *after]
    first, last = 0, len(part)
    if len(" ".join(part)) > length:
        analysis = analysis_of(text[start:end], language)
        first, last = _best_part(part, question, length, analysis)
    return _join_words(words, *_widen_range(words, len(before) + first, len(before) + last, length))


def _join_words(words: Sequence[str], start: int, end: int) -> str:
    before, after = "[...] " if start else "", " [...]" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def _best_part(words: Sequence[str], question: str, length: int, analysis: str) -> tuple[int, int]:
    """Return the word range of the part that has most of the question's words."""
    wanted = question_terms(question, analysis)
    terms_of = terms_in(analysis)
    met = {
        word: terms & wanted for word in {*words} if not wanted.isdisjoint(terms := terms_of(word))
    }
    found = [(at, met[word]) for at, word in enumerate(words) if word in met]
    places = [*accumulate(map(add, map(len, words), repeat(1)), initial=0)]
    return _best(found, places, length)


def _best(
    found: Sequence[tuple[int, frozenset[str]]], places: Sequence[int], length: int
) -> tuple[int, int]:
    """Return the word range of the part that has most different words of the question.

    Args:
        found: the question's words in the text, by word position.
        places: the offset of the first character of every word, and of the end of the text.
        length: length of the part, in characters.
    """
    first, most = -1, 0
    times: dict[str, int] = {}
    end = 0
    for number, (start, terms) in enumerate(found):
        # A part never ends before the previous one, so each word is visited once.
        while end < len(found) and (
            end == number or places[found[end][0] + 1] - places[start] <= length
        ):
            for term in found[end][1]:
                times[term] = times.get(term, 0) + 1
            end += 1
        if len(times) > most:
            first, most = number, len(times)
        for term in terms:
            times[term] -= 1
            if not times[term]:
                del times[term]
    met: set[str] = set()
    for at, terms in found[first:] if most else ():
        met |= terms
        if len(met) == most:
            return found[first][0], at + 1
    return 0, min(1, len(places) - 1)


def _widen_range(words: Sequence[str], start: int, end: int, length: int) -> tuple[int, int]:
    """Extend a part of a text on both sides, each by half of the remaining length if possible."""

    def room() -> int:
        return length - len(" ".join(words[start:end]))

    def before() -> Sequence[str]:
        # There cannot be more words than characters.
        return words[max(0, start - length) : start][::-1]

    start -= _count_fitting_words(before(), room() // 2)
    end += _count_fitting_words(words[end : end + length], room())
    start -= _count_fitting_words(before(), room())
    return start, end


def _count_fitting_words(words: Sequence[str], room: int) -> int:
    """Return how many of the words, each with a space, fit into a number of characters."""
    sizes = accumulate(len(word) + 1 for word in words)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


@lru_cache(maxsize=64)
def question_terms(question: str, analysis: str) -> frozenset[str]:
    """Return the search terms of a question, analysed like the text."""
    return content_words(question, analysis)


@cache
def terms_in(analysis: str) -> Callable[[str], frozenset[str]]:
    """Return a function that maps one word of a text to its terms, and a stop word to no term."""
    # A cache with one argument takes half the time of a cache with two.
    return lru_cache(maxsize=16_384)(partial(content_words, analysis=analysis))
