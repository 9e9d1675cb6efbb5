"""Build the answer of a search from its progress."""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER
from rag_assets.models.prices import split_embedder_id
from rag_assets.search.hits import scores_of
from rag_assets.search.model import (
    Debug,
    DegradedReason,
    SearchAnswer,
    SearchStrategy,
    SkippableStep,
    UnmatchedFilter,
)
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.score import has_no_word
from rag_assets.tenants.modes import SearchMode

_SHOWN_PATHS = 50
_WALKED: Mapping[SearchMode, SearchStrategy] = {
    "knn": "walk+knn",
    "text": "walk+text",
    "hybrid": "walk+hybrid",
}


def answer_of(progress: SearchProgress) -> SearchAnswer:
    """Return the answer with its hits, and how they were found."""
    hits, mode = tuple(progress.hits or ()), progress.search.mode
    fault = progress.reranking.fault if progress.reranking else None
    degraded: dict[SkippableStep, DegradedReason] = {"rerank": fault} if fault else {}
    if progress.vectors_away:
        degraded["pgvector"] = "unavailable"
    if progress.reading == "unread" and mode != "knn":
        degraded["vectors"] = "script not read"
    if progress.index_fault is not None:
        degraded["index-incomplete"] = progress.index_fault
    cosines = [progress.cosines[id_] for id_ in progress.confirmed.by_id if id_ in progress.cosines]
    return SearchAnswer(
        hits=hits,
        needs_clarification=not progress.passages,
        omitted=len(progress.answered) - len(hits),
        generation=progress.serving.number,
        embedder=progress.serving.embedder_id,
        mode=mode,
        degraded=tuple(degraded),
        warnings=(*_unread_warnings(progress), *_word_warnings(progress)),
        debug=Debug(
            _strategy(progress),
            progress.timings.milliseconds,
            # Do not count the recalled candidates: their number would disclose passages that the
            # caller may not read.
            len(progress.confirmed.by_id),
            scores_of(progress),
            threshold=progress.search.min_cosine,
            nearest=round(max(cosines), 6) if cosines else None,
            degraded=degraded,
            paths=progress.walked.paths[:_SHOWN_PATHS] if progress.walked else (),
        ),
    )


def _unread_warnings(progress: SearchProgress) -> tuple[UnmatchedFilter, ...]:
    """Return a warning if vectors alone rank and the embedder does not read the question."""
    if progress.reading != "unread" or progress.search.mode != "knn":
        return ()
    provider, model = split_embedder_id(progress.serving.embedder_id)
    problem = (
        f"{provider}/{model} does not read the script of this question, so its vectors hardly"
        f" rank by meaning: search with mode text or hybrid, or use an embedder that reads this"
        f" script, such as {MULTILINGUAL_EMBEDDER}"
    )
    return (UnmatchedFilter("mode", problem),)


def _word_warnings(progress: SearchProgress) -> tuple[UnmatchedFilter, ...]:
    """Return a warning if no hit in source code contains a word of the question."""
    if not progress.hits or not has_no_word(progress):
        return ()
    problem = (
        "no text that you may read has a word of this question: the hits are only the nearest by"
        " meaning"
    )
    return (UnmatchedFilter("query", problem),)


def _strategy(progress: SearchProgress) -> SearchStrategy:
    mode, walked = progress.search.mode, progress.walked
    if walked is None:
        return mode
    return "walk" if walked.alone else _WALKED[mode]
