"""The search step Walk: finds candidates related to the names in a question.

All steps of one search see the same state of the relations, in the views that `Views` creates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.ingest.sources.model import build_uri, path_from_uri
from rag_assets.search.access import FlatScopes
from rag_assets.search.progress import Ranking, SearchProgress, Walked
from rag_assets.search.recall import build_entry_filter, candidate_count
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.storage.index.model import (
    MOST_PLACES,
    Candidate,
    Place,
    Places,
    RankingRequest,
    StoredEntry,
)
from rag_assets.systems.code_memory.catalog.found_relations import FoundSymbol
from rag_assets.systems.code_memory.catalog.graph import GraphKey
from rag_assets.systems.code_memory.catalog.relation_rows import RelationMoment
from rag_assets.systems.code_memory.catalog.relations import GraphRelations
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.asked import AskedNames, asked_names, join_words
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.relevance import (
    Flow,
    Reached,
    Surroundings,
    SurroundingsCache,
    flow_from_names,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.retrieval.walk import USUAL_STEPS, Walker
from rag_assets.systems.code_memory.symbols.names import TABLE, name_parts
from rag_assets.systems.code_memory.symbols.source_types import is_test
from rag_assets.tenants.model import Tenant

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


def get_relation_state(progress: SearchProgress) -> object:
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


def _place(reached: Reached) -> Place | None:
    node = reached.node
    if node.document_id is None:
        return None
    before = reached.path[-2] if len(reached.path) > 1 else ""
    if node.content_hash is None and before.startswith(TABLE):
        # The symbol of a migration's statement is its table's name.
        return Place(node.document_id, before.removeprefix(TABLE))
    return place_of_node(node)


def place_of_node(node: Node) -> Place | None:
    """Return the place of a definition; the whole document if it has no passage of its own."""
    if node.document_id is None:
        return None
    return Place(node.document_id, None if node.content_hash is None else node.symbol)


def find_place(reached: Reached) -> Place | None:
    """Return the place of a node that has a passage of its own; None for any other node."""
    place = _place(reached)
    whole = reached.node.source_type in _WHOLE
    return place if whole or (place is not None and place.symbol is not None) else None


async def find_place_entries(
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
    most, filters = candidate_count(progress.search.depth), build_entry_filter(progress)
    index, owner = progress.serving.index_name, progress.owner
    if filters.by_readers_alone and not (progress.recalls or progress.reads):
        further_documents = [place.document_id for place in places[most:]]
        known = await services.known.at(
            index, owner, get_relation_state(progress), places[:most], further_documents
        )
        if known is not None:
            return known[:most]
    request = RankingRequest(Places(tuple(places)), most, filters, symbols=True)
    [candidates] = await services.searcher.rankings(index, owner, [request])
    return candidates


_ENOUGH = 0.5
"""Minimum relevance of an indirectly related node in an answer about relations alone."""
_DIRECTLY = 2
"""Number of names on the path from a start node to a directly related node."""
_MOST_SEEDS = 40
_DERIVED = frozenset({"route", "table"})
"""Roles of definitions in derived documents; such a document has a single passage."""
_ROUTES = frozenset({"route", "operation"})
_MOST_LEADING = 40
"""Maximum number of places, and of definitions, for the names in a question; they precede all other
hits."""
_MOST_HOLDING = 60
"""Maximum passages with a definition's name among which the defining passage is searched."""


