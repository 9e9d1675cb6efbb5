"""The search step `expand`: add candidates related to the best candidates, and reorder all.

An answer may lie along a chain ("who is notified when a payment arrives"). The question then has
only words from the two ends of the chain. The links in between are found by their relations.

A file with several found passages is more likely to belong to the answer than a file with one, so
each passage is rated together with the others of its file.

Each link needs room in the results. So a file's second passage comes after the first passages of
other files, the head of a class comes after its methods, and the best candidate of each requested
kind is moved up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.fusion import fuse, score_by_rank
from rag_assets.search.progress import Ranking, SearchProgress, WalkResult
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.storage.index.model import MAX_PLACES, Candidate, Place
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.question_subject import (
    QuestionKinds,
    find_question_kinds,
)
from rag_assets.systems.code_memory.retrieval.relevance import (
    Flow,
    Neighbourhoods,
    flow_from_results,
)
from rag_assets.systems.code_memory.retrieval.steps.walk import (
    RelationViews,
    find_place,
    find_place_entries,
)
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.symbols.source_types import get_type_of_path, is_test

_WANTED_TYPE_FACTOR: Final = 1.5
"""Factor for candidates of a kind that the question asks for."""
_FIRST_OF_TYPE_FACTOR: Final = 1.6
"""Additional factor for the first candidate of each kind that the question asks for."""
_PREFERRED_FACTOR: Final = 3.0
"""Factor for candidates in paths that the caller prefers."""
_TEST_FACTOR: Final = 0.4
"""Factor for tests if the question is not about tests."""
_DESCRIPTION_FACTOR: Final = 0.7
"""Factor for texts about code, such as documentation and configuration."""
_HEAD_FACTOR: Final = 0.6
"""Factor for the head of a class if its methods have separate passages."""
_CONSTRUCTOR_FACTOR: Final = 0.5
_SAME_FILE_FACTOR: Final = 0.3
"""Factor for each passage of a file after its first."""

_DESCRIBING_TYPES: Final = frozenset({"doc", "readme", "config", "api_endpoint"})
_TYPES_WITH_METHODS: Final = frozenset(
    {"controller", "service", "listener", "policy", "job", "middleware", "request"}
)
_CONSTRUCTORS: Final = ("::__construct", ".__init__", ".constructor")


@dataclass(frozen=True, slots=True)
class RatedCandidate:
    """A candidate with its relevance.

    Attributes:
        is_preferred: whether it is in a path that the caller prefers.
        role: the role of its definition, as in Node; "" if it is unknown.
    """

    candidate: Candidate
    score: float
    source_type: str
    is_preferred: bool = False
    role: str = ""


def arrange_candidates(
    rated: Sequence[RatedCandidate], question: QuestionKinds, count: int
) -> list[Candidate]:
    """Return the candidates in the order of the results.

    Args:
        rated: candidates, without duplicates.
        question: the kinds that the question asks for.
        count: number of candidates at the top that are chosen for variety of files and kinds; the
            rest follow by relevance.
    """
    unplaced = sorted(
        (
            (_weigh_candidate(rated_candidate, question), rated_candidate)
            for rated_candidate in rated
        ),
        key=lambda weighed: (-weighed[0], weighed[1].candidate.id),
    )
    chosen_candidates: list[Candidate] = []
    of_file: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    while unplaced and len(chosen_candidates) < count:

        def rate_variety(at: int) -> float:
            worth, rated_candidate = unplaced[at]
            is_first = (
                rated_candidate.source_type in question.wanted_types
                and not of_kind[rated_candidate.source_type]
            )
            return (
                worth
                * _SAME_FILE_FACTOR ** of_file[rated_candidate.candidate.uri]
                * (_FIRST_OF_TYPE_FACTOR if is_first else 1)
            )

        _, rated_candidate = unplaced.pop(max(range(len(unplaced)), key=rate_variety))
        chosen_candidates.append(rated_candidate.candidate)
        of_file[rated_candidate.candidate.uri] += 1
        of_kind[rated_candidate.source_type] += 1
    return [*chosen_candidates, *(rated_candidate.candidate for _, rated_candidate in unplaced)]


def _weigh_candidate(rated: RatedCandidate, question: QuestionKinds) -> float:
    symbol, kind = rated.candidate.symbol, rated.source_type
    factors = (
        (_WANTED_TYPE_FACTOR, kind in question.wanted_types),
        (_PREFERRED_FACTOR, rated.is_preferred),
        (_TEST_FACTOR, not question.is_about_tests and is_test(parse_path(rated.candidate.uri))),
        (_DESCRIPTION_FACTOR, kind in _DESCRIBING_TYPES),
        (_HEAD_FACTOR, _is_head(symbol, kind, rated.role)),
        (_CONSTRUCTOR_FACTOR, symbol.endswith(_CONSTRUCTORS)),
    )
    worth = rated.score
    for factor, holds in factors:
        if holds:
            worth *= factor
    return worth


def _is_head(symbol: str, kind: str, role: str) -> bool:
    """Return whether a passage is the head of a class, whose methods have their own passages."""
    is_class = role == "class" if role else bool(symbol) and "::" not in symbol
    return is_class and (kind in _TYPES_WITH_METHODS or (kind == "code" and "\\" in symbol))


_MAX_START_CANDIDATES: Final = 30
"""Number of candidates whose relations are followed."""
_HALVING_RANK: Final = 20
"""Rank at which the relevance of a search result is halved."""
_GAIN_WEIGHT: Final = 0.6
"""Weight of relevance from relations; relevance from the search rank has weight 1."""
_UNNAMED_SHARE: Final = 0.5
"""Share of relevance that each definition of a file gets from a passage without a definition."""


class ExpandStep(TrustedStep):
    """Adds candidates that are related to the best ones, and reorders all.

    It changes nothing if the step `walk` has found names in the question.

    Args:
        services: reads relations and the index.
    """

    after = ("recall",)
    before = ("verify",)

    def __init__(self, services: SearchServices) -> None:
        self._views = RelationViews(services)
        self._services = services

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add candidates that are related to the best candidates, and reorder all."""
        tenant = progress.search.tenant
        if not reads_code(tenant) or progress.walk is not None or not progress.rankings:
            return progress
        with progress.timings.measure("walk"):
            by_id = {c.id: c for ranking in progress.rankings for c in ranking.candidates}
            # Rankings are fused by rank, because the relevance below depends on the rank.
            ranks = [
                score_by_rank([c.id for c in ranking.candidates]) for ranking in progress.rankings
            ]
            fused = fuse(ranks)
            relevance = {
                id_: _HALVING_RANK / (_HALVING_RANK + rank) for rank, id_ in enumerate(fused)
            }
            best = [by_id[id_] for id_ in islice(fused, _MAX_START_CANDIDATES)]
            view, neighbourhoods = await run_sync(
                self._views.get_view_with_neighbourhoods, progress
            )
            related = await run_sync(
                partial(_find_related_places, view, neighbourhoods, best, relevance)
            )
            places = await find_place_entries(self._services, progress, [*related.gains])
            candidates = {**by_id, **{c.id: c for c in places}}
            rated = _rate_candidates(progress, candidates, relevance, fused, related)
            depth = progress.search.depth
            arrangement = arrange_candidates(
                rated, find_question_kinds(progress.search.request.query), depth
            )
        flow = related.flow
        paths = tuple(reached.path for reached in flow.nodes if len(reached.path) > 1)
        walked = WalkResult(frozenset(), paths) if flow.nodes else None
        # Clear the former ranks: the new order includes them, and they must not count twice.
        counted = [replace(ranking, weight=0.0) for ranking in progress.rankings]
        return replace(progress, walk=walked, rankings=[*counted, Ranking("walk", arrangement)])


