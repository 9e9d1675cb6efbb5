"""Paths of documents whose names are stored masked."""

from __future__ import annotations

from threading import Lock

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.ingest.sources.model import DocumentSource, document_id


class ListedPaths:
    """True paths of a source's documents by their ids, which derive from these paths.

    A path that holds a credential is stored masked. Only the source has the true one: the source
    is listed, once, when the first such document is to be read.

    Args:
        source: that holds them.
    """

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self._lock = Lock()
        self._by_id: dict[str, str] | None = None

    def of(self, wanted: str, kept: bytes) -> str:
        """The true path of a document.

        Args:
            wanted: its document_id.
            kept: its path as the catalog has it.

        Raises:
            DocumentVanished: its source does not list it, or cannot be listed.
        """
        path = kept.decode("utf-8", "surrogateescape")
        if document_id(self._source.name, path) == wanted:
            return path
        with self._lock:
            if self._by_id is None:
                self._by_id = self._listed()
        try:
            return self._by_id[wanted]
        except KeyError:
            raise DocumentVanished("gone since it was listed") from None

    def _listed(self) -> dict[str, str]:
        try:
            return {document.document_id: document.path for document in self._source.list()}
        except ListingFailed:
            raise DocumentVanished("its source cannot be listed now") from None
