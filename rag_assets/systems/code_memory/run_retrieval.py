"""Retrieval of passages for the prompts of runs.

A chunk's metadata is read at query time, with one query of relations for all chunks together, so
that a relation in one file never makes the chunks of other files outdated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.run_responses import ChunkMetadata, CodeChunk, RetrievalDebug, RetrievedChunks
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.model import (
    MAX_PATH,
    MAX_QUERY,
    NUMBER,
    Caller,
    Clarification,
    Debug,
    Hit,
    SearchRequest,
)
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.code_memory.catalog.found_relations import FoundEdge
from rag_assets.systems.code_memory.derived.model import MEDIA_TYPE
from rag_assets.systems.code_memory.manifests import FRAMEWORKS
from rag_assets.systems.code_memory.retrieval.nodes import (
    PREFIXES,
    Node,
    NodeKey,
    build_file_node,
    build_node,
    find_relation,
)
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.runs import Run
from rag_assets.systems.code_memory.sources.records import RunsConfig, get_repository_source
from rag_assets.systems.code_memory.symbols.names import FILE, PACKAGE
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.api.admission import AdmittedRetriever
    from rag_assets.search import AsyncRetriever

MAX_RELATED: Final = 20
"""Maximum number of names of each kind in a chunk's metadata."""

_LANGUAGES: Final[Mapping[str, frozenset[str]]] = {
    "bundler": frozenset({"ruby"}),
    "cargo": frozenset({"rust"}),
    "composer": frozenset({"php"}),
    "go": frozenset({"go"}),
    "hex": frozenset({"elixir"}),
    "npm": frozenset({"javascript", "typescript", "vue", "svelte"}),
    "pip": frozenset({"python"}),
    "pub": frozenset({"dart"}),
}
"""The languages in which the packages of each package manager are used."""

_PACKAGES: Final[Mapping[str, tuple[str, str]]] = {
    PACKAGE + package: (manager, name) for (manager, package), name in FRAMEWORKS.items()
}
"""Package manager and name of each framework, by the name of its package's node."""

_SERVER_FRAMEWORKS: Final = ("laravel", "django")
"""Frameworks whose routes and tables are derived from several files."""


def build_metadata(view: RelationView | None, hits: Sequence[Hit]) -> list[ChunkMetadata]:
    """Return the metadata of each hit; without a view, no names and frameworks are known."""
    if view is None or not hits:
        return [_build_chunk_metadata(hit, None, {}) for hit in hits]
    frameworks = _find_frameworks(view)
    related = _find_related_names(view, hits)
    return [
        _build_chunk_metadata(hit, _find_framework(hit, frameworks), related[at])
        for at, hit in enumerate(hits)
    ]


def _build_chunk_metadata(
    hit: Hit, framework: str | None, related: Mapping[str, Sequence[str]]
) -> ChunkMetadata:
    lines = hit.line_start, hit.line_end
    return ChunkMetadata(
        framework=framework,
        file_path=parse_path(hit.uri),
        line_range=None if lines[0] is None or lines[1] is None else (lines[0], lines[1]),
        language=None if hit.media_type == MEDIA_TYPE else hit.language,
        related_symbols=tuple(related.get("symbol", ())[:MAX_RELATED]),
        related_routes=tuple(related.get("route", ())[:MAX_RELATED]),
        related_tables=tuple(related.get("table", ())[:MAX_RELATED]),
        paths=(hit.uri, *hit.also),
    )


def _find_frameworks(view: RelationView) -> dict[str, list[tuple[str, str]]]:
    """Return the frameworks in manifests, by repository: (package manager, name) of each."""
    frameworks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in view.find_edges_of_names([*_PACKAGES], "in", only=("depends_on",)).edges:
        if edge.target in _PACKAGES:
            frameworks[get_repository_source(edge.source)].append(_PACKAGES[edge.target])
    return frameworks


def _find_framework(hit: Hit, frameworks: Mapping[str, Sequence[tuple[str, str]]]) -> str | None:
    """Return the framework that a hit's repository uses in the hit's language; None if unknown."""
    there = frameworks.get(_get_repository(hit), ())
    if hit.media_type == MEDIA_TYPE:  # A route or a table that is derived from several files.
        framework_names = [name for _, name in there]
        return next(
            (framework for framework in _SERVER_FRAMEWORKS if framework in framework_names), None
        )
    return next((name for manager, name in there if hit.language in _LANGUAGES[manager]), None)


