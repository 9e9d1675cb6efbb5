"""The tool `rag_search` for agents that are tenants, with results ordered as by local stores.

Elasticsearch scores in float32 as (1 + cosine) / 2, and breaks ties by entry id. The local stores
score row by row in float64, round, and break ties by passage id. So the search step `exact` scores
the best candidates again as the local stores do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rag_assets.ingest.sources.model import parse_path
from rag_assets.mcp.tools import DISABLED, Knowledge, Tool, ToolFunction
from rag_assets.search.contexts import format_passages
from rag_assets.search.progress import Ranking, SearchProgress
from rag_assets.search.recall import build_entry_filter, compute_candidate_count
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import Candidate, Owner, RankingRequest
from rag_assets.storage.index.store import EntrySearcher
from rag_assets.systems.agent_docs.globs import escape_path
from rag_assets.systems.agent_docs.prompts import (
    DESCRIPTION,
    MAX_QUERY,
    QUERY_DESCRIPTION,
    TOOL,
    require_query,
)
from rag_assets.systems.agent_docs.stores import SCORE_TOLERANCE, normalize_rows, rank_rows

_EXTRA_CANDIDATES: Final = 10
"""Number of candidates to order beyond those requested, as some may be previous versions."""
_MAX_CANDIDATES: Final = 10_000
"""Maximum number of candidates that are fetched to order ties; further ties are ignored."""
_GROWTH_FACTOR: Final = 8


class ExactOrder:
    """The search step that orders vector candidates exactly."""

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the first candidates of each ranking by vector; see order_exactly.

        Raises:
            IndexInconsistent: the tenant's index was lost.
        """
        vector = progress.vector
        if vector is None or not any(ranking.kind == "vector" for ranking in progress.rankings):
            return progress
        rankings = [
            await self._order_candidates(progress, ranking, vector)
            if ranking.kind == "vector"
            else ranking
            for ranking in progress.rankings
        ]
        return replace(progress, rankings=rankings)

    async def _order_candidates(
        self, progress: SearchProgress, ranking: Ranking, vector: npt.NDArray[np.float32]
    ) -> Ranking:
        depth = progress.search.depth
        candidates = await order_exactly(
            self._searcher,
            progress.serving.index_name,
            progress.owner,
            RankingRequest(vector, compute_candidate_count(depth), build_entry_filter(progress)),
            ranking.candidates,
            count=depth + _EXTRA_CANDIDATES,
        )
        return replace(ranking, candidates=candidates)


async def order_exactly(
    searcher: EntrySearcher,
    index_name: str,
    owner: Owner,
    request: RankingRequest,
    candidates: Sequence[Candidate],
    *,
    count: int,
) -> list[Candidate]:
    """Put the first candidates of a ranking by vector into exact order, with exact scores.

    Args:
        request: the ranking request; repeated with a higher limit if all candidates tie.
        count: how many candidates to order; the others keep their order.
    """
    vector = request.by
    if not isinstance(vector, np.ndarray):
        raise TypeError("exact ordering needs a request with a vector")
    while (
        request.limit <= len(candidates)
        and request.limit < _MAX_CANDIDATES
        and candidates[-1].score >= _compute_minimum_score(candidates, count)
    ):
        # If the last candidate is as near as the first ones, there may be further candidates with
        # the same score.
        request = replace(request, limit=min(_MAX_CANDIDATES, request.limit * _GROWTH_FACTOR))
        [candidates] = await searcher.rankings(index_name, owner, [request])
    near = [
        candidate
        for candidate in candidates
        if candidate.score >= _compute_minimum_score(candidates, count)
    ]
    vectors = await searcher.vectors(index_name, owner, [candidate.id for candidate in near])
    present = [candidate for candidate in near if candidate.id in vectors]
    rest = candidates[len(near) :]
    if not present:
        return list(rest)
    rows = normalize_rows(np.stack([vectors[candidate.id].vector for candidate in present]))
    ids = [vectors[candidate.id].chunk_id for candidate in present]
    ranked = rank_rows(rows, vector, ids, len(present))
    return [*(replace(present[row], score=score) for row, score in ranked), *rest]


def _compute_minimum_score(candidates: Sequence[Candidate], count: int) -> float:
    """Return the score that a candidate needs to be among the first `count`.

    The score allows for the error of float32.
    """
    if not candidates:
        return 0.0
    return candidates[min(count, len(candidates)) - 1].score - SCORE_TOLERANCE


def _build_search_tool(knowledge: Knowledge) -> ToolFunction:
    async def rag_search(
        query: Annotated[str, Field(max_length=MAX_QUERY, description=QUERY_DESCRIPTION)],
    ) -> str:
        require_query(query)
        answer = await knowledge.answer(query)
        if answer.disabled:
            return DISABLED
        return format_passages(
            (hit.number, hit.score, escape_path(parse_path(hit.uri)), hit.text)
            for hit in answer.hits
        )

    return rag_search


SEARCH = Tool(
    name=TOOL,
    description=DESCRIPTION,
    function=_build_search_tool,
    profiles=frozenset({"agent-docs"}),
    read_only=True,
)
