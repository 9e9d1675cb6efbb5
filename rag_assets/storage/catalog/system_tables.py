"""The tables of installed systems, as far as the core reads and deletes their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection, Table

from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.columns import metadata
from rag_assets.storage.catalog.database import TenantRef

if TYPE_CHECKING:
    from rag_assets.storage.catalog.retention import Cutoffs


class StagedRows(Protocol):
    """Counts and deletes the rows that a system keeps before and after they become documents."""

    def count(self, connection: Connection, tenant_id: str) -> int:
        """Return the number of a tenant's rows."""
        ...

    def delete_expired(
        self,
        connection: Connection,
        ref: TenantRef,
        cutoffs: Cutoffs,
        kept_sources: Collection[str],
    ) -> int:
        """Delete rows that were embedded before their cutoff; return the number of rows.

        A row is kept while a hold covers its document.

        Args:
            cutoffs: the cutoffs by source type.
            kept_sources: names of sources with documents that are not deleted now.
        """
        ...


def all_tables() -> list[Table]:
    """Return the tables of the core and of all systems, sorted by their foreign keys."""
    installed_systems().load("tables")
    return metadata.sorted_tables


def count_staged(connection: Connection, tenant_id: str) -> int:
    """Return the number of a tenant's staged rows in all systems."""
    return sum(rows.count(connection, tenant_id) for rows in _staged_rows())


def delete_staged(
    connection: Connection, ref: TenantRef, cutoffs: Cutoffs, kept_sources: Collection[str]
) -> int:
    """Delete the staged rows of all systems that are past their retention; see StagedRows."""
    return sum(
        rows.delete_expired(connection, ref, cutoffs, kept_sources) for rows in _staged_rows()
    )


def _staged_rows() -> Iterator[StagedRows]:
    yield from installed_systems().load("staged_rows").values()
