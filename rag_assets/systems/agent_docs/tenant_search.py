"""Search of agents that are tenants: candidates in exact order, as the local stores order them.

An index scores in float32, as (1 + cosine) / 2, and breaks ties by the ids of entries. Local stores
score row by row in float64, round, and break ties by the ids of passages. So the candidates that
may be among the first are scored again as local stores do it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from anyio.from_thread import start_blocking_portal

from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.search_progress import Ranking, SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.recall import candidate_count, entry_filter_of
from rag_assets.storage.index.model import Candidate, Owner, RankingRequest, StoredEntry
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.systems.agent_docs.source import shown_path
from rag_assets.systems.agent_docs.stores import MARGIN, DocChunk, SearchResult, nearest, unit_rows

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

_SPARE: Final = 10
"""Candidates beyond those wanted that are ordered too: former versions may be among them."""
_MOST: Final = 10_000
_MORE: Final = 8


class Exact:
    """Orders what was recalled by vector.

    Args:
        services: read vectors.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the first candidates of each ranking by vector; see exact_candidates.

        Raises:
            IndexInconsistent: the tenant's index was lost.
        """
        vector = progress.vector
        if vector is None or not any(one.kind == "vector" for one in progress.rankings):
            return progress
        rankings = [
            await self._ordered(progress, one, vector) if one.kind == "vector" else one
            for one in progress.rankings
        ]
        return replace(progress, rankings=rankings)

    async def _ordered(
        self, progress: SearchProgress, ranking: Ranking, vector: npt.NDArray[np.float32]
    ) -> Ranking:
        depth = progress.search.depth
        request = RankingRequest(vector, candidate_count(depth), entry_filter_of(progress))
        ordered = await exact_candidates(
            self._searcher,
            progress.serving.index_name,
            progress.owner,
            request,
            wanted=depth + _SPARE,
            found=ranking.candidates,
        )
        return replace(ranking, candidates=ordered)


async def exact_candidates(
    searcher: EntrySearcher,
    index_name: str,
    owner: Owner,
    request: RankingRequest,
    *,
    wanted: int,
    found: Sequence[Candidate] | None = None,
) -> list[Candidate]:
    """A ranking by vector whose first candidates are in exact order, with exact scores.

    Args:
        searcher: of the index.
        index_name, owner: the index, and the owner of the entries.
        request: by a vector.
        wanted: how many are to be in exact order; those behind them keep that of the index.
        found: the candidates of the request, if they are known.

    Raises:
        IndexInconsistent: see EntrySearcher.rankings.
    """
    vector = request.by
    if not isinstance(vector, np.ndarray):
        raise TypeError("a ranking by vector can be ordered by vectors alone")
    if found is None:
        [found] = await searcher.rankings(index_name, owner, [request])
    while len(found) >= request.limit and request.limit < _MOST and _goes_on(found, wanted):
        # As many are equally near as were asked for: which of them come first is not known.
        request = replace(request, limit=min(_MOST, request.limit * _MORE))
        [found] = await searcher.rankings(index_name, owner, [request])
    near = [one for one in found if one.score >= _least(found, wanted)]
    vectors = await searcher.vectors(index_name, owner, [one.id for one in near])
    present = [one for one in near if one.id in vectors]
    if not present:
        return list(found[len(near) :])
    rows = unit_rows(np.stack([vectors[one.id].vector for one in present]))
    order = nearest(rows, vector, [vectors[one.id].chunk_id for one in present], len(present))
    exact = [replace(present[one.row], score=one.score) for one in order]
    return [*exact, *found[len(near) :]]


def _least(found: Sequence[Candidate], wanted: int) -> float:
    """The score from which on a candidate may be among the first."""
    return found[min(wanted, len(found)) - 1].score - MARGIN if found else 0.0


def _goes_on(found: Sequence[Candidate], wanted: int) -> bool:
    return found[-1].score >= _least(found, wanted)


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