@dataclass(frozen=True, slots=True)
class _RelatedPlaces:
    """The places that gain relevance from the best candidates.

    Attributes:
        flow: the spread of relevance that reached them.
        gains: relevance that each place gained, greatest first.
        nodes: the nodes of definitions, by document id and name.
    """

    flow: Flow
    gains: Mapping[Place, float]
    nodes: Mapping[tuple[str, str], Node]

    def get_gain(self, candidate: Candidate) -> float:
        """Return the relevance that a candidate gained as a definition, or as a whole document."""
        exact = Place(candidate.document_id, candidate.symbol)
        return self.gains.get(exact, self.gains.get(Place(candidate.document_id), 0.0))


def _find_related_places(
    view: RelationView,
    neighbourhoods: Neighbourhoods,
    candidates: Sequence[Candidate],
    relevance: Mapping[str, float],
) -> _RelatedPlaces:
    """Return the places that gain relevance from the definitions in the candidates' passages.

    Args:
        relevance: relevance of each candidate in the search, by id.
    """
    scores: dict[tuple[str, str], float] = {}
    for candidate in candidates:
        scores.setdefault((candidate.uri, candidate.symbol), relevance[candidate.id])
    nodes: dict[NodeKey, Node] = {}
    seeds: dict[NodeKey, float] = {}
    by_place: dict[tuple[str, str], Node] = {}
    for symbol in view.list_definitions(
        [*dict.fromkeys(candidate.uri for candidate in candidates)]
    ):
        node, local = build_node(symbol), symbol.local_name
        by_place[symbol.document_id, local] = node
        score = scores.get((symbol.uri, local))
        if score is None:
            score = _UNNAMED_SHARE * scores.get((symbol.uri, ""), 0.0)
        if score:
            key = symbol.source, symbol.name
            nodes[key] = node
            seeds[key] = max(seeds.get(key, 0.0), score)
    flow = flow_from_results(view, neighbourhoods, seeds, nodes)
    gains: dict[Place, float] = {}
    for reached in flow.nodes:
        place = find_place(reached)
        if place is not None:
            gains.setdefault(place, reached.score)
            by_place.setdefault((place.document_id, place.symbol or ""), reached.node)
    for document_id, score in flow.stating_documents.items():
        gains.setdefault(Place(document_id), score)
    ordered = sorted(gains, key=lambda place: -gains[place])[:MAX_PLACES]
    return _RelatedPlaces(flow, {place: gains[place] for place in ordered}, by_place)


