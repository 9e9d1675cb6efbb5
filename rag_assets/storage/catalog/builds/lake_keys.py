"""Keys under which the lake stores the parsed texts and chunk sets of versions in builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.database import CatalogQueries, TenantRef
from rag_assets.storage.catalog.documents.status import (
    is_behind,
    is_of_generation,
    is_same_document,
    join_versions,
)
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.erasure.receipts import held_texts
from rag_assets.storage.catalog.tables import document_index, documents

_BATCH_VERSIONS = 2_000


@dataclass(frozen=True, slots=True)
class RecordedKeys:
    """The lake keys of one version of a document."""

    document_id: str
    parse_key: str
    chunk_set_key: str


@dataclass(frozen=True, slots=True)
class NeededVersion(RecordedKeys):
    """A version in a build, with the keys that the build needs, and its number of chunks."""

    chunk_count: int


class LakeKeyTable(CatalogQueries):
    """Reads and records, in `document_index`, the lake keys of the versions in builds."""

    def read_all(self, tenant_id: str) -> tuple[set[str], set[str], int]:
        """Return the lake keys of all versions in builds, and of former versions kept by holds.

        The result has the parse_keys, the chunk_set_keys, and the number of versions that were
        indexed before keys were recorded.

        Keys of deleted documents are left out, unless a hold keeps the documents.
        """
        indexed = document_index.c
        query = (
            sa.select(indexed.parse_key, indexed.chunk_set_key)
            .join(documents, is_same_document())
            .where(
                indexed.tenant == tenant_id,
                _is_needed(),
                sa.or_(indexed.indexed_key.is_not(None), indexed.parse_key.is_not(None)),
            )
        )
        under_hold = sa.select(held_texts.c.parse_key, held_texts.c.chunk_set_key).where(
            held_texts.c.tenant == tenant_id
        )
        parsed: set[str] = set()
        chunk_sets: set[str] = set()
        unknown = 0
        for parse_key, chunk_set_key in self._database.fetch_rows(query.union_all(under_hold)):
            if parse_key is None:
                unknown += 1
            else:
                parsed.add(parse_key)
                chunk_sets.add(chunk_set_key)
        return parsed, chunk_sets, unknown

    def list_needed(self, tenant_id: str, generation: int) -> Iterator[NeededVersion]:
        """Stream the complete and valid versions in a build, with their lake keys."""
        indexed = document_index.c
        query = (
            sa.select(
                indexed.document_id, indexed.parse_key, indexed.chunk_set_key, indexed.chunk_count
            )
            .join(documents, is_same_document())
            .where(
                is_of_generation(tenant_id, generation),
                documents.c.status != "DELETED",
                indexed.indexed_key.is_not(None),
                indexed.document_key.is_not(None),
                indexed.parse_key.is_not(None),
            )
            # In the order of the lake's files, so that each batch reads only a part of them.
            .order_by(indexed.chunk_set_key)
        )
        with self._database.begin() as connection:
            for row in connection.execution_options(yield_per=_BATCH_VERSIONS).execute(query):
                yield NeededVersion(*row)

    def list_outdated(self, tenant_id: str, generation: int, config_key: str) -> list[str]:
        """Return the ids of documents whose current content is missing from a build.

        Args:
            generation: the build; 0 for a build that has not started yet.
        """
        return self._fetch_document_ids(
            sa.select(documents.c.document_id)
            .select_from(join_versions(generation))
            .where(documents.c.tenant == tenant_id, _is_needed(), is_behind(config_key))
        )

    def list_unrecorded(self, tenant_id: str, generation: int, config_key: str) -> list[str]:
        """Return ids of documents whose current content is in a build without recorded keys."""
        indexed = document_index.c
        return self._fetch_document_ids(
            sa.select(documents.c.document_id)
            .select_from(join_versions(generation))
            .where(
                documents.c.tenant == tenant_id,
                documents.c.status != "DELETED",
                indexed.indexed_key.is_not(None),
                indexed.parse_key.is_(None),
                ~is_behind(config_key),
            )
        )

    def record(self, ref: TenantRef, generation: int, keys: Sequence[RecordedKeys]) -> None:
        """Record the lake keys of versions that are in a build."""
        if not keys:
            return
        statement = (
            sa.update(document_index)
            .where(
                is_of_generation(ref.id, generation),
                document_index.c.document_id == sa.bindparam("version_of"),
            )
            .values(
                parse_key=sa.bindparam("its_parse_key"), chunk_set_key=sa.bindparam("its_chunks")
            )
        )
        rows = [
            {
                "version_of": recorded_keys.document_id,
                "its_parse_key": recorded_keys.parse_key,
                "its_chunks": recorded_keys.chunk_set_key,
            }
            for recorded_keys in keys
        ]
        self._database.write(ref, statement, rows)

    def _fetch_document_ids(self, query: sa.Select[Any]) -> list[str]:
        return list(self._database.fetch_values(query))


def _is_needed() -> sa.ColumnElement[bool]:
    return sa.or_(documents.c.status != "DELETED", is_held())
