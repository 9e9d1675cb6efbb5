"""The search step `walk`: find candidates related to the names in a question.

RelationViews ensures that all steps of one attempt of a search read the same state of the
relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.search.access import FlatScopes
from rag_assets.search.progress import Ranking, SearchProgress, WalkResult
from rag_assets.search.recall import build_entry_filter, compute_candidate_count
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.storage.index.model import (
    MAX_PLACES,
    Candidate,
    Place,
    Places,
    RankingRequest,
    StoredEntry,
)
from rag_assets.systems.code_memory.catalog.found_relations import FoundSymbol
from rag_assets.systems.code_memory.catalog.graph import GraphKey
from rag_assets.systems.code_memory.catalog.relation_rows import ReadableState
from rag_assets.systems.code_memory.catalog.relations import GraphRelations
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.nodes import Node, NodeKey, build_node
from rag_assets.systems.code_memory.retrieval.question_subject import (
    QuestionNames,
    find_question_names,
    join_words,
)
from rag_assets.systems.code_memory.retrieval.relevance import (
    Flow,
    NeighbourhoodCache,
    Neighbourhoods,
    ReachedNode,
    flow_from_names,
)
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.retrieval.walk import USUAL_STEPS, Walker
from rag_assets.systems.code_memory.symbols.names import TABLE, split_name
from rag_assets.systems.code_memory.symbols.source_types import is_test
from rag_assets.tenants.model import Tenant

_MOMENT: Final = "code-memory: relations"


class RelationViews:
    """Creates the relation view of a search.

    Its methods query the catalog, so call them in a thread.

    Args:
        services: reads relations, and caches the neighbourhoods of nodes.
    """

    def __init__(self, services: SearchServices) -> None:
        self._walker = Walker(services.catalog, services.policy)
        self._services = services
        self._neighbourhoods = services.get_system_service(NeighbourhoodCache)

    def get_readable_state(self, progress: SearchProgress) -> ReadableState:
        """Return the state of the relations that this attempt reads, fixed at the first call."""
        moment: ReadableState | None = progress.step_values.get(_MOMENT)
        if moment is None:
            moment = self._walker.get_readable_state(progress.ref.id, progress.caller)
            progress.step_values[_MOMENT] = moment
        return moment

    def get_view(self, progress: SearchProgress) -> RelationView:
        """Return the caller's view of the relations in the build that is searched."""
        return self._walker.create_view(
            _get_graph_key(progress), progress.caller, self.get_readable_state(progress)
        )

    def get_view_with_neighbourhoods(
        self, progress: SearchProgress
    ) -> tuple[RelationView, Neighbourhoods]:
        """Return the caller's view, and a cache of neighbourhoods that is valid for it."""
        view, moment = self.get_view(progress), self.get_readable_state(progress)
        # Queries read changing data. With a custom policy, two callers with equal scopes may
        # read different documents.
        is_fixed = isinstance(view.relations, GraphRelations)
        if is_fixed and type(self._services.policy) is FlatScopes:
            cached_view = self._neighbourhoods.get(
                _get_graph_key(progress), moment.state, moment.scopes
            )
            return view, cached_view
        return view, Neighbourhoods()


def get_relation_state(progress: SearchProgress) -> object:
    """Return the state of the relations that an earlier step of this search read."""
    moment: ReadableState = progress.step_values[_MOMENT]
    return moment.state


def _get_graph_key(progress: SearchProgress) -> GraphKey:
    return GraphKey(progress.ref, progress.serving.number)


_SINGLE_PASSAGE_TYPES: Final = frozenset({"route", "table"})
"""Types of documents that consist of one passage."""


def list_related_places(flow: Flow) -> list[Place]:
    """Return the places of a flow: its start nodes, then all others by relevance.

    The others are reached nodes and documents that state relations of these nodes.
    """
    start = [reached for reached in flow.nodes if len(reached.path) == 1]
    scored = [(reached.score, _get_place(reached)) for reached in flow.nodes[len(start) :]]
    scored += [(score, Place(document_id)) for document_id, score in flow.stating_documents.items()]
    # Sorting is stable, so equally relevant places keep their order.
    scored.sort(key=lambda scored_place: -scored_place[0])
    places = (*map(_get_place, start), *(place for _, place in scored))
    return list(dict.fromkeys(filter(None, places)))[:MAX_PLACES]


