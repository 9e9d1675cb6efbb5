"""How far documents are in the chain, read from what its stages have stored.

No stage writes anything for this: the lake has what each of them made.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from rag_assets.ingest.chunking.chunk_set import chunk_set_key
from rag_assets.ingest.parsing.registry import parse_key
from rag_assets.ingest.sources.model import path_of
from rag_assets.storage.catalog.document_rows import Document
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.store import TenantLake
from rag_assets.systems.team_guidelines.projects import OpenProject


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the present content of a document is.

    Attributes:
        parsed: whether its text is stored.
        chunks: its passages; None before it is cut.
        missing: text_sha256 of passages without a vector.
    """

    parsed: bool = False
    chunks: ChunkSetRow | None = None
    missing: frozenset[str] = frozenset()

    @property
    def total(self) -> int | None:
        """The number of its passages; None before it is cut."""
        return None if self.chunks is None else len(self.chunks.chunks)

    @property
    def done(self) -> int:
        """The number of its passages that have a vector."""
        if self.chunks is None:
            return 0
        return sum(chunk.text_sha256 not in self.missing for chunk in self.chunks.chunks)

    @property
    def tokens(self) -> int | None:
        """The tokens of its passages; None before it is cut."""
        return None if self.chunks is None else sum(c.token_count for c in self.chunks.chunks)

    def waiting_tokens(self, counted: Set[str]) -> dict[str, int]:
        """The tokens of its passages without a vector, by text.

        Args:
            counted: texts that are left out.
        """
        chunks = () if self.chunks is None else self.chunks.chunks
        return {
            chunk.text_sha256: chunk.token_count
            for chunk in chunks
            if chunk.text_sha256 in self.missing and chunk.text_sha256 not in counted
        }


NO_PROGRESS = Progress()


def progress_of(
    project: OpenProject, lake: TenantLake, documents: Sequence[Document]
) -> dict[str, Progress]:
    """How far documents are, by id; a few reads for all of them.

    Args:
        project: whose.
        lake: of its tenant.
        documents: as the catalog has them.
    """
    tenant = project.tenant
    options = tenant.parser.options
    keys = {
        document.document_id: parse_key(
            document.content_sha256, document.media_type, options, document.reindex_requests
        )
        for document in documents
        if document.content_sha256 is not None
    }
    heads = lake.parsed_heads(set(keys.values()))
    cut: dict[str, str] = {}
    for document in documents:
        head = heads.get(keys.get(document.document_id, ""))
        if head is not None:
            chosen = tenant.chunk_parameters(
                source=document.source,
                source_type=document.source_type,
                media_type=head.media_type,
                path=path_of(document.uri),
            )
            cut[document.document_id] = chunk_set_key(head.digest, head.media_type, chosen)
    sets = lake.chunk_sets(set(cut.values()))
    texts = {chunk.text_sha256 for row in sets.values() for chunk in row.chunks}
    missing = lake.missing_vectors(project.embedder_id, texts)
    found: dict[str, Progress] = {}
    for document_id, key in cut.items():
        row = sets.get(key)
        lacking = () if row is None else (chunk.text_sha256 for chunk in row.chunks)
        found[document_id] = Progress(True, row, frozenset(missing.intersection(lacking)))
    return found
