"""Judged questions, and the grades of what a search found for them.

A judgement names a document and words of a passage: a passage of that document that holds these
words has the grade, however the document is cut. Whatever else was read while judging is worth
nothing, and is remembered by its hash, so that a passage that nobody judged can be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

UNANSWERED = "none"
"""The kind of a question that nothing answers."""
ANSWERS = 3
"""The grade of a passage that answers."""
IN_PART = 2
"""The grade of a passage that answers in part."""
_LEAST_WORDS = 3


class Passage(Protocol):
    """What is looked at of a hit."""

    @property
    def uri(self) -> str:
        """Of the document it stands in."""

    @property
    def document_id(self) -> str:
        """Of the same document."""

    @property
    def also(self) -> Sequence[str]:
        """Uris of other documents that hold the same passage."""

    @property
    def text(self) -> str:
        """As it was found."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a passage, or a whole document, is worth.

    Attributes:
        path: of the document: its uri, its id, or the id of its record.
        quote: words of the passage; how they are spaced does not matter. None: any passage of
            the document has the grade.
        grade: 3 answers the question, 2 in part, 1 is useful background, 0 is worth nothing; sets
            of others may have higher grades.
        names: uris and ids of the documents that `path` stands for; by default it stands for
            itself.
    """

    path: str
    quote: str | None = None
    grade: int = ANSWERS
    names: frozenset[str] = field(default=frozenset(), repr=False)

    def is_about(self, passage: Passage) -> bool:
        """Whether the passage is the one that was judged, or holds at least half of it."""
        names = self.names or {self.path}
        if names.isdisjoint((passage.document_id, passage.uri, *passage.also)):
            return False
        return self.quote is None or holds(passage.text, self.quote)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question, and every passage that is worth something for it.

    Attributes:
        kind: of what difficulty, as its author names it; UNANSWERED: nothing answers it.
        pool: hashes of all passages that were read for it.
        relevant_from: the lowest grade that counts as found.
        synthetic: whether it was made from headings, and not judged by a person.
    """

    id: str
    kind: str
    question: str
    relevant: tuple[Judgement, ...] = ()
    pool: frozenset[str] = field(default=frozenset(), repr=False)
    relevant_from: int = IN_PART
    synthetic: bool = False

    @property
    def answerable(self) -> bool:
        """Whether anything answers it."""
        return any(judgement.grade >= self.relevant_from for judgement in self.relevant)

    @property
    def is_of_documents(self) -> bool:
        """Whether documents were judged, and no passages of them."""
        return all(judgement.quote is None for judgement in self.relevant)

    @property
    def grades(self) -> dict[str, int]:
        """The grade of each judgement, by the name that names() gives it."""
        return {str(at): judgement.grade for at, judgement in enumerate(self.relevant)}

    def names(self, passages: Sequence[Passage]) -> list[str]:
        """A name for each passage, in their order: of the judgement it meets, or of none.

        A judgement is met once, by the first passage that can: of two that overlap only one
        counts, so that how a document is cut makes no difference.
        """
        free = sorted(range(len(self.relevant)), key=lambda at: -self.relevant[at].grade)
        names = []
        for place, passage in enumerate(passages, start=1):
            met = next((at for at in free if self.relevant[at].is_about(passage)), None)
            if met is not None:
                free.remove(met)
            names.append(f"other-{place}" if met is None else str(met))
        return names

    def is_answered_by(self, passage: Passage) -> bool:
        """Whether the passage holds the answer, or one of several."""
        return any(j.is_about(passage) for j in self.relevant if j.grade >= ANSWERS)

    def knows(self, passage: Passage) -> bool:
        """Whether the passage was judged."""
        return passage_hash(passage.text) in self.pool or any(
            judgement.is_about(passage) for judgement in self.relevant
        )


def holds(text: str, quote: str) -> bool:
    """Whether a passage holds a quote, or so much of it that most was not cut off.

    A chunker may cut within the quote: then the passage that ends with at least half of its words,
    begins with them, or consists of them holds it.
    """
    words, plain = quote.split(), plain_text(text)
    if " ".join(words) in plain:
        return True
    least = max(_LEAST_WORDS, -(-len(words) // 2))
    if len(plain.split(maxsplit=least)) < least:
        return False
    for count in range(len(words) - 1, least - 1, -1):
        if plain.endswith(" ".join(words[:count])) or plain.startswith(" ".join(words[-count:])):
            return True
    return f" {plain} " in f" {' '.join(words)} "


def passage_hash(text: str) -> str:
    """Ten hexadecimal digits that stand for a passage."""
    return sha256(plain_text(text).encode()).hexdigest()[:10]


def plain_text(text: str) -> str:
    """A text with single spaces in place of all white space."""
    return " ".join(text.split())
