"""Writing and reading entries in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import numpy as np

from rag_assets.common.errors import IndexInconsistent
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index import fields
from rag_assets.storage.index.memory.state import Memory, Row, missing_index
from rag_assets.storage.index.model import (
    Entry,
    EntryVector,
    Owner,
    ScannedEntry,
    StoredEntry,
    VersionCount,
)


class MemoryEntries:
    """Writes and reads entries in memory (see EntryStore)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        rows = [_row(entry) for entry in entries]
        with self._memory.lock:
            index = self._memory.indexes.get(index_name)
            if index is None:
                raise missing_index(index_name)
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
        self,
        index_name: str,
        owner: Owner,
        scopes: Mapping[str, str],
        *,
        guard: Callable[[], None],
    ) -> int:
        guard()
        with self._memory.lock:
            changed = [
                _with_scope(row, owner, scopes[row.fields["document_id"]])
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

    def strangers(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        ours = {(owner.incarnation, owner.generation) for owner in owners}
        for entry in self.scan(index_name, tenant):
            known = (entry.incarnation, entry.generation) in ours and entry.tenant == tenant
            if not (known and entry.correctly_routed):
                yield entry

    def counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        found = Counter(
            (row.fields["document_id"], row.fields["index_key"], row.fields["access_scope"])
            for row in self._memory.list_owned_rows(index_name, owner)
        )
        for version, count in found.items():
            yield VersionCount(*version, count)

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        for row in self._memory.list_owned_rows(index_name, owner):
            yield fields.build_stored_entry(owner, row.id, row.fields)

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        found = self.stored(index_name, owner)
        return (entry for entry in found if entry.fields["document_id"] in document_ids)

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
                yield fields.entry_vector(owner, row.id, row.fields, vector)

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        return (
            row.id
            for row in self._memory.list_owned_rows(index_name, owner)
            if not row.vector.any()
        )


def _row(entry: Entry) -> Row:
    vector = np.array(entry.vector, dtype=np.float32)
    return Row(entry.id, entry.owner.tenant, fields.entry_source(entry), vector)


def _with_scope(row: Row, owner: Owner, scope: str) -> Row:
    return Row(
        row.id, row.tenant, fields.with_scope(row.fields, scope, owner.digest_key), row.vector
    )
