"""Holding an answer to its sources: which of its sentences cite what they may, and which do not.

Whether a passage truly entails a sentence takes a model to judge. What is judged here costs
nothing and cannot be talked round: that a citation exists, and that the passage it names has
words of the sentence in it, and every address that the sentence names.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from rag_assets.chunking.sentence import unicode_sentence_cuts
from rag_assets.retrieval.addresses import Addresses
from rag_assets.retrieval.words import content_words

Verdict = Literal["supported", "unsupported", "uncited", "unknown", "no claim"]

_MARKER = re.compile(r"\[(\d{1,4}(?:\s{0,2},\s{0,2}\d{1,4}){0,15})\]")
_FENCE = re.compile(r"^(```|~~~)")
_HEADING = re.compile(r"#{1,6}\s")
_OPEN_LINK = re.compile(r"[\[\]<]")
_LEAST_SHARED = 0.2
"""Share of a sentence's words that must stand in what it cites."""


class Cited(Protocol):
    """A passage that can be cited; see Hit."""

    @property
    def number(self) -> int:
        """What it is cited by."""
        ...

    @property
    def text(self) -> str:
        """Its words."""
        ...

    @property
    def title(self) -> str | None:
        """Of its document."""
        ...

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The headings that it stands under."""
        ...


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer.

    Attributes:
        start, end: characters in the answer, half open, the markers after it included.
        cites: numbers of the passages that it names.
        shared: share of its words that stand in those passages, 0 to 1.
        verdict: "uncited" names nothing, "unknown" only what does not exist, "unsupported" what
            has too few of its words or not its addresses; "no claim": a heading, a question, the
            lead of a list, without a link.
    """

    start: int
    end: int
    text: str
    cites: tuple[int, ...]
    shared: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What came of an answer.

    Attributes:
        sentences: in order.
        unknown: numbers that are cited and do not exist.
    """

    sentences: tuple[Sentence, ...]
    unknown: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether every claim is supported, and nothing is cited that does not exist."""
        allowed = {"supported", "no claim"}
        return not self.unknown and all(s.verdict in allowed for s in self.sentences)


def verify_citations(answer: str, hits: Sequence[Cited]) -> CitationReport:
    """Judge each sentence of an answer with [n] markers by the passages it was given.

    A marker counts for the sentence that it stands in, or directly after.

    Args:
        answer: what a model wrote.
        hits: the passages, each with the number that it is cited by.
    """
    return _report(answer, _said_by(hits))


def enforce_citations(answer: str, hits: Sequence[Cited]) -> str:
    """The answer without claims that no passage supports, and without markers of none.

    What claims nothing stays if it speaks of what a passage speaks of, and names no other address.
    What is kept stays as it was written; an answer of which nothing is supported comes back empty.
    """
    said = _said_by(hits)
    while True:
        enforced = _without_unsupported(answer, said)
        # What is left may read otherwise than before: a fence without its other end, say.
        if enforced == answer:
            return enforced
        answer = enforced


def _without_unsupported(answer: str, said: Mapping[int, _Said]) -> str:
    everything = _Said.together(said.values())
    report = _report(answer, said)
    if not any(sentence.verdict == "supported" for sentence in report.sentences):
        return ""
    kept = []
    for sentence in report.sentences:
        text = answer[sentence.start : sentence.end]
        idle = sentence.verdict == "no claim" and everything.concerns(text)
        if idle or sentence.verdict == "supported":
            kept.append(_MARKER.sub(lambda marker: _only(marker, said.keys()), text))
        else:
            # What stood on two lines must not become one sentence.
            kept.append("\n" * text.count("\n", len(text.rstrip())))
    return "".join(kept).strip()


@dataclass(frozen=True, slots=True)
class _Said:
    """What passages say: their words, and the addresses that stand in them."""

    words: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()

    @classmethod
    def by(cls, hit: Cited) -> _Said:
        text = "\n".join([hit.title or "", *hit.heading_path, hit.text])
        return cls(content_words(text), Addresses.of(text).known)

    @classmethod
    def together(cls, passages: Iterable[_Said]) -> _Said:
        words, addresses = cls().words, cls().addresses
        for said in passages:
            words, addresses = words | said.words, addresses | said.addresses
        return cls(words, addresses)

    def concerns(self, text: str) -> bool:
        """Whether a text that claims nothing has some of the words, if any, and no other name."""
        words = content_words(text)
        if not words:
            # The first half of an image, say, whose second half was taken out.
            return _OPEN_LINK.search(text) is None
        return bool(words & self.words) and self.knows(Addresses.of(text))

    def knows(self, named: Addresses) -> bool:
        """Whether every address stands here."""
        return named.links | named.names <= self.addresses


def _said_by(hits: Sequence[Cited]) -> dict[int, _Said]:
    return {hit.number: _Said.by(hit) for hit in hits}


def _report(answer: str, said: Mapping[int, _Said]) -> CitationReport:
    sentences = tuple(_judged(answer, start, end, said) for start, end in _sentences(answer))
    unknown = {n for sentence in sentences for n in sentence.cites if n not in said}
    return CitationReport(sentences, tuple(sorted(unknown)))


def _judged(answer: str, start: int, end: int, said: Mapping[int, _Said]) -> Sentence:
    text = answer[start:end]
    cites = tuple(dict.fromkeys(_numbers(text)))
    named = Addresses.of(text)
    claimed = content_words(_MARKER.sub(" ", text))
    found = _Said.together(said[n] for n in cites if n in said)
    shared = len(claimed & found.words) / len(claimed) if claimed else 0.0
    verdict: Verdict
    if not cites:
        verdict = "uncited" if named.links or _is_claim(text, claimed) else "no claim"
    elif not any(n in said for n in cites):
        verdict = "unknown"
    else:
        alike = not claimed or shared >= _LEAST_SHARED
        verdict = "supported" if alike and found.knows(named) else "unsupported"
    return Sentence(start, end, text.strip(), cites, round(shared, 3), verdict)


def _sentences(answer: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end: markers after a full stop belong to what stands before."""
    # Blanks in their place: where a sentence ends must not depend on them.
    prose = _MARKER.sub(lambda marker: " " * len(marker[0]), answer)
    for line_start, line_end in _lines(prose):
        cuts = [cut for cut, _ in unicode_sentence_cuts(prose, line_start, line_end)]
        yield from pairwise([line_start, *cuts, line_end])


def _lines(answer: str) -> Iterator[tuple[int, int]]:
    """Lines, since a heading or an item of a list is no part of the next; a fence is one."""
    at = start = 0
    fenced = False
    for line in answer.splitlines(keepends=True):
        at += len(line)
        if _FENCE.match(line.lstrip()):
            fenced = not fenced
        if not fenced:
            yield start, at
            start = at
    if at > start:
        yield start, at


def _is_claim(text: str, words: frozenset[str]) -> bool:
    bare = text.strip()
    introduces = bare.endswith((":", "?"))
    return bool(words) and not introduces and _HEADING.match(bare) is None


def _numbers(text: str) -> Iterator[int]:
    for marker in _MARKER.finditer(text):
        yield from (int(number) for number in marker[1].split(","))


def _only(marker: re.Match[str], known: Container[int]) -> str:
    numbers = [number.strip() for number in marker[1].split(",")]
    kept = [number for number in numbers if int(number) in known]
    return f"[{', '.join(kept)}]" if kept else ""
