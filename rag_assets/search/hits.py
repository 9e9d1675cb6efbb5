"""Build hits and their scores from passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from rag_assets.ingest.chunking.location import Location, location_fields
from rag_assets.search.blocks import blocks_of, excerpt_of_block, parts_of, url_of
from rag_assets.search.duplicates import Passage
from rag_assets.search.model import Hit, PassageRange, ScoreKind, Scores
from rag_assets.search.search_progress import RankingKind, SearchProgress
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import SYMBOL


def hit_of(
    number: int,
    passage: Passage,
    cosine: float | None,
    version: ReadableVersion,
    question: str,
    *,
    score: float | None = None,
    score_kind: ScoreKind = "cosine",
) -> Hit:
    """Build a hit from a passage.

    Args:
        number: the number by which the hit is cited.
        passage: the passage to show.
        cosine: cosine between question and passage; None if the question was not embedded.
        version: the version of the passage's document.
        question: the question that the excerpt is about.
        score, score_kind: the score that orders hits, and its kind; by default the cosine.
    """
    fields = passage.fields
    near = None if cosine is None else round(cosine, 6)
    modified: str | None = fields.get("modified_at")
    blocks = blocks_of(fields)
    # A block that the search found is more likely to hold the answer than a block that only has the
    # same words.
    about = passage.block_fields or fields
    text, language = about["text"], about.get("language")
    parts = parts_of(text, question, blocks_of(about), offset=about["start"], language=language)
    block_id, shown = excerpt_of_block(text, question, parts, language=language)
    return Hit(
        number=number,
        ordinal=fields["ordinal"],
        score=near if score is None else round(score, 6),
        score_kind=score_kind,
        cosine=near,
        text=fields["text"],
        excerpt=shown,
        uri=fields["uri"],
        title=fields.get("title"),
        heading_path=tuple(fields["heading_path"]),
        media_type=fields.get("media_type"),
        language=fields.get("language"),
        modified_at=None if modified is None else datetime.fromisoformat(modified),
        start=fields["start"],
        end=fields["end"],
        **location_fields(Location.of(fields)),
        document_id=passage.candidate.document_id,
        chunk_id=fields["chunk_id"],
        source_sha256=version.content_sha256,
        stale=version.stale,
        also=passage.also,
        source_type=fields["source_type"],
        symbol=fields.get("metadata", {}).get(SYMBOL),
        source_id=fields.get("source_id"),
        page_uuid=fields.get("page_uuid"),
        block_id=block_id,
        url=url_of(fields["uri"], block_id),
        blocks=blocks,
        context=fields.get("context") or "",
        ranges=tuple(_range(part.fields) for part in passage.parts or (passage,)),
    )


def _range(fields: Mapping[str, Any]) -> PassageRange:
    return PassageRange(
        fields["chunk_id"], fields["ordinal"], fields["start"], fields["end"], fields.get("page")
    )


def hits_of(progress: SearchProgress) -> list[Hit]:
    """Return the hits of a search, best first."""
    versions, question = progress.confirmed.versions, progress.search.request.query
    passages = progress.answered
    kind, scores = order_scores(progress, passages)
    return [
        hit_of(
            number,
            passage,
            _cosine(progress, passage),
            versions[passage.candidate.document_id],
            question,
            score=score,
            score_kind=kind,
        )
        for number, (passage, score) in enumerate(zip(passages, scores, strict=True), start=1)
    ]


def order_scores(
    progress: SearchProgress, passages: Sequence[Passage]
) -> tuple[ScoreKind, list[float]]:
    """Return the kind of the scores that order passages, and the scores, which never increase.

    A score that is higher than that of the previous passage is lowered to it. This happens only if
    a passage of another document was moved ahead of it, or if it follows a preferred path or
    reranked passages.
    """
    cosines = [_cosine(progress, passage) for passage in passages]
    known = [cosine for cosine in cosines if cosine is not None]
    rankings = [one for one in progress.confirmed.rankings if one.weight]
    kinds = {"preferred" if one.preferred else one.kind for one in rankings}
    reranking = progress.reranking
    if reranking is not None and reranking.scores:
        reranked = reranking.blended([*reranking.scores], progress.fused)
        return "reranker", falling_scores([reranked.get(passage.id) for passage in passages])
    if kinds == {"vector"} and len(known) == len(passages) and falling_scores(known) == known:
        return "cosine", known
    if kinds == {"words"}:
        # Unlike fused scores, word scores do not depend on how many candidates were fetched.
        best = max(progress.word_scores.values(), default=0.0) or 1.0
        shares = {id_: score / best for id_, score in progress.word_scores.items()}
        return "words", falling_scores([shares.get(passage.id) for passage in passages])
    return "fused", falling_scores([progress.fused.get(passage.id) for passage in passages])


def falling_scores(scores: Sequence[float | None]) -> list[float]:
    """Return scores that never increase; an unknown score becomes the previous score."""
    least = next((score for score in scores if score is not None), 0.0)
    return list(accumulate((least if s is None else s for s in (least, *scores)), min))[1:]


def scores_of(progress: SearchProgress) -> tuple[Scores, ...]:
    """Return the scores that ranked each hit."""
    by_vector, by_words = _ranks(progress, "vector"), _ranks(progress, "words")
    reranked = progress.reranking.scores if progress.reranking else {}
    return tuple(
        Scores(
            number=hit.number,
            cosine=hit.cosine,
            fused=round(progress.fused.get(passage.id, 0.0), 6),
            by_vector=by_vector.get(passage.id),
            by_words=by_words.get(passage.id),
            rerank=reranked.get(passage.id),
        )
        for hit, passage in zip(progress.hits or (), progress.answered, strict=False)
    )


def _cosine(progress: SearchProgress, passage: Passage) -> float | None:
    """Return the cosine of a passage; for merged passages, the highest."""
    ids = [part.id for part in passage.parts] or [passage.id]
    return max((progress.cosines[id_] for id_ in ids if id_ in progress.cosines), default=None)


def _ranks(progress: SearchProgress, kind: RankingKind) -> dict[str, int]:
    """Return the ranks in the first ranking of a kind, which includes all filtered candidates."""
    for ranking in progress.confirmed.rankings:
        if ranking.kind == kind:
            return {c.id: rank for rank, c in enumerate(ranking.candidates, start=1)}
    return {}
