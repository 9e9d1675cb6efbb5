"""How a document's status changes, who may change it, and which documents are pending.

Only the statements of this module and `build_document_upsert`, which writes listings, change a
document's status.

The number of requests to index a document again is part of its key, like its content. A request
made during a run therefore stays pending until a version that was built after it is in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.ingest.sources.model import READ_AGAIN_NS
from rag_assets.ingest.sources.record_bodies import DbRowBody
from rag_assets.ingest.sources.records import EXCLUDED
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    matches_any,
    matches_document,
    notify,
    write_event,
)
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.erasure.retention import build_embedding_columns
from rag_assets.storage.catalog.tables import document_index, documents, syncs, tombstones
from rag_assets.storage.catalog.uploads.rows import is_pushed_again

Status = Literal["PROCESSING", "READY", "FAILED", "DELETED"]

NEVER = datetime(9999, 12, 31, tzinfo=UTC)
"""The retry time of a failure that needs a person: only a sync started by a person retries it."""
_ENVIRONMENTS = "@"
"""Separator between a configuration's key and the environments in which a document failed."""


class Transition(NamedTuple):
    """A change of a document's status.

    Attributes:
        clears_failure: whether the columns of NO_FAILURE are cleared.
    """

    to: Status
    clears_failure: bool


Cause: TypeAlias = Literal[
    "listed", "unreadable", "indexed", "failed", "deferred", "reindexed", "removed"
]
TRANSITIONS: Final[Mapping[Cause, Transition]] = {
    # By a listing, or a scan that masks names: the document is new, changed, or back.
    "listed": Transition("PROCESSING", clears_failure=True),
    # By a listing: its source cannot provide the content.
    "unreadable": Transition("FAILED", clears_failure=False),
    # By a run that wrote its entries to the configured build, or else to the serving build.
    "indexed": Transition("READY", clears_failure=True),
    # By a run: a stage failed for this document.
    "failed": Transition("FAILED", clears_failure=False),
    # By a run: the document waits until a provider's batch ends.
    "deferred": Transition("PROCESSING", clears_failure=False),
    # By a request to index it again, or a scan that found a credential in its text.
    "reindexed": Transition("PROCESSING", clears_failure=True),
    # By a listing that lacks it, a request to delete it, or an erasure.
    "removed": Transition("DELETED", clears_failure=True),
}
"""Every change of a document's status, by its cause.

A listing applies to all documents, and is the only way back for a deleted document. The other
causes apply to documents that are not deleted. A document that changes during a run stays
PROCESSING: causes of runs apply only to the document_key that the run has processed.
"""

NO_FAILURE: Final[Mapping[str, Any]] = {
    "error_message": None,
    "error_kind": None,
    "failed_document_key": None,
    "failed_config_key": None,
    "attempts": 0,
    "retry_at": None,
}
"""The columns of `documents` that describe a failure, as they are without one."""


def change_status(cause: Cause, ref: TenantRef, *conditions: sa.ColumnElement[bool]) -> sa.Update:
    """Return the statement that changes the status of a tenant's documents."""
    change = TRANSITIONS[cause]
    return (
        sa.update(documents)
        .where(documents.c.tenant == ref.id, documents.c.status != "DELETED", *conditions)
        .values(
            status=change.to,
            updated_at=sa.func.now(),
            **(NO_FAILURE if change.clears_failure else {}),
        )
    )


def is_of_generation(
    tenant_id: str | sa.BindParameter[str],
    generation: int | sa.BindParameter[int],
    document_ids: Sequence[str] | None = None,
) -> sa.ColumnElement[bool]:
    """Return the SQL condition for rows of one generation: all, or only of the named documents."""
    indexed = document_index.c
    rows = sa.and_(indexed.tenant == tenant_id, indexed.generation == generation)
    return (
        rows
        if document_ids is None
        else sa.and_(rows, matches_any(indexed.document_id, document_ids))
    )


def select_entry_count(*conditions: sa.ColumnElement[bool]) -> sa.Select[int]:
    """Return the query for the number of entries of versions that meet these conditions."""
    return sa.select(sa.func.coalesce(sa.func.sum(document_index.c.chunk_count), 0)).where(
        *conditions
    )


