"""Places of what a walk reached, and the candidates that stand there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag_assets.code.nodes import TABLE
from rag_assets.retrieval.code_nodes import Node
from rag_assets.retrieval.flow import Flow, Reached
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.recall import candidate_count, entry_filter_of
from rag_assets.storage.index.model import MOST_PLACES, Candidate, Place, Places, RankingRequest

_WHOLE: Final = frozenset({"route", "table"})
"""Types of documents that have one passage."""


def related(found: Flow) -> list[Place]:
    """The places of what was reached and of what states relations of it, most relevant first.

    What the walk began at comes before all else.
    """
    begun = [one for one in found.reached if len(one.path) == 1]
    scored = [(one.score, _place(one)) for one in found.reached[len(begun) :]]
    scored += [(score, Place(document_id)) for document_id, score in found.stating.items()]
    # Sorting keeps the order of what is equally relevant.
    scored.sort(key=lambda one: -one[0])
    places = (*map(_place, begun), *(place for _, place in scored))
    return list(dict.fromkeys(filter(None, places)))[:MOST_PLACES]


def begun_places(found: Flow) -> frozenset[Place]:
    """Return the places of what a walk began at."""
    return frozenset(filter(None, (_place(one) for one in found.reached if len(one.path) == 1)))


def _place(one: Reached) -> Place | None:
    node = one.node
    if node.document_id is None:
        return None
    before = one.path[-2] if len(one.path) > 1 else ""
    if node.content_hash is None and before.startswith(TABLE):
        # A statement of a migration is an entry of its own, called after its table.
        return Place(node.document_id, before.removeprefix(TABLE))
    return place_of_node(node)


def place_of_node(node: Node) -> Place | None:
    """Return the place of a definition; that of its whole document if it has no passage."""
    if node.document_id is None:
        return None
    return Place(node.document_id, None if node.content_hash is None else node.symbol)


def place_of(one: Reached) -> Place | None:
    """The place of a node that has a passage of its own; None for any other."""
    place = _place(one)
    whole = one.node.source_type in _WHOLE
    return place if whole or (place is not None and place.symbol is not None) else None


async def found_places(
    services: SearchServices, progress: SearchProgress, places: Sequence[Place]
) -> Sequence[Candidate]:
    """The entries at places that the request's filters let through, in the order of the places.

    As many as any other ranking has; a place has an entry at least where no filter leaves it out.
    Nothing is kept where the index has to filter, and nothing is taken from what is kept where that
    has misled this search.

    Args:
        services: read the index.
        progress: whose filters.
        places: in order, those that the caller may read.
    """
    if not places:
        return ()
    most, filters = candidate_count(progress.search.depth), entry_filter_of(progress)
    index, owner = progress.serving.index_name, progress.owner
    if filters.by_readers_alone and not (progress.recalls or progress.reads):
        beside = [place.document_id for place in places[most:]]
        known = await services.known.at(index, owner, progress.moment.state, places[:most], beside)
        if known is not None:
            return known[:most]
    wanted = RankingRequest(Places(tuple(places)), most, filters, symbols=True)
    [candidates] = await services.searcher.rankings(index, owner, [wanted])
    return candidates
