"""The metadata of chunks: framework, language, and the relations of their definitions.

The metadata is read at query time, with one step of relations for all chunks together. No chunk
must therefore be indexed again when another file adds a relation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rag_assets.api.run_responses import ChunkMetadata
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.model import Hit
from rag_assets.systems.code_memory.catalog.found_relations import FoundEdge
from rag_assets.systems.code_memory.derived.model import MEDIA_TYPE
from rag_assets.systems.code_memory.manifests.frameworks import FRAMEWORKS
from rag_assets.systems.code_memory.retrieval.nodes import (
    PREFIXES,
    Node,
    NodeKey,
    file_node,
    node_of,
    relation_of,
)
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.sources.derived import repository_of
from rag_assets.systems.code_memory.symbols.nodes import PACKAGE

MOST_RELATED: Final = 20
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
"""Package manager and name of each framework, by the node of its package."""

_OF_SERVERS: Final = ("laravel", "django")
"""Frameworks whose routes and tables are derived."""


def metadata_of(view: View | None, hits: Sequence[Hit]) -> list[ChunkMetadata]:
    """Return the metadata of each hit, limited to what the caller may read.

    Args:
        view: the part of the index that the caller may read; None if the index cannot answer.
        hits: chunks of an answer.
    """
    if view is None or not hits:
        return [_metadata(hit, None, {}) for hit in hits]
    frameworks = _frameworks(view)
    related = _related(view, hits)
    return [_metadata(hit, _framework(hit, frameworks), related[at]) for at, hit in enumerate(hits)]


def _metadata(
    hit: Hit, framework: str | None, related: Mapping[str, Sequence[str]]
) -> ChunkMetadata:
    lines = hit.line_start, hit.line_end
    return ChunkMetadata(
        framework=framework,
        file_path=path_of(hit.uri),
        line_range=None if lines[0] is None or lines[1] is None else (lines[0], lines[1]),
        language=None if _is_derived(hit) else hit.language,
        related_symbols=tuple(related.get("symbol", ())[:MOST_RELATED]),
        related_routes=tuple(related.get("route", ())[:MOST_RELATED]),
        related_tables=tuple(related.get("table", ())[:MOST_RELATED]),
        paths=(hit.uri, *hit.also),
    )


def _frameworks(view: View) -> dict[str, list[tuple[str, str]]]:
    """Return the frameworks in each repository's manifests, as package managers and names."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in view.edges([*_PACKAGES], "in", only=("depends_on",)).edges:
        if edge.target in _PACKAGES:
            found[repository_of(edge.source)].append(_PACKAGES[edge.target])
    return found


def _framework(hit: Hit, frameworks: Mapping[str, Sequence[tuple[str, str]]]) -> str | None:
    """Return the framework of a hit's file: one that its repository uses in its language."""
    there = frameworks.get(_repository(hit), ())
    if _is_derived(hit):
        named = [name for _, name in there]
        return next((one for one in _OF_SERVERS if one in named), None)
    return next((name for manager, name in there if hit.language in _LANGUAGES[manager]), None)


def _related(view: View, hits: Sequence[Hit]) -> list[dict[str, list[str]]]:
    """Return, for each hit, the names that are one relation away, by kind: symbol, route, table."""
    defined: dict[tuple[str, str | None], list[Node]] = defaultdict(list)
    for one in map(node_of, view.within_any([*dict.fromkeys(hit.uri for hit in hits)])):
        defined[one.uri or "", one.symbol].append(one)
    own = [[*_nodes(hit, defined)] for hit in hits]
    nodes = {(one.repository, one.name): one for some in own for one in some}
    edges = _edges(view, [*nodes], nodes)
    known = view.ends(edges, nodes)
    beside: dict[NodeKey, dict[NodeKey, None]] = defaultdict(dict)
    for edge in edges:
        relation = relation_of(edge, known)
        if relation is not None:
            source, target = (edge.source, relation.source), (edge.source, relation.target)
            beside[source][target] = beside[target][source] = None
    return [_by_kind(some, beside, known) for some in own]


def _edges(view: View, keys: Sequence[NodeKey], nodes: Mapping[NodeKey, Node]) -> list[FoundEdge]:
    """Return the edges at nodes; reads them in halves if a limit would cut some off."""
    found = view.edges_at(keys, nodes, "both")
    if not found.cut or len(keys) == 1:
        return [*found.edges]
    half = len(keys) // 2
    return [*_edges(view, keys[:half], nodes), *_edges(view, keys[half:], nodes)]


def _nodes(hit: Hit, defined: Mapping[tuple[str, str | None], Sequence[Node]]) -> Iterator[Node]:
    """Yield the definitions in a hit; if there are none, the hit's file."""
    found = defined.get((hit.uri, hit.symbol), ()) if hit.symbol else ()
    yield from found
    if not found:
        yield file_node(f"file:{hit.uri}", _repository(hit))


def _by_kind(
    own: Sequence[Node],
    beside: Mapping[NodeKey, Mapping[NodeKey, None]],
    known: Mapping[NodeKey, Node],
) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for one in own:
        for key in beside.get((one.repository, one.name), ()):
            kind = _kind(known[key]) if key in known else None
            if kind is not None:
                found[kind][key[1]] = None
    return {kind: [*names] for kind, names in found.items()}


def _kind(node: Node) -> str | None:
    if node.name.startswith("route:"):
        return "route"
    if node.source_type == "table":
        return "table"
    other = node.name.startswith((*PREFIXES, "file:"))
    return None if other or node.uri is None else "symbol"


def _is_derived(hit: Hit) -> bool:
    """Return whether a hit is a route or a table that was derived from several files."""
    return hit.media_type == MEDIA_TYPE


def _repository(hit: Hit) -> str:
    return repository_of(hit.uri.partition("/")[0])