def is_same_document() -> sa.ColumnElement[bool]:
    """Return the SQL condition that joins a row of `document_index` with its document."""
    return matches_document(documents.c, document_index.c)


def join_versions(generation: int) -> sa.FromClause:
    """Return the join of every document with its row for the generation, if it exists."""
    return documents.outerjoin(
        document_index, sa.and_(is_same_document(), document_index.c.generation == generation)
    )


def is_excluded() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's page excludes it from search.

    An excluded document is not indexed, and is removed from builds. Its texts and vectors stay in
    the lake, so that it can return.
    """
    return documents.c.access_scope == EXCLUDED


def is_excluded_from_builds() -> sa.ColumnElement[bool]:
    """Return the SQL condition that builds must not contain entries of a document."""
    return sa.or_(documents.c.status == "DELETED", is_excluded())


def is_behind(config_key: str | sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's indexed version is missing or outdated."""
    indexed = document_index.c
    return sa.or_(
        indexed.document_key.is_distinct_from(documents.c.document_key),
        indexed.config_key.is_distinct_from(config_key),
    )


def is_behind_source() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document changed after its indexed version was built."""
    indexed, listed = (
        sa.func.split_part(table.c.document_key, ".", 1) for table in (document_index, documents)
    )
    return sa.or_(indexed.is_distinct_from(listed), is_pushed_again())


def is_pending(
    config_key: str | sa.ColumnElement[str], *, for_superseded_build: bool = False
) -> sa.ColumnElement[bool]:
    """Return the SQL condition that the document can be processed now.

    It is behind or not yet marked ready. A quarantined or deferred document counts only after its
    retry time.

    Args:
        for_superseded_build: whether the build serves searches, but the configuration asks for
            another build. The status describes that other build, and is therefore ignored.
    """
    if for_superseded_build:
        return _is_pending_in_superseded_build(config_key)
    waits = sa.and_(
        documents.c.status.in_(("FAILED", "PROCESSING")),
        documents.c.failed_document_key == documents.c.document_key,
        _failed_config_key(documents.c).in_((config_key, "*")),
        sa.or_(documents.c.retry_at.is_(None), documents.c.retry_at > sa.func.now()),
    )
    # A change that was reverted leaves the right version in the index and the status PROCESSING.
    return sa.and_(
        documents.c.status != "DELETED",
        ~is_excluded(),
        sa.or_(is_behind(config_key), documents.c.status == "PROCESSING"),
        ~sa.func.coalesce(waits, False),
    )


def _is_pending_in_superseded_build(
    config_key: str | sa.ColumnElement[str],
) -> sa.ColumnElement[bool]:
    indexed, listed = document_index.c, documents.c
    waits = sa.and_(
        indexed.failed_document_key == listed.document_key,
        _failed_config_key(indexed) == config_key,
        sa.or_(indexed.retry_at.is_(None), indexed.retry_at > sa.func.now()),
    )
    unreadable = sa.and_(
        listed.failed_document_key == listed.document_key, listed.failed_config_key == "*"
    )
    return sa.and_(
        listed.status != "DELETED",
        ~is_excluded(),
        is_behind(config_key),
        ~sa.func.coalesce(waits, False),
        ~sa.func.coalesce(unreadable, False),
    )


def build_failed_key(
    table: sa.FromClause, config_key: str, environment: sa.ColumnElement[str], document_key: Any
) -> sa.ColumnElement[str]:
    """Return the SQL value of `failed_config_key` to store for a failure.

    It is `config_key`, or for a failure caused by a setting, `config_key` followed by every
    environment in which the document failed so far. Each environment is tried once.
    """
    former = table.c.failed_config_key
    is_again = sa.and_(
        table.c.failed_document_key == document_key,
        former.startswith(config_key + _ENVIRONMENTS, autoescape=True),
    )
    return sa.case(
        (environment == "", config_key),
        (sa.and_(is_again, sa.func.strpos(former, environment) > 0), former),
        (is_again, former + "," + environment),
        else_=sa.literal(config_key + _ENVIRONMENTS) + environment,
    )


def build_first_failed_key(config_key: str, environment: str) -> str:
    """Return the `failed_config_key` of a document that failed once; later failures extend it."""
    return f"{config_key}{_ENVIRONMENTS}{environment}" if environment else config_key


def select_environment(failed: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Return the SQL expression of the environment in a failed key; empty if it has none."""
    return sa.func.split_part(failed, _ENVIRONMENTS, 2)


