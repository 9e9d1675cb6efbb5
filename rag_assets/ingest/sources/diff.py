"""Compare a listing with the known documents, and hash in parallel those that may have changed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias

from rag_assets.common.batches import batched
from rag_assets.common.errors import DocumentRejected, DocumentVanished
from rag_assets.ingest.sources.model import DiskSource, DocumentSource, ListedDocument, ListingFacts

Digest: TypeAlias = tuple[ListedDocument, str | DocumentRejected]

# A task costs about as much as reading a small file, and one large file is enough for a task.
_BATCH_DOCUMENTS = 16
_BATCH_BYTES = 4 << 20


def hash_documents(
    source: DocumentSource, documents: Iterable[ListedDocument], workers: int = 4
) -> Iterator[Digest]:
    """Read documents in threads, and yield each with its SHA-256, in the given order.

    Only a few batches, and one piece of content per worker, are in memory at a time. Documents are
    taken from the iterable only as they are processed. A rejected document has its error in place
    of a hash (DocumentVanished: leave it to the next listing).

    Raises:
        ListingFailed: the disk does not answer.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    todo = batched(
        documents, _BATCH_DOCUMENTS, weight=lambda document: document.size, max_weight=_BATCH_BYTES
    )
    read = source.disk.call if isinstance(source, DiskSource) else _call_directly
    pool = ThreadPoolExecutor(workers, thread_name_prefix="hash")
    pending: deque[Future[list[Digest]]] = deque()
    is_interrupted = False
    try:
        while True:
            while len(pending) < workers * 2 and (batch := next(todo, None)):
                pending.append(pool.submit(read, partial(_hash_batch, source, batch)))
            if not pending:
                return
            yield from pending.popleft().result()
    except GeneratorExit:
        raise
    except BaseException:
        # After a signal, do not wait for a disk that hangs.
        is_interrupted = True
        raise
    finally:
        pool.shutdown(wait=not is_interrupted, cancel_futures=True)


def _call_directly(read: Callable[[], list[Digest]]) -> list[Digest]:
    return read()


def _hash_batch(source: DocumentSource, batch: list[ListedDocument]) -> list[Digest]:
    return [(document, _hash_document(source, document)) for document in batch]


def _hash_document(source: DocumentSource, document: ListedDocument) -> str | DocumentRejected:
    if document.content_sha256 is not None:
        return document.content_sha256
    digest = hashlib.sha256()
    try:
        for piece in source.stream(document.path, max_bytes=source.max_bytes):
            digest.update(piece)
    except DocumentRejected as rejected:
        # Without its traceback, which would keep the last piece in memory.
        return rejected.with_traceback(None)
    return digest.hexdigest()


ChangeKind: TypeAlias = Literal["added", "changed", "touched", "rejected"]

_SUSPICIOUS_COUNT = 20
_SUSPICIOUS_PERCENT = 30


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """The catalog's row of a document, from its last listing; has no hash if it was rejected."""

    document_id: str
    facts: ListingFacts
    content_sha256: str | None
    listed_at_ns: int
    modified_at: datetime
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The result of hashing a suspect: a document whose content may have changed.

    Attributes:
        kind: "added" (new, or back after a deletion), "changed" (different content), "touched"
            (same content; only its listing facts and time need to be stored) or "rejected".
        modified_at: when the content was written; for touched documents the previous value.
    """

    document: ListedDocument
    kind: ChangeKind
    content_sha256: str | None
    modified_at: datetime
    error: DocumentRejected | None = None


class ListingComparison:
    """A streamed comparison of one listing with the known rows; memory holds only the rows.

    Feed the listing through find_suspects(), the suspects through hash_documents(), and the hashes
    through find_changes(); afterwards call list_removed().

        comparison = ListingComparison(known)
        suspects = comparison.find_suspects(source.list())
        for change in comparison.find_changes(hash_documents(source, suspects)):
            ...
        removed = comparison.list_removed()

    Args:
        known: every row of this source, including deleted rows.
    """

    def __init__(self, known: Iterable[KnownDocument]) -> None:
        self._known = {row.document_id: row for row in known}
        self._unseen = {key for key, row in self._known.items() if not row.deleted}
        self._is_complete = False
        self.unchanged_count = 0

    def find_suspects(self, documents: Iterable[ListedDocument]) -> Iterator[ListedDocument]:
        """Yield the listed documents to hash: all that may have changed."""
        for document in documents:
            self._unseen.discard(document.document_id)
            if self._is_unchanged(document):
                self.unchanged_count += 1
            else:
                yield document
        self._is_complete = True

    def find_changes(self, digests: Iterable[Digest]) -> Iterator[Change]:
        """Yield the change of each suspect, except of suspects that vanished after the listing."""
        for document, outcome in digests:
            if isinstance(outcome, DocumentVanished):
                continue
            if isinstance(outcome, DocumentRejected):
                yield Change(document, "rejected", None, document.modified_at, outcome)
            else:
                yield self._build_change(document, outcome)

    def list_removed(self) -> frozenset[str]:
        """Return the ids of known documents that are not in the whole listing."""
        if not self._is_complete:
            raise RuntimeError("the listing was not read to its end")
        return frozenset(self._unseen)

    def _is_unchanged(self, document: ListedDocument) -> bool:
        row = self._known.get(document.document_id)
        return (
            row is not None
            and not row.deleted
            # Read rejected documents again, since the limit may have been raised.
            and row.content_sha256 is not None
            and document.facts.is_unchanged_since(row.facts, row.listed_at_ns)
        )

    def _build_change(self, document: ListedDocument, content_sha256: str) -> Change:
        row = self._known.get(document.document_id)
        if row is None or row.deleted:
            return Change(document, "added", content_sha256, document.modified_at)
        is_same = row.content_sha256 == content_sha256
        # Content that was written again without a change keeps its time.
        modified_at = (
            row.modified_at
            if is_same and not document.source_metadata.modified_at
            else document.modified_at
        )
        # The text of the record is unchanged, but another part of the record changed.
        is_touched = is_same and document.revision is None
        return Change(document, "touched" if is_touched else "changed", content_sha256, modified_at)


def are_deletions_suspicious(removed: int, known: int) -> bool:
    """Return whether so many of the known documents are removed that a person must approve."""
    return removed > _SUSPICIOUS_COUNT and removed * 100 > known * _SUSPICIOUS_PERCENT
