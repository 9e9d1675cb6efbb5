"""The definitions, edges and files of a tenant, limited to what a caller may read.

Names that modules re-export are resolved to their definitions. Searches for a definition include
the names under which other modules re-export it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.search.access import AccessPolicy, FlatScopes
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import (
    Direction,
    FoundDocument,
    FoundEdge,
    FoundEdges,
    FoundNameUses,
    FoundSymbol,
    NamesByRepository,
    Permits,
)
from rag_assets.systems.code_memory.catalog.relations import RelationRows
from rag_assets.systems.code_memory.relations.reexports import (
    ReexportTargets,
    group_members_by_reexport,
    iter_import_names,
    iter_possible_reexports,
    resolve_reexport,
)
from rag_assets.systems.code_memory.retrieval.nodes import (
    PREFIXES,
    Node,
    NodeKey,
    Relation,
    build_file_node,
    build_node,
    build_other_node,
    find_defining_files,
)
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.symbols.names import (
    FILE,
    get_short_name,
    list_search_keys,
    split_name,
)
from rag_assets.systems.code_memory.symbols.naming import (
    EVERYTHING,
    REEXPORT_PREFIX,
    SCOPED_PREFIX,
    SHORT_NAME_PREFIX,
    depends_on_path,
    ends_with_name,
    find_candidates,
    find_definition,
)

_MAX_CHAIN: Final = 6
"""Maximum number of modules in a chain of re-exports."""
_MAX_LOOKED_UP: Final = 500
"""Maximum number of names that are looked up at once."""
IMPLEMENTED_BY: Final = "implemented_by"
"""Kind of the edge from a method of a type to the method of a subtype that a call may run."""
_SUBTYPES: Final = ("extends", "implements")
_MAX_SUBTYPES: Final = 200
"""Maximum number of subtypes of a type; if it has more, methods are not looked up in any."""
MAX_IMPLEMENTATIONS: Final = 20
"""Maximum number of implementations of a method; if it has more, none is followed."""


class NameLookup(NamedTuple):
    """A name in a file that no definition has exactly.

    Attributes:
        source: the repository.
        name: the name, qualified by the file's imports as far as the path of the file shows.
        path: the path of the file; for a name in SCOPED_PREFIX, the definition that uses it.
    """

    source: str
    name: str
    path: str

    @classmethod
    def from_edge(cls, edge: FoundEdge, name: str) -> NameLookup:
        """Return the lookup of a name that an edge has as its source or target."""
        is_scoped = name.startswith(SCOPED_PREFIX)
        return cls(edge.source, name, edge.stated_of if is_scoped else parse_path(edge.uri))


@dataclass(frozen=True, slots=True)
class Reexports:
    """A resolver that follows names through the modules that re-export them.

    Attributes:
        edges: returns the readable edges that start or end at names.
        called: returns names of definitions by their short names.
    """

    edges: Callable[[Sequence[str], Direction], Sequence[FoundEdge]]
    called: Callable[[Collection[str]], Mapping[str, NamesByRepository]]

    def find_definitions(self, names: Iterable[NameLookup]) -> dict[NameLookup, str]:
        """Return the definition of each name that means exactly one; other names are omitted."""
        exported = (
            lookup
            for lookup in names
            if not lookup.name.startswith((SHORT_NAME_PREFIX, SCOPED_PREFIX))
        )
        pending = {lookup: {(lookup.name, lookup.path)} for lookup in exported}
        seen = {lookup: set(spellings) for lookup, spellings in pending.items()}
        definitions: dict[NameLookup, str] = {}
        for _ in range(_MAX_CHAIN):
            pending = dict([*pending.items()][:_MAX_LOOKED_UP])
            reexports = self._read_reexports(
                name for spellings in pending.values() for name, _ in spellings
            )
            resolved = {
                lookup: {
                    target
                    for name, path in spellings
                    for target in resolve_reexport(name, path, reexports.get(lookup.source, {}))
                }
                for lookup, spellings in pending.items()
            }
            shorts = {
                get_short_name(name) for spellings in resolved.values() for name, _ in spellings
            }
            called = self.called(shorts) if shorts else {}
            pending = {}
            for lookup, spellings in resolved.items():
                defined: set[str | None] = set()
                for name, path in spellings:
                    candidates = called.get(get_short_name(name), {}).get(lookup.source, ())
                    if not name.endswith(EVERYTHING):
                        defined.add(find_definition(name, path, candidates))
                defined -= {None}
                if len(defined) == 1:
                    definitions[lookup] = str(*defined)
                elif not defined and (fresh := spellings - seen[lookup]):
                    pending[lookup] = fresh
                    seen[lookup] |= fresh
            if not pending:
                break
        return definitions

    def list_other_names(self, names: Iterable[str]) -> list[str]:
        """Return the names under which other modules re-export definitions with these names."""
        known = dict.fromkeys(name for name in names if depends_on_path(name))
        frontier, first = [*known], len(known)
        for _ in range(_MAX_CHAIN):
            members = group_members_by_reexport(frontier)
            if not members:
                break
            frontier = []
            for edge in self.edges([REEXPORT_PREFIX + name for name in members], "in"):
                target = edge.target.removeprefix(REEXPORT_PREFIX)
                definition = find_definition(target, parse_path(edge.uri), members)
                if definition is not None:
                    alias = edge.stated_of.removeprefix(REEXPORT_PREFIX)
                    fresh = iter_import_names(alias, definition, members[definition])
                    frontier += [name for name in fresh if name not in known]
                    known |= dict.fromkeys(frontier)
            frontier = frontier[:_MAX_LOOKED_UP]
        return [*known][first:]

    def _read_reexports(self, names: Iterable[str]) -> dict[str, ReexportTargets]:
        """Return the re-exports that these names may refer to: by repository, then by name."""
        nodes = dict.fromkeys(
            REEXPORT_PREFIX + reexport
            for name in names
            for reexport in iter_possible_reexports(name)
        )
        reexports: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for edge in self.edges([*nodes], "out") if nodes else ():
            alias = edge.stated_of.removeprefix(REEXPORT_PREFIX)
            target = edge.target.removeprefix(REEXPORT_PREFIX), parse_path(edge.uri)
            reexports.setdefault(edge.source, {}).setdefault(alias, []).append(target)
        return dict(reexports)


MAX_EDGES = 2_000
"""Maximum number of edges read in one step."""
MAX_SPELLED = 500
"""Maximum number of definitions, or of files, that are read for one name."""


class RelationsChanged(Exception):
    """The catalog no longer contains the evidence of an edge that came from an in-memory graph."""


_Place = TypeVar("_Place", FoundDocument, FoundEdge, FoundNameUses, FoundSymbol)


@dataclass(frozen=True, slots=True)
class RelationView:
    """The relations of a tenant, limited to what a caller may read."""

    relations: RelationRows
    policy: AccessPolicy
    caller: Caller

    def find_by_name(self, name: str) -> list[FoundSymbol]:
        """Return the definitions with this name: qualified, or short as in `Controller@method`."""
        wanted = name.lstrip("\\").replace("@", "::")
        defined = self.find_by_qualified_names([*dict.fromkeys([name, wanted])])
        exactly = [definition for definition in defined if definition.name == name] or defined
        if name.startswith(tuple(PREFIXES)):
            return exactly or self._filter_permitted(
                self.relations.find_by_short_name(list_search_keys(name))
            )
        # Only a qualified name, or a name that contains its file name, is unambiguous.
        if exactly and any(mark in name for mark in "\\#."):
            return exactly
        shorts = [get_short_name(wanted), *list_search_keys(name)]
        called = self._filter_permitted(self.relations.find_by_short_name(shorts))
        precise = [
            definition
            for definition in called
            if "." in wanted and ends_with_name(definition.name, wanted)
        ]
        return list(dict.fromkeys([*exactly, *(precise or called)]))

    def find_by_suffix(self, name: str) -> list[FoundSymbol]:
        """Return the definitions whose name ends with a name; case and separators are ignored."""
        parts = split_name(name)
        if not parts:
            return []

        def filter_symbols(symbols: Sequence[FoundSymbol]) -> list[FoundSymbol]:
            permitted = self._filter_permitted(symbols)
            return [
                definition
                for definition in permitted
                if split_name(definition.name)[-len(parts) :] == parts
            ]

        *_, last = name_parts = split_name(name, folded=False)[-2:]
        shorts = dict.fromkeys((".".join(name_parts).lower(), last.lower(), parts[-1]))
        definitions = filter_symbols(self.relations.find_by_short_name([*shorts]))
        if any(split_name(definition.name, folded=False)[-1] == last for definition in definitions):
            return definitions
        definitions += filter_symbols(self.relations.find_by_last_part(last, MAX_SPELLED))
        return [*dict.fromkeys(definitions)]

    def find_files_by_suffix(self, name: str) -> list[FoundDocument]:
        """Return the documents with a path that ends with this file name or path."""
        encoded = build_uri("", name.strip("/")).removeprefix("/")
        return self._filter_permitted(self.relations.find_files(encoded, MAX_SPELLED))

    def find_name_uses(
        self, wanted: Collection[str], names: Collection[str], limit: int
    ) -> tuple[Sequence[FoundNameUses], bool]:
        """Return the uses of names in documents, and whether the limit was reached.

        See RelationRows.find_name_uses.
        """
        rows = self.relations.find_name_uses(wanted, names, limit) if wanted else []
        return self._filter_permitted(rows), len(rows) >= limit

    def find_by_qualified_names(self, names: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions with these qualified names."""
        return self._filter_permitted(self.relations.find_definitions(names)) if names else []

    def list_edges_of_kind(self, kind: str) -> list[FoundEdge]:
        """Return all edges of a kind, at most MAX_EDGES."""
        return self._filter_permitted(self.relations.list_edges_of_kind(kind, MAX_EDGES))

    def find_edges_naming(self, spellings: Sequence[str], kind: str) -> list[FoundEdge]:
        """Return the edges of a kind whose target is one of these spellings."""
        return self._filter_permitted(self.relations.find_edges_to(spellings, kind, MAX_EDGES))

    def find_scip_edges(self, nodes: Sequence[str]) -> list[FoundEdge]:
        """Return the edges to these nodes that a SCIP index states."""
        edges = self.relations.find_edges(nodes, "in", MAX_EDGES).edges
        return [edge for edge in self._filter_permitted(edges) if edge.how == "scip"]

    def list_documents(
        self, source_types: Sequence[str], *, only_unscanned: bool = False
    ) -> list[FoundDocument]:
        """Return the documents of these source types; see RelationRows.list_documents."""
        documents = self.relations.list_documents(source_types, only_unscanned=only_unscanned)
        return self._filter_permitted(documents)

    def list_readable_sources(self, sources: Sequence[str]) -> list[str]:
        """Return the sources in which the caller may read at least one document."""
        documents = self._filter_permitted(self.relations.list_first_documents(sources))
        readable = {document.source for document in documents}
        return [source for source in sources if source in readable]

    def find_by_parts(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Return at most `limit` definitions with a name that contains one of these parts."""
        return [*dict.fromkeys(self._filter_permitted(self.relations.find_similar(parts, limit)))]

    def list_definitions(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions in documents."""
        return self._filter_permitted(self.relations.list_definitions(uris)) if uris else []

    def find_edges_of_names(
        self,
        nodes: Sequence[str],
        direction: Direction,
        *,
        files: Sequence[str] = (),
        only: Collection[str] = (),
        without: Collection[str] = (),
        most: int | None = None,
    ) -> FoundEdges:
        """Return the edges that start or end at nodes with these names.

        Args:
            files: files whose edges outside of definitions are also returned, unless the direction
                is "in".
            only, without: see RelationRows.find_edges.
            most: maximum edges per direction; if there are more, none are returned. By default the
                first MAX_EDGES are returned.
        """
        uris = [name.removeprefix(FILE) for name in files if name.startswith(FILE)]
        others = self._reexports.list_other_names(nodes) if direction != "out" else []
        found_edges = self.relations.find_edges(
            [*nodes, *others],
            direction,
            MAX_EDGES if most is None else most,
            files=uris if direction != "in" else (),
            only=only,
            without=without,
            whole=most is not None,
        )
        return replace(
            found_edges, edges=self._resolve_ends(self._filter_permitted(found_edges.edges))
        )

    def find_implementations(
        self, keys: Sequence[NodeKey], direction: Direction
    ) -> list[FoundEdge]:
        """Return edges from methods of a type to the methods of its subtypes that implement them.

        No text states such an edge. It follows from the equal names of the methods and from the
        relation of the two types, which is its evidence.

        Args:
            direction: "out" if the keys are methods of types, "in" if they are methods of subtypes.
        """
        owners: dict[NodeKey, list[str]] = {}
        for source, name in keys:
            owner, member = _split_member(name)
            if owner:
                owners.setdefault((source, owner), []).append(member)
        if not owners:
            return []
        types = [*dict.fromkeys(owner for _, owner in owners)]
        # A subtype names its type: the edges of types run against those of their methods.
        opposite: Mapping[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
        edges = self.find_edges_of_names(types, opposite[direction], only=_SUBTYPES).edges
        subtypes = Counter((edge.source, edge.target) for edge in edges)
        implementations: list[FoundEdge] = []
        for edge in edges:
            if subtypes[edge.source, edge.target] > _MAX_SUBTYPES:
                continue
            sides = {"out": (edge.target,), "in": (edge.stated_of,)}
            known = sides.get(direction, (edge.target, edge.stated_of))
            members = [member for owner in known for member in owners.get((edge.source, owner), ())]
            ends = {member: (edge.target + member, edge.stated_of + member) for member in members}
            implementations += (
                edge._replace(kind=IMPLEMENTED_BY, stated_of=method, target=implementation)
                for method, implementation in ends.values()
            )
        names = {name for edge in implementations for name in (edge.stated_of, edge.target)}
        defined = {
            (definition.source, definition.name)
            for definition in self.find_by_qualified_names(sorted(names))
        }
        implementations = [
            edge
            for edge in implementations
            if {(edge.source, edge.stated_of), (edge.source, edge.target)} <= defined
        ]
        counts = Counter((edge.source, edge.stated_of) for edge in implementations)
        return [
            edge
            for edge in implementations
            if counts[edge.source, edge.stated_of] <= MAX_IMPLEMENTATIONS
        ]

    def _resolve_ends(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """Replace names at the ends of edges by the definitions that they clearly mean."""
        # Names in a SCIP index are complete; they must not lead to a nearer definition.
        spelled = [edge for edge in edges if edge.how != "scip"]
        end_names = {end for edge in spelled for end in (edge.target, edge.stated_of)}
        shorts = {name: _get_short_name(name) for name in end_names if depends_on_path(name)}
        if not shorts:
            return [*edges]
        called = self.relations.find_names(set(shorts.values()), self._permits)
        like = {
            (source, name): find_candidates(name, called.get(short, {}).get(source, ()))
            for source in {edge.source for edge in spelled}
            for name, short in shorts.items()
        }
        ends = ((edge, name) for edge in spelled for name in (edge.target, edge.stated_of))
        lookups = {NameLookup.from_edge(edge, name): None for edge, name in ends if name in shorts}
        resolved = {
            lookup: find_definition(lookup.name, lookup.path, definitions) if definitions else None
            for lookup in lookups
            for definitions in (like[lookup.source, lookup.name],)
        }
        lost = [lookup for lookup, definition in resolved.items() if definition is None]
        resolved |= self._reexports.find_definitions(lost) if lost else {}

        def resolve_end(name: str, edge: FoundEdge) -> str:
            if name not in shorts:
                return name
            return resolved.get(NameLookup.from_edge(edge, name)) or name

        return [
            edge
            if edge.how == "scip" or shorts.keys().isdisjoint((edge.target, edge.stated_of))
            else edge._replace(
                target=resolve_end(edge.target, edge), stated_of=resolve_end(edge.stated_of, edge)
            )
            for edge in edges
        ]

    @property
    def _permits(self) -> Permits | None:
        """Return the policy's function that checks documents; None if the policy permits all."""
        is_flat = type(self.policy) is FlatScopes
        return None if is_flat else partial(self.policy.permits, self.caller)

    @property
    def _reexports(self) -> Reexports:
        return Reexports(
            lambda names, way: self._filter_permitted(
                self.relations.find_edges(names, way, MAX_EDGES).edges
            ),
            lambda shorts: self.relations.find_names(shorts, self._permits),
        )

    def find_edges_of_nodes(
        self,
        keys: Sequence[NodeKey],
        nodes: Mapping[NodeKey, Node],
        direction: Direction,
        *,
        only: Collection[str] = (),
        without: Collection[str] = (),
    ) -> FoundEdges:
        """Return the edges that start or end at nodes, or at the files that define them.

        An edge of a file (such as "a run has changed it") is returned as an edge of the first of
        these nodes that the file defines.
        """
        first = {file: name for file, (_, name) in find_defining_files(keys, nodes).items()}
        names = dict.fromkeys(name for _, name in (*keys, *first))
        files = [name for _, name in keys]
        found_edges = self.find_edges_of_names(
            [*names], direction, files=files, only=only, without=without
        )

        def replace_files(edge: FoundEdge) -> FoundEdge:
            source = first.get((edge.source, edge.stated_of), edge.stated_of)
            target = first.get((edge.source, edge.target), edge.target)
            if (source, target) == (edge.stated_of, edge.target):
                return edge
            return edge._replace(stated_of=source, target=target)

        return replace(found_edges, edges=[*map(replace_files, found_edges.edges)])

    def find_end_nodes(
        self, edges: Sequence[FoundEdge], known: Mapping[NodeKey, Node] = MappingProxyType({})
    ) -> dict[NodeKey, Node]:
        """Return the nodes at the ends of edges, except names from other repositories."""
        ends = {(edge.source, end) for edge in edges for end in (edge.target, edge.stated_of)}
        others = {end for end in ends if end[1].startswith(tuple(PREFIXES))}
        nodes = {end: known[end] for end in ends if end in known}
        names = sorted({name for source, name in ends if name and (source, name) not in known})
        for definition in self.find_by_qualified_names(names):
            nodes[definition.source, definition.name] = build_node(definition)
        for edge in edges:
            if not edge.stated_of:
                name = FILE + edge.uri
                nodes[edge.source, name] = build_file_node(name, edge.source)
        for file in self.find_files([name for source, name in ends if (source, name) not in nodes]):
            nodes[file.repository, file.name] = file
        return {end: build_other_node(end[1], end[0]) for end in others} | nodes

    def find_files(self, names: Sequence[str]) -> list[Node]:
        """Return the nodes of existing files; each name is `file:` and a document's URI."""
        uris = [name.removeprefix(FILE) for name in names if name.startswith(FILE)]
        documents = self._filter_permitted(self.relations.find_documents(uris)) if uris else []
        return [
            build_file_node(FILE + document.uri, get_repository_source(document.source))
            for document in documents
        ]

    def add_evidence(self, edges: Sequence[tuple[FoundEdge, Relation]]) -> list[Relation]:
        """Return the relations of edges with their evidence; see RelationsChanged."""
        read = {
            (complete_edge.document_id, complete_edge.position): complete_edge.evidence or ""
            for complete_edge in self.relations.add_evidence([edge for edge, _ in edges])
        }
        if any((edge.document_id, edge.position) not in read for edge, _ in edges):
            raise RelationsChanged
        return [
            replace(relation, evidence=read[edge.document_id, edge.position])
            for edge, relation in edges
        ]

    def _filter_permitted(self, items: Sequence[_Place]) -> list[_Place]:
        return [place for place in items if self.policy.permits(self.caller, place)]


def _split_member(name: str) -> tuple[str, str]:
    """Return the owner of a member, and the member with its separator; "", "" if no owner."""
    for mark in ("::", "."):
        owner, separator, member = name.rpartition(mark)
        if separator and owner and member:
            return owner, mark + member
    return "", ""


def _get_short_name(name: str) -> str:
    if name.startswith(SCOPED_PREFIX):
        return name.removeprefix(SCOPED_PREFIX).rpartition("::")[2].lower()
    return (
        name.removeprefix(SHORT_NAME_PREFIX)
        if name.startswith(SHORT_NAME_PREFIX)
        else get_short_name(name)
    )
