"""Views of relations for searches: all steps of one search see the same state of the relations."""

from __future__ import annotations

from typing import Final

from rag_assets.search.access import FlatScopes
from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices
from rag_assets.systems.code_memory.catalog.graph.graph import GraphKey
from rag_assets.systems.code_memory.catalog.graph.reading import GraphRelations
from rag_assets.systems.code_memory.catalog.relation_state import RelationMoment
from rag_assets.systems.code_memory.retrieval.surroundings import Surroundings, SurroundingsCache
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import Walker

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
