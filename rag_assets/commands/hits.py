"""How a hit is shown: where it stands, and the words around what was asked for."""

from __future__ import annotations

import textwrap
from functools import cache
from itertools import accumulate, takewhile

from rag_assets.chunking.places import place_of
from rag_assets.commands.output import say
from rag_assets.retrieval.model import Hit
from rag_assets.retrieval.words import content_words

_EXCERPT = 280
_WIDTH = 92


def show_hit(number: int, hit: Hit, question: str) -> None:
    """Print a hit: where it is from, and the part of its text that has most of the question."""
    say(f"{number}. {headline(hit)}")
    if hit.heading_path:
        say(f"   {' › '.join(hit.heading_path)}")
    say(textwrap.indent(textwrap.fill(excerpt(hit.text, question), _WIDTH), "   │ "))
    say()


def headline(hit: Hit) -> str:
    """The document, the place in it, and how near it is to the question."""
    return f"{', '.join(filter(None, (hit.uri, place_of(hit))))}  (cosine {hit.score:.2f})"


def excerpt(text: str, question: str, length: int = _EXCERPT) -> str:
    """The part of a text that has most of the words of a question, with what stands around it.

    Args:
        text: white space in it is folded.
        question: what was asked.
        length: characters, about.
    """
    words = text.split()
    asked = _terms(question)
    met = [_terms(word) & asked for word in words]
    ends = [at + max(1, _fitting(words[at:], length)) for at in range(len(words))]
    # The first of equals: a text begins with what it is about.
    start = max(range(len(words)), key=lambda at: (len(set().union(*met[at : ends[at]])), -at))
    found = [at for at in range(start, ends[start]) if met[at]] or [start]
    start, end = _widened(words, found[0], found[-1] + 1, length)
    before, after = "[...] " if start else "", " [...]" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


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


@cache
def _terms(text: str) -> frozenset[str]:
    return content_words(text)
