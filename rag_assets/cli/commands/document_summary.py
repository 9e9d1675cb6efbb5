"""Summary of a tenant's documents for people: by file type, and by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from statistics import median
from typing import TYPE_CHECKING

from rag_assets.common.formatting import counted
from rag_assets.ingest.parsing.media_types import PPTX, XLSX

if TYPE_CHECKING:
    from rag_assets.ingest.parsing.model import ParsedText
    from rag_assets.pipeline.context import TenantContext
    from rag_assets.storage.catalog.builds.generations import Generation
    from rag_assets.storage.catalog.documents.model import Document
    from rag_assets.storage.lake.model import ChunkSetRow

_PARTS = {PPTX: "slide", XLSX: "sheet"}
_BARS = "▁▂▃▄▅▆▇█"
_BUCKETS = 16


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document with the results of the stages; None for a stage without a result.

    Attributes:
        chunker: name of its chunker.
    """

    document: Document
    parsed: ParsedText | None = None
    chunks: ChunkSetRow | None = None
    chunker: str | None = None

    @property
    def suffix(self) -> str:
        """Return the suffix of its file name."""
        return PurePosixPath(self.document.uri).suffix.lower()

    @property
    def name(self) -> str:
        """Return its file name."""
        return PurePosixPath(self.document.uri).name

    @property
    def tokens(self) -> list[int]:
        """Return the number of tokens of each chunk."""
        return [chunk.token_count for chunk in self.chunks.chunks] if self.chunks else []


def document_summaries(ctx: TenantContext) -> list[DocumentSummary]:
    """Read all documents of a small tenant."""
    from rag_assets.pipeline.slices import find_parsed_documents

    documents = ctx.catalog.documents.all(ctx.ref.id)
    keys = {document.document_id: ctx.parse_key(document) for document in documents}
    texts = ctx.lake.parsed(set(keys.values()))
    ready = {item.document.document_id: item for item in find_parsed_documents(ctx, documents)}
    sets = ctx.lake.chunk_sets({item.chunk_set_key for item in ready.values()})

    def held(document: Document) -> DocumentSummary:
        item = ready.get(document.document_id)
        if item is None:
            return DocumentSummary(document)
        return DocumentSummary(
            document,
            texts[keys[document.document_id]].parsed,
            sets.get(item.chunk_set_key),
            ctx.chunk_parameters(document, item.media_type).kind.name,
        )

    return [held(document) for document in documents]


def by_type(held: Iterable[DocumentSummary]) -> list[tuple[str, ...]]:
    """Count documents, sizes, contents and chunks by file type.

    Returns:
        Rows of type, documents, size, contents, chunkers, chunks, and tokens a chunk.
    """
    groups: dict[str, list[DocumentSummary]] = {}
    for item in held:
        groups.setdefault(item.suffix, []).append(item)
    return [_type_row(suffix, group) for suffix, group in sorted(groups.items())]


def _type_row(suffix: str, group: Sequence[DocumentSummary]) -> tuple[str, ...]:
    tokens = sorted(count for item in group for count in item.tokens)
    return (
        suffix,
        str(len(group)),
        _size(sum(item.document.facts.size for item in group)),
        contents([item.parsed for item in group if item.parsed]),
        ", ".join(sorted({item.chunker for item in group if item.chunker})),
        f"{len(tokens):,}",
        f"{tokens[0]} to {tokens[-1]}" if tokens else "",
    )


def contents(parsed: Iterable[ParsedText]) -> str:
    """Describe the numbers of pages, slides, sheets and blocks in parsed texts."""
    counts: Counter[str] = Counter()
    for text in parsed:
        counts[_PARTS.get(text.media_type, "page")] += text.pages or 0
        counts.update(block.kind for block in text.blocks)
    shown = ("page", "slide", "sheet", "row", "heading", "table", "code")
    found = [counted(counts[k], "code block" if k == "code" else k) for k in shown if counts[k]]
    return ", ".join(found) or counted(counts["paragraph"], "paragraph")


