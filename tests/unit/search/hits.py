"""Hits as input of tests."""

from collections.abc import Sequence

from rag_assets.ingest.chunking.model import BlockPlace
from rag_assets.search.hits import build_hit as made
from rag_assets.search.model import Hit
from rag_assets.search.progress import Passage
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate


def hit_of(
    text: str,
    *,
    number: int = 1,
    score: float = 0.5,
    uri: str = "files/a.md",
    start: int = 100,
    blocks: Sequence[BlockPlace] = (),
) -> Hit:
    """Return a hit with this text and irrelevant other fields."""
    fields = {
        "text": text, "uri": uri, "heading_path": [], "start": start, "end": start + len(text),
        "ordinal": 0, "chunk_id": "team:a.md:0", "source_type": "file",
        "block_id": [block.block_id for block in blocks],
        "block_starts": [block.start for block in blocks],
    }  # fmt: skip
    version = ReadableVersion("key", "files/a.md", "public", None, stale=False)
    passage = Passage(Candidate("id", "document", "key", score, uri, text), (), fields)
    return made(number, passage, score, version, text)
