"""Hash many documents in parallel."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

from rag_assets.common.batches import batched
from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.sources.model import DocumentSource, ListedDocument, ReadsDisk

Digest: TypeAlias = tuple[ListedDocument, str | DocumentRejected]

# A task costs about as much as reading a small file, and one large file is enough for a task.
_BATCH_DOCUMENTS = 16
_BATCH_BYTES = 4 << 20


def hash_documents(
    source: DocumentSource, documents: Iterable[ListedDocument], workers: int = 4
) -> Iterator[Digest]:
    """Read documents in threads, and yield each with its SHA-256 in the given order.

    Only a few batches, and one piece of content per worker, are in memory at a time. Documents are
    taken from the iterable only as they are processed.

    Args:
        source: the source that listed the documents.
        documents: the documents to hash.
        workers: number of reading threads.

    Raises:
        ListingFailed: the disk does not answer.

    Yields:
        The document with its SHA-256 as 64 hexadecimal digits, or with the reason for its
            rejection
        (DocumentVanished: leave it to the next listing).
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    todo = batched(
        documents, _BATCH_DOCUMENTS, weight=lambda document: document.size, most=_BATCH_BYTES
    )
    bounded = source.disk.call if isinstance(source, ReadsDisk) else _call
    pool = ThreadPoolExecutor(workers, thread_name_prefix="hash")
    under_way: deque[Future[list[Digest]]] = deque()
    is_interrupted = False
    try:
        while True:
            while len(under_way) < workers * 2 and (batch := next(todo, None)):
                under_way.append(pool.submit(bounded, partial(_hash_batch, source, batch)))
            if not under_way:
                return
            yield from under_way.popleft().result()
    except GeneratorExit:
        raise
    except BaseException:
        # After a signal, do not wait for a disk that hangs.
        is_interrupted = True
        raise
    finally:
        pool.shutdown(wait=not is_interrupted, cancel_futures=True)


def _call(read: Callable[[], list[Digest]]) -> list[Digest]:
    return read()


def _hash_batch(source: DocumentSource, batch: list[ListedDocument]) -> list[Digest]:
    return [(document, _hash(source, document)) for document in batch]


def _hash(source: DocumentSource, document: ListedDocument) -> str | DocumentRejected:
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
