"""The search step Expand: adds candidates that are related to the best ones, and orders them.

An answer may lie along a chain ("who is notified when a payment arrives"). The question then only
has words of the two ends of the chain. The links in between are found by their relations.

Such an answer needs room for each link. So a file's second passage comes after the first passages
of other files, and a class head comes after its methods. The best candidate of each requested kind
is moved up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.fusion import by_rank, fuse
from rag_assets.search.progress import Ranking, SearchProgress, Walked
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.storage.index.model import MOST_PLACES, Candidate, Place
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.asked import AskedKinds, asked_kinds
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.relevance import Flow, Surroundings, flow_from_results
from rag_assets.systems.code_memory.retrieval.steps.walk import (
    Views,
    find_place,
    find_place_entries,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.symbols.source_types import is_test, type_of_place

_ASKED: Final = 1.5
"""Factor for candidates of a kind that the question asks for."""
_FIRST: Final = 1.6
"""Additional factor for the first candidate of each kind that the question asks for."""
_PREFERRED: Final = 3.0
"""Factor for candidates in paths that the caller prefers."""
_TEST: Final = 0.4
"""Factor for tests if the question is not about tests."""
_TOLD: Final = 0.7
"""Factor for text about code, such as documentation and configuration."""
_HEAD: Final = 0.6
"""Factor for the head of a class whose methods have passages of their own."""
_CONSTRUCTOR: Final = 0.5
_SAME_FILE: Final = 0.6
"""Factor for each passage of a file after its first."""

_TELLING: Final = frozenset({"doc", "readme", "config", "api_endpoint"})
_WORKING: Final = frozenset(
    {"controller", "service", "listener", "policy", "job", "middleware", "request"}
)
_CONSTRUCTORS: Final = ("::__construct", ".__init__", ".constructor")


@dataclass(frozen=True, slots=True)
class Rated:
    """A candidate with its relevance; `preferred` if it lies in a path that the caller prefers."""

    candidate: Candidate
    score: float
    source_type: str
    preferred: bool = False


def arrange_candidates(rated: Sequence[Rated], asked: AskedKinds, count: int) -> list[Candidate]:
    """Return the candidates in the order in which they are shown.

    Args:
        rated: candidates, without duplicates.
        count: number of candidates that are chosen one by one; the others follow by relevance.
    """
    left = sorted(
        ((_weigh_candidate(one, asked), one) for one in rated),
        key=lambda one: (-one[0], one[1].candidate.id),
    )
    chosen: list[Candidate] = []
    of_file: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    while left and len(chosen) < count:

        def room(at: int) -> float:
            worth, one = left[at]
            is_first = one.source_type in asked.types and not of_kind[one.source_type]
            return worth * _SAME_FILE ** of_file[one.candidate.uri] * (_FIRST if is_first else 1)

        _, one = left.pop(max(range(len(left)), key=room))
        chosen.append(one.candidate)
        of_file[one.candidate.uri] += 1
        of_kind[one.source_type] += 1
    return [*chosen, *(one.candidate for _, one in left)]


def _weigh_candidate(rated: Rated, asked: AskedKinds) -> float:
    symbol, kind = rated.candidate.symbol, rated.source_type
    factors = (
        (_ASKED, kind in asked.types),
        (_PREFERRED, rated.preferred),
        (_TEST, not asked.tests and is_test(parse_path(rated.candidate.uri))),
        (_TOLD, kind in _TELLING),
        (_HEAD, _is_head(symbol, kind)),
        (_CONSTRUCTOR, symbol.endswith(_CONSTRUCTORS)),
    )
    worth = rated.score
    for factor, holds in factors:
        if holds:
            worth *= factor
    return worth


def _is_head(symbol: str, kind: str) -> bool:
    """Return whether a passage is the head of a class whose methods have separate passages."""
    is_class = bool(symbol) and "::" not in symbol
    return is_class and (kind in _WORKING or (kind == "code" and "\\" in symbol))


_BEGUN_AT: Final = 30
"""Number of candidates whose relations are followed."""
_LATER: Final = 20
"""Rank at which the relevance of a search result is halved."""
_GAINED: Final = 0.6
"""Weight of relevance that comes from relations, relative to that from the search rank."""
_UNNAMED_SHARE: Final = 0.5
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
            by_id = {c.id: c for ranking in progress.rankings for c in ranking.candidates}
            # Use ranks and not scores: a walk passes on shares by rank.
            ranks = [by_rank([c.id for c in ranking.candidates]) for ranking in progress.rankings]
            order = [*fuse(ranks)]
            found = {id_: _LATER / (_LATER + rank) for rank, id_ in enumerate(order)}
            best = [by_id[id_] for id_ in order[:_BEGUN_AT]]
            view, surroundings = await run_sync(self._views.with_surroundings, progress)
            walk = await run_sync(partial(_walk_from_candidates, view, surroundings, best, found))
            if not walk.flow.reached:
                return progress
            places = await find_place_entries(self._services, progress, [*walk.gains])
            rated = _rate_candidates(progress, {**by_id, **{c.id: c for c in places}}, found, walk)
            depth = progress.search.depth
            arrangement = arrange_candidates(
                rated, asked_kinds(progress.search.request.query), depth
            )
        paths = tuple(one.path for one in walk.flow.reached if len(one.path) > 1)
        walked = Walked(frozenset(), paths, walk.flow.complete)
        # Clear the former ranks: the new order includes them, and they must not count twice.
        counted = [replace(ranking, weight=0.0) for ranking in progress.rankings]
        return replace(progress, walked=walked, rankings=[*counted, Ranking("walk", arrangement)])


@dataclass(frozen=True, slots=True)
class _Walk:
    """The result of a walk.

    Attributes:
        gains: relevance that places gained, greatest first.
        types: source types of definitions, by document and name.
    """

    flow: Flow
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
    for candidate in candidates:
        scores.setdefault((candidate.uri, candidate.symbol), found[candidate.id])
    nodes: dict[NodeKey, Node] = {}
    seeds: dict[NodeKey, float] = {}
    types: dict[tuple[str, str], str] = {}
    for symbol in view.within_any([*dict.fromkeys(candidate.uri for candidate in candidates)]):
        node, local = build_node(symbol), symbol.local_name
        types[symbol.document_id, local] = node.source_type
        score = scores.get((symbol.uri, local))
        if score is None:
            score = _UNNAMED_SHARE * scores.get((symbol.uri, ""), 0.0)
        if score:
            key = symbol.source, symbol.name
            nodes[key] = node
            seeds[key] = max(seeds.get(key, 0.0), score)
    brought = flow_from_results(view, surroundings, seeds, nodes)
    gains: dict[Place, float] = {}
    for reached in brought.reached:
        place = find_place(reached)
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

    def rated(candidate: Candidate) -> Rated:
        whole, exact = Place(candidate.document_id), Place(candidate.document_id, candidate.symbol)
        gained = walk.gains.get(exact, walk.gains.get(whole, 0.0))
        type_ = walk.types.get((candidate.document_id, candidate.symbol))
        return Rated(
            candidate,
            found.get(candidate.id, 0.0) + _GAINED * gained,
            type_ or type_of_place(parse_path(candidate.uri)),
            preferred=progress.search.prefers(candidate.uri),
        )

    return [rated(candidate) for candidate in candidates.values()]