def list_start_places(flow: Flow) -> frozenset[Place]:
    """Return the places of a walk's start nodes."""
    return frozenset(
        filter(None, (_get_place(reached) for reached in flow.nodes if len(reached.path) == 1))
    )


def _get_place(reached: ReachedNode) -> Place | None:
    node = reached.node
    if node.document_id is None:
        return None
    before = reached.path[-2] if len(reached.path) > 1 else ""
    if node.content_hash is None and before.startswith(TABLE):
        # The symbol of a migration's statement is its table's name.
        return Place(node.document_id, before.removeprefix(TABLE))
    return get_place_of_node(node)


def get_place_of_node(node: Node) -> Place | None:
    """Return the place of a definition: its own passage, or else its whole document."""
    if node.document_id is None:
        return None
    return Place(node.document_id, None if node.content_hash is None else node.symbol)


def find_place(reached: ReachedNode) -> Place | None:
    """Return the place of a node with its own passage; None for any other node."""
    place = _get_place(reached)
    whole = reached.node.source_type in _SINGLE_PASSAGE_TYPES
    return place if whole or (place is not None and place.symbol is not None) else None


async def find_place_entries(
    services: SearchServices, progress: SearchProgress, places: Sequence[Place]
) -> Sequence[Candidate]:
    """Return the index entries at places, in the order of the places.

    Entries that the request's filters exclude are left out. Their number is limited as in any other
    ranking; each place has at least one entry unless a filter excludes it. The cache is not used if
    the index must apply filters, or if this search has already found outdated entries in the cache.

    Args:
        places: the places in order; the caller must be allowed to read them.
    """
    if not places:
        return ()
    most, filters = compute_candidate_count(progress.search.depth), build_entry_filter(progress)
    index, owner = progress.serving.index_name, progress.owner
    if filters.by_readers_alone and not (progress.recall_attempts or progress.read_attempts):
        further_documents = [place.document_id for place in places[most:]]
        known = await services.entry_cache.find_at(
            index, owner, get_relation_state(progress), places[:most], further_documents
        )
        if known is not None:
            return known[:most]
    request = RankingRequest(Places(tuple(places)), most, filters, symbols=True)
    [candidates] = await services.searcher.rankings(index, owner, [request])
    return candidates


_MIN_INDIRECT_SCORE = 0.5
"""Minimum relevance of an indirectly related node in an answer about relations alone."""
_DIRECT_PATH_LENGTH = 2
"""Number of names on the path from a start node to a directly related node."""
_MAX_SEEDS = 40
_DERIVED_ROLES = frozenset({"route", "table"})
"""Roles of definitions in derived documents; each of these documents has a single passage."""
_ROUTE_ROLES = frozenset({"route", "operation"})
_MAX_LEADING_PLACES = 40
"""Maximum number of places, and of definitions, whose passages precede all other hits."""
_MAX_NAME_PASSAGES = 60
"""Maximum number of passages with a name that are searched for the definition of the name."""


