"""Measures of rankings by judgements, as trec_eval defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_assets.quality.judgements import JudgedQuestion, Passage

DEPTH = 10
"""Number of passages of a ranking that count."""
NDCG, RECALL_5, RECALL_10, MRR = "nDCG@10", "recall@5", "recall@10", "MRR"
MEASURES = (NDCG, RECALL_5, RECALL_10, MRR)

Values = Mapping[str, Mapping[str, float]]
"""Values by measure, then by question id."""


def compute_measures(
    questions: Iterable[JudgedQuestion], found: Mapping[str, Sequence[Passage]]
) -> dict[str, dict[str, float]]:
    """Return the measures of each question's ranking.

    The gain of a passage is its grade. A passage is relevant if its grade is at least the
    question's `relevant_from`.

    Args:
        questions: answerable questions.
        found: passages, best first, by question id.
    """
    from ir_measures import RR, R, iter_calc, nDCG

    by_grade: dict[int, list[JudgedQuestion]] = {}
    for question in questions:
        by_grade.setdefault(question.relevant_from, []).append(question)
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for least, of_grade in by_grade.items():
        recall, reciprocal_rank = R(rel=least), RR(rel=least)
        names = {
            nDCG @ DEPTH: NDCG,
            recall @ 5: RECALL_5,
            recall @ DEPTH: RECALL_10,
            reciprocal_rank @ DEPTH: MRR,
        }
        qrels = {question.id: question.grades for question in of_grade}
        runs = {question.id: _run(question, found) for question in of_grade}
        for metric in iter_calc(list(names), qrels, runs):
            values[names[metric.measure]][metric.query_id] = metric.value
    return values


def judged_share(
    questions: Iterable[JudgedQuestion], found: Mapping[str, Sequence[Passage]]
) -> float | None:
    """Return the share of judged passages among the first ten; None without passages.

    A passage that was not judged counts as irrelevant.
    """
    first = [(question, hit) for question in questions for hit in get_top_hits(question, found)]
    return sum(question.knows(hit) for question, hit in first) / len(first) if first else None


def get_top_hits(
    question: JudgedQuestion, found: Mapping[str, Sequence[Passage]]
) -> Sequence[Passage]:
    """Return a question's first ten hits; if documents were judged, each document only once."""
    passages = found[question.id]
    if question.is_of_documents:
        once: dict[str, Passage] = {}
        for passage in passages:
            once.setdefault(passage.document_id, passage)
        passages = list(once.values())
    return passages[:DEPTH]


def _run(question: JudgedQuestion, found: Mapping[str, Sequence[Passage]]) -> dict[str, float]:
    names = question.names(get_top_hits(question, found))
    return {name: float(DEPTH - place) for place, name in enumerate(names)}
