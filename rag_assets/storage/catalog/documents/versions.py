"""The version of each document in each generation.

A row is inserted before the first entry of a document is written, and deleted only after the
deletion of its entries was confirmed. The table therefore covers everything that may be in the
index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_texts_parameter,
    is_of_documents,
    matches_any,
)
from rag_assets.storage.catalog.documents.model import Failure, list_processing_order, urgency
from rag_assets.storage.catalog.documents.readable import select_returnable
from rag_assets.storage.catalog.documents.status import (
    build_failed_key,
    build_first_failed_key,
    build_ready_update,
    build_withholding_update,
    is_behind,
    is_excluded,
    is_excluded_from_builds,
    is_of_generation,
    is_pending,
    is_same_document,
    join_versions,
    select_entry_count,
    select_environment,
)
from rag_assets.storage.catalog.journal.security_changes import raise_mark
from rag_assets.storage.catalog.records.pages import has_moved_page
from rag_assets.storage.catalog.tables import document_index, documents, generations
from rag_assets.storage.catalog.uploads.rows import is_pushed_again

_RECENT_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A version of a document that is completely in the index.

    Attributes:
        indexed_key: hash of everything in its entries; searches ignore entries with another key.
        document_key, config_key: keys of the inputs from which it was built.
        parse_key, chunk_set_key: keys of its text and its chunks in the lake.
        token_count: the number of tokens in its chunks; None keeps the recorded number.
    """

    document_id: str
    indexed_key: str
    document_key: str
    config_key: str
    parse_key: str
    chunk_set_key: str
    chunk_count: int
    dropped_count: int = 0
    title: str | None = None
    token_count: int | None = None
    content_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """The version of a document that the index should hold.

    Attributes:
        access_scope: the access scope of its entries. None while a sync is pending because the
            record was pushed again or its page was moved: the catalog may already have the new
            scope.
    """

    document_id: str
    indexed_key: str
    chunk_count: int
    access_scope: str | None


@dataclass(frozen=True, slots=True)
class ExpectedEntries:
    """The number of entries that a build should have, in total and for the last indexed versions.

    The last versions distinguish a complete index from one that was rolled back, because both may
    have the same number of entries.
    """

    entries: int = 0
    recent_keys: tuple[str, ...] = ()
    recent: int = 0
    is_settled: bool = True

    @classmethod
    def from_row(cls, row: sa.Row[Any]) -> ExpectedEntries:
        """Return the expected entries in a row of `select_expected_entries`."""
        return cls(row.entries, tuple(row.recent_keys or ()), row.recent, row.is_settled)


def select_expected_entries() -> sa.Select[Any]:
    """Return the query for `ExpectedEntries.from_row`, with one row for each build of a tenant.

    Its parameter "tenants" names the tenants.
    """
    indexed, build = document_index.c, generations.c
    of_build = sa.and_(indexed.tenant == build.tenant, indexed.generation == build.generation)
    totals = (
        sa.select(
            sa.func.coalesce(sa.func.sum(indexed.chunk_count), 0).label("entries"),
            sa.func.coalesce(
                sa.func.bool_and(~sa.or_(indexed.dirty, is_excluded_from_builds())), True
            ).label("is_settled"),
        )
        .join(documents, is_same_document())
        .where(of_build)
        .lateral("totals")
    )
    last = (
        sa.select(indexed.indexed_key, indexed.chunk_count)
        .where(of_build, indexed.indexed_key.is_not(None))
        .order_by(indexed.indexed_at.desc(), indexed.document_id)
        .limit(_RECENT_VERSIONS)
        .correlate(generations)
        .subquery()
    )
    recent = sa.select(
        sa.func.array_agg(last.c.indexed_key).label("recent_keys"),
        sa.func.coalesce(sa.func.sum(last.c.chunk_count), 0).label("recent"),
    ).lateral("recent")
    return (
        sa.select(build.tenant, build.generation, *totals.c, *recent.c)
        .select_from(generations)
        .join(totals, sa.true())
        .join(recent, sa.true())
        .where(
            matches_any(build.tenant, build_texts_parameter("tenants")), build.state != "REMOVING"
        )
    )


