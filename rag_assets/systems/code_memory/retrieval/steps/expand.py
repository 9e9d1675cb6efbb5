"""The search step Expand: adds candidates that are related to the best ones.

An answer may lie along a chain ("who is notified when a payment arrives"). The question then only
has words of the two ends of the chain. The links in between are found by their relations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.ingest.sources.model import path_of
from rag_assets.search.fusion import by_rank, fuse
from rag_assets.search.progress import Ranking, SearchProgress, Walked
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.storage.index.model import MOST_PLACES, Candidate, Place
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.arranging import Rated, arrange_candidates
from rag_assets.systems.code_memory.retrieval.asked_kinds import asked_kinds
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, node_of
from rag_assets.systems.code_memory.retrieval.relevance import Relevance, relevance
from rag_assets.systems.code_memory.retrieval.steps.places import find_entries_at, place_of
from rag_assets.systems.code_memory.retrieval.steps.views import Views
from rag_assets.systems.code_memory.retrieval.surroundings import Surroundings
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.symbols.source_types import type_of_place

_BEGUN_AT: Final = 30
"""Number of candidates whose relations are followed."""
_LATER: Final = 20
"""Rank at which the relevance of a search result is halved."""
_GAINED: Final = 0.6
"""Weight of relevance that comes from relations, relative to that from the search rank."""
_UNNAMED: Final = 0.5
"""Share of relevance that each definition of a file gets from a passage without a definition."""


class Expand(TrustedStep):
    """Walks from the best candidates if the question names no definition, and reorders them.

    Args:
        services: reads relations and the index.
    """

    after = ("recall",)
    before = ("verify",)

    def __init__(self, services: SearchServices) -> None:
        self._views = Views(services)
        self._services = services

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Reorder the candidates, including those that are related to the best of them."""
        tenant = progress.search.tenant
        if not reads_code(tenant) or progress.walked is not None or not progress.rankings:
            return progress
        with progress.timings.part("walk"):
            by_id = {c.id: c for one in progress.rankings for c in one.candidates}
            # Use ranks and not scores: a walk passes on shares by rank.
            ranks = [by_rank([c.id for c in one.candidates]) for one in progress.rankings]
            order = [*fuse(ranks)]
            found = {id_: _LATER / (_LATER + rank) for rank, id_ in enumerate(order)}
            best = [by_id[id_] for id_ in order[:_BEGUN_AT]]
            view, surroundings = await run_sync(self._views.with_surroundings, progress)
            walk = await run_sync(partial(_walk_from_candidates, view, surroundings, best, found))
            if not walk.relevance.gained:
                return progress
            places = await find_entries_at(self._services, progress, [*walk.gains])
            rated = _rate_candidates(progress, {**by_id, **{c.id: c for c in places}}, found, walk)
            depth = progress.search.depth
            arrangement = arrange_candidates(
                rated, asked_kinds(progress.search.request.query), depth
            )
        paths = tuple(one.path for one in walk.relevance.gained if len(one.path) > 1)
        walked = Walked(frozenset(), paths, walk.relevance.complete)
        # Clear the former ranks: the new order includes them, and they must not count twice.
        counted = [replace(one, weight=0.0) for one in progress.rankings]
        return replace(progress, walked=walked, rankings=[*counted, Ranking("walk", arrangement)])


@dataclass(frozen=True, slots=True)
class _Walk:
    """The result of a walk.

    Attributes:
        gains: relevance that places gained, greatest first.
        types: source types of definitions, by document and name.
    """

    relevance: Relevance
    gains: Mapping[Place, float]
    types: Mapping[tuple[str, str], str]


def _walk_from_candidates(
    view: View,
    surroundings: Surroundings,
    candidates: Sequence[Candidate],
    found: Mapping[str, float],
) -> _Walk:
    """Walk from the definitions in candidates."""
    scores: dict[tuple[str, str], float] = {}
    for one in candidates:
        scores.setdefault((one.uri, one.symbol), found[one.id])
    nodes: dict[NodeKey, Node] = {}
    seeds: dict[NodeKey, float] = {}
    types: dict[tuple[str, str], str] = {}
    for symbol in view.within_any([*dict.fromkeys(one.uri for one in candidates)]):
        node, local = node_of(symbol), symbol.local_name
        types[symbol.document_id, local] = node.source_type
        score = scores.get((symbol.uri, local))
        if score is None:
            score = _UNNAMED * scores.get((symbol.uri, ""), 0.0)
        if score:
            key = symbol.source, symbol.name
            nodes[key] = node
            seeds[key] = max(seeds.get(key, 0.0), score)
    brought = relevance(view, surroundings, seeds, nodes)
    gains: dict[Place, float] = {}
    for reached in brought.gained:
        place = place_of(reached)
        if place is not None:
            gains.setdefault(place, reached.score)
            types.setdefault((place.document_id, place.symbol or ""), reached.node.source_type)
    for document_id, score in brought.stating.items():
        gains.setdefault(Place(document_id), score)
    ordered = sorted(gains, key=lambda place: -gains[place])[:MOST_PLACES]
    return _Walk(brought, {place: gains[place] for place in ordered}, types)


def _rate_candidates(
    progress: SearchProgress,
    candidates: Mapping[str, Candidate],
    found: Mapping[str, float],
    walk: _Walk,
) -> list[Rated]:
    """Return the candidates with their relevance from both the search and the walk."""

    def rated(one: Candidate) -> Rated:
        whole, exact = Place(one.document_id), Place(one.document_id, one.symbol)
        gained = walk.gains.get(exact, walk.gains.get(whole, 0.0))
        type_ = walk.types.get((one.document_id, one.symbol))
        return Rated(
            one,
            found.get(one.id, 0.0) + _GAINED * gained,
            type_ or type_of_place(path_of(one.uri)),
            preferred=progress.search.prefers(one.uri),
        )

    return [rated(one) for one in candidates.values()]