class WalkStep(TrustedStep):
    """Walks from the names in a question and its options, before the index is searched.

    If the question only asks for relations of known names, the index is not searched.

    Args:
        services: reads relations and the index.
    """

    before = ("recall",)

    def __init__(self, services: SearchServices) -> None:
        self._views = RelationViews(services)
        self._services = services

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add a ranking of the nodes related to the names in the question, if there are any."""
        search = progress.search
        request = search.request
        if not reads_code(search.tenant) or progress.walk is not None:
            return progress
        question = find_question_names(
            request.query,
            route_name=request.route_name,
            controller_class=request.controller_class,
            table_name=request.table_name,
        )
        joined = join_words(request.query)
        if joined is not None:
            view = await run_sync(self._views.get_view, progress)
            joined_names = QuestionNames((joined,), frozenset(), is_relational=False)
            _, defined = await run_sync(partial(_find_exact_places, view, joined_names))
            question = question.with_joined(joined) if defined else question
        if not question.names:
            return progress
        if request.mode is None and question.is_relational:
            return await self._walk(question, progress)
        # The index is searched at the same time, because names alone may not answer the question.
        return replace(progress, concurrent_walk=partial(self._walk, question))

    async def _walk(self, question: QuestionNames, progress: SearchProgress) -> SearchProgress:
        search = progress.search
        with progress.timings.measure("walk"):
            view, neighbourhoods = await run_sync(
                self._views.get_view_with_neighbourhoods, progress
            )
            exact = (
                await run_sync(partial(_find_exact_places, view, question))
                if question.is_bare
                else ([], [])
            )
            flow, are_known = await run_sync(
                partial(find_related_nodes, view, neighbourhoods, search.tenant, question)
            )
            chosen_answers = _select_answers(flow, question) if are_known else None
            leading = await self._find_leading_candidates(*exact, progress)
            related = await find_place_entries(
                self._services, progress, list_related_places(chosen_answers or flow)
            )
            candidates = [*{candidate.id: candidate for candidate in (*leading, *related)}.values()]
        if not candidates:
            return progress
        request = search.request
        walked = WalkResult(
            # If the request sets a threshold, it applies to these hits too.
            ids=frozenset(candidate.id for candidate in candidates if request.min_score is None),
            paths=tuple(reached.path for reached in flow.nodes if len(reached.path) > 1),
            alone=chosen_answers is not None and request.mode is None and request.min_score is None,
            leading=tuple(candidate.id for candidate in leading),
        )
        start = list_start_places(flow)
        named_candidates = [
            candidate
            for candidate in candidates
            if candidate in leading or not start.isdisjoint(_get_places(candidate))
        ]
        # Named candidates count twice; related candidates count as much as search results.
        rankings = [Ranking("walk", candidates), Ranking("walk", named_candidates)]
        return replace(progress, walk=walked, rankings=[*progress.rankings, *rankings])

    async def _find_leading_candidates(
        self, places: Sequence[Place], definitions: Sequence[FoundSymbol], progress: SearchProgress
    ) -> Sequence[Candidate]:
        """Return passages that contain the first line of a definition, then all others at places.

        A long definition has several passages; a short definition shares its passage with others.
        """
        at_places = await find_place_entries(self._services, progress, places)
        joined = [definition for definition in definitions if not _has_passage(definition)]
        named_candidates = await self._find_named_passages(joined, progress) if joined else []
        if not named_candidates and len(at_places) <= len(places):
            return at_places
        candidates = {candidate.id: candidate for candidate in (*at_places, *named_candidates)}
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
            if id_ in entries and _contains_definition(entries[id_], candidate, definitions)
        ]
        return [*dict.fromkeys((*holding, *at_places))]

    async def _find_named_passages(
        self, definitions: Sequence[FoundSymbol], progress: SearchProgress
    ) -> Sequence[Candidate]:
        """Return the passages of definitions' documents that contain the definitions' names."""
        filters = build_entry_filter(progress)
        allowed = filters.documents
        by_word: dict[str, set[str]] = {}
        for definition in definitions:
            if allowed is None or definition.document_id in allowed:
                last = split_name(definition.name, folded=False)[-1]
                by_word.setdefault(last, set()).add(definition.document_id)
        requests = [
            RankingRequest(
                word,
                _MAX_NAME_PASSAGES,
                replace(filters, documents=tuple(sorted(documents))),
                symbols=True,
            )
            for word, documents in by_word.items()
        ]
        if not requests:
            return []
        index, owner = progress.serving.index_name, progress.owner
        rankings = await self._services.searcher.rankings(index, owner, requests)
        return [candidate for ranking in rankings for candidate in ranking]


def _get_places(candidate: Candidate) -> tuple[Place, Place]:
    return Place(candidate.document_id), Place(candidate.document_id, candidate.symbol)


def _contains_definition(
    entry: StoredEntry, candidate: Candidate, definitions: Sequence[FoundSymbol]
) -> bool:
    """Return whether a passage contains the first line of one of these definitions."""
    first, last = entry.fields.get("line_start") or 0, entry.fields.get("line_end") or 0
    return any(
        definition.document_id == candidate.document_id and first <= definition.line_start <= last
        for definition in definitions
    )


def find_related_nodes(
    view: RelationView, neighbourhoods: Neighbourhoods, tenant: Tenant, question: QuestionNames
) -> tuple[Flow, bool]:
    """Return the nodes related to the names in a question, and whether all names are known."""
    by_name = [_find_nodes(view, tenant, name) for name in question.names]
    nodes = {key: node for named_nodes in by_name for key, node in named_nodes.items()}
    start_nodes = dict(islice(nodes.items(), _MAX_SEEDS))
    seeds = dict.fromkeys(start_nodes, 1.0)
    flow = flow_from_names(
        view, neighbourhoods, seeds, start_nodes, depth=USUAL_STEPS, wanted=question.wanted_types
    )
    return flow, all(by_name)


def _find_exact_places(
    view: RelationView, question: QuestionNames
) -> tuple[list[Place], list[FoundSymbol]]:
    """Return the places and definitions whose names are exactly the names in a question.

    The places are files and definitions with their own passage. If at least one definition of a
    name has its own passage, the definitions of that name without one are left out.
    """
    places: dict[Place, None] = {}
    definitions: list[FoundSymbol] = []
    for name in question.names:
        defined = [
            definition for definition in view.find_by_suffix(name) if definition.role != "key"
        ]
        if not defined and "/" in name:
            defined = [
                definition
                for definition in view.find_by_name(name)
                if definition.role in _ROUTE_ROLES
            ]
        defined.sort(key=partial(_get_distance_key, name))
        own = [definition for definition in defined if _has_passage(definition)]
        definitions += own or defined
        places |= dict.fromkeys(
            filter(None, (get_place_of_node(build_node(definition)) for definition in own))
        )
        if "." in name or "/" in name or not defined:
            files = sorted(
                view.find_files_by_suffix(name),
                key=lambda document: is_test(parse_path(document.uri)),
            )
            places |= {Place(file.document_id): None for file in files}
    return [*places][:_MAX_LEADING_PLACES], definitions[:_MAX_LEADING_PLACES]


def _has_passage(found_symbol: FoundSymbol) -> bool:
    return found_symbol.content_hash is not None or found_symbol.role in _DERIVED_ROLES


def _get_distance_key(name: str, found_symbol: FoundSymbol) -> tuple[bool, bool, bool, int, str]:
    """Return a sort key for the definitions that a name may mean, the best match first."""
    written_parts, defined = (
        split_name(name, folded=False),
        split_name(found_symbol.name, folded=False),
    )
    is_derived = found_symbol.role in _DERIVED_ROLES
    is_other = defined[-len(written_parts) :] != written_parts
    return (
        is_other,
        is_test(parse_path(found_symbol.uri)),
        is_derived,
        len(defined),
        found_symbol.name,
    )


def _find_nodes(view: RelationView, tenant: Tenant, name: str) -> dict[NodeKey, Node]:
    """Return the nodes with a name; for the name of a file, the definitions in the file."""
    definitions = view.find_by_name(name)
    if not definitions and "/" in name:
        uris = [name, *(build_uri(source.name, name.lstrip("/")) for source in tenant.sources)]
        definitions = view.list_definitions(uris)
    definitions = definitions or view.find_by_suffix(name)
    return {
        (definition.source, definition.name): build_node(definition) for definition in definitions
    }


def _select_answers(flow: Flow, question: QuestionNames) -> Flow | None:
    """Return the part of a walk that answers a question about relations; None if there is none.

    Kept are nodes that are relevant enough and have a source type that the question asks for, and
    the definitions without a type on the paths to them, which may be what the question asks for. A
    question that asks for no type keeps all nodes; a question about more than relations has no such
    answer.
    """
    if not question.is_relational or not question.wanted_types:
        return flow if question.is_relational else None
    answers = {
        reached
        for reached in flow.nodes
        if reached.node.source_type in question.wanted_types
        and (len(reached.path) <= _DIRECT_PATH_LENGTH or reached.score >= _MIN_INDIRECT_SCORE)
    }
    paths = {reached.path[:end] for reached in answers for end in range(1, len(reached.path) + 1)}
    kept_nodes = tuple(
        reached
        for reached in flow.nodes
        if len(reached.path) == 1
        or reached in answers
        or (reached.node.source_type == "code" and reached.path in paths)
    )
    return (
        replace(flow, nodes=kept_nodes)
        if any(len(reached.path) > 1 for reached in kept_nodes)
        else None
    )
