"""Expand: candidates that are related to the best ones, in tenants that read source code.

A question whose answer lies along a chain (who is told when a payment arrives) has the words of its
ends alone: what stands between them is found by its relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.retrieval.asked_names import asked_names
from rag_assets.retrieval.code_nodes import Node, NodeKey, node_of
from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.flow import Flow, flow
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.search_progress import Ranking, SearchProgress, Walked
from rag_assets.retrieval.steps.places import found_places, related
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.walk import Walker
from rag_assets.storage.index.model import Candidate

_SEEDS: Final = 6
_DEPTH: Final = 2
_LATER: Final = 10
"""Rank by which the relevance of what a search found is halved."""


class Expand:
    """Walks from the best candidates of a search that names nothing.

    Args:
        services: read relations and the index.
    """

    def __init__(self, services: SearchServices) -> None:
        self._walker = Walker(services.catalog, services.policy)
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add a ranking of what is related to the best candidates."""
        tenant = progress.search.tenant
        if not tenant.reads_code or progress.walked is not None or not progress.rankings:
            return progress
        with progress.timings.part("walk"):
            by_id = {c.id: c for one in progress.rankings for c in one.candidates}
            fused = fuse([[c.id for c in one.candidates] for one in progress.rankings])
            best = [by_id[id_] for id_ in [*fused][:_SEEDS]]
            view = self._walker.view(progress.build, progress.caller, progress.moment)
            wanted = asked_names(progress.search.request.query).wanted
            found = await run_sync(partial(_walked, view, best, wanted))
            # What was found has its rank; the walk adds to it.
            beyond = replace(found, reached=tuple(r for r in found.reached if len(r.path) > 1))
            candidates = await found_places(self._searcher, progress, related(beyond))
        if not candidates:
            return progress
        paths = tuple(one.path for one in found.reached if len(one.path) > 1)
        walked = Walked(frozenset(), paths, found.complete)
        ranking = Ranking("walk", candidates)
        return replace(progress, walked=walked, rankings=[*progress.rankings, ranking])


def _walked(view: View, candidates: Sequence[Candidate], wanted: frozenset[str]) -> Flow:
    """What is related to the definitions in candidates, the first ones' relations most."""
    ranks: dict[tuple[str, str], int] = {}
    for rank, candidate in enumerate(candidates):
        ranks.setdefault((candidate.uri, candidate.symbol), rank)
    symbols = view.within_any([uri for uri, _ in ranks])
    nodes: dict[NodeKey, Node] = {}
    seeds: dict[NodeKey, float] = {}
    for one in symbols:
        place = next((p for p in ((one.uri, one.local_name), (one.uri, "")) if p in ranks), None)
        if place is not None:
            key = one.source, one.name
            nodes[key] = node_of(one)
            seeds[key] = max(seeds.get(key, 0.0), _LATER / (_LATER + ranks[place]))
    return flow(view, seeds, nodes, depth=_DEPTH, wanted=wanted)
