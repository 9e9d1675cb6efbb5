"""The state of pulls: watermarks of queries, rows that were set aside, and locks."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import SQLAlchemyError

from rag_assets.common.errors import TenantLocked
from rag_assets.common.hashing import compute_key
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, matches_any
from rag_assets.storage.catalog.lock import compute_lock_key, holds_lock
from rag_assets.storage.catalog.tables import source_records
from rag_assets.systems.workspace.pulling import RecordType, SqlConfig
from rag_assets.systems.workspace.tables import pulled_queries, pulled_rows, pulled_sources

if TYPE_CHECKING:
    from rag_assets.systems.workspace.pulling.rows import SetAsideRow


_PAUSE_FACTOR = 9
"""Minimum pause after a pull, as a multiple of its duration: pulls take 10 % of the time."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_MAX_PAUSE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of a source's pulls.

    Attributes:
        pulled_at, seconds: time and duration of the last complete pull.
        scanned_at: when the keys of the source were last compared.
        failures: number of failed pulls since the last complete pull.
        held_deletions: number of records without a row that are kept.
    """

    source: str
    pulled_at: datetime | None
    seconds: float | None
    scanned_at: datetime | None
    next_at: datetime
    failures: int
    error: str | None
    held_deletions: int


@dataclass(frozen=True, slots=True)
class ShownSetAsideRow:
    """A row that was set aside, as it is shown to people.

    Attributes:
        shown: id of the row, with credentials masked.
        field: the column with the problem.
    """

    source: str
    source_type: str
    shown: str
    field: str
    problem: str
    set_aside_at: datetime


def compute_row_key(source_type: str, source_id: str) -> str:
    """Return a hash of a row's type and id, because the id may be any text."""
    return compute_key("row", source_type, source_id)


