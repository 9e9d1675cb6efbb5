"""Units of work for a worker process: parse a document, or chunk a few texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.workers.process import WorkerProcess, WorkerUnavailable
from rag_assets.ingest.workers.unchunked_text import UnchunkedText


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """The outcome of a ParseTask.

    Attributes:
        result: the masked text, or the error because of which the document is quarantined.
        seconds: time that the task took on its worker, including reading.
    """

    key: str
    result: ParsedText | RagAssetsError
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ParseTask:
    """One document to parse.

    Attributes:
        key: identifies the task in its outcome.
        name: name of the document, as shown to people; not used for parsing.
        media_type: the type that the document's source declares.
        read: returns the document's bytes. If it raises a RagAssetsError, that becomes the
            outcome.
        options: the tenant's options.
    """

    key: str
    name: str
    media_type: str | None
    read: Callable[[], bytes]
    options: ParseOptions = field(default_factory=ParseOptions)

    def execute(self, worker: WorkerProcess) -> ParseOutcome:
        """Read and parse the document.

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
class ChunkOutcome:
    """The outcome of a ChunkTask.

    Attributes:
        made: the chunk sets.
        left: texts to chunk separately, because one of them crashed the worker.
    """

    made: Sequence[ChunkSet]
    left: Sequence[UnchunkedText] = ()


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A few parsed texts to chunk together, since a message costs as much as a small text."""

    texts: Sequence[UnchunkedText]

    def execute(self, worker: WorkerProcess) -> ChunkOutcome:
        """Chunk the texts on the worker or, if the worker fails to, in this process."""
        if all(text.is_known_to_workers for text in self.texts):
            made = worker.chunk(self.texts)
            if made is not None:
                return ChunkOutcome(made)
            if len(self.texts) > 1 and any(text.is_read for text in self.texts):
                return ChunkOutcome((), self.texts)
        return ChunkOutcome([text.chunk() for text in self.texts])
