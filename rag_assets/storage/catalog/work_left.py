"""The remaining work of many tenants that the catalog knows of, in a few queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    Integer,
    Row,
    Select,
    Text,
    and_,
    case,
    exists,
    func,
    literal,
    select,
    true,
)

from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.documents import must_be_read_again
from rag_assets.storage.catalog.erasure_tables import erasures, holds
from rag_assets.storage.catalog.holds import is_held
from rag_assets.storage.catalog.index_rows import (
    has_left,
    is_pending,
    is_pending_beside,
    same_document,
)
from rag_assets.storage.catalog.moved_documents import moved_documents
from rag_assets.storage.catalog.retention import age_counts_from
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.storage.catalog.tree_tables import pages


@dataclass(frozen=True, slots=True)
class WantedBuild:
    """A build that should contain a tenant's documents.

    Attributes:
        generation: the build's number; 0 for a build that has not started yet, and lacks every
            document.
        config_key: key of the configuration that it is made with.
        beside: whether the tenant's current configuration asks for another build.
    """

    tenant_id: str
    generation: int
    config_key: str
    beside: bool = False


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """The remaining work of a tenant.

    Attributes:
        pending: documents with outdated entries that may be tried now, counted in each build.
        removals: the sum of four counts: deleted and excluded documents that a generation may still
            contain, counted in each; moved documents that still answer at their former location;
            erasures that have not ended; pages whose entries must take over their documents' scope.
        partly_replaced: documents that may have entries of several versions, counted in each build.
        read_again: documents that must be read again, by source.
        oldest: by source and source type, the time from which the age of the oldest document
            counts, without held documents.
    """

    pending: int = 0
    removals: int = 0
    partly_replaced: int = 0
    read_again: Mapping[str, int] = field(default_factory=dict)
    oldest: Mapping[tuple[str, str], datetime] = field(default_factory=dict)


class WorkQuery:
    """Queries on the documents of many tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def left(self, builds: Sequence[WantedBuild]) -> dict[str, WorkLeft]:
        """Return the remaining work of each of these tenants, by id.

        Args:
            builds: for each tenant, the build of its configuration, and others that it keeps
                current.
        """
        ids = list(dict.fromkeys(build.tenant_id for build in builds))
        with self._database.begin() as connection:
            listed: dict[str, list[Row[Any]]] = {}
            for row in connection.execute(_by_source(builds)):
                listed.setdefault(row.tenant, []).append(row)
            removals = _counts(connection.execute(_removals(ids)))
            partly_replaced = _counts(connection.execute(_partly_replaced(ids)))
        return {
            id_: _left(listed.get(id_, ()), removals.get(id_, 0), partly_replaced.get(id_, 0))
            for id_ in ids
        }


def _counts(rows: Iterable[Row[Any]]) -> dict[str, int]:
    return {row.tenant: row.documents for row in rows}


def _left(rows: Iterable[Row[Any]], removals: int, partly_replaced: int) -> WorkLeft:
    found = list(rows)
    read_again: Counter[str] = Counter()
    for row in found:
        read_again[row.source] += row.read_again
    return WorkLeft(
        pending=sum(row.pending for row in found),
        removals=removals,
        partly_replaced=partly_replaced,
        read_again={source: count for source, count in read_again.items() if count},
        oldest={(row.source, row.source_type): row.oldest for row in found if row.oldest},
    )


def _by_source(builds: Sequence[WantedBuild]) -> Select[Any]:
    wanted = (
        func.unnest(
            literal([build.tenant_id for build in builds], ARRAY(Text)),
            literal([build.generation for build in builds], ARRAY(Integer)),
            literal([build.config_key for build in builds], ARRAY(Text)),
            literal([build.beside for build in builds], ARRAY(Boolean)),
        )
        .table_valued("tenant", "generation", "config_key", "beside", name="wanted")
        .render_derived()
    )
    indexed = and_(same_document(), document_index.c.generation == wanted.c.generation)
    living = documents.c.status != "DELETED"
    any_hold = exists().where(among(holds.c.tenant, [build.tenant_id for build in builds]))
    # Checked once; is_held() would be checked for each document.
    may_age = case((~any_hold, true()), else_=~is_held())
    key = wanted.c.config_key
    pending = case((wanted.c.beside, is_pending_beside(key)), else_=is_pending(key))
    return (
        select(
            documents.c.tenant,
            documents.c.source,
            documents.c.source_type,
            func.count().filter(pending).label("pending"),
            func.count().filter(must_be_read_again(), ~wanted.c.beside).label("read_again"),
            func.min(age_counts_from()).filter(living, may_age).label("oldest"),
        )
        .select_from(wanted)
        .join(documents, documents.c.tenant == wanted.c.tenant)
        .outerjoin(document_index, indexed)
        .group_by(documents.c.tenant, documents.c.source, documents.c.source_type)
    )


def _removals(tenant_ids: Sequence[str]) -> Select[Any]:
    held = (
        select(documents.c.tenant)
        .join(document_index, same_document())
        .where(among(documents.c.tenant, tenant_ids), has_left())
    )
    begun = select(erasures.c.tenant).where(among(erasures.c.tenant, tenant_ids))
    moved = select(pages.c.tenant).where(
        among(pages.c.tenant, tenant_ids), pages.c.moved.is_not(None)
    )
    elsewhere = select(moved_documents.c.tenant).where(among(moved_documents.c.tenant, tenant_ids))
    every = held.union_all(begun, moved, elsewhere).subquery()
    return select(every.c.tenant, func.count().label("documents")).group_by(every.c.tenant)


def _partly_replaced(tenant_ids: Sequence[str]) -> Select[Any]:
    return (
        select(document_index.c.tenant, func.count().label("documents"))
        .where(among(document_index.c.tenant, tenant_ids), document_index.c.dirty)
        .group_by(document_index.c.tenant)
    )
