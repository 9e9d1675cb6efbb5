"""Retention: the age of documents and of systems' staged rows, and which of them are too old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa

from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.installation.clock import select_time_to_record
from rag_assets.storage.catalog.tables import documents, syncs
from rag_assets.storage.catalog.uploads.rows import has_unlisted_content


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """The times before which content is past its retention.

    Attributes:
        others: the time for source types that `each` does not name; None: they are kept.
    """

    each: Mapping[str, datetime]
    others: datetime | None = None

    def select_cutoff(self, source_type: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
        """Return the SQL cutoff for a row's source type; null if such rows are kept."""
        kind = sa.DateTime(timezone=True)
        others = sa.null() if self.others is None else sa.literal(self.others, kind)
        whens = [(source_type == name, sa.literal(at, kind)) for name, at in self.each.items()]
        return sa.case(*whens, else_=others) if whens else others


@dataclass(frozen=True, slots=True)
class DueDocument:
    """A document that is past its retention.

    Attributes:
        former: whether only a former version is past its retention, because the current content is
            not embedded yet.
    """

    document_id: str
    source: str
    former: bool


@dataclass(frozen=True, slots=True)
class DueDocuments:
    """The documents of a tenant that are past their retention.

    Attributes:
        living: the number of all documents in each source, by its name; empty if no document is
            due.
    """

    documents: Sequence[DueDocument]
    living: Mapping[str, int]


class RetentionQuery(CatalogQueries):
    """Finds documents that are past their retention, or soon will be."""

    def list_due(self, tenant_id: str, cutoffs: Cutoffs) -> DueDocuments:
        """Return the documents with content that was embedded before their cutoff."""
        with self._database.begin() as connection:
            due = find_due_documents(connection, tenant_id, cutoffs)
            living = (
                sa.select(documents.c.source, sa.func.count())
                .where(documents.c.tenant == tenant_id, documents.c.status != "DELETED")
                .group_by(documents.c.source)
            )
            return DueDocuments(due, dict(connection.execute(living).all()) if due else {})

    def list_aging(
        self, tenant_id: str, cutoffs: Cutoffs, later: Cutoffs
    ) -> list[tuple[str, timedelta, int]]:
        """Return, by source type, the time left until the first document is past its retention.

        Args:
            later: the cutoffs at a later time. The last value of each tuple is the number of
                documents that will be past their retention then.
        """
        age, kind = select_age_start(), documents.c.source_type
        time_left = sa.func.min(age - cutoffs.select_cutoff(kind))
        query = (
            sa.select(kind, time_left, sa.func.count().filter(age < later.select_cutoff(kind)))
            .where(
                documents.c.tenant == tenant_id,
                *_may_age(),
                cutoffs.select_cutoff(kind).is_not(None),
                age.is_not(None),
            )
            .group_by(kind)
            .order_by(kind)
        )
        return [
            (kind, time_left, before)
            for kind, time_left, before in self._database.fetch_rows(query)
        ]

    def record_held(self, ref: TenantRef, held: Mapping[str, int]) -> bool:
        """Record how many documents await consent to be pruned; return whether a number changed."""
        whens = [(syncs.c.source == source, sa.literal(count)) for source, count in held.items()]
        counts = sa.case(*whens, else_=0) if whens else sa.literal(0)
        with self._database.begin_tenant(ref) as connection:
            changed = connection.execute(
                sa.update(syncs)
                .where(syncs.c.tenant == ref.id, syncs.c.held_prunes != counts)
                .values(held_prunes=counts)
            )
        return changed.rowcount > 0


def find_due_documents(
    connection: sa.Connection, tenant_id: str, cutoffs: Cutoffs
) -> list[DueDocument]:
    """Return the documents embedded before their cutoff, without documents under a hold."""
    former = sa.and_(documents.c.embedded_at.is_not(None), ~_is_embedded())
    query = (
        sa.select(documents.c.document_id, documents.c.source, former)
        .where(
            documents.c.tenant == tenant_id,
            select_age_start() < cutoffs.select_cutoff(documents.c.source_type),
            *_may_age(),
        )
        .order_by(documents.c.document_id)
    )
    return [DueDocument(*row) for row in connection.execute(query)]


def _may_age() -> tuple[sa.ColumnElement[bool], ...]:
    """Return the SQL conditions under which a document can be pruned by age."""
    return (documents.c.status != "DELETED", ~is_held(), ~has_unlisted_content())


def select_age_start() -> sa.ColumnElement[Any]:
    """Return the SQL time from which a document's age counts; null if it was not embedded yet.

    The age of a document that failed permanently without an embedded version counts from the
    listing of its content.
    """
    failed = sa.and_(documents.c.status == "FAILED", documents.c.retry_at.is_(None))
    return sa.case(
        (documents.c.embedded_at.is_not(None), documents.c.embedded_at),
        (failed, documents.c.changed_at),
    )


def build_embedding_columns(clock_skew: sa.ColumnElement[Any]) -> dict[str, sa.ColumnElement[Any]]:
    """Return the column values that record that a document's current content is embedded.

    A copy is as old as its content, and so is a renamed document: the row of its former name has
    the same content.
    """
    copies = documents.alias("copies")
    oldest = (
        sa.select(sa.func.min(copies.c.embedded_at))
        .where(
            copies.c.tenant == documents.c.tenant,
            copies.c.embedded_sha256 == documents.c.content_sha256,
        )
        .correlate(documents)
        .scalar_subquery()
    )
    first = sa.func.least(select_time_to_record() + clock_skew, oldest)
    return {
        "embedded_at": sa.case((_is_embedded(), documents.c.embedded_at), else_=first),
        "embedded_sha256": documents.c.content_sha256,
    }


def _is_embedded() -> sa.ColumnElement[bool]:
    return sa.and_(
        documents.c.embedded_at.is_not(None),
        documents.c.embedded_sha256.is_not_distinct_from(documents.c.content_sha256),
    )


class StagedRows(Protocol):
    """Counts and deletes a system's staged rows: rows from which its documents are made."""

    def count(self, connection: sa.Connection, tenant_id: str) -> int:
        """Return the number of a tenant's staged rows."""
        ...

    def delete_expired(
        self,
        connection: sa.Connection,
        ref: TenantRef,
        cutoffs: Cutoffs,
        kept_sources: Collection[str],
    ) -> int:
        """Delete staged rows that are past their retention; return the number of rows.

        A row is kept while a hold covers its document.
        """
        ...


def count_staged(connection: sa.Connection, tenant_id: str) -> int:
    """Return the number of a tenant's staged rows in all systems."""
    return sum(rows.count(connection, tenant_id) for rows in _iter_staged_rows())


def delete_staged(
    connection: sa.Connection, ref: TenantRef, cutoffs: Cutoffs, kept_sources: Collection[str]
) -> int:
    """Delete the staged rows of all systems that are past their retention; see StagedRows."""
    return sum(
        rows.delete_expired(connection, ref, cutoffs, kept_sources) for rows in _iter_staged_rows()
    )


def _iter_staged_rows() -> Iterator[StagedRows]:
    yield from installed_systems().load("staged_rows").values()