def fails_in_other_environment(table: sa.FromClause, environment: str) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a setting made a document fail in other environments only."""
    failed = table.c.failed_config_key
    return sa.and_(
        failed.contains(_ENVIRONMENTS),
        ~failed.contains(environment, autoescape=True),
        sa.or_(table.c.retry_at.is_(None), table.c.retry_at > sa.func.now()),
    )


def _failed_config_key(columns: Any) -> sa.ColumnElement[str]:
    """Return the SQL expression of the configuration's key in a `failed_config_key`."""
    return sa.func.split_part(columns.failed_config_key, _ENVIRONMENTS, 1)


def build_withholding_update(ref: TenantRef, document_ids: Sequence[str]) -> sa.Update:
    """Return the statement that withholds all versions of documents from searches."""
    keys = (
        *("indexed_key", "document_key", "config_key"),
        *("content_sha256", "parse_key", "chunk_set_key"),
    )
    return (
        sa.update(document_index)
        .where(is_of_documents(document_index.c, ref.id, document_ids))
        .values(**dict.fromkeys(keys), chunk_count=0, dirty=True)
    )


def build_ready_update(
    ref: TenantRef, clock_skew: timedelta, *, for_superseded_build: bool = False
) -> sa.Update:
    """Return the statement that marks documents READY; execute it with `build_ready_parameters`.

    Args:
        for_superseded_build: whether the configuration asks for another build. Documents that
            wait in the configuration's build then keep waiting.
    """
    waits = documents.c.failed_document_key.is_not_distinct_from(documents.c.document_key)
    return change_status(
        "indexed",
        ref,
        documents.c.document_id == sa.bindparam("version_of"),
        documents.c.document_key == sa.bindparam("version_key"),
        *((~waits,) if for_superseded_build else ()),
    ).values(
        title=sa.bindparam("version_title"),
        chunk_count=sa.bindparam("version_chunks"),
        dropped_count=sa.bindparam("version_dropped"),
        **build_embedding_columns(sa.literal(clock_skew, sa.Interval)),
    )


def build_put_off_update(
    cause: Literal["failed", "deferred"], ref: TenantRef, config_key: str
) -> sa.Update:
    """Return the statement that makes a document wait; execute it with a row for each document."""
    key = documents.c.document_key
    environment = sa.bindparam("environment", type_=sa.Text)
    statement = change_status(
        cause,
        ref,
        documents.c.document_id == sa.bindparam("waiting"),
        key == sa.bindparam("waiting_key"),
    ).values(
        error_message=sa.bindparam("message"),
        error_kind=sa.bindparam("kind"),
        failed_document_key=key,
        failed_config_key=build_failed_key(documents, config_key, environment, key),
        retry_at=sa.bindparam("again"),
    )
    return statement.values(attempts=documents.c.attempts + 1) if cause == "failed" else statement


def build_reindex_update(
    ref: TenantRef, lane: int, *conditions: sa.ColumnElement[bool]
) -> sa.Update:
    """Return the statement that counts a reindex request, which changes documents' keys."""
    number = documents.c.edition + 1
    return change_status("reindexed", ref, *conditions).values(
        edition=number, document_key=build_numbered_key(documents.c.document_key, number), lane=lane
    )


def build_deletion_update(ref: TenantRef, document_ids: Sequence[str]) -> sa.Update:
    """Return the statement that marks documents deleted and clears titles, tags and metadata.

    Their URIs stay, so that a deleted document can still be looked up. Held documents are not
    cleared.
    """
    nothing = {
        "title": sa.null(),
        "said_title": sa.null(),
        "tags": sa.literal([], sa.ARRAY(sa.Text)),
    }
    nothing |= {"source_id": sa.null(), "page_uuid": sa.null()}
    nothing |= {"metadata": sa.literal({}, JSONB), "path": sa.literal(b"", sa.LargeBinary)}
    cleared = {
        name: sa.case((is_held(), documents.c[name]), else_=value)
        for name, value in nothing.items()
    }
    of_documents = matches_any(documents.c.document_id, document_ids)
    statement = change_status("removed", ref, of_documents)
    return statement.values(**cleared, changed_at=sa.func.now())


