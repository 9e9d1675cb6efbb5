"""A second store for vectors: writes go to both stores, vector searches only to the second store.

Words and texts are only in the first store, together with its own copy of the vectors. The first
store answers whenever the second does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import VectorsUnavailable
from rag_assets.storage.index.model import (
    NONE_MOVED,
    Candidate,
    Entry,
    EntryCounts,
    IndexRef,
    MovedPages,
    Owner,
    PassageVector,
    Presence,
    RankingRequest,
    StoredEntry,
)
from rag_assets.storage.index.store import EntrySearcher, EntryWriter

if TYPE_CHECKING:
    from rag_assets.storage.index.pgvector.searcher import PgVectorSearcher
    from rag_assets.storage.index.pgvector.tables import PgVectors


class MirroredEntries:
    """Writes a build's entries to both stores (see EntryWriter).

    Args:
        on_failure: called when a write to the second store failed. It must stop searches from using
            the second store, which now lacks entries.
    """

    def __init__(
        self, first: EntryWriter, second: PgVectors, on_failure: Callable[[], None]
    ) -> None:
        self._first, self._second, self._on_failure = first, second, on_failure

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        all_entries = list(entries)
        written = self._first.write(index_name, all_entries)
        self._write_second(lambda: self._second.write(all_entries))
        return written

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        all_ids = list(ids)
        deleted = self._first.delete(index_name, tenant, all_ids)
        self._write_second(lambda: self._second.delete(tenant, all_ids))
        return deleted

    def delete_other_versions(
        self,
        index_name: str,
        owner: Owner,
        kept: Mapping[str, str | None],
        *,
        guard: Callable[[], None],
        refreshed: bool = False,
    ) -> int:
        deleted = self._first.delete_other_versions(
            index_name, owner, kept, guard=guard, refreshed=refreshed
        )
        guard()
        self._write_second(lambda: self._second.delete_other_versions(owner, kept))
        return deleted

    def set_scopes(
        self, index_name: str, owner: Owner, scopes: Mapping[str, str], *, guard: Callable[[], None]
    ) -> int:
        changed = self._first.set_scopes(index_name, owner, scopes, guard=guard)
        guard()
        self._write_second(lambda: self._second.set_scopes(owner, scopes))
        return changed

    def _write_second(self, work: Callable[[], object]) -> None:
        try:
            work()
        except VectorsUnavailable:
            self._on_failure()


class SplitSearcher:
    """Searches vectors in the second store for builds that use it (see EntrySearcher)."""

    def __init__(self, first: EntrySearcher, second: PgVectorSearcher) -> None:
        self._first, self._second = first, second

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        vectors = {
            number: request.by
            for number, request in enumerate(requests)
            if owner.vectors_beside and isinstance(request.by, np.ndarray)
        }
        if not vectors:
            return await self._first.rankings(index_name, owner, requests)
        nearest = {
            number: asyncio.ensure_future(self._second.ranking(owner, by, requests[number]))
            for number, by in vectors.items()
        }
        others = [request for number, request in enumerate(requests) if number not in vectors]
        try:
            other_rankings = iter(
                await self._first.rankings(index_name, owner, others) if others else ()
            )
            return [
                await nearest[n] if n in nearest else next(other_rankings)
                for n in range(len(requests))
            ]
        finally:
            for task in nearest.values():
                task.cancel()
            await asyncio.gather(*nearest.values(), return_exceptions=True)

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        return await self._first.cosines(index_name, owner, vector, ids)

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
        return await self._first.entries(index_name, owner, ids, scopes, vector, moved=moved)

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        return await self._first.vectors(index_name, owner, ids)

    async def count_entries(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> EntryCounts:
        return await self._first.count_entries(index_name, owner, recent_keys)

    async def presence(self, index: IndexRef) -> Presence:
        return await self._first.presence(index)

    async def close(self) -> None:
        await self._first.close()
        await self._second.close()