def _find_related_names(view: RelationView, hits: Sequence[Hit]) -> list[dict[str, list[str]]]:
    """Return the names that are one relation away from each hit: symbols, routes and tables."""
    defined: dict[tuple[str, str | None], list[Node]] = defaultdict(list)
    for defined_node in map(
        build_node, view.list_definitions([*dict.fromkeys(hit.uri for hit in hits)])
    ):
        defined[defined_node.uri or "", defined_node.symbol].append(defined_node)
    own = [_list_nodes(hit, defined) for hit in hits]
    nodes = {(node.repository, node.name): node for some in own for node in some}
    edges = _list_edges(view, [*nodes], nodes)
    known = view.find_end_nodes(edges, nodes)
    neighbours: dict[NodeKey, dict[NodeKey, None]] = defaultdict(dict)
    for edge in edges:
        relation = find_relation(edge, known)
        if relation is not None:
            source, target = (edge.source, relation.source), (edge.source, relation.target)
            neighbours[source][target] = neighbours[target][source] = None
    related: list[dict[str, list[str]]] = []
    for some in own:
        names_by_kind: dict[str, dict[str, None]] = defaultdict(dict)
        for node in some:
            for key in neighbours.get((node.repository, node.name), ()):
                kind = _find_kind(known[key]) if key in known else None
                if kind is not None:
                    names_by_kind[kind][key[1]] = None
        related.append({kind: [*names] for kind, names in names_by_kind.items()})
    return related


def _list_edges(
    view: RelationView, keys: Sequence[NodeKey], nodes: Mapping[NodeKey, Node]
) -> list[FoundEdge]:
    """Return all edges at nodes; if they are too many for one query, query each half."""
    edges = view.find_edges_of_nodes(keys, nodes, "both")
    if not edges.cut or len(keys) == 1:
        return [*edges.edges]
    half = len(keys) // 2
    return [*_list_edges(view, keys[:half], nodes), *_list_edges(view, keys[half:], nodes)]


def _list_nodes(
    hit: Hit, defined: Mapping[tuple[str, str | None], Sequence[Node]]
) -> Sequence[Node]:
    definition = defined.get((hit.uri, hit.symbol)) if hit.symbol else None
    return definition or [build_file_node(FILE + hit.uri, _get_repository(hit))]


def _find_kind(node: Node) -> str | None:
    if node.name.startswith("route:"):
        return "route"
    if node.source_type == "table":
        return "table"
    other = node.name.startswith((*PREFIXES, FILE))
    return None if other or node.uri is None else "symbol"


def _get_repository(hit: Hit) -> str:
    return get_repository_source(hit.uri.partition("/")[0])


NOTICE: Final = "RAG is OFF for this run"
TOP_K: Final = 12
MAX_CHUNKS: Final = 50
_NOT_INDEXED_TEXT: Final = "Nothing of the project is indexed yet. What is the question about?"

_Name = Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=r"^[^\x00]+$")]
_Path = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH, pattern=r"^[^\x00]+$")]


class RetrievalOptions(BaseModel):
    """Options of a retrieval.

    Attributes:
        top_k: maximum number of chunks.
        source_types: only chunks of these source types.
        must_include_paths: files and folders whose chunks rank higher; paths within their
            repository, or as hits show them.
        route_name, controller_class, table_name: a name whose related chunks come first.
        include_run_summaries: whether changes and summaries of runs may be chunks.
        min_score: cosine below which a chunk is left out; by default the profile's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: Annotated[int, Field(ge=1, le=MAX_CHUNKS), NUMBER] = TOP_K
    source_types: Annotated[tuple[_Name, ...], Field(max_length=100)] | None = None
    must_include_paths: Annotated[tuple[_Path, ...], Field(max_length=25)] = ()
    route_name: _Name | None = None
    controller_class: _Name | None = None
    table_name: _Name | None = None
    include_run_summaries: bool = True
    min_score: Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False), NUMBER] | None = None


class RetrievalQuestion(BaseModel):
    """A question of a run.

    Attributes:
        query: the question, in words.
        run: its id; null for a question outside a run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: Annotated[str, StringConstraints(max_length=MAX_QUERY, pattern=r"\S")]
    run: (
        Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
        | None
    ) = None
    options: RetrievalOptions = RetrievalOptions()