def build_numbered_key(
    document_key: sa.ColumnElement[str], requests: sa.ColumnElement[int]
) -> sa.ColumnElement[str]:
    """Return the SQL expression of a document_key extended by its number of reindex requests."""
    plain = sa.func.split_part(document_key, ".", 1)
    return sa.case(
        (requests > 0, plain.concat(".").concat(sa.cast(requests, sa.Text))), else_=plain
    )


class ReindexRequestTable(CatalogQueries):
    """Requests reindexing by incrementing the column `edition` of documents."""

    def request_tenant(self, ref: TenantRef, by: str) -> int:
        """Request that all documents of a tenant are indexed again; return their number."""
        return self._request(ref, {"scope": "tenant", "by": by})

    def request_source(self, ref: TenantRef, source: str, by: str) -> int:
        """Request that all documents of one source are indexed again; return their number."""
        scope = {"scope": "source", "id": source, "by": by}
        return self._request(ref, scope, documents.c.source == source)

    def request_document(self, ref: TenantRef, document_id: str, by: str) -> int:
        """Request that one document is indexed again; return 0 if it is unknown or deleted."""
        scope = {"scope": "document", "id": document_id, "by": by}
        return self._request(ref, scope, documents.c.document_id == document_id)

    def request_page(
        self, ref: TenantRef, uuid: str, kind: Literal["page", "database"], by: str
    ) -> int:
        """Request that a page with its attached documents, or a database's rows, are indexed again.

        Returns:
            the number of documents.
        """
        scope = {"scope": kind, "id": uuid, "by": by}
        is_row = documents.c.source_type == DbRowBody.TYPE
        of_kind = is_row if kind == "database" else ~is_row
        return self._request(ref, scope, documents.c.page_uuid == uuid, of_kind)

    def readmit(self, ref: TenantRef, document_ids: Collection[str] | None = None) -> int:
        """Let the next listing add invalidated documents again; return their number.

        Documents that were deleted, purged or past their retention stay excluded.
        """
        wanted = [tombstones.c.tenant == ref.id, tombstones.c.invalidated]
        if document_ids is not None:
            wanted.append(matches_any(tombstones.c.document_id, document_ids))
        with self._database.begin_exclusive(ref) as connection:
            readmitted = connection.execute(sa.delete(tombstones).where(*wanted)).rowcount
            if readmitted:
                # Otherwise the next sync would treat an unchanged source as listed.
                of_tenant = syncs.c.tenant == ref.id
                connection.execute(sa.update(syncs).where(of_tenant).values(listing_digest=None))
                notify(connection, ref.id)
        return readmitted

    def _request(
        self, ref: TenantRef, scope: Mapping[str, Any], *conditions: sa.ColumnElement[bool]
    ) -> int:
        # The transaction is exclusive, because a sync that updates the same rows in another order
        # could deadlock.
        with self._database.begin_exclusive(ref) as connection:
            return request_reindex(connection, ref, scope, *conditions)


def request_reindex(
    connection: sa.Connection,
    ref: TenantRef,
    scope: Mapping[str, Any],
    *conditions: sa.ColumnElement[bool],
) -> int:
    """Request that documents of a tenant are indexed again; return their number.

    Args:
        connection: a connection in a transaction that excludes others of the tenant.
    """
    lane = 0 if scope["scope"] == "document" else 1
    statement = build_reindex_update(ref, lane, *conditions).values(listed_at_ns=READ_AGAIN_NS)
    count = connection.execute(statement).rowcount
    if count or not conditions:
        write_event(connection, ref.id, "reindex_requested", {**scope, "documents": count})
    if count:
        notify(connection, ref.id)
    return count
