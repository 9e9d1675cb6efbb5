"""Requests that cannot be answered or carried out as they are."""

from __future__ import annotations

from rag_assets.common.errors.base import RagAssetsError


class InvalidRequest(RagAssetsError):
    """A request parameter is not usable; the message names it and does not quote it."""


class UnknownDocument(RagAssetsError):
    """No document has that id, or the caller may not read it; the error does not reveal which."""


class RoleRefused(RagAssetsError):
    """Callers of this role may not ask this tenant."""


class NoVectorBackend(RagAssetsError):
    """The installation cannot answer from this vector back end."""


class UnknownRun(RagAssetsError):
    """No agent run of the project has that name."""


class DeletionsHeld(RagAssetsError):
    """The request would remove so many records that a person must confirm it."""


class UploadRefused(RagAssetsError):
    """A file is not accepted as an upload; none of it is kept."""


class UploadTooLarge(UploadRefused):
    """The file is larger than its source accepts."""


class UploadsFull(UploadRefused):
    """The source has reached its limit of files or bytes."""


class UploadUnreadable(UploadRefused):
    """No parser supports the file's content, or its source does not accept that format."""


class VersionChanged(RagAssetsError):
    """The version to be replaced has changed since it was read."""


class PassagesWithdrawn(RagAssetsError):
    """The caller may no longer read a source of an answer."""


class SearchRejected(RagAssetsError):
    """A search exceeds the index's limit of words and filters."""
