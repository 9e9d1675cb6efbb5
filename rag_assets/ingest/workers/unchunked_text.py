"""A parsed text to be chunked."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.ingest.chunking.chunk_set import ChunkSet, chunk_document
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.registry import chunker_of_workers
from rag_assets.ingest.parsing.model import ParsedText


@dataclass(frozen=True, slots=True)
class UnchunkedText:
    """A parsed text to be chunked.

    Attributes:
        parsed: the text.
        parsed_digest: hash of the text.
        parameters: the chunker and its limits.
    """

    parsed: ParsedText
    parsed_digest: str
    parameters: ChunkParameters

    @property
    def is_known_to_workers(self) -> bool:
        """Return whether workers can find the chunker by its name."""
        return self.parameters.kind is chunker_of_workers(self.parameters.kind.name)

    @property
    def is_read(self) -> bool:
        """Return whether the chunker runs a parser, which a hostile text may crash."""
        return self.parameters.kind.read is not None

    def chunk(self, *, confined: bool = False) -> ChunkSet:
        """Chunk the text in this process.

        Args:
            confined: whether this process runs with limits of time and memory for the text.
                Without limits, no parser reads the text.
        """
        return chunk_document(
            self.parsed, self.parameters, parsed_digest=self.parsed_digest, confined=confined
        )
