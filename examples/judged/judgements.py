"""Judged questions, and the grades of what a search found for them.

A judgement names a document and words of a passage: a passage of that document that holds these
words has the grade, however the document is cut. Whatever else was read while judging is worth
nothing, and is remembered by its hash, so that a passage that nobody judged can be told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from examples.judge import questions as handbook_questions

HERE = Path(__file__).resolve().parent
ANNEX = HERE / "annex"
POOL = HERE / "pool.json"
UNANSWERED = "none"
"""The kind of a question that nothing answers."""
ANSWERS = 3
"""The grade of a passage that answers."""


class Passage(Protocol):
    """What is looked at of a hit."""

    @property
    def uri(self) -> str:
        """Of the document it stands in."""

    @property
    def also(self) -> Sequence[str]:
        """Uris of other documents that hold the same passage."""

    @property
    def text(self) -> str:
        """As it was found."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a passage is worth.

    Attributes:
        path: the document's uri: a source and the path in it.
        quote: words of the passage; how they are spaced does not matter.
        grade: 3 answers the question, 2 in part, 1 is useful background.
    """

    path: str
    quote: str
    grade: int = ANSWERS

    def is_about(self, passage: Passage) -> bool:
        """Whether the passage is the one that was judged."""
        return self.path in (passage.uri, *passage.also) and self.quote in _plain(passage.text)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question, and every passage that is worth something for it.

    Attributes:
        kind: of what difficulty; questions.yaml lists the kinds.
        pool: hashes of all passages that were read for it.
    """

    id: str
    kind: str
    question: str
    relevant: tuple[Judgement, ...] = ()
    pool: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def answerable(self) -> bool:
        """Whether anything answers it."""
        return self.kind != UNANSWERED

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
        return any(j.is_about(passage) for j in self.relevant if j.grade == ANSWERS)

    def knows(self, passage: Passage) -> bool:
        """Whether the passage was judged."""
        return passage_hash(passage.text) in self.pool or any(
            judgement.is_about(passage) for judgement in self.relevant
        )


def judged_questions() -> list[JudgedQuestion]:
    """Those of the handbook, then the others; with what pooling added to either."""
    pool: Mapping[str, Sequence[str]] = json.loads(POOL.read_text(encoding="utf-8"))
    pooled = _yaml("pooled.yaml")
    return [
        JudgedQuestion(
            id_,
            kind,
            question,
            (*foreseen, *(Judgement(**entry) for entry in pooled.get(id_, ()))),
            frozenset(pool.get(id_, ())),
        )
        for id_, kind, question, foreseen in (*_of_the_handbook(), *_others())
    ]


def save_pool(pool: Mapping[str, Iterable[str]]) -> None:
    """Remember, by question id, the hashes of the passages that were read."""
    lines = [f"{json.dumps(id_)}: {json.dumps(sorted(pool[id_]))}" for id_ in pool]
    POOL.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def halves(
    questions: Iterable[JudgedQuestion],
) -> tuple[list[JudgedQuestion], list[JudgedQuestion]]:
    """Two halves, by turns within each kind: one to choose by, one to report on."""
    seen: dict[str, int] = {}
    parts: tuple[list[JudgedQuestion], list[JudgedQuestion]] = ([], [])
    for question in questions:
        number = seen.get(question.kind, 0)
        seen[question.kind] = number + 1
        parts[number % 2].append(question)
    return parts


def passage_hash(text: str) -> str:
    """Ten hexadecimal digits that stand for a passage."""
    return sha256(_plain(text).encode()).hexdigest()[:10]


_Foreseen = tuple[str, str, str, tuple[Judgement, ...]]


def _of_the_handbook() -> Iterator[_Foreseen]:
    passages = _yaml("handbook.yaml")
    for question in handbook_questions():
        found = tuple(
            Judgement(f"handbook/{entry['path']}", entry["quote"])
            for entry in passages[question.id]
        )
        yield question.id, question.kind, question.question, found


def _others() -> Iterator[_Foreseen]:
    for entry in _yaml("questions.yaml"):
        found = tuple(Judgement(**judgement) for judgement in entry.get("relevant", ()))
        yield entry["id"], entry["kind"], entry["question"], found


def _yaml(name: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe").load((HERE / name).read_text(encoding="utf-8"))


def _plain(text: str) -> str:
    return " ".join(text.split())
