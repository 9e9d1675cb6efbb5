"""Places of what a walk reached, and the candidates that stand there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag_assets.code.nodes import TABLE
from rag_assets.retrieval.flow import Flow, Reached
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.recall import candidate_count, entry_filter_of
from rag_assets.storage.index.model import MOST_PLACES, Candidate, Place, Places, RankingRequest
from rag_assets.storage.index.protocols import EntrySearcher

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


def _place(one: Reached) -> Place | None:
    node = one.node
    if node.document_id is None:
        return None
    before = one.path[-2] if len(one.path) > 1 else ""
    if node.content_hash is None and before.startswith(TABLE):
        # A statement of a migration is an entry of its own, called after its table.
        return Place(node.document_id, before.removeprefix(TABLE))
    return Place(node.document_id, None if node.content_hash is None else node.symbol)


def place_of(one: Reached) -> Place | None:
    """The place of a node that has a passage of its own; None for any other."""
    place = _place(one)
    whole = one.node.source_type in _WHOLE
    return place if whole or (place is not None and place.symbol is not None) else None


async def found_places(
    searcher: EntrySearcher,
    progress: SearchProgress,
    places: Sequence[Place],
    *,
    symbols: bool = False,
) -> Sequence[Candidate]:
    """The entries at places that the request's filters let through, in the order of the places.

    As many as any other ranking has.

    Args:
        searcher: of the index.
        progress: whose filters.
        places: in order.
        symbols: whether to tell what they define.
    """
    if not places:
        return ()
    most = candidate_count(progress.search.depth)
    wanted = RankingRequest(
        Places(tuple(places)),
        most,
        entry_filter_of(progress),
        symbols=symbols,
    )
    index, owner = progress.serving.index_name, progress.owner
    [candidates] = await searcher.rankings(index, owner, [wanted])
    return candidates
