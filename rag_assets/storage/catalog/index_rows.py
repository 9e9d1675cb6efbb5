"""A version of a document in the index, and the conditions on `document_index` and `documents`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import TenantRef, Texts, among
from rag_assets.storage.catalog.tables import document_index, documents, source_records


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A version of a document that is completely in the index.

    Attributes:
        indexed_key: hash of everything its entries hold; entries of another key are not returned.
        document_key, config_key: the inputs it was made from.
    """

    document_id: str
    indexed_key: str
    document_key: str
    config_key: str
    chunk_count: int
    dropped_count: int = 0
    title: str | None = None


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """What the index should hold of one document.

    Attributes:
        access_scope: of its entries; None while a record that was pushed anew waits for its sync,
            since the catalog may know the new one already.
    """

    document_id: str
    indexed_key: str
    chunk_count: int
    access_scope: str | None


@dataclass(frozen=True, slots=True)
class ReadableVersion:
    """The version of a document that may be shown to whoever asks.

    Attributes:
        indexed_key: of its entries.
        uri: of its document, as the catalog has it.
        access_scope: of its document.
        content_sha256: of the document as it was listed last.
        stale: whether the document changed since, as far as its source was listed.
    """

    indexed_key: str
    uri: str
    access_scope: str
    content_sha256: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document of which a version may be shown to whoever asks.

    Attributes:
        media_type: as the file's name promises it; None where that says nothing.
        access_scope: what its readers need a grant of.
    """

    document_id: str
    uri: str
    title: str | None
    media_type: str | None
    access_scope: str

    @property
    def place(self) -> str:
        """Where it stands in the list, as no other does: records may share a uri."""
        return f"{self.uri} {self.document_id}"


def of_generation(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    document_ids: Sequence[str] | None = None,
) -> ColumnElement[bool]:
    """Rows of one generation of a tenant: those of the named documents, or without names all."""
    held = document_index.c
    rows = and_(held.tenant == tenant_id, held.generation == generation)
    return rows if document_ids is None else and_(rows, among(held.document_id, document_ids))


def same_document() -> ColumnElement[bool]:
    """Joins each row to its document."""
    return and_(
        documents.c.tenant == document_index.c.tenant,
        documents.c.document_id == document_index.c.document_id,
    )


def with_index(generation: int) -> FromClause:
    """Every document, and what the generation holds of it if it does."""
    return documents.outerjoin(
        document_index, and_(same_document(), document_index.c.generation == generation)
    )


def returnable(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    *columns: ColumnElement[Any],
) -> Select[Any]:
    """Columns of each version that may be returned: held, and its document not deleted."""
    return (
        select(*columns)
        .select_from(document_index)
        .join(documents, same_document())
        .where(
            of_generation(tenant_id, generation),
            document_index.c.indexed_key.is_not(None),
            documents.c.status != "DELETED",
        )
    )


def readable_versions(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    document_ids: Texts,
    principals: Texts,
) -> Select[Any]:
    """Rows for `readable_by_document`: what of these documents one of the principals may be shown.

    Deleted documents are left out, and those whose scope nobody of them may read now.
    """
    held = document_index.c
    return returnable(
        tenant_id,
        generation,
        *(held.document_id, held.indexed_key, documents.c.uri, documents.c.access_scope),
        documents.c.content_sha256,
        is_behind_source().label("stale"),
    ).where(among(held.document_id, document_ids), is_readable(documents, principals))


def readable_by_document(rows: Iterable[Row[Any]]) -> dict[str, ReadableVersion]:
    """The version of each document in the rows of `readable_versions`."""
    return {
        row.document_id: ReadableVersion(
            row.indexed_key, row.uri, row.access_scope, row.content_sha256, row.stale
        )
        for row in rows
    }


def settled(
    tenant_id: str, generation: int, document_ids: Sequence[str], column: ColumnElement[Any]
) -> Select[Any]:
    """A column of each named document's version that need not be written again, by its id."""
    return select(document_index.c.document_id, column).where(
        of_generation(tenant_id, generation, document_ids),
        document_index.c.indexed_key.is_not(None),
        document_index.c.document_key.is_not(None),
    )


def is_behind(config_key: str) -> ColumnElement[bool]:
    """What is held, if anything, was made from other inputs than are there now."""
    held = document_index.c
    return or_(
        held.document_key.is_distinct_from(documents.c.document_key),
        held.config_key.is_distinct_from(config_key),
    )


def is_behind_source() -> ColumnElement[bool]:
    """What is held was made from another state of the document than was listed last, or pushed."""
    made_from, listed = (
        func.split_part(table.c.document_key, ".", 1) for table in (document_index, documents)
    )
    return or_(made_from.is_distinct_from(listed), is_pushed_anew())


def is_pushed_anew() -> ColumnElement[bool]:
    """The document is a record of which another revision is there than was listed last."""
    return exists().where(
        source_records.c.tenant == documents.c.tenant,
        source_records.c.document_id == documents.c.document_id,
        source_records.c.revision.is_distinct_from(documents.c.revision),
    )


def is_pending(config_key: str) -> ColumnElement[bool]:
    """The document waits for work: it is behind, or has to be said to be ready, and may be tried.

    One in quarantine, or one whose texts are in a provider's batch, may not until its time.
    """
    defer = and_(
        documents.c.status.in_(("FAILED", "PROCESSING")),
        documents.c.failed_document_key == documents.c.document_key,
        documents.c.failed_config_key.in_((config_key, "*")),
        or_(documents.c.retry_at.is_(None), documents.c.retry_at > func.now()),
    )
    # What was edited and edited back holds the right version, but has to be said to be ready.
    return and_(
        documents.c.status != "DELETED",
        or_(is_behind(config_key), documents.c.status == "PROCESSING"),
        ~func.coalesce(defer, False),
    )


def withheld(ref: TenantRef, document_ids: Sequence[str]) -> Update:
    """Says of documents that no version of them may be returned: their entries must go."""
    nothing = {"indexed_key": None, "document_key": None, "config_key": None}
    return (
        update(document_index)
        .where(
            document_index.c.tenant == ref.id,
            among(document_index.c.document_id, document_ids),
        )
        .values(**nothing, chunk_count=0, dirty=True)
    )


def ready(ref: TenantRef) -> Update:
    """Says of documents that a version of each is in the index; executed with `as_ready` rows."""
    # A document that changed meanwhile keeps waiting; one that was deleted stays deleted.
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            documents.c.document_id == bindparam("version_of"),
            documents.c.document_key == bindparam("version_key"),
            documents.c.status != "DELETED",
        )
        .values(
            status="READY",
            title=bindparam("version_title"),
            error_message=None,
            failed_document_key=None,
            failed_config_key=None,
            attempts=0,
            retry_at=None,
            chunk_count=bindparam("version_chunks"),
            dropped_count=bindparam("version_dropped"),
            updated_at=func.now(),
        )
    )


def as_ready(version: IndexedVersion) -> dict[str, Any]:
    """A version as `ready` takes it."""
    return {
        "version_of": version.document_id,
        "version_key": version.document_key,
        "version_title": version.title,
        "version_chunks": version.chunk_count,
        "version_dropped": version.dropped_count,
    }