@dataclass(frozen=True, slots=True)
class RunRetrieval:
    """The retrieval of passages for questions of runs, used in one event loop."""

    search: AsyncRetriever | AdmittedRetriever
    walker: Walker

    async def retrieve(
        self, record: TenantRecord, run: Run | None, question: RetrievalQuestion, caller: Caller
    ) -> RetrievedChunks:
        """Return the passages for a run's prompt; none, without a search, if the run disables them.

        Raises:
            InvalidRequest: an option cannot be used.
            RoleRefused, ProviderError, ServiceUnavailable: see AsyncRetriever.search.
        """
        ref, journal = record.ref, self.search.journal
        common = {"run": None if run is None else run.id, "caller": caller.name}
        if run is not None and not run.rag_enabled:
            journal.record(ref, "ai_context_loaded", {**common, "rag": False})
            return RetrievedChunks(rag=False, outcome="off", notice=NOTICE)
        options = dict(question.options)
        options["must_include_paths"] = _build_uris(record, question.options.must_include_paths)
        model = None if run is None else run.model
        request = SearchRequest.of(query=question.query, model=model, caller=caller, **options)
        answer = await self.search.search(ref.id, request)
        hits, walker = answer.hits, self.walker
        chunks: tuple[CodeChunk, ...] = ()
        if hits:
            metadata = await run_sync(
                lambda: build_metadata(walker.get_serving_view(ref.id, caller), hits)
            )
            chunks = tuple(map(_build_chunk, hits, metadata))
        loaded = {
            "query": await self.search.mask_question(question.query),
            "rag": True,
            "ids": [chunk.id for chunk in chunks],
            "scores": [chunk.score for chunk in chunks],
        }
        journal.record(ref, "ai_context_loaded", {**common, **loaded})
        if answer.disabled:
            return RetrievedChunks(rag=True, outcome="disabled")
        debug = None if answer.debug is None else _build_debug(answer.debug, chunks)
        if chunks:
            return RetrievedChunks(rag=True, chunks=chunks, debug=debug)
        asking = answer.clarification or Clarification(_NOT_INDEXED_TEXT)
        return RetrievedChunks(
            rag=True, debug=debug, outcome="clarify", question=asking.question, names=asking.names
        )


def _build_uris(record: TenantRecord, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the URIs that paths may mean: each path after the name of every repository.

    A path that starts with the name of a source is also returned as it is.
    """
    sources = Tenant.from_config(record.config).sources
    names = [config.of for config in sources if isinstance(config, RunsConfig)]
    uris: dict[str, None] = {}
    for path in paths:
        plain = path.removeprefix("./").strip("/") or path
        if plain.split("/")[0] in {source.name for source in sources}:
            uris[plain] = None
        uris |= dict.fromkeys(f"{name}/{plain}" for name in names)
    return tuple(uris)


_COMMON_FIELDS: Final = (
    *("line_start", "line_end", "symbol", "source_type", "text", "score", "score_kind", "cosine"),
    *("title", "also", "stale", "trimmed", "context"),
)
"""Fields that a chunk copies from its hit."""


def _build_chunk(hit: Hit, metadata: ChunkMetadata) -> CodeChunk:
    return CodeChunk(
        id=hit.chunk_id,
        path=hit.uri,
        repository=_get_repository(hit),
        commit=None if hit.origin is None else hit.origin.commit,
        differs=None if hit.origin is None else hit.origin.differs,
        metadata_json=metadata,
        **{name: getattr(hit, name) for name in _COMMON_FIELDS},
    )


def _build_debug(debug: Debug, chunks: Sequence[CodeChunk]) -> RetrievalDebug:
    steps: Mapping[str, float] = debug.latency_ms
    return RetrievalDebug(
        strategy=debug.strategy,
        latency_ms=round(steps.get("total", sum(steps.values())), 3),
        steps_ms=dict(steps),
        total_candidates=debug.total_candidates,
        scores={chunk.id: chunk.score for chunk in chunks},
        threshold=debug.threshold,
        nearest=debug.nearest,
        paths=debug.paths,
    )
