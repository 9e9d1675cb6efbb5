"""Hits and their scores, made of passages."""

from __future__ import annotations

from datetime import datetime

from rag_assets.ingest.chunking.location import Location, location_fields
from rag_assets.retrieval.blocks import blocks_of, excerpt_of_block, parts_of, url_of
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.model import Hit, Scores
from rag_assets.retrieval.search_progress import RankingKind, SearchProgress
from rag_assets.storage.catalog.index_rows import ReadableVersion
from rag_assets.storage.index.model import SYMBOL


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
        question: that the excerpt is about.
    """
    fields = passage.fields
    modified: str | None = fields.get("modified_at")
    blocks = blocks_of(fields)
    # A block that was found by itself holds the answer more surely than one with equal words.
    about = passage.block_fields or fields
    parts = parts_of(about["text"], question, blocks_of(about), offset=about["start"])
    block_id, shown = excerpt_of_block(about["text"], question, parts)
    return Hit(
        number=number,
        ordinal=fields["ordinal"],
        score=None if cosine is None else round(cosine, 6),
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
    )


def hits_of(progress: SearchProgress) -> list[Hit]:
    """The hits of a search, best first."""
    versions, question = progress.confirmed.versions, progress.search.request.query
    return [
        hit_of(
            number,
            passage,
            progress.cosines.get(passage.id),
            versions[passage.candidate.document_id],
            question,
        )
        for number, passage in enumerate(progress.answered, start=1)
    ]


def scores_of(progress: SearchProgress) -> tuple[Scores, ...]:
    """The scores that ranked each hit."""
    by_vector, by_words = _ranks(progress, "vector"), _ranks(progress, "words")
    reranked = progress.reranking.scores if progress.reranking else {}
    return tuple(
        Scores(
            number=hit.number,
            cosine=hit.score,
            fused=round(progress.fused.get(passage.id, 0.0), 6),
            by_vector=by_vector.get(passage.id),
            by_words=by_words.get(passage.id),
            rerank=reranked.get(passage.id),
        )
        for hit, passage in zip(progress.hits or (), progress.answered, strict=False)
    )


def _ranks(progress: SearchProgress, kind: RankingKind) -> dict[str, int]:
    """Places in the first ranking of a kind, which is of all that the filters let through."""
    for ranking in progress.confirmed.rankings:
        if ranking.kind == kind:
            return {c.id: rank for rank, c in enumerate(ranking.candidates, start=1)}
    return {}
