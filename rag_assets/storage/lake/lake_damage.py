"""Lost or damaged files of a tenant's tables; loads Polars only when needed."""

from __future__ import annotations

from collections.abc import Collection

from rag_assets.common.hashing import HashRange
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import DamagedFile, LiveKeys
from rag_assets.storage.lake.tenant_tables import TenantTables


class LakeDamage:
    """Finds damaged files, removes them from their tables, and salvages rows from unlisted files.

    Args:
        location: the incarnation's folder.
        tables: the tables in the folder.
    """

    def __init__(self, location: Location, tables: TenantTables) -> None:
        self._location = location
        self._tables = tables

    def files(self, decoded: HashRange | None = None) -> list[DamagedFile]:
        """Return the listed files that are missing, truncated or unreadable.

        Args:
            decoded: a file is read completely if the hash of its name is in this range.
        """
        if not any(self._location.folders()):
            return []
        from rag_assets.storage.lake import damage

        return [
            file
            for name, table in self._tables.all().items()
            for file in damage.damaged_files(name, table, decoded)
        ]

    def drop(self, files: Collection[DamagedFile]) -> None:
        """Remove damaged files from their tables, so that the other files can be read again.

        A damaged log is deleted; `salvage` then takes rows from the remaining files.

        Raises:
            TenantGone, TenantLocked: raised by the guard.
        """
        from rag_assets.storage.lake import damage

        for name, table in self._tables.all().items():
            damage.drop_damaged(table, [file for file in files if file.table == name])

    def salvage(self, lost: LiveKeys, embedder_id: str, dimensions: int) -> None:
        """Restore lost rows from files that the tables do not list.

        Args:
            lost: keys of the rows; None skips that table.
            embedder_id: id of the embedder of the vectors.
            dimensions: number of dimensions of the vectors.
        """
        from rag_assets.storage.lake import damage

        damage.salvage(self._tables.parsed(), lost.parsed or set())
        damage.salvage(self._tables.chunks(), lost.chunk_sets or set())
        damage.salvage(
            self._tables.vectors(embedder_id),
            lost.texts or set(),
            name=embedder_id,
            description=str(dimensions),
        )
