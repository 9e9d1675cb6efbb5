"""Searches in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from rag_assets.storage.index import fields
from rag_assets.storage.index.memory.ranking import cosine, is_readable, ranking
from rag_assets.storage.index.memory.state import Memory, Row, missing_index
from rag_assets.storage.index.model import (
    NONE_MOVED,
    Candidate,
    IndexRef,
    MovedPages,
    Owner,
    PassageVector,
    Presence,
    RankingRequest,
    StoredEntry,
)


class MemorySearcher:
    """Compares a query with every entry (see EntrySearcher)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        rows = self._rows(index_name, owner)
        return [ranking(rows, owner, request) for request in requests]

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        rows = self._rows(index_name, owner)
        return {row.id: cosine(row, vector) for row in rows if row.id in set(ids)}

    async def entries(
        self,
        index_name: str,
        owner: Owner,
        ids: Sequence[str],
        scopes: Collection[str] | None,
        vector: npt.NDArray[np.float32] | None = None,
        *,
        moved: MovedPages = NONE_MOVED,
    ) -> dict[str, StoredEntry]:
        wanted = set(ids)
        return {
            row.id: fields.build_stored_entry(
                owner, row.id, row.fields, None if vector is None else cosine(row, vector)
            )
            for row in self._rows(index_name, owner)
            if row.id in wanted and (scopes is None or is_readable(row.fields, scopes, moved))
        }

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        wanted = set(ids)
        return {
            row.id: PassageVector(row.fields["chunk_id"], row.vector)
            for row in self._rows(index_name, owner)
            if row.id in wanted and row.vector.any()
        }

    async def count(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> tuple[int, int]:
        rows = self._rows(index_name, owner)
        return len(rows), sum(row.fields["index_key"] in recent_keys for row in rows)

    async def presence(self, index: IndexRef) -> Presence:
        return self._memory.presence(index)

    async def close(self) -> None:
        """Do nothing: memory has no connections."""

    def _rows(self, index_name: str, owner: Owner) -> list[Row]:
        if index_name not in self._memory.indexes:
            raise missing_index(index_name)
        return self._memory.list_owned_rows(index_name, owner)
