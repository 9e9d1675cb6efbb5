"""Ask all judged questions of the demo's index, and print how well it answers.

    make demo
    .venv/bin/python -m examples.judge

A question counts as answered if the hits contain the document with the answer, which has grade 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path, PurePosixPath
from typing import Any

HERE = Path(__file__).resolve().parent
HANDBOOK = HERE / "handbook"
TOP_K = 5
ANSWERS = 3
"""Grade of a document with the answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A judged question; questions.yaml documents its fields.

    Attributes:
        relevant: grade by path below handbook/.
        expect: location of the answer in the document with grade 3.
    """

    id: str
    kind: str
    question: str
    relevant: Mapping[str, int]
    expect: Mapping[str, Any]
    answer: str
    demo: bool = False

    @property
    def source(self) -> str:
        """Return the path of the document with the answer."""
        return next(path for path, grade in self.relevant.items() if grade == ANSWERS)

    @property
    def suffix(self) -> str:
        """Return the file extension of the document with the answer."""
        return PurePosixPath(self.source).suffix


@dataclass(frozen=True, slots=True)
class Score:
    """The shares of questions with the answer among the first hits, and the mean nDCG."""

    questions: int
    first: float
    top_three: float
    top_five: float
    ndcg: float


def questions() -> list[Question]:
    """Return all judged questions, in the order of the file."""
    from ruamel.yaml import YAML

    entries = YAML(typ="safe").load((HERE / "questions.yaml").read_text(encoding="utf-8"))
    return [
        Question(**{**entry, "relevant": {r["path"]: r["grade"] for r in entry["relevant"]}})
        for entry in entries
    ]


def rank(question: Question, found: Sequence[str]) -> int | None:
    """Return the rank, from 1, of the document with the answer; None if it was not found."""
    return found.index(question.source) + 1 if question.source in found else None


def ndcg(question: Question, found: Sequence[str], top_k: int = TOP_K) -> float:
    """Return the normalized discounted cumulative gain; only a document's first hit counts."""
    grades = [question.relevant.get(path, 0) for path in dict.fromkeys(found)]
    best = sorted(question.relevant.values(), reverse=True)
    return _gain(grades[:top_k]) / _gain(best[:top_k])


def score(asked: Sequence[Question], found: Mapping[str, Sequence[str]]) -> Score:
    """Return the score of the answers to questions.

    Args:
        asked: at least one question.
        found: the paths of the hits, best first, by question id.
    """
    ranks = [rank(question, found[question.id]) for question in asked]

    def share(limit: int) -> float:
        return sum(at is not None and at <= limit for at in ranks) / len(asked)

    mean = sum(ndcg(question, found[question.id]) for question in asked) / len(asked)
    return Score(len(asked), share(1), share(3), share(TOP_K), mean)


def _gain(grades: Sequence[int]) -> float:
    return sum((2**grade - 1) / log2(at + 1) for at, grade in enumerate(grades, start=1))


def main() -> None:
    """Print the scores by kind of file, and of all questions in every mode of search."""
    from rag_assets.cli.output import print_table

    asked = questions()
    found = {mode: _ask(asked, mode) for mode in ("hybrid", "knn", "text")}
    hybrid = found["hybrid"]
    rows = [
        _row(suffix, "hybrid", score([q for q in asked if q.suffix == suffix], hybrid))
        for suffix in sorted({question.suffix for question in asked})
    ]
    rows += [_row("all", mode, score(asked, answers)) for mode, answers in found.items()]
    print_table(["answer in", "mode", "questions", "first", "in 3", "in 5", "nDCG@5"], rows)
    missed = [(q.id, q.source) for q in asked if rank(q, hybrid[q.id]) is None]
    print_table(["not found in hybrid mode", "should be in"], missed)


def _ask(asked: Sequence[Question], mode: Any) -> dict[str, list[str]]:
    """Return the paths of the hits in the demo's index, by question id."""
    from rag_assets.cli.session import Session
    from rag_assets.search import Retriever
    from rag_assets.search.model import SearchRequest

    session = Session()
    retriever = Retriever(session.catalog, session.store, session.embedders)
    return {
        question.id: [
            hit.uri.removeprefix("handbook/")
            for hit in retriever.search(
                "demo", SearchRequest(query=question.question, top_k=TOP_K, mode=mode)
            ).hits
        ]
        for question in asked
    }


def _row(kind: str, mode: str, scored: Score) -> tuple[object, ...]:
    shares = (f"{share:.0%}" for share in (scored.first, scored.top_three, scored.top_five))
    return (kind, mode, scored.questions, *shares, f"{scored.ndcg:.2f}")


if __name__ == "__main__":
    main()
