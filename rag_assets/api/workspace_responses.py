"""Responses of the workspace endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rag_assets.api.responses import InvalidField, Status


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model, by its provider.

    Attributes:
        provider: provider from the settings, or from the operator's configuration.
        embedding_model: the model's name at its provider.
        dimensions: length of a vector, if it was set.
    """

    provider: str
    embedding_model: str
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings of a workspace.

    Attributes:
        enabled: whether the workspace is indexed and answers.
        provider, embedding_model, dimensions, base_url: settings of its embeddings.
        pending_model: the model that waits until the whole workspace is indexed again.
        vector_backend: back end that answers vector searches.
        resolved_comment_days: days after which a resolved comment is no longer searchable.
        own: names of the settings that the workspace's application set; the operator set the
            others.
        updated_at, updated_by: time and author of the application's last change.
    """

    enabled: bool
    provider: str
    embedding_model: str
    dimensions: int | None
    base_url: str | None
    pending_model: EmbeddingModel | None
    vector_backend: str
    resolved_comment_days: int
    own: tuple[str, ...] = ()
    updated_at: datetime | None = None
    updated_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStatus(Status):
    """The status of a workspace.

    Attributes:
        excluded: number of documents and records that are stored but left out: of archived pages or
            pages that are off, comments resolved long ago, and files without content or without
            readable text.
        failed: number of documents that cannot be indexed; an earlier version, if any, stays
            searchable.
        oldest_wait_seconds: longest wait of a document in queue_depth; null if the queue is empty.
        pending_model: the model that waits until the whole workspace is indexed again; only admins
            see it.
        vector_backend: back end that answers vector searches, as set in the settings.
        backfilled: whether pgvector has all vectors, and answers; null with elasticsearch.
    """

    excluded: int
    failed: int
    oldest_wait_seconds: float | None
    pending_model: EmbeddingModel | None
    vector_backend: str
    backfilled: bool | None


@dataclass(frozen=True, slots=True)
class TreeChange:
    """The outcome of a change to a workspace's tree.

    Attributes:
        scope: the access scope of the page's records now.
        documents: number of documents that got another scope, or were deleted with the page.
    """

    scope: str
    documents: int


@dataclass(frozen=True, slots=True)
class TreePage:
    """A page or a database in the tree of a workspace.

    Attributes:
        parent: the page above it; null only for the root.
        inherit, read, archived, ai: the values that the application set.
        scope: the access scope of its records.
    """

    uuid: str
    kind: str
    parent: str | None
    inherit: bool
    read: tuple[str, ...]
    archived: bool
    ai: Literal["on", "off"]
    scope: str


@dataclass(frozen=True, slots=True)
class TreePages:
    """A list of pages, by uuid.

    Attributes:
        next: the `after` of the next list; null at the end.
    """

    pages: tuple[TreePage, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class TreeLine:
    """The outcome of one line about a page.

    Attributes:
        line: line number in the body, from 1.
        outcome: `done`; `invalid`: the line was ignored, see `errors`; `unknown-page`: the page to
            change is not in the tree.
        scope: the access scope of the page's records now.
        errors: the invalid fields.
    """

    line: int
    outcome: Literal["done", "invalid", "unknown-page"]
    scope: str | None = None
    errors: tuple[InvalidField, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeLines:
    """The outcomes of the lines, in their order.

    Attributes:
        documents: number of documents that got another access scope.
    """

    lines: tuple[TreeLine, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """A page that differs from the manifest.

    Attributes:
        difference: `missing`: it is not in the tree; `stale`: the tree has other values for it;
            `extra`: the manifest does not name it.
    """

    uuid: str
    difference: Literal["missing", "stale", "extra"]


@dataclass(frozen=True, slots=True)
class TreeReconciled:
    """The differences between a tree and a manifest.

    Attributes:
        missing, stale, extra: number of pages of each kind.
        removed: number of extra pages that were removed.
        documents: number of documents that got another access scope, or were deleted with a page.
        pages: the first 10,000 of each kind, by uuid.
    """

    missing: int
    stale: int
    extra: int
    removed: int
    documents: int
    pages: tuple[TreeDifference, ...]


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Whether principals may read the records of a page.

    Attributes:
        readable: whether they may read them.
        scope: the access scope of the page's records.
        by_page: the page that grants the access, or that excludes the page from searches; None if
            neither exists.
        by_principal: the principal to whom access is granted; None without a grant.
        reason: the reason as a sentence.
    """

    page_uuid: str
    principals: tuple[str, ...]
    readable: bool
    scope: str
    by_page: str | None
    by_principal: str | None
    reason: str
