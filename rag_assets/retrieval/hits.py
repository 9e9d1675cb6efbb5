"""From candidates to the hits that are shown."""

from __future__ import annotations

from datetime import datetime

from rag_assets.ingest.chunking.location import Location, location_fields
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.excerpts import excerpt
from rag_assets.retrieval.model import Hit
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