def select_valid_versions(
    tenant_id: str, generation: int, document_ids: Sequence[str], column: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Return the query for one column of each document's valid version, with the document id.

    A version is valid if it is complete and was not invalidated afterwards.
    """
    return sa.select(document_index.c.document_id, column).where(
        is_of_generation(tenant_id, generation, document_ids),
        document_index.c.indexed_key.is_not(None),
        document_index.c.document_key.is_not(None),
    )


def build_ready_parameters(version: IndexedVersion) -> dict[str, Any]:
    """Return the parameters of `build_ready_update` for a version."""
    return {
        "version_of": version.document_id,
        "version_key": version.document_key,
        "version_title": version.title,
        "version_chunks": version.chunk_count,
        "version_dropped": version.dropped_count,
    }


_BATCH_DOCUMENTS = 2_000
_KEY = ("tenant", "generation", "document_id")
_VERSION = tuple(field.name for field in fields(IndexedVersion) if field.name in document_index.c)
_WAITING = ("failed_document_key", "failed_config_key", "error_message", "retry_at")

_URGENT_DIVISOR = 4
"""If urgent documents are pending and not all documents fit, a slice's limit is divided by this
number."""


RowRecorder: TypeAlias = Callable[[sa.Connection, TenantRef, Collection[str]], None]
"""Writes rows about the texts of versions in an open transaction; the texts are given by
chunk_set_key."""


class IndexTable(CatalogQueries):
    """Records which version of each document is in each build, and finds pending documents."""

    def refresh_statistics(self, tables: Iterable[sa.Table] = ()) -> None:
        """Run ANALYZE on documents, their versions, and further tables; see Database."""
        self._database.refresh_statistics(documents, document_index, *tables)

    def pending(
        self,
        tenant_id: str,
        generation: int,
        config_key: str,
        *,
        for_superseded_build: bool = False,
        documents_limit: int | None = None,
        bytes_limit: int | None = None,
        answers: bool = True,
    ) -> list[str]:
        """Return documents whose indexed version is missing or outdated, the most urgent first.

        If any document is pending, at least one is returned, even if it exceeds the bytes_limit. If
        more documents are pending than fit, and some are urgent, few other documents are returned,
        because people wait for the urgent ones.

        Args:
            for_superseded_build: whether the configuration asks for another build.
            answers: whether the build serves searches. In other builds nobody waits for an edit,
                and a document that is edited all the time comes last.
        """
        order = (
            list_processing_order() if answers else (documents.c.lane, *list_processing_order()[1:])
        )
        bytes_before = sa.func.sum(documents.c.size).over(order_by=order, rows=(None, -1))
        work = (
            sa.select(
                documents.c.document_id,
                urgency(),
                sa.func.coalesce(bytes_before, 0).label("bytes_before"),
            )
            .select_from(join_versions(generation))
            .where(
                documents.c.tenant == tenant_id,
                is_pending(config_key, for_superseded_build=for_superseded_build),
            )
            .order_by(*order)
            .limit(None if documents_limit is None else documents_limit + 1)
            .subquery()
        )
        query = sa.select(work.c.document_id, work.c.urgency)
        if bytes_limit is not None:
            query = query.where(work.c.bytes_before < bytes_limit)
        rows = self._database.fetch_rows(query)
        document_ids = [row.document_id for row in rows]
        if documents_limit is None or len(document_ids) <= documents_limit:
            return document_ids
        urgent = sum(row.urgency == 0 for row in rows)
        limit = max(urgent, documents_limit // _URGENT_DIVISOR) if urgent else documents_limit
        return document_ids[: min(limit, documents_limit)]

    def count_pending(
        self,
        tenant_id: str,
        generation: int,
        config_key: str,
        *,
        for_superseded_build: bool = False,
    ) -> int:
        """Return the number of documents that can be processed now; see pending()."""
        due = is_pending(config_key, for_superseded_build=for_superseded_build)
        return self._count(tenant_id, generation, due)

    def count_unfinished(self, tenant_id: str, generation: int, config_key: str) -> int:
        """Return the number of documents that can be processed now or at a later retry time."""
        row = documents.c
        waits = sa.and_(
            row.status.in_(("FAILED", "PROCESSING")),
            row.retry_at.is_not(None),
            is_behind(config_key),
            ~is_excluded(),
        )
        return self._count(tenant_id, generation, sa.or_(is_pending(config_key), waits))

    def _count(self, tenant_id: str, generation: int, condition: sa.ColumnElement[bool]) -> int:
        query = sa.select(sa.func.count()).select_from(join_versions(generation))
        return (
            self._database.fetch_value(query.where(documents.c.tenant == tenant_id, condition)) or 0
        )

    def entry_count(self, tenant_id: str, generation: int) -> int:
        """Return the number of entries that a generation should have."""
        query = select_entry_count(
            is_of_generation(tenant_id, generation), documents.c.status != "DELETED"
        )
        return self._database.fetch_value(query.join(documents, is_same_document())) or 0

    def expected_entries(self, tenant_ids: Sequence[str]) -> dict[tuple[str, int], ExpectedEntries]:
        """Return how many entries builds of these tenants should have, by tenant and generation."""
        rows = self._database.fetch_rows(select_expected_entries(), {"tenants": list(tenant_ids)})
        return {(row.tenant, row.generation): ExpectedEntries.from_row(row) for row in rows}

    def count_entries_in_builds(self, tenant_id: str, document_ids: Sequence[str]) -> int:
        """Return the number of entries of these documents that all generations should have."""
        query = select_entry_count(is_of_documents(document_index.c, tenant_id, document_ids))
        return self._database.fetch_value(query) or 0

    def removals(self, tenant_id: str) -> dict[int, list[str]]:
        """Return deleted and excluded documents that builds may still contain, by build number."""
        query = (
            sa.select(document_index.c.generation, document_index.c.document_id)
            .join(documents, is_same_document())
            .where(documents.c.tenant == tenant_id, is_excluded_from_builds())
            .order_by(document_index.c.generation)
        )
        by_generation: dict[int, list[str]] = {}
        for row in self._database.fetch_rows(query):
            by_generation.setdefault(row.generation, []).append(row.document_id)
        return by_generation

    def find_up_to_date(
        self, tenant_id: str, generation: int, document_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return, by document id, the indexed_key of versions whose entries need no rewrite."""
        query = select_valid_versions(
            tenant_id, generation, document_ids, document_index.c.indexed_key
        )
        return dict(self._database.fetch_rows(query))

    def mark_writing(
        self, ref: TenantRef, generation: int, document_ids: Sequence[str]
    ) -> set[str]:
        """Record that entries of documents will be written.

        Returns:
            the documents that may have entries already.
        """
        table = document_index
        before = sa.select(table.c.document_id).where(
            is_of_generation(ref.id, generation, document_ids)
        )
        rows = [
            {"tenant": ref.id, "generation": generation, "document_id": document_id}
            for document_id in document_ids
        ]
        statement = upsert(table).on_conflict_do_update(index_elements=_KEY, set_={"dirty": True})
        with self._database.begin_tenant(ref) as connection:
            present = set(connection.scalars(before))
            if rows:
                connection.execute(statement, rows)
        return present

    def commit(
        self,
        ref: TenantRef,
        generation: int,
        versions: Sequence[IndexedVersion],
        *,
        clock_skew: timedelta = timedelta(),
        for_superseded_build: bool = False,
        recorders: Sequence[RowRecorder] = (),
    ) -> None:
        """Make searches return these versions, in one transaction.

        Documents that were deleted or excluded in the meantime are left out.

        Args:
            clock_skew: how far the clock by which ages are computed is ahead of Postgres's clock.
        """
        if not versions:
            return
        deleted = sa.select(documents.c.document_id).where(
            is_of_documents(documents.c, ref.id, [version.document_id for version in versions]),
            is_excluded_from_builds(),
        )
        new = upsert(document_index)
        tokens = sa.func.coalesce(new.excluded.token_count, document_index.c.token_count)
        statement = new.on_conflict_do_update(
            index_elements=_KEY,
            set_={
                **{name: new.excluded[name] for name in (*_VERSION, "indexed_at", *_WAITING)},
                "token_count": tokens,
            },
        )
        with self._database.begin_tenant(ref) as connection:
            committed_at = raise_mark(connection, ref)
            left_ids = set(connection.scalars(deleted))
            versions = [version for version in versions if version.document_id not in left_ids]
            if not versions:
                return
            connection.execute(
                statement,
                [
                    {
                        "tenant": ref.id,
                        "generation": generation,
                        **{name: getattr(version, name) for name in _VERSION},
                        "indexed_at": committed_at,
                        "dirty": False,
                        **dict.fromkeys(_WAITING),
                    }
                    for version in versions
                ],
            )
            texts = {version.chunk_set_key for version in versions}
            for record in recorders:
                record(connection, ref, texts)
            connection.execute(
                build_ready_update(ref, clock_skew, for_superseded_build=for_superseded_build),
                [build_ready_parameters(version) for version in versions],
            )

    def mark_clean(self, ref: TenantRef, generation: int, document_ids: Sequence[str]) -> None:
        """Record that these documents have only entries of their indexed version."""
        are_versions = is_of_generation(ref.id, generation, document_ids)
        self._database.update(ref, document_index, are_versions, dirty=False)

    def find_dirty(self, tenant_id: str, generation: int) -> dict[str, str | None]:
        """Return the documents that may have entries of several versions.

        Returns:
            by document id, the indexed_key of the version to keep; None: keep none.
        """
        query = sa.select(document_index.c.document_id, document_index.c.indexed_key).where(
            is_of_generation(tenant_id, generation), document_index.c.dirty
        )
        return {row.document_id: row.indexed_key for row in self._database.fetch_rows(query)}

    def delete(self, ref: TenantRef, generation: int, document_ids: Sequence[str]) -> None:
        """Delete the rows of documents, after the deletion of their entries was confirmed."""
        with self._database.begin_tenant(ref) as connection:
            for batch in batched(document_ids, _BATCH_DOCUMENTS):
                connection.execute(
                    sa.delete(document_index).where(is_of_generation(ref.id, generation, batch))
                )

    def reset(self, ref: TenantRef, generation: int) -> None:
        """Delete all rows of a generation, after its index was lost."""
        self._database.delete(ref, document_index, document_index.c.generation == generation)

    def invalidate(self, ref: TenantRef, generation: int, document_ids: Sequence[str]) -> None:
        """Mark versions of these documents invalid: the next run rewrites them from the lake."""
        are_versions = is_of_generation(ref.id, generation, document_ids)
        self._database.update(ref, document_index, are_versions, document_key=None, dirty=True)

    def find_document_keys(
        self, tenant_id: str, generation: int, document_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return the document_key from which each named document's valid version was built."""
        query = select_valid_versions(
            tenant_id, generation, document_ids, document_index.c.document_key
        )
        return dict(self._database.fetch_rows(query))

    def put_off(
        self, ref: TenantRef, generation: int, waits: Sequence[Failure], *, config_key: str
    ) -> None:
        """Make documents wait in a build that is not the configured build, and record why."""
        if not waits:
            return
        statement = upsert(document_index)
        excluded = statement.excluded
        columns: dict[str, Any] = {name: excluded[name] for name in _WAITING}
        columns["failed_config_key"] = build_failed_key(
            document_index,
            config_key,
            select_environment(excluded.failed_config_key),
            excluded.failed_document_key,
        )
        rows = [
            {
                "tenant": ref.id,
                "generation": generation,
                "document_id": wait.document_id,
                "dirty": False,
                "failed_document_key": wait.document_key,
                "failed_config_key": build_first_failed_key(config_key, wait.environment),
                "error_message": wait.message,
                "retry_at": wait.retry_at,
            }
            for wait in waits
        ]
        self._database.write(
            ref, statement.on_conflict_do_update(index_elements=_KEY, set_=columns), rows
        )

    def put_off_reason(
        self, tenant_id: str, generation: int, document_ids: Sequence[str]
    ) -> str | None:
        """Return why one of these documents waits for a retry in a build; None if none waits."""
        query = (
            sa.select(document_index.c.error_message)
            .join(documents, is_same_document())
            .where(
                is_of_generation(tenant_id, generation, document_ids),
                document_index.c.failed_document_key == documents.c.document_key,
                document_index.c.retry_at.is_not(None),
            )
            .limit(1)
        )
        return self._database.fetch_value(query)

    def withhold(self, ref: TenantRef, document_ids: Sequence[str]) -> None:
        """Withhold these documents from searches; the next run deletes their entries."""
        self._database.write(ref, build_withholding_update(ref, document_ids))

    def stream_versions(self, tenant_id: str, generation: int) -> Iterator[HeldVersion]:
        """Stream the version of each document that should be in the generation's index."""
        indexed = document_index.c
        query = select_returnable(
            tenant_id,
            generation,
            *(indexed.document_id, indexed.indexed_key, indexed.chunk_count),
            sa.case(
                (~sa.or_(is_pushed_again(), has_moved_page(documents)), documents.c.access_scope)
            ),
        ).order_by(indexed.document_id)
        with self._database.begin() as connection:
            for row in connection.execution_options(yield_per=_BATCH_DOCUMENTS).execute(query):
                yield HeldVersion(*row)
