"""Views of relations for searches, with the cached surroundings of their nodes."""

from __future__ import annotations

from rag_assets.retrieval.access import FlatScopes
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.systems.code_memory.catalog.graph.reading import GraphRelations
from rag_assets.systems.code_memory.retrieval.surroundings import Surroundings
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import Walker


class Views:
    """Makes the view of a search.

    Args:
        services: read relations, and cache the surroundings of nodes.
    """

    def __init__(self, services: SearchServices) -> None:
        self._walker = Walker(services.catalog, services.policy)
        self._services = services

    def of(self, progress: SearchProgress) -> tuple[View, Surroundings]:
        """Return the caller's view, and the surroundings known for it."""
        build, moment = progress.build, progress.moment
        view = self._walker.view(build, progress.caller, moment)
        # Statements read the current data, and a custom policy may let two callers with equal
        # scopes read different documents.
        is_fixed = isinstance(view.relations, GraphRelations)
        if is_fixed and type(self._services.policy) is FlatScopes:
            return view, self._services.surroundings.of(build, moment.state, moment.scopes)
        return view, Surroundings()