class Walk(TrustedStep):
    """Walks from the names in a question and its options, before the index is searched.

    The relations found are the whole answer, without a search by vectors, if the question only asks
    for relations and all its names are known.

    Args:
        services: reads relations and the index.
    """

    before = ("recall",)

    def __init__(self, services: SearchServices) -> None:
        self._views = Views(services)
        self._services = services

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add a ranking of the nodes related to the names in the question, if there are any."""
        search = progress.search
        request = search.request
        if not reads_code(search.tenant) or progress.walked is not None:
            return progress
        asked = asked_names(
            request.query,
            route_name=request.route_name,
            controller_class=request.controller_class,
            table_name=request.table_name,
        )
        joined = join_words(request.query)
        if joined is not None:
            view = await run_sync(self._views.view, progress)
            named = AskedNames((joined,), frozenset(), relational=False)
            _, defined = await run_sync(partial(_find_exact_places, view, named))
            asked = asked.with_joined(joined) if defined else asked
        if not asked.names:
            return progress
        if request.mode is None and asked.relational:
            return await self._walk(asked, progress)
        # The index is searched too, whatever the walk found.
        return replace(progress, concurrent_walk=partial(self._walk, asked))

    async def _walk(self, asked: AskedNames, progress: SearchProgress) -> SearchProgress:
        search = progress.search
        with progress.timings.part("walk"):
            view, surroundings = await run_sync(self._views.with_surroundings, progress)
            exact = (
                await run_sync(partial(_find_exact_places, view, asked))
                if asked.is_bare
                else ([], [])
            )
            found, are_known = await run_sync(
                partial(find_related_nodes, view, surroundings, search.tenant, asked)
            )
            chosen = _select_answers(found, asked) if are_known else None
            leading = await self._leading(*exact, progress)
            related = await find_place_entries(
                self._services, progress, list_related_places(chosen or found)
            )
            candidates = [*{one.id: one for one in (*leading, *related)}.values()]
        if not candidates:
            return progress
        request = search.request
        walked = Walked(
            # A threshold in the request applies to every hit.
            ids=frozenset(candidate.id for candidate in candidates if request.min_score is None),
            paths=tuple(one.path for one in found.reached if len(one.path) > 1),
            complete=found.complete,
            alone=chosen is not None and request.mode is None and request.min_score is None,
            leading=tuple(one.id for one in leading),
        )
        start = start_places(found)
        named = [
            candidate
            for candidate in candidates
            if candidate in leading or not start.isdisjoint(_list_places(candidate))
        ]
        # Named candidates count twice; related candidates count as much as search results.
        rankings = [Ranking("walk", candidates), Ranking("walk", named)]
        return replace(progress, walked=walked, rankings=[*progress.rankings, *rankings])

    async def _leading(
        self, places: Sequence[Place], definitions: Sequence[FoundSymbol], progress: SearchProgress
    ) -> Sequence[Candidate]:
        """Return the passages at places, after passages with the first line of a definition.

        A long definition has several passages; a short one shares its passage with others.
        """
        at_places = await find_place_entries(self._services, progress, places)
        joined = [definition for definition in definitions if not _has_passage(definition)]
        named = await self._named_in_documents(joined, progress) if joined else []
        if not named and len(at_places) <= len(places):
            return at_places
        candidates = {one.id: one for one in (*at_places, *named)}
        entries = await self._services.searcher.entries(
            progress.serving.index_name,
            progress.owner,
            [*candidates],
            progress.scopes,
            moved=progress.moved,
        )
        holding = [
            candidate
            for id_, candidate in candidates.items()
            if id_ in entries and _holds(entries[id_], candidate, definitions)
        ]
        return [*dict.fromkeys((*holding, *at_places))]

    async def _named_in_documents(
        self, definitions: Sequence[FoundSymbol], progress: SearchProgress
    ) -> Sequence[Candidate]:
        """Return passages with the names of definitions, from the documents that define them."""
        filters = build_entry_filter(progress)
        allowed = filters.documents
        by_word: dict[str, set[str]] = {}
        for definition in definitions:
            if allowed is None or definition.document_id in allowed:
                last = name_parts(definition.name, folded=False)[-1]
                by_word.setdefault(last, set()).add(definition.document_id)
        requests = [
            RankingRequest(
                word,
                _MOST_HOLDING,
                replace(filters, documents=tuple(sorted(documents))),
                symbols=True,
            )
            for word, documents in by_word.items()
        ]
        if not requests:
            return []
        index, owner = progress.serving.index_name, progress.owner
        rankings = await self._services.searcher.rankings(index, owner, requests)
        return [one for ranking in rankings for one in ranking]


def _list_places(candidate: Candidate) -> tuple[Place, Place]:
    return Place(candidate.document_id), Place(candidate.document_id, candidate.symbol)


def _holds(entry: StoredEntry, candidate: Candidate, definitions: Sequence[FoundSymbol]) -> bool:
    """Return whether a passage contains the first line of one of these definitions."""
    first, last = entry.fields.get("line_start") or 0, entry.fields.get("line_end") or 0
    return any(
        definition.document_id == candidate.document_id and first <= definition.line_start <= last
        for definition in definitions
    )


def find_related_nodes(
    view: View, surroundings: Surroundings, tenant: Tenant, asked: AskedNames
) -> tuple[Flow, bool]:
    """Return the nodes related to the names in a question, and whether all names are known."""
    by_name = [_find_nodes(view, tenant, name) for name in asked.names]
    nodes = {key: node for named in by_name for key, node in named.items()}
    start_nodes = dict(islice(nodes.items(), _MOST_SEEDS))
    seeds = dict.fromkeys(start_nodes, 1.0)
    found = flow_from_names(
        view, surroundings, seeds, start_nodes, depth=USUAL_STEPS, wanted=asked.wanted
    )
    found = replace(found, complete=found.complete and len(start_nodes) == len(nodes))
    return found, all(by_name)


def _find_exact_places(view: View, asked: AskedNames) -> tuple[list[Place], list[FoundSymbol]]:
    """Return the places of definitions and files with exactly these names.

    Returns:
        The places of files, and of definitions that have a passage of their own. Then the
            definitions; one that shares its passage is included only if no definition of the same
            name has its own.
    """
    places: dict[Place, None] = {}
    definitions: list[FoundSymbol] = []
    for name in asked.names:
        defined = [one for one in view.find_by_suffix(name) if one.role != "key"]
        if not defined and "/" in name:
            defined = [one for one in view.named(name) if one.role in _ROUTES]
        defined.sort(key=partial(_distance, name))
        own = [one for one in defined if _has_passage(one)]
        definitions += own or defined
        places |= dict.fromkeys(filter(None, (place_of_node(build_node(one)) for one in own)))
        if "." in name or "/" in name or not defined:
            files = sorted(view.files_called(name), key=lambda one: is_test(path_from_uri(one.uri)))
            places |= {Place(file.document_id): None for file in files}
    return [*places][:_MOST_LEADING], definitions[:_MOST_LEADING]


def _has_passage(found_symbol: FoundSymbol) -> bool:
    return found_symbol.content_hash is not None or found_symbol.role in _DERIVED


def _distance(name: str, found_symbol: FoundSymbol) -> tuple[bool, bool, bool, int, str]:
    """Return a sort key for definitions of one name: those with the same spelling come first."""
    written, defined = name_parts(name, folded=False), name_parts(found_symbol.name, folded=False)
    is_derived = found_symbol.role in _DERIVED
    is_other = defined[-len(written) :] != written
    return (
        is_other,
        is_test(path_from_uri(found_symbol.uri)),
        is_derived,
        len(defined),
        found_symbol.name,
    )


def _find_nodes(view: View, tenant: Tenant, name: str) -> dict[NodeKey, Node]:
    """Return the nodes that a name refers to; for a file's name, the definitions in the file."""
    found = view.named(name)
    if not found and "/" in name:
        uris = [name, *(build_uri(source.name, name.lstrip("/")) for source in tenant.sources)]
        found = view.within_any(uris)
    found = found or view.find_by_suffix(name)
    return {(one.source, one.name): build_node(one) for one in found}


def _select_answers(found: Flow, asked: AskedNames) -> Flow | None:
    """Return the nodes that answer a question about relations alone; None for other questions.

    These nodes are near enough, and have a type that the question asks for. If there are none, the
    walk does not answer the question.
    """
    if not asked.relational or not asked.wanted:
        return found if asked.relational else None
    kept = tuple(
        one
        for one in found.reached
        if len(one.path) == 1
        or (
            one.node.source_type in asked.wanted
            and (len(one.path) == _DIRECTLY or one.score >= _ENOUGH)
        )
    )
    return replace(found, reached=kept) if any(len(one.path) > 1 for one in kept) else None
