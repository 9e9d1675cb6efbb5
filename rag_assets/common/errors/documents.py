"""Documents that cannot be processed: each is quarantined and does not stop the others."""

from __future__ import annotations

from rag_assets.common.errors.base import RagAssetsError


class DocumentRejected(RagAssetsError):
    """One document cannot be processed; it is quarantined with this message."""


class DocumentTooLarge(DocumentRejected):
    """The document is larger than the source allows."""


class DocumentVanished(DocumentRejected):
    """The document was removed after it was listed; the next listing notices it."""


class DocumentUnreachable(DocumentRejected):
    """The device or share that holds the document returned an error; it is tried again."""


class DocumentEncrypted(DocumentRejected):
    """The document needs a password that is not configured."""


class DocumentEmpty(DocumentRejected):
    """The document contains no text."""


class DocumentScanned(DocumentRejected):
    """The document's pages are images, and no text is found in them."""


class DocumentUnsupported(DocumentRejected):
    """No parser supports the document's format."""


class ParserUnusable(DocumentRejected):
    """The installation lacks something that the document's parser needs."""


class DocumentTimeout(DocumentRejected):
    """The document exceeded the time limit of one document."""


class DocumentTooCostly(DocumentRejected):
    """The document exceeded the memory limit of one document."""


class BlobMissing(DocumentRejected):
    """An uploaded file is missing from the blob store."""


class BlobAltered(DocumentRejected):
    """The content of an uploaded file in the blob store differs from the upload."""
