"""Agents' passages in a tenant's index, by the protocol of the stores on one machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from anyio.from_thread import start_blocking_portal

from rag_assets.ingest.sources.model import path_of
from rag_assets.storage.index.model import Owner, RankingRequest, StoredEntry
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.systems.agent_docs.exact import exact_candidates
from rag_assets.systems.agent_docs.nearest import unit_rows
from rag_assets.systems.agent_docs.source import shown_path
from rag_assets.systems.agent_docs.stores import DocChunk, SearchResult

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

_OVERFETCH = 30


@dataclass(frozen=True, slots=True)
class AgentIndex:
    """Where the passages of an agent are.

    Attributes:
        index_name, owner: the index, and the owner of the entries.
        scopes: access scopes of the entries that may be read.
    """

    index_name: str
    owner: Owner
    scopes: frozenset[str] = frozenset({"public"})


class SearchedPassages:
    """Searches agents' passages through a Searcher; see PassageSearcher.

    It reads an index that the chain writes: what belongs there is recorded in the catalog before
    it is written, and another writer would be a second truth. Searches are not confirmed by the
    catalog: AsyncRetriever does that.

    Args:
        searcher: of the index.
        index_of: where the passages of an agent are; None for an agent without an index.
    """

    def __init__(
        self, searcher: EntrySearcher, index_of: Callable[[str], AgentIndex | None]
    ) -> None:
        self._searcher = searcher
        self._index_of = index_of
        self._lock = threading.Lock()
        self._running = ExitStack()
        self._portal: BlockingPortal | None = None

    def has_index(self, agent_id: str) -> bool:
        """See PassageSearcher.has_index."""
        return self._index_of(agent_id) is not None

    def search(
        self, query_embedding: npt.ArrayLike, agent_id: str, top_k: int
    ) -> list[SearchResult]:
        """See PassageSearcher.search."""
        index = self._index_of(agent_id)
        if index is None or top_k < 1:
            return []
        return self._loop().call(self._found, index, agent_id, unit_rows(query_embedding)[0], top_k)

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None:
            portal.call(self._searcher.close)
            self._running.close()

    async def _found(
        self, index: AgentIndex, agent_id: str, vector: npt.NDArray[np.float32], top_k: int
    ) -> list[SearchResult]:
        place = index.index_name, index.owner
        request = RankingRequest(vector, 2 * top_k + _OVERFETCH)
        ranked = await exact_candidates(self._searcher, *place, request, wanted=top_k)
        first = ranked[:top_k]
        read = await self._searcher.entries(*place, [one.id for one in first], index.scopes)
        return [
            SearchResult(_chunk_of(agent_id, read[one.id]), one.score)
            for one in first
            if one.id in read
        ]

    def _loop(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None:
                self._portal = self._running.enter_context(start_blocking_portal(name="passages"))
            return self._portal


def _chunk_of(agent_id: str, entry: StoredEntry) -> DocChunk:
    fields = entry.fields
    id_: str = fields["chunk_id"]
    path = shown_path(path_of(fields["uri"]))
    return DocChunk(id_, fields["text"], path, int(id_.rpartition(":")[2]), agent_id)
