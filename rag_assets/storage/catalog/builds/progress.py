"""The progress of a tenant's builds, and the remaining work of many tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.database import CatalogQueries, matches_any
from rag_assets.storage.catalog.documents.removals import moved_documents
from rag_assets.storage.catalog.documents.status import (
    is_excluded_from_builds,
    is_pending,
    is_same_document,
    join_versions,
)
from rag_assets.storage.catalog.documents.table import must_be_read_again
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.erasure.receipts import erasures, holds
from rag_assets.storage.catalog.erasure.retention import select_age_start
from rag_assets.storage.catalog.tables import document_index, documents, pages

_RECENT_PERIOD = timedelta(minutes=10)
_TIME_SPANS = 31


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress of a build.

    Attributes:
        documents, entries: the number of indexed documents that can be read, and of their entries.
        of_documents: the number of the tenant's documents that can be read.
        behind: how many of the tenant's documents are missing or outdated in the build; None if
            unknown.
        recent: the number of documents indexed in the ten minutes before the last document.
    """

    documents: int = 0
    entries: int = 0
    of_documents: int = 0
    behind: int | None = None
    waiting: int = 0
    recent: int = 0
    recent_seconds: float = 0.0
    last_at: datetime | None = None


class BuildProgressQuery(CatalogQueries):
    """Computes the progress of builds from `documents` and `document_index`."""

    def read(
        self, tenant_id: str, config_keys: Mapping[int, str | None]
    ) -> dict[int, BuildProgress]:
        """Return the progress of builds, by number.

        Args:
            config_keys: the configuration key of each build, by number; None if unknown.
        """
        return {
            number: self._read_build(tenant_id, number, key) for number, key in config_keys.items()
        }

    def history(
        self, tenant_id: str, number: int
    ) -> tuple[tuple[int, ...], datetime | None, datetime | None]:
        """Return how a build grew over time.

        The result has the number of indexed documents at the end of each of several equally long
        time spans, and the times at which the first and the last document were indexed.
        """
        indexed = document_index.c
        of_build = (
            indexed.tenant == tenant_id,
            indexed.generation == number,
            indexed.indexed_key.is_not(None),
        )
        bounds = sa.select(sa.func.min(indexed.indexed_at), sa.func.max(indexed.indexed_at)).where(
            *of_build
        )
        with self._database.begin() as connection:
            first, last = connection.execute(bounds).one()
            if first is None:
                return (), None, None
            span = max((last - first).total_seconds(), 1.0) / _TIME_SPANS
            passed = sa.func.extract("epoch", indexed.indexed_at - first)
            span_index = sa.func.least(sa.func.floor(passed / span), _TIME_SPANS - 1)
            query = sa.select(span_index, sa.func.count()).where(*of_build).group_by(span_index)
            count_by_span = {int(number): count for number, count in connection.execute(query)}
        counts = accumulate(count_by_span.get(number, 0) for number in range(_TIME_SPANS))
        return tuple(counts), first, last

    def _read_build(self, tenant_id: str, number: int, config_key: str | None) -> BuildProgress:
        indexed, listed = document_index.c, documents.c
        readable = sa.and_(
            listed.status != "DELETED", listed.failed_config_key.is_distinct_from("*")
        )
        is_indexed = sa.and_(readable, indexed.indexed_key.is_not(None))
        behind = sa.or_(
            indexed.document_key.is_distinct_from(listed.document_key),
            indexed.config_key.is_distinct_from(sa.literal(config_key)),
        )
        pending = sa.func.count().filter(readable, is_pending(sa.literal(config_key or "")))
        totals = (
            sa.select(
                sa.func.count().filter(is_indexed),
                sa.func.coalesce(sa.func.sum(indexed.chunk_count).filter(is_indexed), 0),
                sa.func.count().filter(readable),
                sa.func.count().filter(readable, behind),
                pending,
                sa.func.max(indexed.indexed_at).filter(is_indexed),
            )
            .select_from(join_versions(number))
            .where(listed.tenant == tenant_id)
        )
        with self._database.begin() as connection:
            found, entries, total, missing, due, last = connection.execute(totals).one()
            count, first = 0, None
            if last is not None:
                recent = (
                    sa.select(sa.func.count(), sa.func.min(indexed.indexed_at))
                    .join(documents, is_same_document())
                    .where(
                        indexed.tenant == tenant_id,
                        indexed.generation == number,
                        indexed.indexed_at >= last - _RECENT_PERIOD,
                    )
                )
                count, first = connection.execute(recent).one()
        known = config_key is not None
        return BuildProgress(
            documents=found,
            entries=int(entries),
            of_documents=total,
            behind=missing if known else None,
            waiting=max(0, missing - due) if known else 0,
            recent=count,
            recent_seconds=(last - first).total_seconds() if first is not None else 0.0,
            last_at=last,
        )