def stage_lines(
    held: Sequence[DocumentSummary], serving: Generation | None, alias: str
) -> Mapping[str, list[str]]:
    """Return lines that describe the result of each stage, by name of the stage.

    Args:
        held: all documents of the tenant.
        serving: the serving generation.
        alias: name of the serving index in Elasticsearch.
    """
    return {
        "raw_documents": _describe_documents(held),
        "parsed_text": _describe_parsing(held),
        "chunks": _describe_chunks(held),
        "embeddings": _describe_vectors(held, serving),
        "search_index": _describe_index(held, serving, alias),
    }


def _describe_documents(held: Sequence[DocumentSummary]) -> list[str]:
    kinds = len({item.suffix for item in held})
    size = _size(sum(item.document.facts.size for item in held))
    contents = Counter(item.document.content_sha256 for item in held)
    copies = sum(contents.values()) - len(contents)
    lines = [f"{counted(len(held), 'document')} of {counted(kinds, 'type')}, {size}"]
    if copies:
        lines.append(f"{counted(copies, 'exact copy', 'exact copies')}: parsed and embedded once")
    return lines


def _describe_parsing(held: Sequence[DocumentSummary]) -> list[str]:
    texts = [item.parsed for item in held if item.parsed]
    lines = [f"{counted(len(texts), 'text')}: {contents(texts)}"]
    lines += [
        f"{item.name}: {counted(item.parsed.ocr_pages, 'scanned page')} read by OCR"
        for item in held
        if item.parsed and item.parsed.ocr_pages
    ]
    lines += [
        f"{item.name}: {counted(len(item.parsed.masked), 'credential')} masked:"
        f" {_rules_and_lines(item.parsed)}"
        for item in held
        if item.parsed and item.parsed.masked
    ]
    lines += [f"{i.name}: {note}" for i in held if i.parsed for note in i.parsed.notes]
    failed = [item for item in held if item.document.status == "FAILED"]
    return lines + [f"{item.name} failed: {item.document.error_message}" for item in failed]


def _rules_and_lines(parsed: ParsedText) -> str:
    from rag_assets.pipeline.chunking import lines_by_rule

    return ", ".join(
        f"{rule} (line {', '.join(map(str, lines))})"
        for rule, lines in sorted(lines_by_rule(parsed).items())
    )


def _describe_chunks(held: Sequence[DocumentSummary]) -> list[str]:
    tokens = sorted(count for item in held for count in item.tokens)
    lines = [counted(len(tokens), "chunk")]
    if tokens:
        lines[0] += f" of {tokens[0]} to {tokens[-1]} tokens, {median(tokens):.0f} in the middle"
        lines.append(f"{histogram(tokens)}  by length")
    return lines + [
        f"{item.name}: {counted(len(item.chunks.dropped), 'chunk')} dropped for a credential:"
        f" {', '.join(sorted({rule for row in item.chunks.dropped for rule in row.rules}))}"
        for item in held
        if item.chunks and item.chunks.dropped
    ]


def _describe_vectors(held: Sequence[DocumentSummary], serving: Generation | None) -> list[str]:
    hashes = [c.text_sha256 for item in held if item.chunks for c in item.chunks.chunks]
    if serving is None:
        return ["none yet"]
    shared = len(hashes) - len(set(hashes))
    lines = [f"{counted(len(set(hashes)), 'vector')} of {serving.dimensions} dimensions"]
    if shared:
        lines.append(f"{counted(shared, 'chunk')} share the vector of an equal text")
    return lines


def _describe_index(
    held: Sequence[DocumentSummary], serving: Generation | None, alias: str
) -> list[str]:
    if serving is None:
        return ["none yet"]
    entries = counted(sum(item.document.chunk_count for item in held), "entry", "entries")
    documents = counted(sum(bool(item.document.chunk_count) for item in held), "document")
    return [f"{entries} of {documents}, generation {serving.number}, alias {alias}"]


def histogram(lengths: Sequence[int]) -> str:
    """Draw the distribution of lengths as a row of bars."""
    width = max(lengths) + 1
    buckets = Counter(length * _BUCKETS // width for length in lengths)
    most = max(buckets.values())
    return "".join(_BARS[-(-buckets[at] * (len(_BARS) - 1) // most)] for at in range(_BUCKETS))


def _size(size: int) -> str:
    return f"{size / 1000:,.0f} kB"
