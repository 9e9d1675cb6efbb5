"""Counts of a build's relations, by kind."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, func, select

from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.documents.status import is_of_generation
from rag_assets.storage.catalog.tables import document_index
from rag_assets.systems.code_memory.catalog.tables import edges, symbols
from rag_assets.systems.code_memory.symbols.names import (
    CONFIG,
    ENV,
    FILE,
    HANDS_ON,
    PACKAGE,
    TABLE,
    short_name,
)

_KNOWN = (TABLE, CONFIG, ENV, PACKAGE, FILE)
_BATCH = 5_000


@dataclass(frozen=True, slots=True)
class RelationCount:
    """The number of relations of one kind.

    Attributes:
        edges: the number of edges.
        resolved: how many of them lead to a definition in the tenant's repositories, or to a table,
            a setting, a file or a package.
    """

    kind: str
    edges: int
    resolved: int


class RelationCountQuery:
    """Queries that count rows of `symbols` and `edges`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def symbols(self, tenant_id: str, generation: int) -> int:
        """Return the number of definitions in the distinct texts of a build."""
        held = _texts(tenant_id, generation)
        query = (
            select(func.count())
            .select_from(symbols)
            .where(symbols.c.tenant == tenant_id, symbols.c.chunk_set_key.in_(held))
        )
        with self._database.begin() as connection:
            return connection.scalar(query) or 0

    def of(self, tenant_id: str, generation: int) -> list[RelationCount]:
        """Return the number of relations of a build by kind, the most frequent kind first."""
        held = _texts(tenant_id, generation)
        named = select(symbols.c.symbol, symbols.c.short).where(
            symbols.c.tenant == tenant_id, symbols.c.chunk_set_key.in_(held)
        )
        targets = (
            select(edges.c.kind, edges.c.target, func.count())
            .where(edges.c.tenant == tenant_id, edges.c.chunk_set_key.in_(held))
            .where(edges.c.kind != HANDS_ON)
            .group_by(edges.c.kind, edges.c.target)
        )
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        with self._database.begin() as connection:
            defined = frozenset(name for row in connection.execute(named) for name in row)
            rows = connection.execution_options(yield_per=_BATCH).execute(targets)
            for kind, target, count in rows:
                counts[kind][0] += count
                if target.startswith(_KNOWN) or _defined_as(target) in defined:
                    counts[kind][1] += count
        found = [RelationCount(kind, *both) for kind, both in counts.items()]
        return sorted(found, key=lambda one: (-one.edges, one.kind))


def _defined_as(name: str) -> str:
    """Return the name that a definition would have: qualified, if its language qualifies names."""
    return name if "\\" in name else short_name(name)


def _texts(tenant_id: str, generation: int) -> Select[Any]:
    return select(document_index.c.chunk_set_key).where(
        and_(is_of_generation(tenant_id, generation), document_index.c.chunk_set_key.is_not(None))
    )
