"""The lake: one set of tables per tenant and incarnation.

Importing this module loads neither Polars nor Delta Lake. Methods that are called without keys open
no table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.common.hashing import HashRange
from rag_assets.common.tenant_folders import tenant_folder
from rag_assets.ingest.chunking.model import Fact
from rag_assets.ingest.parsing.model import MaskedSpan
from rag_assets.storage.lake.location import SPOOL_FOLDER, LakeNotes, Location, build_embedder_slug
from rag_assets.storage.lake.model import (
    ChunkSetHead,
    ChunkSetRow,
    Compaction,
    DamagedFile,
    DeadKeys,
    LiveKeys,
    ParsedHead,
    ParsedRow,
    TableSize,
    VectorRows,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from rag_assets.storage.lake.rows import TableKind
    from rag_assets.storage.lake.spool import VectorSpool
    from rag_assets.storage.lake.table import KeyedTable

_PARSED = "parsed_text"
_CHUNKS = "chunks"
_EMBEDDINGS = "embeddings"


class Lake:
    """The tables of all tenants.

    Args:
        url: a folder, or the address of an object store for Delta Lake (s3://…, gs://…, az://…).
    """

    def __init__(self, url: str) -> None:
        self._location = Location.parse(url)

    def tenant(
        self, tenant: str, incarnation: int, *, guard: Callable[[], None] | None = None
    ) -> TenantLake:
        """Return the tables of one tenant, without opening or creating any.

        Args:
            guard: called right before every write; raises TenantGone or TenantLocked when this
                writer may no longer write. Readers do not need a guard.

        Raises:
            ConfigurationError: the id or the incarnation is invalid.
        """
        location = self._location / tenant_folder(tenant, incarnation)
        return TenantLake(location, self._location / tenant, guard or _guard_nothing)

    @property
    def notes(self) -> LakeNotes:
        """Return the store of notes about the catalog, in the lake's root folder."""
        return LakeNotes(self._location)

    def incarnations(self) -> Iterator[tuple[str, int]]:
        """Yield the id and incarnation of every tenant with data in the lake.

        An incarnation that the catalog lacks was left by a writer that finished after its tenant's
        removal, and can be purged.
        """
        for tenant in self._location.folders():
            for incarnation in (self._location / tenant).folders():
                if incarnation.isdecimal():
                    yield tenant, int(incarnation)


class TenantLake:
    """The tables of one tenant's incarnation; see Lake.tenant.

    Unknown keys and missing tables yield no rows. All rows read are held in memory: read the
    documents of one slice at a time. Writing requires the tenant's lock, held by the caller. The
    guard raises TenantGone or TenantLocked before anything is changed; tables stay readable.
    """

    def __init__(self, location: Location, parent: Location, guard: Callable[[], None]) -> None:
        self._location = location
        self._parent = parent
        self._guard = guard
        self._tables = TenantTables(location, guard)

    def find_missing_parsed(self, keys: Collection[str]) -> set[str]:
        """Return the parse_keys that are not in the lake."""
        return self._tables.parsed().missing(keys) if keys else set()

    def parsed(self, keys: Collection[str]) -> dict[str, ParsedRow]:
        """Return parsed documents by parse_key; unknown keys are left out."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.read_parsed_rows(self._tables.parsed().read(keys))

    def read_parsed_heads(self, keys: Collection[str]) -> dict[str, ParsedHead]:
        """Return title, media type and digest of parsed documents, by parse_key."""
        if not keys:
            return {}
        columns = ("key", "digest", "title", "media_type")
        frame = self._tables.parsed().read(keys, columns)
        return {key: ParsedHead(*rest) for key, *rest in frame.iter_rows()}

    def read_masked_spans(self, keys: Collection[str]) -> dict[str, tuple[MaskedSpan, ...]]:
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
            DocumentRejected: a text cannot be stored; no row was written.
        """
        if documents:
            from rag_assets.storage.lake import rows

            self._tables.parsed().append(rows.build_parsed_frame(documents))

    def read_parsed_keys(self) -> set[str]:
        """Return all parse_keys in the lake."""
        return self._tables.parsed().keys()

    def find_missing_chunk_sets(self, keys: Collection[str]) -> set[str]:
        """Return the chunk_set_keys that are not in the lake."""
        return self._tables.chunks().missing(keys) if keys else set()

    def chunk_sets(self, keys: Collection[str]) -> dict[str, ChunkSetRow]:
        """Return chunk sets by chunk_set_key; unknown keys are left out."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.read_chunk_set_rows(self._tables.chunks().read(keys))

    def read_chunk_hashes(self, keys: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the text_sha256 of each chunk, in order, by chunk_set_key."""
        if not keys:
            return {}
        frame = self._tables.chunks().read(keys, ("key", "text_sha256"))
        return {key: tuple(hashes) for key, hashes in frame.iter_rows()}

    def chunk_set_heads(self, keys: Collection[str]) -> dict[str, ChunkSetHead]:
        """Return chunk sets without their texts (see ChunkSetHead), by chunk_set_key."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.chunk_set_heads(self._tables.chunks().read(keys, rows.CHUNK_SET_HEAD))

    def facts(
        self, keys: Collection[str], wants_kind: Callable[[str], bool] | None = None
    ) -> dict[str, tuple[Fact, ...]]:
        """Return the facts that chunk sets state, by chunk_set_key.

        Args:
            wants_kind: whether to return facts of this kind; all kinds by default.
        """
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        return rows.read_facts_by_key(
            self._tables.chunks().read(keys, ("key", "facts")), wants_kind
        )

    def read_definition_hashes(self, keys: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the text_sha256 of chunks with a definition, by chunk_set_key, then by symbol."""
        if not keys:
            return {}
        from rag_assets.storage.lake import rows

        columns = ("key", "definitions", "text_sha256")
        return rows.read_hashes_by_symbol(self._tables.chunks().read(keys, columns))

    def stored_chunk_sets(self, keys: Collection[str]) -> pl.DataFrame:
        """Return rows of chunk sets (rows.CHUNKS) including duplicates, for checks."""
        return self._tables.chunks().stored(keys)

    def append_chunk_sets(self, chunk_sets: Collection[ChunkSetRow]) -> None:
        """Append chunk sets in one commit; raises the errors of append_parsed."""
        if chunk_sets:
            from rag_assets.storage.lake import rows

            self._tables.chunks().append(rows.build_chunk_sets_frame(chunk_sets))

    def find_missing_vectors(self, embedder_id: str, hashes: Collection[str]) -> set[str]:
        """Return the hashes for which no vector of this embedder is stored."""
        return self._tables.vectors(embedder_id).missing(hashes) if hashes else set()

    def vectors(self, embedder_id: str, hashes: Collection[str]) -> VectorRows:
        """Return the vectors of these text_sha256, in no particular order; omit unknown hashes."""
        if not hashes:
            return VectorRows.none()
        from rag_assets.storage.lake import rows

        return rows.read_vector_rows(self._tables.vectors(embedder_id).read(hashes))

    def read_packed_vectors(self, embedder_id: str, hashes: HashRange) -> dict[str, bytes]:
        """Return the vectors whose text_sha256 is in a range, by text_sha256."""
        frame = self._tables.vectors(embedder_id).read_range(hashes, ("text_sha256", "vector"))
        return dict(frame.iter_rows())

    def stored_vectors(self, embedder_id: str, hashes: Collection[str]) -> pl.DataFrame:
        """Return rows of vectors (rows.EMBEDDINGS) including duplicates, for checks."""
        return self._tables.vectors(embedder_id).stored(hashes)

    def append_vectors(
        self, embedder_id: str, hashes: Collection[str], vectors: npt.NDArray[np.float32]
    ) -> None:
        """Append vectors of shape (len(hashes), dimensions) in one commit.

        Raises:
            BadVectors: wrong count or dimension, not finite, or zero; no vector was written.
        """
        if not hashes and not len(vectors):
            return
        from rag_assets.storage.lake import rows

        table = self._tables.vectors(embedder_id)
        description = table.description()
        dimensions = None if description is None else int(description)
        frame = rows.build_vectors_frame(list(hashes), vectors, dimensions)
        table.append(frame, name=embedder_id, description=str(vectors.shape[1]))

    def spool(self, embedder_id: str, dimensions: int) -> VectorSpool | None:
        """Return the spool of an embedder's vectors; None if the lake is in an object store.

        An object store never fills, so it needs no spool.
        """
        if not self._location.is_local:
            return None
        from rag_assets.storage.lake.spool import VectorSpool

        self._guard()
        return VectorSpool(self._spools / build_embedder_slug(embedder_id), dimensions)

    def store_spooled(self, embedder_id: str, dimensions: int) -> int:
        """Append the vectors that an earlier writer could not store; return their number.

        Raises:
            ServiceUnavailable: the location could not be written.
        """
        if not self._location.is_local or not self._spools.is_dir():
            return 0
        spool = self.spool(embedder_id, dimensions)
        stored = 0
        for answer, keys, vectors in spool.kept() if spool is not None else ():
            missing = self.find_missing_vectors(embedder_id, keys)
            rows = [row for row, key in enumerate(keys) if key in missing]
            if rows:
                self.append_vectors(embedder_id, [keys[row] for row in rows], vectors[rows])
            answer.release()
            stored += len(rows)
        return stored

    @property
    def _spools(self) -> Path:
        return Path(self._location.url) / SPOOL_FOLDER

    def read_vector_hashes(self, embedder_id: str) -> set[str]:
        """Return the text_sha256 of all vectors of this embedder."""
        return self._tables.vectors(embedder_id).keys()

    def is_empty(self) -> bool:
        """Return whether the lake has no tables."""
        return not any(self._location.folders())

    def find_damaged_files(self, decoded: HashRange | None = None) -> list[DamagedFile]:
        """Return the listed files that are missing, truncated or unreadable."""
        if self.is_empty():
            return []
        from rag_assets.storage.lake.files import iter_damaged_files

        tables = self._tables.all()
        return [f for name in tables for f in iter_damaged_files(name, tables[name], decoded)]

    def drop_damaged(self, damaged: Collection[DamagedFile]) -> None:
        """Remove damaged files from their tables, so that the other files can be read again."""
        from rag_assets.storage.lake.files import drop_damaged

        for name, table in self._tables.all().items():
            drop_damaged(table, [file for file in damaged if file.table == name])

    def salvage(self, lost: LiveKeys, embedder_id: str, dimensions: int) -> None:
        """Restore lost rows, with the vectors of one embedder, from files that no table lists.

        Args:
            lost: keys of the rows; None skips that table.
        """
        from rag_assets.storage.lake.files import salvage

        salvage(self._tables.parsed(), lost.parsed or set())
        salvage(self._tables.chunks(), lost.chunk_sets or set())
        vectors, texts = self._tables.vectors(embedder_id), lost.texts or set()
        salvage(vectors, texts, name=embedder_id, description=str(dimensions))

    def readable(self) -> TenantLake:
        """Return a view of this lake that skips lost and damaged files, for checks."""
        lake = TenantLake(self._location, self._parent, self._guard)
        lake._tables = TenantTables(self._location, self._guard, skips_damaged=True)
        return lake

    def size(self) -> dict[str, TableSize]:
        """Return the number of rows, files and bytes of each table that exists, by its name."""
        tables = self._tables.all()
        return {
            name: table.size() for name, table in tables.items() if table.description() is not None
        }

    def due(self) -> list[str]:
        """Return the names of tables that were used through this object and should be compacted.

        See files.is_due. Other tables have not grown: they are not opened, and no folder is
        listed.
        """
        used = self._tables.used()
        if not used:
            return []
        from rag_assets.storage.lake import files

        return [name for name, table in used.items() if files.is_due(table)]

    def compact_due(self) -> dict[str, Compaction]:
        """Merge the files of the tables that due() returns; return each result by table name."""
        if not (due := self.due()):
            return {}
        from rag_assets.storage.lake import files

        used = self._tables.used()
        results = {name: files.compact(used[name]) for name in due}
        return {name: result for name, result in results.items() if result is not None}

    def compact(
        self, live: LiveKeys | None = None, dead: DeadKeys | None = None
    ) -> dict[str, Compaction]:
        """Merge small files, drop rows that are duplicate or not live, and delete their files.

        A concurrent reader retries; after a crash, all tables are readable. Vectors are deleted
        before chunks, and chunks before texts, so that after a crash the remaining rows show what
        is left to delete.

        Args:
            live: keys to keep; everything by default.
            dead: keys to drop in any case. All spooled vectors are dropped as well, because they
                may belong to dead texts.

        Returns:
            the result for each table that exists.
        """
        if dead is not None:
            self._drop_spools()
        if self.is_empty():
            return {}
        from rag_assets.storage.lake import files

        self._tables.drop_former_versions()
        live, dead = live or LiveKeys(), dead or DeadKeys()
        if live.embedders is not None:
            self._tables.drop_embedders(live.embedders)
        results = {
            name: files.compact(table, live.of_table(name), dead.of_table(name))
            for name, table in reversed(self._tables.all().items())
        }
        return {name: result for name, result in results.items() if result is not None}

    def _drop_spools(self) -> None:
        """Delete all spooled vectors, which no writer has stored in a table yet."""
        if self._location.is_local and self._spools.is_dir():
            self._guard()
            shutil.rmtree(self._spools)

    def find_phrases_in_kept_texts(self, dead: DeadKeys, phrases: Sequence[str]) -> set[str]:
        """Return the phrases that also occur in parsed texts that are not being deleted."""
        from rag_assets.storage.lake import files

        return files.find_phrases_in_kept_texts(self._tables.parsed(), dead.parsed, phrases)

    def find_files_with_erased_data(
        self, dead: DeadKeys, phrases: Sequence[str], needed: LiveKeys
    ) -> list[str]:
        """Return the paths, relative to the lake, of files that contain data of erased documents.

        Files that no table lists are searched, too.
        """
        from rag_assets.storage.lake import files

        return list(files.find_files_with_erased_data(self._location, dead, phrases, needed))

    def purge(self) -> None:
        """Delete this incarnation's folder with its contents."""
        self._guard()
        self._location.remove()
        self._tables = TenantTables(self._location, self._guard)
        self._parent.remove_if_empty()


class TenantTables:
    """Opens and deletes a tenant's tables: parsed texts, chunks, vectors of each embedder."""

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

        return self._open(_PARSED, rows.PARSED_TEXT_TABLE)

    def chunks(self) -> KeyedTable:
        """Return the table of chunk sets."""
        from rag_assets.storage.lake import rows

        return self._open(_CHUNKS, rows.CHUNKS_TABLE)

    def vectors(self, embedder_id: str) -> KeyedTable:
        """Return the table of an embedder's vectors."""
        return self._open_vectors(build_embedder_slug(embedder_id))

    def of_embedders(self) -> dict[str, KeyedTable]:
        """Return the tables of vectors of all embedders, by name."""
        slugs = (self._location / _EMBEDDINGS).folders()
        return {f"{_EMBEDDINGS}/{slug}": self._open_vectors(slug) for slug in slugs}

    def all(self) -> dict[str, KeyedTable]:
        """Return all tables, by name."""
        return {_PARSED: self.parsed(), _CHUNKS: self.chunks(), **self.of_embedders()}

    def used(self) -> dict[str, KeyedTable]:
        """Return the tables that were used through this object, by name."""
        return dict(self._kept)

    def drop_former_versions(self) -> None:
        """Delete parsed texts and chunks in tables whose columns an earlier version defined."""
        for name, table in ((_PARSED, self.parsed()), (_CHUNKS, self.chunks())):
            for version in (self._location / name).folders():
                if version != table.kind.version:
                    self._guard()
                    (self._location / name / version).remove()

    def drop_embedders(self, kept: Set[str]) -> None:
        """Delete the vectors of all embedders except these."""
        names = {build_vectors_table_name(embedder_id) for embedder_id in kept}
        for name, table in self.of_embedders().items():
            if name not in names:
                self._guard()
                table.location.remove()
                self._kept.pop(name, None)

    def _open_vectors(self, slug: str) -> KeyedTable:
        from rag_assets.storage.lake import rows

        return self._open(f"{_EMBEDDINGS}/{slug}", rows.EMBEDDINGS_TABLE, version="")

    def _open(self, name: str, kind: TableKind, *, version: str | None = None) -> KeyedTable:
        from rag_assets.storage.lake import table

        if name not in self._kept:
            folder = f"{name}/{kind.version if version is None else version}".rstrip("/")
            self._kept[name] = table.KeyedTable(
                kind, self._location / folder, self._guard, skips_damaged=self._skips_damaged
            )
        return self._kept[name]


def build_vectors_table_name(embedder_id: str) -> str:
    """Return the name of the table of an embedder's vectors."""
    return f"{_EMBEDDINGS}/{build_embedder_slug(embedder_id)}"


def _guard_nothing() -> None:
    """Do nothing: the default guard, for readers and callers that cannot lose the tenant's lock."""