class PullStates(CatalogQueries):
    """Queries on the tables of pulled sources."""

    def read_for_tenant(self, tenant_id: str) -> dict[str, SourceState]:
        """Return the states of a tenant's sources, by source."""
        return {source: state for (_, source), state in self.read_for_tenants([tenant_id]).items()}

    def read_for_tenants(self, tenant_ids: Collection[str]) -> dict[tuple[str, str], SourceState]:
        """Return the states of several tenants' sources, by tenant and source."""
        columns = pulled_sources.c
        query = select(pulled_sources).where(matches_any(columns.tenant, tenant_ids))
        with self._database.begin() as connection:
            rows = connection.execute(query).mappings().all()
        return {
            (row["tenant"], row["source"]): SourceState(
                **{name: row[name] for name in SourceState.__dataclass_fields__}
            )
            for row in rows
        }

    def begin(self, ref: TenantRef, config: SqlConfig) -> Mapping[RecordType, datetime]:
        """Return the watermark of each query of a source, and register a new source.

        A query that is new or has changed has no watermark, so that all its rows are read.
        """
        columns = pulled_queries.c
        query = select(columns.source_type, columns.query_key, columns.watermark).where(
            columns.tenant == ref.id, columns.source == config.name
        )
        new = upsert(pulled_sources).values(tenant=ref.id, source=config.name)
        with self._database.begin_tenant(ref) as connection:
            connection.execute(new.on_conflict_do_nothing())
            rows_by_type = {row.source_type: row for row in connection.execute(query)}
        return {
            source_type: rows_by_type[source_type].watermark
            for source_type in config.queries
            if source_type in rows_by_type
            and rows_by_type[source_type].query_key == config.compute_query_key(source_type)
        }

    def record_batch(
        self,
        ref: TenantRef,
        config: SqlConfig,
        source_type: RecordType,
        *,
        bad: Sequence[SetAsideRow],
        resolved: Collection[str],
        watermark: datetime | None,
        masker: Masker,
    ) -> None:
        """Record the results of a stored batch, so that its rows are not read again.

        Args:
            bad: rows of the batch to set aside.
            resolved: keys of rows that were set aside before, and are now stored.
            watermark: time of the last change in the batch; None keeps the stored watermark.
        """
        query = {"tenant": ref.id, "source": config.name, "source_type": source_type}
        rows = {
            compute_row_key(source_type, set_aside.source_id): {
                **query,
                "row_key": compute_row_key(source_type, set_aside.source_id),
                "shown": _UNPRINTABLE.sub(
                    "\N{REPLACEMENT CHARACTER}", masker.text(set_aside.source_id)
                )[:512]
                or "(none)",
                "field": set_aside.column[:200],
                "problem": set_aside.problem[:500],
                "awaited_page": set_aside.awaited_page,
            }
            for set_aside in bad
        }
        with self._database.begin_tenant(ref) as connection:
            if resolved:
                connection.execute(
                    delete(pulled_rows).where(
                        *_build_row_key_conditions(ref, config.name, resolved)
                    )
                )
            if rows:
                new = upsert(pulled_rows)
                columns = ("shown", "field", "problem", "awaited_page")
                changed = {name: new.excluded[name] for name in columns}
                keys = ["tenant", "source", "source_type", "row_key"]
                statement = new.on_conflict_do_update(index_elements=keys, set_=changed)
                connection.execute(statement, [*rows.values()])
            if watermark is not None:
                values = {
                    "query_key": config.compute_query_key(source_type),
                    "watermark": watermark,
                }
                connection.execute(
                    upsert(pulled_queries)
                    .values(**query, **values)
                    .on_conflict_do_update(
                        index_elements=["tenant", "source", "source_type"], set_=values
                    )
                )

    def record_success(
        self, ref: TenantRef, config: SqlConfig, seconds: float, *, held: int | None
    ) -> None:
        """Record a complete pull.

        Args:
            held: number of records without a row that are kept; None if keys were not compared.
        """
        pause = max(config.every_seconds, _PAUSE_FACTOR * seconds)
        values = {
            "pulled_at": func.now(),
            "seconds": seconds,
            "next_at": func.now() + timedelta(seconds=pause),
            "failures": 0,
            "error": None,
        }
        if held is not None:
            values |= {"scanned_at": func.now(), "held_deletions": held}
        self._update(ref, config.name, values)

    def record_failure(self, ref: TenantRef, config: SqlConfig, problem: str) -> None:
        """Record a failed pull; the next attempt follows after a pause that grows each time."""
        failures = pulled_sources.c.failures
        pause = func.least(
            timedelta(seconds=config.every_seconds) * func.power(2, func.least(failures, 12)),
            _MAX_PAUSE,
        )
        values = {"failures": failures + 1, "error": problem, "next_at": func.now() + pause}
        self._update(ref, config.name, values)

    def list_set_aside_rows(self, tenant_id: str, limit: int) -> list[ShownSetAsideRow]:
        """Return rows of a tenant that were set aside, the latest first."""
        columns = pulled_rows.c
        query = (
            select(*(columns[name] for name in ShownSetAsideRow.__dataclass_fields__))
            .where(columns.tenant == tenant_id)
            .order_by(columns.set_aside_at.desc(), columns.row_key)
            .limit(limit)
        )
        return [ShownSetAsideRow(*row) for row in self._database.fetch_rows(query)]

    def count_set_aside(self, tenant_id: str) -> dict[tuple[str, str], int]:
        """Return the number of rows that were set aside, by source and type."""
        columns = pulled_rows.c
        query = (
            select(columns.source, columns.source_type, func.count())
            .where(columns.tenant == tenant_id)
            .group_by(columns.source, columns.source_type)
        )
        return {(row[0], row[1]): row[2] for row in self._database.fetch_rows(query)}

    def _update(self, ref: TenantRef, source: str, values: Mapping[str, object]) -> None:
        self._database.write(
            ref,
            update(pulled_sources)
            .where(pulled_sources.c.tenant == ref.id, pulled_sources.c.source == source)
            .values(**values),
        )


