"""Nodes and relations of repositories, with the names that users see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from rag_assets.ingest.sources.model import parse_path
from rag_assets.systems.code_memory.catalog.found_relations import FoundEdge, FoundSymbol
from rag_assets.systems.code_memory.relations.relations import EDGE_NAMES, UNNAMED_KINDS
from rag_assets.systems.code_memory.symbols.names import (
    CONFIG,
    ENDPOINT,
    ENV,
    FILE,
    GROUP,
    MIDDLEWARE,
    OWN_SETTING_PREFIX,
    PACKAGE,
    TABLE,
)
from rag_assets.systems.code_memory.symbols.source_types import (
    get_source_type,
    get_type_of_path,
    is_test,
)

PREFIXES = {
    TABLE: "table",
    CONFIG: "config",
    ENV: "config",
    PACKAGE: "package",
    MIDDLEWARE: "middleware",
    ENDPOINT: "api_endpoint",
    GROUP: "route",
}
"""Source type of a node that is not a definition, by the prefix of its name."""

_DOCUMENT_RELATIONS = {"adr": "decides", "known_bug": "bug_in"}
"""User-facing name of `documents` edges, by the source type of the document."""
_CODE = "code"
_TEST = "test"
TEST_EDGES = frozenset({"imports", "calls", "makes", "requests", "touches", "takes", "uses"})
"""Kinds of edges that are shown as `tests` if a test file states them."""
_UNIT_ROLES = {
    **{role: role for role in ("method", "function", "operation", "ability", "key")},
    **dict.fromkeys(("route", "table", "run"), "derived"),
}
EVIDENCE_NAMES: Final = {"scip": "SCIP index"}
"""Displayed name of the tool that resolved a relation, by the relation's `how`."""
_MAX_CACHED_NODES: Final = 16_384
"""Maximum number of cached nodes; walks read the same nodes again and again."""

NodeKey: TypeAlias = tuple[str, str]
"""Key of a node: its repository and its name."""


@dataclass(frozen=True, slots=True)
class Node:
    """A definition, or something else that edges refer to, such as a table or a file.

    Attributes:
        name: the qualified name; with a prefix if it is not a definition: `table:invoices`.
        source_type: its type; "code" if the type is unknown.
        repository: its source; names are unique only within a repository.
        uri: the URI of the document that defines it; None if it is not a definition.
        line_start, line_end: first and last line in that document.
        content_hash: the hash of the text embedded for it; None if it has no separate chunk.
        symbol: the name of its chunk.
        role: the role of its chunk, such as `class` or `method`; "" if it is not a definition.
    """

    name: str
    source_type: str
    repository: str
    uri: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    content_hash: str | None = None
    document_id: str | None = None
    symbol: str | None = None
    role: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two nodes, with its evidence.

    Attributes:
        kind: its user-facing name.
        source, target: names of nodes in one repository.
        how: see relations.relations.How; "name" or "possible" for a use found by name.
        confidence: 0 to 1.
        evidence: the text at `uri` and its lines, at most 200 characters.
    """

    kind: str
    source: str
    target: str
    how: str
    confidence: float
    uri: str
    line_start: int
    line_end: int
    evidence: str


def get_stating_node(edge: FoundEdge) -> str:
    """Return the source node of an edge: the definition that states it, or else the file."""
    return edge.stated_of or FILE + edge.uri


def find_relation(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> Relation | None:
    """Return an edge as a relation; None if an end is unknown or users see no name for it."""
    kind = find_relation_name(edge, known)
    if kind is None:
        return None
    return Relation(
        *(kind, get_stating_node(edge), edge.target, edge.how, edge.confidence, edge.uri),
        *(edge.line_start, edge.line_end, edge.evidence or ""),
    )


def find_relation_name(edge: FoundEdge, known: Mapping[NodeKey, Node]) -> str | None:
    """Return the name that users see for an edge; None if there is none or an end is unknown."""
    source = get_stating_node(edge)
    target = known.get((edge.source, edge.target))
    if target is None or (edge.source, source) not in known or source == edge.target:
        return None
    kind = _name_relation(edge, target)
    return None if kind in UNNAMED_KINDS else kind


def _name_relation(edge: FoundEdge, target: Node) -> str:
    path = parse_path(edge.uri)
    if edge.kind == "documents":
        return _DOCUMENT_RELATIONS.get(get_type_of_path(path), edge.kind)
    inner = target.uri is not None and is_test(parse_path(target.uri))
    if edge.kind in TEST_EDGES and is_test(path) and not inner:
        return "tests"
    if edge.kind == "takes" and _is_model_policy(get_stating_node(edge), target):
        return "authorizes"
    return EDGE_NAMES.get((edge.kind, target.source_type), edge.kind)


def _is_model_policy(source: str, target: Node) -> bool:
    """Return whether a definition belongs to the class that is by convention a model's policy."""
    owner, model = source.partition("::")[0], target.name
    short, model_name = (name.rpartition("\\")[2] for name in (owner, model))
    return target.source_type == "model" and short == f"{model_name}Policy"


@lru_cache(_MAX_CACHED_NODES)
def build_node(definition: FoundSymbol) -> Node:
    """Return the node of a definition."""
    role = _UNIT_ROLES.get(definition.role, "class")
    # The name of an anonymous class starts with the name of its document.
    own = definition.name.removeprefix(f"{definition.uri}#")
    kind = get_source_type(role, own, definition.kinds, definition.document_type)
    kind = _TEST if kind == _CODE and is_test(parse_path(definition.uri)) else kind
    lines = definition.line_start, definition.line_end
    return Node(
        *(
            definition.name,
            kind,
            definition.source,
            definition.uri,
            *lines,
            definition.content_hash,
        ),
        document_id=definition.document_id,
        symbol=_get_chunk_name(definition.local_name),
        role=role,
    )


def _get_chunk_name(local: str) -> str | None:
    """Return the name of a definition's chunk: for a setting, its first key, if any."""
    if local.startswith(OWN_SETTING_PREFIX):
        return local.removeprefix(OWN_SETTING_PREFIX).partition(".")[0] or None
    return local.removeprefix(ENV)


def build_other_node(name: str, repository: str) -> Node:
    """Return the node of a name with a prefix, such as `table:invoices`."""
    kind = next(kind for prefix, kind in PREFIXES.items() if name.startswith(prefix))
    return Node(name, kind, repository)


def build_file_node(name: str, repository: str) -> Node:
    """Return the node of a file."""
    uri = name.removeprefix(FILE)
    path = parse_path(uri)
    kind = get_type_of_path(path)
    return Node(name, _TEST if kind == _CODE and is_test(path) else kind, repository, uri)


def find_defining_files(
    keys: Iterable[NodeKey], nodes: Mapping[NodeKey, Node]
) -> dict[NodeKey, NodeKey]:
    """Map each file that defines nodes to the first of these nodes."""
    first: dict[NodeKey, NodeKey] = {}
    for key in keys:
        node = nodes.get(key)
        if node is not None and node.uri is not None:
            first.setdefault((key[0], FILE + node.uri), key)
    return first


def get_class_of_constructor(name: str) -> str:
    """Return the class that a constructor belongs to; "" for any other name."""
    owner, separator, method = name.rpartition("::")
    return owner if separator and method == "__construct" else ""
