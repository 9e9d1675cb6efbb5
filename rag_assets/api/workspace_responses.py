"""What the endpoints of workspaces answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rag_assets.api.responses import InvalidField, Status


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model, by its provider.

    Attributes:
        provider: as in the settings, or as the operator has configured it.
        embedding_model: the model's name at its provider.
        dimensions: length of a vector, where it was set.
    """

    provider: str
    embedding_model: str
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a workspace, as they are in force.

    Attributes:
        enabled: whether it is indexed and answers.
        provider, embedding_model, dimensions, base_url: of its embeddings.
        pending_model: the model that waits until the whole workspace is indexed again.
        vector_backend: what answers vector searches.
        resolved_comment_days: days after which a resolved comment is found no more.
        own: names of those that its application has set; the others are the operator's.
        updated_at, updated_by: of the application's last change.
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
        excluded: documents and records that are kept and left out, as they are: of what is archived
            or off, comments that were resolved long ago, files without content, or whose content
            cannot be a text.
        failed: documents that cannot be indexed; a former version, if there was one, is found.
        oldest_wait_seconds: for how long the first of those in queue_depth has waited; null where
            none does.
        pending_model: the model that waits until the whole workspace is indexed again; told to
            admins.
        vector_backend: what answers vector searches by the settings.
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
    """What a change of a workspace's tree did.

    Attributes:
        scope: the access scope of what hangs on the page now.
        documents: how many have another scope by it, or went with the page.
    """

    scope: str
    documents: int


@dataclass(frozen=True, slots=True)
class TreePage:
    """A page or a database of a workspace, as it stands in its tree.

    Attributes:
        parent: the page above it; null of the root alone.
        inherit, read, archived, ai: as they were put.
        scope: the access scope of what hangs on it.
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
        line: its number in the body, from 1.
        outcome: `done`; `invalid`: nothing was done, and `errors` say why; `unknown-page`: the page
            to change was not put.
        scope: the access scope of what hangs on the page now.
        errors: fields that are not valid.
    """

    line: int
    outcome: Literal["done", "invalid", "unknown-page"]
    scope: str | None = None
    errors: tuple[InvalidField, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeLines:
    """What became of the lines, in their order.

    Attributes:
        documents: that have another access scope by them.
    """

    lines: tuple[TreeLine, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """A page that differs from the manifest.

    Attributes:
        difference: `missing`: it was not put; `stale`: it stands there otherwise; `extra`: the
            manifest does not name it.
    """

    uuid: str
    difference: Literal["missing", "stale", "extra"]


@dataclass(frozen=True, slots=True)
class TreeReconciled:
    """How a tree differs from a manifest.

    Attributes:
        missing, stale, extra: how many of each.
        removed: extra pages that were removed.
        documents: that have another access scope by it, or went with a page.
        pages: the first 10,000 of each, by uuid.
    """

    missing: int
    stale: int
    extra: int
    removed: int
    documents: int
    pages: tuple[TreeDifference, ...]


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Whether principals may read what hangs on a page.

    Attributes:
        readable: whether they may.
        scope: the access scope of what hangs on the page.
        by_page: the page whose readers they are among, or which takes the page out of the
            knowledge; None where no page decides.
        by_principal: the one that was granted it; None where none was.
        reason: why, in words.
    """

    page_uuid: str
    principals: tuple[str, ...]
    readable: bool
    scope: str
    by_page: str | None
    by_principal: str | None
    reason: str
