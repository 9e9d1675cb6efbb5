"""Requests that cannot be answered, or followed, as they are."""

from __future__ import annotations

from rag_assets.common.errors.base import RagAssetsError


class InvalidRequest(RagAssetsError):
    """A parameter of a request is not usable; the message names it and does not quote it."""


class UnknownDocument(RagAssetsError):
    """No document has that id, or the caller may not read it; the error does not reveal which."""


class RoleRefused(RagAssetsError):
    """Callers of this role may not ask this tenant."""


class NoCodeMemory(RagAssetsError):
    """The project has no code memory: its tenants have other profiles."""


class NoWorkspace(RagAssetsError):
    """The tenant is no workspace: its profile is another one."""


class NoVectorBackend(RagAssetsError):
    """The installation cannot answer from this back end."""


class UnknownRun(RagAssetsError):
    """The project has no run of an agent of that name."""


class DeletionsHeld(RagAssetsError):
    """So many records would be removed that a person has to allow it."""


class UploadRefused(RagAssetsError):
    """A file is not accepted as an upload; nothing of it is kept."""


class UploadTooLarge(UploadRefused):
    """The file is larger than its source accepts."""


class UploadsFull(UploadRefused):
    """The source holds as many files, or as many bytes, as it may."""


class UploadUnreadable(UploadRefused):
    """No parser reads what the file is, by its content, or its source does not accept that."""


class VersionChanged(RagAssetsError):
    """What is to be replaced is another version by now."""


class PassagesWithdrawn(RagAssetsError):
    """The caller may no longer read a source of an answer."""


class SearchRejected(RagAssetsError):
    """A search exceeds the index's limit of words and filters."""
