"""The lake: one set of tables per tenant and incarnation.

Importing this module loads neither Polars nor Delta Lake, and methods called without keys open no
table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.code.model import Fact
from rag_assets.common.hashing import HashRange
from rag_assets.common.tenant_folders import tenant_folder
from rag_assets.ingest.parsing.model import MaskedSpan
from rag_assets.storage.lake.lake_damage import LakeDamage
from rag_assets.storage.lake.location import SPOOL_FOLDER, Location, embedder_slug
from rag_assets.storage.lake.model import (
    ChunkSetHead,
    ChunkSetRow,
    Compaction,
    DeadKeys,
    LakeSize,
    LiveKeys,
    ParsedHead,
    ParsedRow,
    VectorRows,
)
from rag_assets.storage.lake.notes import LakeNotes
from rag_assets.storage.lake.tenant_tables import TenantTables, dead_keys, live_keys

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from rag_assets.storage.lake.spool import VectorSpool


class Lake:
    """All tenants' tables.

    Args:
        url: a folder, or the address of an object store for Delta Lake (s3://…, gs://…, az://…).
        storage_options: the store's credentials and settings, if not in the environment.
    """

    def __init__(self, url: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._location = Location.parse(url, storage_options)

    def tenant(
        self, tenant: str, incarnation: int, *, guard: Callable[[], None] | None = None
    ) -> TenantLake:
        """The tables of one tenant; opens and creates nothing.

        Args:
            tenant: its id.
            incarnation: that distinguishes uses of the id.
            guard: called right before every write; raises TenantGone or TenantLocked when this
                writer may no longer write. Readers need none.

        Raises:
            ConfigurationError: the id or the incarnation is invalid.
        """
        location = self._location / tenant_folder(tenant, incarnation)
        return TenantLake(location, self._location / tenant, guard or _unguarded)

    @property
    def notes(self) -> LakeNotes:
        """Notes about the catalog."""
        return LakeNotes(self._location)

    def incarnations(self) -> Iterator[tuple[str, int]]:
        """Every tenant and incarnation with data in the lake.

        One that the catalog lacks was left by a writer that outlived its tenant, and can be purged.
        """
        for tenant in self._location.folders():
            for incarnation in (self._location / tenant).folders():
                if incarnation.isdecimal():
                    yield tenant, int(incarnation)


class TenantLake:
    """The tables of one tenant's incarnation; see Lake.tenant.

    Unknown keys and missing tables yield nothing. All rows that are read are held in memory: read
    the documents of one slice at a time. Writing requires the tenant's lock, held by the caller.
    """

    def __init__(self, location: Location, parent: Location, guard: Callable[[], None]) -> None:
        self._location = location
        self._parent = parent
        self._guard = guard
        self._tables = TenantTables(location, guard)

    # -- parsed text

    def missing_parsed(self, keys: Collection[str]) -> set[str]:
        """Those of the parse_keys that are not in the lake."""
        return self._tables.parsed().missing(keys) if keys else set()

    def parsed(self, keys: Collection[str]) -> dict[str, ParsedRow]:
        """Parsed documents by parse_key; unknown keys are left out."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.parsed_rows(self._tables.parsed().read(keys))

    def parsed_heads(self, keys: Collection[str]) -> dict[str, ParsedHead]:
        """Parsed documents without their texts, by parse_key."""
        if not keys:
            return {}
        columns = ("key", "digest", "title", "media_type")
        frame = self._tables.parsed().read(keys, columns)
        return {key: ParsedHead(*rest) for key, *rest in frame.iter_rows()}

    def masked_spans(self, keys: Collection[str]) -> dict[str, tuple[MaskedSpan, ...]]:
        """Return the masked credentials of parsed documents, by parse_key, without any text."""
        if not keys:
            return {}
        frame = self._tables.parsed().read(keys, ("key", "masked"))
        return {
            key: tuple(MaskedSpan(**span) for span in spans or ())
            for key, spans in frame.iter_rows()
        }

    def append_parsed(self, documents: Collection[ParsedRow]) -> None:
        """Append parsed documents in one commit.

        Raises:
            DocumentRejected: a text cannot be stored; nothing was written.
            TenantGone, TenantLocked: by the guard; nothing was written.
        """
        if documents:
            from rag_assets.storage.lake import rows

            self._tables.parsed().append(rows.parsed_frame(documents))

    def parsed_keys(self) -> set[str]:
        """All parse_keys in the lake."""
        return self._tables.parsed().keys()

    # -- chunk sets

    def missing_chunk_sets(self, keys: Collection[str]) -> set[str]:
        """Those of the chunk_set_keys that are not in the lake."""
        return self._tables.chunks().missing(keys) if keys else set()

    def chunk_sets(self, keys: Collection[str]) -> dict[str, ChunkSetRow]:
        """Chunk sets by chunk_set_key; unknown keys are left out."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.chunk_set_rows(self._tables.chunks().read(keys))

    def chunk_hashes(self, keys: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The text_sha256 of each chunk, in order, by chunk_set_key."""
        if not keys:
            return {}
        frame = self._tables.chunks().read(keys, ("key", "text_sha256"))
        return {key: tuple(hashes) for key, hashes in frame.iter_rows()}

    def chunk_set_heads(self, keys: Collection[str]) -> dict[str, ChunkSetHead]:
        """Chunk sets without their texts, by chunk_set_key."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.chunk_set_heads(self._tables.chunks().read(keys, rows.CHUNK_SET_HEAD))

    def facts(self, keys: Collection[str]) -> dict[str, tuple[Fact, ...]]:
        """What the texts of chunk sets state, by chunk_set_key; those without facts are left out.

        Reads no text.
        """
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.facts_by_key(self._tables.chunks().read(keys, ("key", "facts")))

    def definition_hashes(self, keys: Collection[str]) -> dict[str, dict[str, str]]:
        """The text_sha256 of the chunks that define something, by chunk_set_key and symbol."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        columns = ("key", "definitions", "text_sha256")
        return rows.hashes_by_symbol(self._tables.chunks().read(keys, columns))

    def stored_chunk_sets(self, keys: Collection[str]) -> pl.DataFrame:
        """Rows of chunk sets (schemas.CHUNKS) including duplicates, for checks."""
        return self._tables.chunks().stored(keys)

    def append_chunk_sets(self, chunk_sets: Collection[ChunkSetRow]) -> None:
        """Append chunk sets in one commit; raises the errors of append_parsed."""
        if chunk_sets:
            from rag_assets.storage.lake import rows

            self._tables.chunks().append(rows.chunk_sets_frame(chunk_sets))

    # -- vectors

    def missing_vectors(self, embedder_id: str, hashes: Collection[str]) -> set[str]:
        """Those of the text_sha256 that have no vector by this embedder."""
        return self._tables.vectors(embedder_id).missing(hashes) if hashes else set()

    def vectors(self, embedder_id: str, hashes: Collection[str]) -> VectorRows:
        """Vectors of these text_sha256, in no particular order; unknown ones are left out."""
        if not hashes:
            return VectorRows.none()
        from rag_assets.storage.lake import rows

        return rows.vector_rows(self._tables.vectors(embedder_id).read(hashes))

    def packed_vectors(self, embedder_id: str, hashes: HashRange) -> dict[str, bytes]:
        """Vectors as little-endian float32 values, by the text_sha256 in a range."""
        frame = self._tables.vectors(embedder_id).read_range(hashes, ("text_sha256", "vector"))
        return dict(frame.iter_rows())

    def stored_vectors(self, embedder_id: str, hashes: Collection[str]) -> pl.DataFrame:
        """Rows of vectors (schemas.EMBEDDINGS) including duplicates, for checks."""
        return self._tables.vectors(embedder_id).stored(hashes)

    def append_vectors(
        self, embedder_id: str, hashes: Collection[str], vectors: npt.NDArray[np.float32]
    ) -> None:
        """Append vectors of shape (len(hashes), dimensions) in one commit.

        Raises:
            BadVectors: wrong count or dimension, not finite, or zero; nothing was written.
            TenantGone, TenantLocked: by the guard; nothing was written.
        """
        if not hashes and not len(vectors):
            return
        from rag_assets.storage.lake import rows

        table = self._tables.vectors(embedder_id)
        description = table.description()
        dimensions = None if description is None else int(description)
        frame = rows.vectors_frame(list(hashes), vectors, dimensions)
        table.append(frame, name=embedder_id, description=str(vectors.shape[1]))

    def spool(self, embedder_id: str, dimensions: int) -> VectorSpool | None:
        """Return the spool of an embedder's vectors; None in an object store, which never fills.

        Raises:
            TenantGone, TenantLocked: by the guard.
        """
        if not self._location.is_local:
            return None
        from rag_assets.storage.lake.spool import VectorSpool

        self._guard()
        return VectorSpool(self._spools / embedder_slug(embedder_id), dimensions)

    def store_spooled(self, embedder_id: str, dimensions: int) -> int:
        """Append the vectors that an earlier writer could not store; returns their number.

        Raises:
            ServiceUnavailable: the location could not be written.
            TenantGone, TenantLocked: by the guard; nothing was written.
        """
        if not self._location.is_local or not self._spools.is_dir():
            return 0
        spool = self.spool(embedder_id, dimensions)
        stored = 0
        for answer, keys, vectors in spool.kept() if spool is not None else ():
            missing = self.missing_vectors(embedder_id, keys)
            rows = [row for row, key in enumerate(keys) if key in missing]
            if rows:
                self.append_vectors(embedder_id, [keys[row] for row in rows], vectors[rows])
            answer.release()
            stored += len(rows)
        return stored

    @property
    def _spools(self) -> Path:
        return Path(self._location.url) / SPOOL_FOLDER

    def vector_hashes(self, embedder_id: str) -> set[str]:
        """The text_sha256 of all vectors of this embedder."""
        return self._tables.vectors(embedder_id).keys()

    def is_empty(self) -> bool:
        """Return whether there is no table."""
        return not any(self._location.folders())

    # -- damage

    @property
    def damage(self) -> LakeDamage:
        """The files of the tables that were lost or damaged."""
        return LakeDamage(self._location, self._tables)

    def readable(self) -> TenantLake:
        """The same tables, of which files that are lost or damaged are left out: for checks."""
        lake = TenantLake(self._location, self._parent, self._guard)
        lake._tables = TenantTables(self._location, self._guard, skips_damaged=True)
        return lake

    # -- all tables

    def size(self) -> LakeSize:
        """Rows, files and bytes of each table that exists."""
        tables = self._tables.all()
        sizes = {
            name: table.size() for name, table in tables.items() if table.description() is not None
        }
        return LakeSize(sizes)

    def due(self) -> list[str]:
        """Names of the tables that have many small files, of those used through this object.

        Others cannot have grown: none is opened for this, and no folder is listed.
        """
        used = self._tables.used()
        if not used:
            return []
        from rag_assets.storage.lake import compaction

        return [name for name, table in used.items() if compaction.is_due(table)]

    def compact_due(self) -> dict[str, Compaction]:
        """Merge the files of the tables that are due, and keep everything in them.

        Returns:
            the result for each.

        Raises:
            TenantGone, TenantLocked: by the guard; the tables stay readable.
        """
        if not (due := self.due()):
            return {}
        from rag_assets.storage.lake import compaction

        used = self._tables.used()
        results = {name: compaction.compact(used[name]) for name in due}
        return {name: result for name, result in results.items() if result is not None}

    def compact(
        self, live: LiveKeys | None = None, dead: DeadKeys | None = None
    ) -> dict[str, Compaction]:
        """Merge small files, drop rows that are duplicate or not live, and delete their files.

        A concurrent reader reads again; a crash leaves all tables readable. Vectors go before
        chunks, and chunks before texts, so that what is left after a crash tells what is to go.

        Args:
            live: keys to keep; everything by default.
            dead: keys to drop in any case; vectors in the spool, which may be of their texts, go
                as well.

        Returns:
            the result for each table that exists.

        Raises:
            TenantGone, TenantLocked: by the guard; the tables stay readable.
        """
        if dead is not None:
            self._drop_spools()
        if self.is_empty():
            return {}
        from rag_assets.storage.lake import compaction

        self._tables.drop_former_versions()
        live, dead = live or LiveKeys(), dead or DeadKeys()
        if live.embedders is not None:
            self._tables.drop_embedders(live.embedders)
        results = {
            name: compaction.compact(table, live_keys(name, live), dead_keys(name, dead))
            for name, table in reversed(self._tables.all().items())
        }
        return {name: result for name, result in results.items() if result is not None}

    def _drop_spools(self) -> None:
        """Delete the vectors that no writer has stored yet."""
        if self._location.is_local and self._spools.is_dir():
            self._guard()
            shutil.rmtree(self._spools)

    def phrases_of_others(self, dead: DeadKeys, phrases: Sequence[str]) -> set[str]:
        """Those of the phrases that are in a parsed text whose key is not dead; reads all texts."""
        from rag_assets.storage.lake import traces

        return traces.phrases_of_others(self._tables.parsed(), dead.parsed, phrases)

    def files_holding(self, dead: DeadKeys, phrases: Sequence[str], needed: LiveKeys) -> list[str]:
        """The files, listed or not, that hold something of documents that were erased.

        Args:
            dead: keys that no row may have.
            phrases: parts of texts that only rows with needed keys may have.
            needed: keys of the rows that are needed.
        """
        from rag_assets.storage.lake import traces

        search = traces.Search(dead, phrases, needed)
        return list(traces.files_holding(self._location, search))

    def purge(self) -> None:
        """Delete this incarnation's folder with its contents.

        Raises:
            TenantGone, TenantLocked: by the guard; nothing was deleted.
        """
        self._guard()
        self._location.remove()
        self._tables = TenantTables(self._location, self._guard)
        self._parent.remove_if_empty()


def _unguarded() -> None:
    """The default guard, for readers and for callers that cannot lose the tenant's lock."""
