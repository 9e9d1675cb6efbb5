"""The Delta tables of one tenant's incarnation, and the repair of their damaged files.

Importing this module loads neither Polars nor Delta Lake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from typing import TYPE_CHECKING

from rag_assets.common.hashing import HashRange
from rag_assets.storage.lake.location import Location, embedder_slug
from rag_assets.storage.lake.model import DamagedFile, LiveKeys

if TYPE_CHECKING:
    from rag_assets.storage.lake.rows import TableKind
    from rag_assets.storage.lake.table import KeyedTable

_PARSED = "parsed_text"
_CHUNKS = "chunks"
_EMBEDDINGS = "embeddings"


class TenantTables:
    """Opens and deletes a tenant's tables: parsed texts, chunks, vectors of each embedder.

    Args:
        guard: called right before every write; see Lake.tenant.
    """

    def __init__(
        self, location: Location, guard: Callable[[], None], *, skips_damaged: bool = False
    ) -> None:
        self._location = location
        self._guard = guard
        self._skips_damaged = skips_damaged
        self._kept: dict[str, KeyedTable] = {}

    def parsed(self) -> KeyedTable:
        """Return the table of parsed documents."""
        from rag_assets.storage.lake import rows

        return self._open_versioned(_PARSED, rows.PARSED_TEXT_TABLE)

    def chunks(self) -> KeyedTable:
        """Return the table of chunk sets."""
        from rag_assets.storage.lake import rows

        return self._open_versioned(_CHUNKS, rows.CHUNKS_TABLE)

    def vectors(self, embedder_id: str) -> KeyedTable:
        """Return the table of an embedder's vectors."""
        return self._get_vectors_table(embedder_slug(embedder_id))

    def of_embedders(self) -> dict[str, KeyedTable]:
        """Return the tables of vectors of all embedders, by name."""
        slugs = (self._location / _EMBEDDINGS).folders()
        return {f"{_EMBEDDINGS}/{slug}": self._get_vectors_table(slug) for slug in slugs}

    def all(self) -> dict[str, KeyedTable]:
        """Return all tables, by name."""
        return {_PARSED: self.parsed(), _CHUNKS: self.chunks(), **self.of_embedders()}

    def used(self) -> dict[str, KeyedTable]:
        """Return the tables that were used through this object, by name."""
        return dict(self._kept)

    def drop_former_versions(self) -> None:
        """Delete parsed texts and chunks in tables whose columns an earlier version defined.

        Their contents can be computed again.
        """
        for name, table in ((_PARSED, self.parsed()), (_CHUNKS, self.chunks())):
            for version in (self._location / name).folders():
                if version != table.kind.version:
                    self._guard()
                    (self._location / name / version).remove()

    def drop_embedders(self, kept: Set[str]) -> None:
        """Delete the vectors of all embedders except these."""
        names = {vectors_table(embedder_id) for embedder_id in kept}
        for name, table in self.of_embedders().items():
            if name not in names:
                self._guard()
                table.location.remove()
                self._kept.pop(name, None)

    def _open_versioned(self, name: str, kind: TableKind) -> KeyedTable:
        return self._table(name, kind, self._location / name / kind.version)

    def _get_vectors_table(self, slug: str) -> KeyedTable:
        from rag_assets.storage.lake import rows

        location = self._location / _EMBEDDINGS / slug
        return self._table(f"{_EMBEDDINGS}/{slug}", rows.EMBEDDINGS_TABLE, location)

    def _table(self, name: str, kind: TableKind, location: Location) -> KeyedTable:
        from rag_assets.storage.lake import table

        if name not in self._kept:
            self._kept[name] = table.KeyedTable(
                kind, location, self._guard, skips_damaged=self._skips_damaged
            )
        return self._kept[name]


def vectors_table(embedder_id: str) -> str:
    """Return the name of the table of an embedder's vectors."""
    return f"{_EMBEDDINGS}/{embedder_slug(embedder_id)}"


class LakeDamage:
    """Finds and removes damaged files of tables, and salvages rows from unlisted files."""

    def __init__(self, location: Location, tables: TenantTables) -> None:
        self._location = location
        self._tables = tables

    def files(self, decoded: HashRange | None = None) -> list[DamagedFile]:
        """Return the listed files that are missing, truncated or unreadable."""
        if not any(self._location.folders()):
            return []
        from rag_assets.storage.lake.files import damaged_files

        return [
            file
            for name, table in self._tables.all().items()
            for file in damaged_files(name, table, decoded)
        ]

    def drop(self, files: Collection[DamagedFile]) -> None:
        """Remove damaged files from their tables, so that the other files can be read again.

        A damaged log is deleted; `salvage` then takes rows from the remaining files.
        """
        from rag_assets.storage.lake.files import drop_damaged

        for name, table in self._tables.all().items():
            drop_damaged(table, [file for file in files if file.table == name])

    def salvage(self, lost: LiveKeys, embedder_id: str, dimensions: int) -> None:
        """Restore lost rows from files that the tables do not list.

        Args:
            lost: keys of the rows; None skips that table.
        """
        from rag_assets.storage.lake.files import salvage

        salvage(self._tables.parsed(), lost.parsed or set())
        salvage(self._tables.chunks(), lost.chunk_sets or set())
        vectors, texts = self._tables.vectors(embedder_id), lost.texts or set()
        salvage(vectors, texts, name=embedder_id, description=str(dimensions))
