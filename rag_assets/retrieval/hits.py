"""Hits and their scores, made of passages."""

from __future__ import annotations

from datetime import datetime

from rag_assets.ingest.chunking.location import Location, location_fields
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.excerpts import excerpt
from rag_assets.retrieval.model import Hit, Scores
from rag_assets.retrieval.search_progress import RankingKind, SearchProgress
from rag_assets.storage.catalog.index_rows import ReadableVersion


def hit_of(
    number: int,
    passage: Passage,
    cosine: float | None,
    version: ReadableVersion,
    question: str,
) -> Hit:
    """A hit.

    Args:
        number: to cite it by.
        passage: that is shown.
        cosine: of question and passage; None where the question has no vector.
        version: of its document.
        question: what the excerpt is to be about.
    """
    fields = passage.fields
    modified: str | None = fields.get("modified_at")
    return Hit(
        number=number,
        score=None if cosine is None else round(cosine, 6),
        text=fields["text"],
        excerpt=excerpt(fields["text"], question),
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
    )


def hits_of(state: SearchProgress) -> list[Hit]:
    """The hits of a search, best first."""
    versions, question = state.confirmed.versions, state.search.request.query
    return [
        hit_of(
            number,
            passage,
            state.cosines.get(passage.id),
            versions[passage.candidate.document_id],
            question,
        )
        for number, passage in enumerate(state.answered, start=1)
    ]


def scores_of(state: SearchProgress) -> tuple[Scores, ...]:
    """What put each hit in its place."""
    by_vector, by_words = _ranks(state, "vector"), _ranks(state, "words")
    reranked = state.reranking.scores if state.reranking else {}
    return tuple(
        Scores(
            number=hit.number,
            cosine=hit.score,
            fused=round(state.fused.get(passage.id, 0.0), 6),
            by_vector=by_vector.get(passage.id),
            by_words=by_words.get(passage.id),
            rerank=reranked.get(passage.id),
        )
        for hit, passage in zip(state.hits or (), state.answered, strict=False)
    )


def _ranks(state: SearchProgress, kind: RankingKind) -> dict[str, int]:
    """Places in the first ranking of a kind, which is of all that the filters let through."""
    for ranking in state.confirmed.rankings:
        if ranking.kind == kind:
            return {c.id: rank for rank, c in enumerate(ranking.candidates, start=1)}
    return {}