@dataclass(frozen=True, slots=True)
class WantedBuild:
    """A build that should contain a tenant's documents.

    Attributes:
        generation: the build's number; 0 for a build that has not started yet and therefore lacks
            every document.
        is_superseded: whether the tenant's current configuration asks for a different build.
    """

    tenant_id: str
    generation: int
    config_key: str
    is_superseded: bool = False


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """The remaining work of a tenant.

    Attributes:
        pending: number of documents with outdated entries that can be processed now, counted in
            each build.
        removals: the sum of four counts: deleted and excluded documents, counted in each build that
            may still contain them; moved documents that searches still find at their former
            location; open erasures; pages whose entries still lack their documents' scope.
        partly_replaced: number of documents that may have entries of several versions, counted in
            each build.
        oldest: by source and source type, the time from which the age of the oldest document
            counts, for retention; held documents are ignored.
    """

    pending: int = 0
    removals: int = 0
    partly_replaced: int = 0
    read_again: Mapping[str, int] = field(default_factory=dict)
    oldest: Mapping[tuple[str, str], datetime] = field(default_factory=dict)


class WorkQuery(CatalogQueries):
    """Counts the remaining work of many tenants."""

    def read(self, builds: Sequence[WantedBuild]) -> dict[str, WorkLeft]:
        """Return the remaining work of each of these tenants, by id.

        Args:
            builds: for each tenant, the build that its configuration asks for, and further builds
                that are kept up to date.
        """
        ids = list(dict.fromkeys(build.tenant_id for build in builds))
        indexed = document_index.c
        dirty = (
            sa.select(indexed.tenant, sa.func.count())
            .where(matches_any(indexed.tenant, ids), indexed.dirty)
            .group_by(indexed.tenant)
        )
        with self._database.begin() as connection:
            listed: dict[str, list[sa.Row[Any]]] = {id_: [] for id_ in ids}
            for row in connection.execute(_select_work_by_source(builds)):
                listed[row.tenant].append(row)
            removals: dict[str, int] = dict(connection.execute(_select_removals(ids)).all())
            partly_replaced: dict[str, int] = dict(connection.execute(dirty).all())
        work = {}
        for id_, rows in listed.items():
            read_again: Counter[str] = Counter()
            for row in rows:
                read_again[row.source] += row.read_again
            work[id_] = WorkLeft(
                pending=sum(row.pending for row in rows),
                removals=removals.get(id_, 0),
                partly_replaced=partly_replaced.get(id_, 0),
                read_again={source: count for source, count in read_again.items() if count},
                oldest={(row.source, row.source_type): row.oldest for row in rows if row.oldest},
            )
        return work


def _select_work_by_source(builds: Sequence[WantedBuild]) -> sa.Select[Any]:
    wanted = (
        sa.func.unnest(
            sa.literal([build.tenant_id for build in builds], sa.ARRAY(sa.Text)),
            sa.literal([build.generation for build in builds], sa.ARRAY(sa.Integer)),
            sa.literal([build.config_key for build in builds], sa.ARRAY(sa.Text)),
            sa.literal([build.is_superseded for build in builds], sa.ARRAY(sa.Boolean)),
        )
        .table_valued("tenant", "generation", "config_key", "is_superseded", name="wanted")
        .render_derived()
    )
    indexed = sa.and_(is_same_document(), document_index.c.generation == wanted.c.generation)
    living = documents.c.status != "DELETED"
    any_hold = sa.exists().where(matches_any(holds.c.tenant, [build.tenant_id for build in builds]))
    # Checked once; is_held() would be checked for each document.
    may_age = sa.case((~any_hold, sa.true()), else_=~is_held())
    key = wanted.c.config_key
    pending = sa.case(
        (wanted.c.is_superseded, is_pending(key, for_superseded_build=True)), else_=is_pending(key)
    )
    return (
        sa.select(
            documents.c.tenant,
            documents.c.source,
            documents.c.source_type,
            sa.func.count().filter(pending).label("pending"),
            sa.func.count()
            .filter(must_be_read_again(), ~wanted.c.is_superseded)
            .label("read_again"),
            sa.func.min(select_age_start()).filter(living, may_age).label("oldest"),
        )
        .select_from(wanted)
        .join(documents, documents.c.tenant == wanted.c.tenant)
        .outerjoin(document_index, indexed)
        .group_by(documents.c.tenant, documents.c.source, documents.c.source_type)
    )


def _select_removals(tenant_ids: Sequence[str]) -> sa.Select[Any]:
    held = (
        sa.select(documents.c.tenant)
        .join(document_index, is_same_document())
        .where(matches_any(documents.c.tenant, tenant_ids), is_excluded_from_builds())
    )
    open_erasures = sa.select(erasures.c.tenant).where(matches_any(erasures.c.tenant, tenant_ids))
    moved = sa.select(pages.c.tenant).where(
        matches_any(pages.c.tenant, tenant_ids), pages.c.moved.is_not(None)
    )
    still_at_former_place = sa.select(moved_documents.c.tenant).where(
        matches_any(moved_documents.c.tenant, tenant_ids)
    )
    all_removals = held.union_all(open_erasures, moved, still_at_former_place).subquery()
    return sa.select(all_removals.c.tenant, sa.func.count().label("documents")).group_by(
        all_removals.c.tenant
    )
