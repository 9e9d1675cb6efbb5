"""The progress of a tenant's builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from sqlalchemy import and_, func, literal, or_, select

from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.index_rows import is_pending, same_document, with_index
from rag_assets.storage.catalog.tables import document_index, documents

_RECENT = timedelta(minutes=10)
_SPANS = 31


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress of a build.

    Attributes:
        documents, entries: the number of indexed documents that can be read, and of their entries.
        of_documents: the number of the tenant's documents that can be read.
        behind: how many of the tenant's documents are missing or outdated in the build; None if
            unknown.
        waiting: the number of outdated documents that wait for a provider or a person.
        recent: the number of documents indexed in the ten minutes before the last document.
        recent_seconds: the time that indexing the recent documents took.
        last_at: when the last document was indexed.
    """

    documents: int = 0
    entries: int = 0
    of_documents: int = 0
    behind: int | None = None
    waiting: int = 0
    recent: int = 0
    recent_seconds: float = 0.0
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BuildHistory:
    """The growth of a build.

    Attributes:
        counts: the number of its documents at the end of each of several equally long time spans.
        first, last: when its first and its last document were indexed.
    """

    counts: tuple[int, ...] = ()
    first: datetime | None = None
    last: datetime | None = None


class BuildProgressQuery:
    """Queries on `documents` and `document_index`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str, config_keys: Mapping[int, str | None]) -> dict[int, BuildProgress]:
        """Return the progress of builds, by number.

        Args:
            config_keys: the configuration key of each build, by number; None if unknown.
        """
        return {number: self._of(tenant_id, number, key) for number, key in config_keys.items()}

    def history(self, tenant_id: str, number: int) -> BuildHistory:
        """Return how a build grew, from the times at which its present versions were indexed."""
        held = document_index.c
        of_build = (
            held.tenant == tenant_id,
            held.generation == number,
            held.indexed_key.is_not(None),
        )
        bounds = select(func.min(held.indexed_at), func.max(held.indexed_at)).where(*of_build)
        with self._database.begin() as connection:
            first, last = connection.execute(bounds).one()
            if first is None:
                return BuildHistory()
            span = max((last - first).total_seconds(), 1.0) / _SPANS
            passed = func.extract("epoch", held.indexed_at - first)
            which = func.least(func.floor(passed / span), _SPANS - 1)
            query = select(which, func.count()).where(*of_build).group_by(which)
            found = {int(number): count for number, count in connection.execute(query)}
        counts = accumulate(found.get(number, 0) for number in range(_SPANS))
        return BuildHistory(tuple(counts), first, last)

    def _of(self, tenant_id: str, number: int, config_key: str | None) -> BuildProgress:
        held, listed = document_index.c, documents.c
        readable = and_(listed.status != "DELETED", listed.failed_config_key.is_distinct_from("*"))
        done = and_(readable, held.indexed_key.is_not(None))
        behind = or_(
            held.document_key.is_distinct_from(listed.document_key),
            held.config_key.is_distinct_from(literal(config_key)),
        )
        pending = func.count().filter(readable, is_pending(literal(config_key or "")))
        totals = (
            select(
                func.count().filter(done),
                func.coalesce(func.sum(held.chunk_count).filter(done), 0),
                func.count().filter(readable),
                func.count().filter(readable, behind),
                pending,
                func.max(held.indexed_at).filter(done),
            )
            .select_from(with_index(number))
            .where(listed.tenant == tenant_id)
        )
        with self._database.begin() as connection:
            found, entries, total, missing, due, last = connection.execute(totals).one()
            count, first = 0, None
            if last is not None:
                recent = (
                    select(func.count(), func.min(held.indexed_at))
                    .join(documents, same_document())
                    .where(
                        held.tenant == tenant_id,
                        held.generation == number,
                        held.indexed_at >= last - _RECENT,
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
