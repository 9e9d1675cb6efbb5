"""The vector store in memory: its indexes, views, entries and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import numpy as np

from rag_assets.common.errors import IndexInconsistent, RagAssetsError
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index import fields
from rag_assets.storage.index.memory.searcher import (
    Memory,
    MemorySearcher,
    Row,
    build_missing_index_error,
)
from rag_assets.storage.index.model import (
    BuildCount,
    CountedBuild,
    Entry,
    EntryVector,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    Presence,
    ScannedEntry,
    StoredEntry,
    TenantView,
    VersionCount,
)
from rag_assets.storage.index.store import StoreConfig, VectorStore


class MemoryIndexes:
    """Administers indexes in memory (see IndexAdministration)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def cluster_id(self) -> str | None:
        return None

    def adopt(self, indexes: Mapping[str, str]) -> None:
        """Do nothing: the memory belongs to its process."""

    def take_over(self, former: UUID) -> None:
        """Do nothing: the memory belongs to its process."""

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        is_dedicated = placement == "dedicated"
        stem = f"{self._memory.prefix}-{spec.dimensions}-{spec.vector_index}-"
        name = (
            f"{stem}own-{tenant}"
            if is_dedicated
            else self._find_shared_index_with_room(f"{stem}shared-")
        )
        index = self._memory.create(name, spec, tenant if is_dedicated else None)
        return IndexRef(name, index.identity)

    def presence(self, index: IndexRef) -> Presence:
        return self._memory.presence(index)

    def require_usable(self, index_name: str) -> None:
        """Do nothing: data in memory can always be searched."""

    def conditions(self) -> list[RagAssetsError]:
        return []

    def list_layout_differences(self) -> list[str]:
        return []

    def count(self, builds: Sequence[CountedBuild]) -> list[BuildCount]:
        return [self._count(build) for build in builds]

    def vector_length(self, index_name: str) -> int | None:
        index = self._memory.indexes.get(index_name)
        return None if index is None else index.spec.dimensions

    def fits(self, index_name: str, spec: IndexSpec) -> bool:
        index = self._memory.indexes.get(index_name)
        return index is None or index.spec == spec

    def names(self) -> list[str]:
        return sorted(self._memory.indexes)

    def dedicated(self, tenant: str) -> list[str]:
        indexes = self._memory.indexes.items()
        return sorted(name for name, index in indexes if index.dedicated_to == tenant)

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        rows = self._memory.rows(index_name)
        return sorted({(row.fields["tenant"], row.fields["incarnation"]) for row in rows})

    def bytes_per_entry(self, index_name: str) -> float | None:
        rows = list(self._memory.rows(index_name))
        total_bytes = sum(row.vector.nbytes + len(repr(row.fields)) for row in rows)
        return total_bytes / len(rows) if rows else None

    def drop(self, index_name: str) -> None:
        with self._memory.lock:
            self._memory.indexes.pop(index_name, None)
            views = self._memory.views
            self._memory.views = {t: view for t, view in views.items() if view[0] != index_name}

    def expunge(self, index_name: str) -> int:
        return 0

    def view_name(self, tenant: str) -> str:
        return f"{self._memory.prefix}-tenant-{tenant}"

    def publish(self, index_name: str, owner: Owner) -> None:
        if index_name not in self._memory.indexes:
            raise build_missing_index_error(index_name)
        self._memory.views[owner.tenant] = (index_name, owner)

    def withdraw(self, tenant: str) -> None:
        self._memory.views.pop(tenant, None)

    def is_published(self, index_name: str, owner: Owner) -> bool:
        return self._memory.views.get(owner.tenant) == (index_name, owner)

    def view(self, tenant: str) -> TenantView | None:
        view = self._memory.views.get(tenant)
        if view is None:
            return None
        tenants = {row.fields["tenant"] for row in self._memory.list_owned_rows(*view)}
        return TenantView(self.view_name(tenant), restricted=True, tenants=tuple(sorted(tenants)))

    def _count(self, build: CountedBuild) -> BuildCount:
        presence = self._memory.presence(build.index)
        if presence != "present":
            return BuildCount(presence)
        rows = self._memory.list_owned_rows(build.index.name, build.owner)
        recent = sum(row.fields["index_key"] in build.recent_keys for row in rows)
        is_shown = not build.is_serving or self.is_published(build.index.name, build.owner)
        return BuildCount(presence, len(rows), recent, is_shown)

    def _find_shared_index_with_room(self, stem: str) -> str:
        number = 1
        while len(self._memory.rows(f"{stem}{number}")) >= self._memory.shared_limit:
            number += 1
        return f"{stem}{number}"


