"""The view of relations that all steps of one search share, and the places of the nodes in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag_assets.retrieval.access import FlatScopes
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.recall import candidate_count, entry_filter_of
from rag_assets.storage.index.model import MOST_PLACES, Candidate, Place, Places, RankingRequest
from rag_assets.systems.code_memory.catalog.graph import GraphKey
from rag_assets.systems.code_memory.catalog.relation_rows import RelationMoment
from rag_assets.systems.code_memory.catalog.relations import GraphRelations
from rag_assets.systems.code_memory.retrieval.nodes import Node
from rag_assets.systems.code_memory.retrieval.relevance import Flow, Reached
from rag_assets.systems.code_memory.retrieval.surroundings import Surroundings, SurroundingsCache
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.symbols.names import TABLE

_MOMENT: Final = "code-memory: relations"


class Views:
    """Creates the view of a search. Its methods query the catalog, so call them in a thread.

    Args:
        services: reads relations, and caches the surroundings of nodes.
    """

    def __init__(self, services: SearchServices) -> None:
        self._walker = Walker(services.catalog, services.policy)
        self._services = services
        self._surroundings = services.of_system(SurroundingsCache)

    def moment(self, progress: SearchProgress) -> RelationMoment:
        """Return the relations that the caller could read when this search first asked for them."""
        moment: RelationMoment | None = progress.kept.get(_MOMENT)
        if moment is None:
            moment = self._walker.moment(progress.ref.id, progress.caller)
            progress.kept[_MOMENT] = moment
        return moment

    def view(self, progress: SearchProgress) -> View:
        """Return the caller's view of the build that is searched."""
        return self._walker.view(_build(progress), progress.caller, self.moment(progress))

    def with_surroundings(self, progress: SearchProgress) -> tuple[View, Surroundings]:
        """Return the caller's view, and the surroundings that are cached for it."""
        view, moment = self.view(progress), self.moment(progress)
        # Queries read the current data. With a custom policy, two callers with equal scopes may
        # read different documents.
        is_fixed = isinstance(view.relations, GraphRelations)
        if is_fixed and type(self._services.policy) is FlatScopes:
            kept = self._surroundings.of(_build(progress), moment.state, moment.scopes)
            return view, kept
        return view, Surroundings()


def state_of(progress: SearchProgress) -> object:
    """Return the state of the relations that an earlier step of the search used."""
    moment: RelationMoment = progress.kept[_MOMENT]
    return moment.state


def _build(progress: SearchProgress) -> GraphKey:
    return GraphKey(progress.ref, progress.serving.number)


_WHOLE: Final = frozenset({"route", "table"})
"""Types of documents that consist of one passage."""


def list_related_places(found: Flow) -> list[Place]:
    """Return places of reached nodes, and of documents that state their relations, by relevance.

    The start nodes of the walk come first.
    """
    start = [one for one in found.reached if len(one.path) == 1]
    scored = [(one.score, _place(one)) for one in found.reached[len(start) :]]
    scored += [(score, Place(document_id)) for document_id, score in found.stating.items()]
    # Sorting is stable, so equally relevant places keep their order.
    scored.sort(key=lambda one: -one[0])
    places = (*map(_place, start), *(place for _, place in scored))
    return list(dict.fromkeys(filter(None, places)))[:MOST_PLACES]


def start_places(found: Flow) -> frozenset[Place]:
    """Return the places of a walk's start nodes."""
    return frozenset(filter(None, (_place(one) for one in found.reached if len(one.path) == 1)))


def _place(one: Reached) -> Place | None:
    node = one.node
    if node.document_id is None:
        return None
    before = one.path[-2] if len(one.path) > 1 else ""
    if node.content_hash is None and before.startswith(TABLE):
        # The symbol of a migration's statement is its table's name.
        return Place(node.document_id, before.removeprefix(TABLE))
    return place_of_node(node)


def place_of_node(node: Node) -> Place | None:
    """Return the place of a definition; the whole document if it has no passage of its own."""
    if node.document_id is None:
        return None
    return Place(node.document_id, None if node.content_hash is None else node.symbol)


def place_of(one: Reached) -> Place | None:
    """Return the place of a node that has a passage of its own; None for any other node."""
    place = _place(one)
    whole = one.node.source_type in _WHOLE
    return place if whole or (place is not None and place.symbol is not None) else None


async def find_entries_at(
    services: SearchServices, progress: SearchProgress, places: Sequence[Place]
) -> Sequence[Candidate]:
    """Return the entries at places that pass the request's filters, in the order of the places.

    Their number is limited as in any other ranking; each place has at least one entry unless a
    filter excludes it. The cache is not used if the index has to filter, or if cached entries have
    already misled this search.

    Args:
        places: the places in order; the caller must be allowed to read them.
    """
    if not places:
        return ()
    most, filters = candidate_count(progress.search.depth), entry_filter_of(progress)
    index, owner = progress.serving.index_name, progress.owner
    if filters.by_readers_alone and not (progress.recalls or progress.reads):
        further_documents = [place.document_id for place in places[most:]]
        known = await services.known.at(
            index, owner, state_of(progress), places[:most], further_documents
        )
        if known is not None:
            return known[:most]
    wanted = RankingRequest(Places(tuple(places)), most, filters, symbols=True)
    [candidates] = await services.searcher.rankings(index, owner, [wanted])
    return candidates
