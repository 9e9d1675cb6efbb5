from datetime import UTC, datetime

from rag_assets.cli.demo import (
    DocumentSummary,
    count_by_type,
    describe_contents,
    describe_stages,
    draw_histogram,
)
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.media_types import MARKDOWN, PDF, PLAIN, PPTX
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.lake.model import ChunkSetRow, DroppedRow

NOW = datetime(2026, 10, 6, tzinfo=UTC)
SERVING = Generation(
    number=3, key="k", index_name="i", index_identity="u", embedder_id="e", embedder={},
    dimensions=384, state="SERVING", created_at=NOW, retired_at=None,
)  # fmt: skip


def document(name: str, content: str = "", error: str | None = None, chunks: int = 0) -> Document:
    return Document(
        document_id=name, source="files", source_type="files", path=name.encode(),
        uri=f"files/{name}", title=None, media_type=None, access_scope="public",
        facts=ListingFacts(2_000, 0, 0, 0), listed_at_ns=0, tags=(), metadata={},
        content_sha256=content or name, modified_at=NOW, document_key=name, error_message=error,
        status="FAILED" if error else "READY", attempts=0, retry_at=None, chunk_count=chunks,
        dropped_count=0, changed_at=NOW, updated_at=NOW,
    )  # fmt: skip


def chunk_set(*tokens: int, dropped: int = 0) -> ChunkSetRow:
    chunks = tuple(Chunk(i, "", 0, 0, 0, (), count, f"text {i}") for i, count in enumerate(tokens))
    rows = tuple(DroppedRow(i, 0, 1, ("described-sk",)) for i in range(dropped))
    return ChunkSetRow("k", "d", chunks, rows)


def text(media_type: str, *kinds: str, pages: int | None = None, **facts: object) -> ParsedText:
    blocks = tuple(Block(kind, 0, 0) for kind in kinds)  # type: ignore[arg-type]
    return ParsedText("", blocks, pages=pages, media_type=media_type, **facts)  # type: ignore[arg-type]


GLOSSARY = text(MARKDOWN, "heading", "paragraph")
COPIES = [document(name, content="same", chunks=2) for name in ("a.md", "b.md")]
HELD = [
    *(DocumentSummary(copy, GLOSSARY, chunk_set(20, 40), "heading") for copy in COPIES),
    DocumentSummary(
        document("c.PDF", chunks=1),
        text(PDF, "table", pages=2, ocr_pages=1, masked=(MaskedSpan(0, 1, "rule"),)),
        chunk_set(256, dropped=1),
        "recursive",
    ),
    DocumentSummary(document("d.pdf", error="it needs a password")),
]


def test_documents_are_counted_by_type() -> None:
    assert count_by_type(HELD) == [
        (".md", "2", "4 kB", "2 headings", "heading", "4", "20 to 40"),
        (".pdf", "2", "4 kB", "2 pages, 1 table", "recursive", "1", "256 to 256"),
    ]


def test_each_stage_is_described() -> None:
    assert describe_stages(HELD, SERVING, "rag-tenant-x") == {
        "raw_documents": ["4 documents of 2 types, 8 kB", "1 exact copy: parsed and embedded once"],
        "parsed_text": [
            "3 texts: 2 pages, 2 headings, 1 table",
            "c.PDF: 1 scanned page read by OCR",
            "c.PDF: 1 credential masked: rule (line 1)",
            "d.pdf failed: it needs a password",
        ],
        "chunks": [
            "5 chunks of 20 to 256 tokens, median 40",
            f"{draw_histogram([20, 40, 20, 40, 256])}  by length",
            "c.PDF: 1 chunk dropped for a credential: described-sk",
        ],
        "embeddings": ["2 vectors of 384 dimensions", "3 chunks share the vector of an equal text"],
        "search_index": ["5 entries of 3 documents, generation 3, alias rag-tenant-x"],
    }


def test_a_tenant_without_documents() -> None:
    lines = describe_stages([], None, "rag-tenant-x")
    assert lines["chunks"] == ["0 chunks"]
    assert lines["search_index"] == ["none yet"]
    assert count_by_type([]) == []


def test_contents_are_counted_in_the_units_of_their_format() -> None:
    assert describe_contents([text(PPTX, pages=7)]) == "7 slides"
    assert describe_contents([text(PLAIN, "paragraph", "paragraph")]) == "2 paragraphs"


def test_a_histogram_shows_even_a_single_chunk() -> None:
    bars = draw_histogram([*([10] * 100), 200])
    assert len(bars) == 16
    assert bars[0] == "█"
    assert bars[-1] == "▂"
    assert set(bars[1:-1]) == {"▁"}
