"""The work on one document that a worker process does: parsing it, or chunking it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.chunking.chunk_set import ChunkSet, chunk_document
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.registry import CHUNKERS
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.workers.process import WorkerProcess, WorkerUnavailable


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """The outcome of a ParseTask.

    Attributes:
        result: the masked text, or the reason of its quarantine.
        seconds: that it took one worker, reading included.
    """

    key: str
    result: ParsedText | RagAssetsError
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ParseTask:
    """One document to parse.

    Attributes:
        key: comes back with the outcome.
        name: its name for people; not used for parsing.
        media_type: the type that its source declares.
        read: gives its bytes. A RagAssetsError that it raises becomes the outcome.
        options: its tenant's options.
    """

    key: str
    name: str
    media_type: str | None
    read: Callable[[], bytes]
    options: ParseOptions = field(default_factory=ParseOptions)

    def execute(self, worker: WorkerProcess) -> ParseOutcome:
        """Read and parse it.

        Raises:
            WorkerUnavailable: the worker did not start.
        """
        started = time.monotonic()
        result: ParsedText | RagAssetsError
        try:
            result = worker.parse(self.read(), self.media_type, self.options)
        except WorkerUnavailable:
            raise
        except RagAssetsError as error:
            result = error
        return ParseOutcome(self.key, result, time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """One parsed text to chunk.

    Attributes:
        parsed: the text.
        parsed_digest: its hash.
        parameters: the chunker and its limits.
    """

    parsed: ParsedText
    parsed_digest: str
    parameters: ChunkParameters

    def execute(self, worker: WorkerProcess) -> ChunkSet:
        """Chunk it; in this process where the worker cannot."""
        chunk_set = None
        if self.parameters.kind is CHUNKERS.get(self.parameters.kind.name):
            chunk_set = worker.chunk(self.parsed, self.parsed_digest, self.parameters)
        return chunk_set or self.chunk()

    def chunk(self) -> ChunkSet:
        """Chunk it in this process."""
        return chunk_document(self.parsed, self.parameters, parsed_digest=self.parsed_digest)
