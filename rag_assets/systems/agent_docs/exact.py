"""Exact order: what the index brings near a question, compared with it number by number.

An index scores in float32, as (1 + cosine) / 2, and leaves ties to the ids of entries. Stores on
one machine score row by row in float64, round, and break ties by the ids of passages. So the
candidates that may be among the first are scored again as those stores do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from rag_assets.retrieval.search_progress import Ranking, SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.recall import candidate_count, entry_filter_of
from rag_assets.storage.index.model import Candidate, Owner, RankingRequest
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.systems.agent_docs.nearest import MARGIN, nearest, unit_rows

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
