"""How far each query was followed, which rows are no records, and when a source is due again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.hashing import key_of
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.systems.workspace.pulling.aside_rows import among_rows
from rag_assets.systems.workspace.pulling.source import RecordType, SqlConfig
from rag_assets.systems.workspace.tables import pulled_queries, pulled_rows, pulled_sources

if TYPE_CHECKING:
    from rag_assets.systems.workspace.pulling.rows import SetAside

_RARER = 9
"""A source is pulled for a tenth of the time at most, however much lies within its overlap."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LONGEST_PAUSE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class SourceState:
    """How the pulls of a source went.

    Attributes:
        pulled_at, seconds: of the last one that was whole.
        scanned_at: when its keys were compared last.
        failures: since then, one after the other.
        error: of the last one.
        held_deletions: records that the database does not have, and that are kept.
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
class ShownRow:
    """A row that was set aside, as it is shown.

    Attributes:
        shown: its id, without a credential.
        field: which of its columns is wrong.
    """

    source: str
    source_type: str
    shown: str
    field: str
    problem: str
    set_aside_at: datetime


def row_key(source_type: str, source_id: str) -> str:
    """What a row is known by, whatever its id is."""
    return key_of("row", source_type, source_id)


class PullStates:
    """Queries on the tables of pulled sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str) -> dict[str, SourceState]:
        """How the pulls of a tenant's sources went."""
        return {source: state for (_, source), state in self.all([tenant_id]).items()}

    def all(self, tenant_ids: Collection[str]) -> dict[tuple[str, str], SourceState]:
        """The same of several tenants, by tenant and source."""
        columns = pulled_sources.c
        query = select(pulled_sources).where(among(columns.tenant, tenant_ids))
        with self._database.begin() as connection:
            rows = connection.execute(query).mappings().all()
        return {
            (row["tenant"], row["source"]): SourceState(
                **{name: row[name] for name in SourceState.__dataclass_fields__}
            )
            for row in rows
        }

    def begin(self, ref: TenantRef, config: SqlConfig) -> Mapping[RecordType, datetime]:
        """How far each query of a source was followed; a query that is another one now was not."""
        columns = pulled_queries.c
        query = select(columns.source_type, columns.query_key, columns.watermark).where(
            columns.tenant == ref.id, columns.source == config.name
        )
        new = upsert(pulled_sources).values(tenant=ref.id, source=config.name)
        with self._database.begin_for(ref) as connection:
            connection.execute(new.on_conflict_do_nothing())
            found = {row.source_type: row for row in connection.execute(query)}
        return {
            source_type: found[source_type].watermark
            for source_type in config.queries
            if source_type in found
            and found[source_type].query_key == config.query_key(source_type)
        }

    def settle(
        self,
        ref: TenantRef,
        config: SqlConfig,
        source_type: RecordType,
        *,
        bad: Sequence[SetAside],
        mended: Collection[str],
        watermark: datetime | None,
        masker: Masker,
    ) -> None:
        """Record what became of rows that are stored: after this they are not read again.

        Args:
            ref: the tenant.
            config: of the source.
            source_type: of the rows.
            bad: those that are no records.
            mended: keys of those that were set aside and are not any more.
            watermark: of the last change among them; None: as it was.
            masker: finds credentials in ids.
        """
        place = {"tenant": ref.id, "source": config.name, "source_type": source_type}
        rows = {
            row_key(source_type, one.source_id): {
                **place,
                "row_key": row_key(source_type, one.source_id),
                "shown": _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", masker.text(one.source_id))[:512]
                or "(none)",
                "field": one.column[:200],
                "problem": one.problem[:500],
                "awaited_page": one.awaited_page,
            }
            for one in bad
        }
        with self._database.begin_for(ref) as connection:
            if mended:
                connection.execute(delete(pulled_rows).where(*among_rows(ref, config.name, mended)))
            if rows:
                new = upsert(pulled_rows)
                said = ("shown", "field", "problem", "awaited_page")
                changed = {name: new.excluded[name] for name in said}
                keys = ["tenant", "source", "source_type", "row_key"]
                statement = new.on_conflict_do_update(index_elements=keys, set_=changed)
                connection.execute(statement, [*rows.values()])
            if watermark is not None:
                values = {"query_key": config.query_key(source_type), "watermark": watermark}
                connection.execute(
                    upsert(pulled_queries)
                    .values(**place, **values)
                    .on_conflict_do_update(
                        index_elements=["tenant", "source", "source_type"], set_=values
                    )
                )

    def end(self, ref: TenantRef, config: SqlConfig, seconds: float, *, held: int | None) -> None:
        """Record a pull that was whole.

        Args:
            ref: the tenant.
            config: of the source.
            seconds: that it took.
            held: records that the database does not have and that are kept, if that was compared.
        """
        pause = max(config.every_seconds, _RARER * seconds)
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

    def fail(self, ref: TenantRef, config: SqlConfig, problem: str) -> None:
        """Record a pull that failed: it is tried again after a time that grows."""
        failures = pulled_sources.c.failures
        pause = func.least(
            timedelta(seconds=config.every_seconds) * func.power(2, func.least(failures, 12)),
            _LONGEST_PAUSE,
        )
        values = {"failures": failures + 1, "error": problem, "next_at": func.now() + pause}
        self._update(ref, config.name, values)

    def rows(self, tenant_id: str, limit: int) -> list[ShownRow]:
        """Rows of a tenant that were set aside, the latest first."""
        columns = pulled_rows.c
        query = (
            select(*(columns[name] for name in ShownRow.__dataclass_fields__))
            .where(columns.tenant == tenant_id)
            .order_by(columns.set_aside_at.desc(), columns.row_key)
            .limit(limit)
        )
        with self._database.begin() as connection:
            return [ShownRow(*row) for row in connection.execute(query)]

    def counts(self, tenant_id: str) -> dict[tuple[str, str], int]:
        """How many rows were set aside, by source and type."""
        columns = pulled_rows.c
        query = (
            select(columns.source, columns.source_type, func.count())
            .where(columns.tenant == tenant_id)
            .group_by(columns.source, columns.source_type)
        )
        with self._database.begin() as connection:
            return {(row[0], row[1]): row[2] for row in connection.execute(query)}

    def _update(self, ref: TenantRef, source: str, values: Mapping[str, object]) -> None:
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(pulled_sources)
                .where(pulled_sources.c.tenant == ref.id, pulled_sources.c.source == source)
                .values(**values)
            )