class SetAsideRows(CatalogQueries):
    """Finds and updates rows that were set aside, in batches."""

    def find(self, ref: TenantRef, source: str, keys: Collection[str]) -> set[str]:
        """Return the keys among these whose rows were set aside."""
        query = select(pulled_rows.c.row_key).where(*_build_row_key_conditions(ref, source, keys))
        return set(self._database.fetch_values(query))

    def mark_seen(self, ref: TenantRef, source: str, keys: Collection[str]) -> set[str]:
        """Record that these rows still exist; return the keys of rows that were set aside."""
        statement = (
            update(pulled_rows)
            .where(*_build_row_key_conditions(ref, source, keys))
            .values(seen_at=func.now())
        )
        with self._database.begin_tenant(ref) as connection:
            return set(connection.scalars(statement.returning(pulled_rows.c.row_key)))

    def forget_unseen(self, ref: TenantRef, source: str, since: datetime) -> None:
        """Delete the records of rows that were set aside and not seen since a time."""
        columns = pulled_rows.c
        unseen = delete(pulled_rows).where(
            columns.tenant == ref.id,
            columns.source == source,
            columns.set_aside_at < since,
            or_(columns.seen_at.is_(None), columns.seen_at < since),
        )
        self._database.write(ref, unseen)

    def list_awaited_pages(self, ref: TenantRef, source: str, limit: int) -> list[str]:
        """Return the pages that exist now and for which set-aside blocks wait."""
        columns, records = pulled_rows.c, source_records.c
        query = (
            select(columns.awaited_page)
            .distinct()
            .where(
                columns.tenant == ref.id,
                columns.source == source,
                columns.awaited_page.is_not(None),
                exists().where(
                    records.tenant == columns.tenant,
                    records.source == columns.source,
                    records.source_type == "page",
                    records.source_id == columns.awaited_page,
                ),
            )
            .limit(limit)
        )
        return [*self._database.fetch_values(query)]

    def stop_awaiting(self, ref: TenantRef, source: str, pages: Collection[str]) -> None:
        """Record that blocks no longer wait for these pages."""
        columns = pulled_rows.c
        waiting = update(pulled_rows).where(
            columns.tenant == ref.id,
            columns.source == source,
            matches_any(columns.awaited_page, pages),
        )
        self._database.write(ref, waiting.values(awaited_page=None))


def _build_row_key_conditions(
    ref: TenantRef, source: str, keys: Collection[str]
) -> tuple[ColumnElement[bool], ...]:
    """Return the SQL conditions for the set-aside rows of a source with these keys."""
    columns = pulled_rows.c
    return columns.tenant == ref.id, columns.source == source, matches_any(columns.row_key, keys)


_POLL_SECONDS = 0.25
_HELD = text(
    "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class SourceLock:
    """The lock of a source while it is pulled."""

    def __init__(self, connection: Connection, key: int, source: str) -> None:
        self._connection, self._key, self._source = connection, key, source

    def check(self) -> None:
        """Check before a write that the lock is still held.

        Raises:
            TenantLocked: the lock's connection is lost; another process may pull the source now.
        """
        if not holds_lock(self._connection, self._key):
            raise TenantLocked(
                f"source {self._source!r} is no longer locked: the connection broke",
                hint="no action is needed; the next pull starts automatically where this pull"
                " stopped",
            )


class SourceLocks(CatalogQueries):
    """Acquires and inspects the locks of sources."""

    @contextmanager
    def hold(
        self, tenant_id: str, source: str, *, wait_seconds: float = 0.0
    ) -> Iterator[SourceLock]:
        """Lock a source, so that a concurrent pull cannot overwrite newer records.

        Raises:
            TenantLocked: another process still pulls the source after the wait.
        """
        key, deadline = _compute_lock_key(tenant_id, source), time.monotonic() + wait_seconds
        with self._database.session() as connection:
            while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}):
                if time.monotonic() >= deadline:
                    raise TenantLocked(
                        f"source {source!r} of tenant {tenant_id!r} is already being pulled",
                        hint="wait until the other pull has finished, then try again",
                    )
                time.sleep(_POLL_SECONDS)
            try:
                yield SourceLock(connection, key, source)
            finally:
                # Postgres may notice a lost connection only after the next pull has started.
                with suppress(SQLAlchemyError):
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})

    def find_held(self, sources: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the sources among these, as (tenant, name), that a process pulls now."""
        with self._database.begin() as connection:
            held_keys = set(connection.scalars(_HELD))
        return {source for source in sources if _compute_lock_key(*source) in held_keys}


def _compute_lock_key(tenant_id: str, source: str) -> int:
    return compute_lock_key(f"pull/{tenant_id}/{source}")