def _rate_candidates(
    progress: SearchProgress,
    candidates: Mapping[str, Candidate],
    relevance: Mapping[str, float],
    fused: Mapping[str, float],
    related: _RelatedPlaces,
) -> list[RatedCandidate]:
    """Return the candidates, rated by their relevance and by the evidence for their files.

    The relevance of a candidate is its search relevance plus its relevance from relations.

    Args:
        candidates: all candidates, including those found by relations, by id.
        relevance: relevance of the candidates of the search, by id.
        fused: scores of the candidates of the search, by id.
    """
    total = {
        id_: relevance.get(id_, 0.0) + _GAIN_WEIGHT * related.get_gain(candidate)
        for id_, candidate in candidates.items()
    }
    evidence = sum_evidence(candidates, total, fused)

    def rate(candidate: Candidate) -> RatedCandidate:
        node = related.nodes.get((candidate.document_id, candidate.symbol))
        return RatedCandidate(
            candidate,
            math.sqrt(total[candidate.id] * evidence[candidate.uri]),
            get_type_of_path(parse_path(candidate.uri)) if node is None else node.source_type,
            is_preferred=progress.search.prefers(candidate.uri),
            role="" if node is None else node.role,
        )

    return [rate(candidate) for candidate in candidates.values()]


def sum_evidence(
    candidates: Mapping[str, Candidate], relevance: Mapping[str, float], fused: Mapping[str, float]
) -> dict[str, float]:
    """Return the evidence that each file belongs to the answer, by URI.

    It is the relevance of the file's best passage plus the fused scores of its other passages.
    """
    best: dict[str, str] = {}
    for id_ in sorted(candidates, key=lambda id_: (-relevance[id_], id_)):
        best.setdefault(candidates[id_].uri, id_)
    evidence = {uri: relevance[id_] for uri, id_ in best.items()}
    for id_, candidate in candidates.items():
        if id_ != best[candidate.uri]:
            evidence[candidate.uri] += fused.get(id_, 0.0)
    return evidence