class MemoryEntries:
    """Writes and reads entries in memory (see EntryStore)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        rows = [
            Row(
                entry.id,
                entry.owner.tenant,
                fields.build_entry_source(entry),
                np.array(entry.vector, dtype=np.float32),
            )
            for entry in entries
        ]
        with self._memory.lock:
            index = self._memory.indexes.get(index_name)
            if index is None:
                raise build_missing_index_error(index_name)
            for row in rows:
                if len(row.vector) != index.spec.dimensions:
                    raise IndexInconsistent(
                        f"index {index_name!r} rejected a vector with {len(row.vector)} dimensions",
                        hint=f"the index has vectors with {index.spec.dimensions} dimensions",
                    )
                index.rows[row.tenant, row.id] = row
        return len(rows)

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        wanted = list(ids)
        with self._memory.lock:
            index = self._memory.indexes.get(index_name)
            if index is not None:
                for id_ in wanted:
                    index.rows.pop((tenant, id_), None)
        return len(wanted)

    def delete_other_versions(
        self,
        index_name: str,
        owner: Owner,
        kept: Mapping[str, str | None],
        *,
        guard: Callable[[], None],
        refreshed: bool = False,
    ) -> int:
        ids = [
            row.id
            for row in self._memory.list_owned_rows(index_name, owner)
            if row.fields["document_id"] in kept
            and row.fields["index_key"] != kept[row.fields["document_id"]]
        ]
        guard()
        return self.delete(index_name, owner.tenant, ids)

    def set_scopes(
        self, index_name: str, owner: Owner, scopes: Mapping[str, str], *, guard: Callable[[], None]
    ) -> int:
        guard()
        with self._memory.lock:
            changed = [
                replace(
                    row,
                    fields=fields.with_scope(
                        row.fields, scopes[row.fields["document_id"]], owner.digest_key
                    ),
                )
                for row in self._memory.list_owned_rows(index_name, owner)
                if scopes.get(row.fields["document_id"], row.fields["access_scope"])
                != row.fields["access_scope"]
            ]
            for row in changed:
                self._memory.indexes[index_name].rows[row.tenant, row.id] = row
        return len(changed)

    def scan(
        self,
        index_name: str,
        tenant: str,
        digest_key: bytes | None = None,
        document_ids: Collection[str] | None = None,
    ) -> Iterator[ScannedEntry]:
        for row in self._memory.rows(index_name):
            wanted = document_ids is None or row.fields["document_id"] in document_ids
            if wanted and tenant in {row.tenant, row.fields["tenant"]}:
                yield fields.build_scanned_entry(row.id, row.fields, row.tenant, digest_key)

    def iter_unowned_entries(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        ours = {(owner.incarnation, owner.generation) for owner in owners}
        for entry in self.scan(index_name, tenant):
            known = (entry.incarnation, entry.generation) in ours and entry.tenant == tenant
            if not (known and entry.correctly_routed):
                yield entry

    def iter_version_counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        counter = Counter(
            (row.fields["document_id"], row.fields["index_key"], row.fields["access_scope"])
            for row in self._memory.list_owned_rows(index_name, owner)
        )
        for version, number in counter.items():
            yield VersionCount(*version, number)

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        for row in self._memory.list_owned_rows(index_name, owner):
            yield fields.build_stored_entry(owner, row.id, row.fields)

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        entries = self.stored(index_name, owner)
        return (entry for entry in entries if entry.fields["document_id"] in document_ids)

    def count(self, index_name: str, owner: Owner) -> int:
        return len(self._memory.list_owned_rows(index_name, owner))

    def matching(
        self, index_name: str, tenant: str, field: str, values: Collection[str]
    ) -> list[str]:
        rows = [row for row in self._memory.rows(index_name) if row.fields["tenant"] == tenant]
        return [row.id for row in rows if row.fields[field] in values]

    def containing(self, index_name: str, tenant: str, phrase: str) -> dict[str, str]:
        return {
            row.id: row.fields["text_sha256"]
            for row in self._memory.rows(index_name)
            if row.fields["tenant"] == tenant
            and any(phrase in row.fields.get(name, "") for name in ("text", "context"))
        }

    def vectors(
        self, index_name: str, owner: Owner, texts: HashRange | Collection[str]
    ) -> Iterator[EntryVector]:
        for row in self._memory.list_owned_rows(index_name, owner):
            if row.fields["text_sha256"] in texts:
                vector = row.vector if row.vector.any() else None
                yield fields.build_entry_vector(owner, row.id, row.fields, vector)

    def iter_ids_without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        return (
            row.id
            for row in self._memory.list_owned_rows(index_name, owner)
            if not row.vector.any()
        )


class MemoryNotes:
    """Keeps notes in memory (see NoteStore)."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self._notes.get(name)

    def write(self, name: str, text: str) -> None:
        self._notes[name] = text

    def delete(self, name: str) -> None:
        self._notes.pop(name, None)


def open_store(config: StoreConfig) -> VectorStore:
    """Open a new, empty store in memory."""
    memory = Memory(config.prefix, config.shared_limit)
    return VectorStore(
        entries=MemoryEntries(memory),
        indexes=MemoryIndexes(memory),
        searcher=partial(MemorySearcher, memory),
        notes=MemoryNotes(),
        close=memory.indexes.clear,
    )
