"""The true paths of documents whose stored names are masked."""

from __future__ import annotations

from threading import Lock

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.ingest.sources.model import DocumentSource, document_id


class ListedPaths:
    """The true paths of a source's documents, by the ids that derive from these paths.

    A path that contains a credential is stored masked, and only the source knows the true path. So
    the source is listed once, when the first of these documents is to be read.

    Args:
        source: the source of the documents.
    """

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self._lock = Lock()
        self._by_id: dict[str, str] | None = None

    def of(self, wanted: str, kept: bytes) -> str:
        """Return the true path of a document.

        Args:
            wanted: the document_id.
            kept: the document's path in the catalog.

        Raises:
            DocumentVanished: the source does not list the document, or cannot be listed.
        """
        path = kept.decode("utf-8", "surrogateescape")
        if document_id(self._source.name, path) == wanted:
            return path
        with self._lock:
            if self._by_id is None:
                self._by_id = self._list_true_paths()
        try:
            return self._by_id[wanted]
        except KeyError:
            raise DocumentVanished("the document was removed after it was listed") from None

    def _list_true_paths(self) -> dict[str, str]:
        try:
            return {document.document_id: document.path for document in self._source.list()}
        except ListingFailed:
            raise DocumentVanished("the source of the document cannot be listed now") from None
