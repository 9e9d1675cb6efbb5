"""The Delta tables of one tenant's incarnation; each is opened on first use, and kept."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from rag_assets.storage.lake.location import Location, embedder_slug
from rag_assets.storage.lake.model import DeadKeys, LiveKeys

if TYPE_CHECKING:
    from rag_assets.storage.lake.schemas import TableKind
    from rag_assets.storage.lake.table import KeyedTable

_PARSED = "parsed_text"
_CHUNKS = "chunks"
_EMBEDDINGS = "embeddings"


class TenantTables:
    """Opens and deletes the tables: parsed text, chunks, and the vectors of each embedder.

    Args:
        location: the incarnation's folder.
        guard: called right before every write; see Lake.tenant.
        skips_damaged: whether to read the remaining rows if files are lost or damaged.
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
        from rag_assets.storage.lake import schemas

        return self._open_versioned(_PARSED, schemas.PARSED_TEXT_TABLE)

    def chunks(self) -> KeyedTable:
        """Return the table of chunk sets."""
        from rag_assets.storage.lake import schemas

        return self._open_versioned(_CHUNKS, schemas.CHUNKS_TABLE)

    def vectors(self, embedder_id: str) -> KeyedTable:
        """Return the table of an embedder's vectors."""
        return self._get_vectors_table(embedder_slug(embedder_id))

    def of_embedders(self) -> dict[str, KeyedTable]:
        """Return the tables of all embedders' vectors, by name."""
        slugs = (self._location / _EMBEDDINGS).folders()
        return {f"{_EMBEDDINGS}/{slug}": self._get_vectors_table(slug) for slug in slugs}

    def all(self) -> dict[str, KeyedTable]:
        """Return all tables, by name."""
        return {_PARSED: self.parsed(), _CHUNKS: self.chunks(), **self.of_embedders()}

    def used(self) -> dict[str, KeyedTable]:
        """Return the tables that were used through this object, by name."""
        return dict(self._kept)

    def drop_former_versions(self) -> None:
        """Delete tables with former columns; their contents can be computed again."""
        for name, table in ((_PARSED, self.parsed()), (_CHUNKS, self.chunks())):
            for version in (self._location / name).folders():
                if version != table.kind.version:
                    self._guard()
                    (self._location / name / version).remove()

    def drop_embedders(self, kept: Set[str]) -> None:
        """Delete the vectors of all other embedders."""
        names = {vectors_table(embedder_id) for embedder_id in kept}
        for name, table in self.of_embedders().items():
            if name not in names:
                self._guard()
                table.location.remove()
                self._kept.pop(name, None)

    def _open_versioned(self, name: str, kind: TableKind) -> KeyedTable:
        return self._table(name, kind, self._location / name / kind.version)

    def _get_vectors_table(self, slug: str) -> KeyedTable:
        from rag_assets.storage.lake import schemas

        location = self._location / _EMBEDDINGS / slug
        return self._table(f"{_EMBEDDINGS}/{slug}", schemas.EMBEDDINGS_TABLE, location)

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


def live_keys(table: str, live: LiveKeys) -> Set[str] | None:
    """Return the keys that a table of this name must keep; None for all."""
    return {_PARSED: live.parsed, _CHUNKS: live.chunk_sets}.get(table, live.texts)


def dead_keys(table: str, dead: DeadKeys) -> Set[str]:
    """Return the keys that a table of this name must drop."""
    return {_PARSED: dead.parsed, _CHUNKS: dead.chunk_sets}.get(table, dead.texts)
