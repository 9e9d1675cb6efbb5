"""Judged questions, and the grades of the passages that a search finds for them.

A judgement names a document and quotes a passage. Any passage of that document that contains the
quote has the grade, for any chunking of the document. Other passages that a person read while
judging are irrelevant. The hashes of all passages that were read are kept, so that unjudged
passages can be recognized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

UNANSWERED = "none"
"""The kind of a question without an answer in the documents."""
ANSWERS = 3
"""The grade of a passage that answers the question."""
IN_PART = 2
"""The grade of a passage that answers the question in part."""
_MIN_QUOTE_WORDS = 3


class JudgeablePassage(Protocol):
    """The parts of a hit that are compared with judgements."""

    @property
    def uri(self) -> str:
        """Return the uri of the passage's document."""

    @property
    def document_id(self) -> str:
        """Return the id of the passage's document."""

    @property
    def also(self) -> Sequence[str]:
        """Return the uris of other documents that contain the same passage."""

    @property
    def text(self) -> str:
        """Return the text of the passage, as it was found."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The grade of a passage, or of a whole document."""

    path: str
    """The document: its uri, its id, or the id of its record."""
    quote: str | None = None
    """Words of the passage; white space does not matter. None if every passage of the document has
    the grade."""
    grade: int = ANSWERS
    """3 answers the question, 2 answers it in part, 1 is useful background, 0 is irrelevant; other
    sets may have higher grades."""
    names: frozenset[str] = field(default=frozenset(), repr=False)
    """Uris and ids of the documents that `path` refers to; by default only `path`."""

    def is_about(self, passage: JudgeablePassage) -> bool:
        """Return whether a passage is in the judged document, and contains the quote, if any.

        At least half of the quote is enough if the passage starts or ends within it.
        """
        names = self.names or {self.path}
        if names.isdisjoint((passage.document_id, passage.uri, *passage.also)):
            return False
        return self.quote is None or contains_quote(passage.text, self.quote)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with its judged passages."""

    id: str
    kind: str
    """Kind of difficulty, in the author's words; UNANSWERED if the documents have no answer."""
    question: str
    relevant: tuple[Judgement, ...] = ()
    pool: frozenset[str] = field(default=frozenset(), repr=False)
    """Hashes of all passages that were read to judge the question."""
    relevant_from: int = IN_PART
    """The lowest grade that counts as relevant."""
    synthetic: bool = False
    """Whether it was generated from headings, and not judged by a person."""

    @property
    def answerable(self) -> bool:
        """Return whether any judged passage counts as relevant."""
        return any(judgement.grade >= self.relevant_from for judgement in self.relevant)

    @property
    def is_of_documents(self) -> bool:
        """Return whether all judgements are about whole documents, not passages."""
        return all(judgement.quote is None for judgement in self.relevant)

    @property
    def grades(self) -> dict[str, int]:
        """Return the grade of each judgement, by the name that names() gives to its passage."""
        return {str(at): judgement.grade for at, judgement in enumerate(self.relevant)}

    def names(self, passages: Sequence[JudgeablePassage]) -> list[str]:
        """Return a name for each passage, in order, by which measures look up its grade.

        A passage that fits a judgement has the judgement's name, which is a key of grades(); any
        other passage has a name of its own. Each judgement is matched only once, by the first
        passage that fits. So only one of two overlapping passages counts, and chunking makes no
        difference.
        """
        free = sorted(range(len(self.relevant)), key=lambda at: -self.relevant[at].grade)
        names = []
        for place, passage in enumerate(passages, start=1):
            relevant_index = next((at for at in free if self.relevant[at].is_about(passage)), None)
            if relevant_index is not None:
                free.remove(relevant_index)
            names.append(f"other-{place}" if relevant_index is None else str(relevant_index))
        return names

    def is_answered_by(self, passage: JudgeablePassage) -> bool:
        """Return whether a passage was judged to answer the question (grade 3 or higher)."""
        return any(j.is_about(passage) for j in self.relevant if j.grade >= ANSWERS)

    def knows(self, passage: JudgeablePassage) -> bool:
        """Return whether a passage was judged, or was read and found irrelevant."""
        return hash_passage(passage.text) in self.pool or any(
            judgement.is_about(passage) for judgement in self.relevant
        )


def contains_quote(text: str, quote: str) -> bool:
    """Return whether a passage contains a quote, or at least half of a quote that was cut.

    A chunker may cut the document within the quote. Then the passage must start or end with at
    least half of the quote's words, or lie within the quote.
    """
    words, plain = quote.split(), collapse_whitespace(text)
    if " ".join(words) in plain:
        return True
    min_words = max(_MIN_QUOTE_WORDS, -(-len(words) // 2))
    if len(plain.split(maxsplit=min_words)) < min_words:
        return False
    for count in range(len(words) - 1, min_words - 1, -1):
        if plain.endswith(" ".join(words[:count])) or plain.startswith(" ".join(words[-count:])):
            return True
    return f" {plain} " in f" {' '.join(words)} "


def hash_passage(text: str) -> str:
    """Return ten hexadecimal digits that identify a passage; white space does not matter."""
    return sha256(collapse_whitespace(text).encode()).hexdigest()[:10]


def collapse_whitespace(text: str) -> str:
    """Return a text with single spaces in place of all white space."""
    return " ".join(text.split())
