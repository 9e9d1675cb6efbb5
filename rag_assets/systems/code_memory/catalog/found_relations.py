"""Results of queries on the relations of repositories, and the names of nodes in their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.search.access import ScopedDocument
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.symbols.names import FILE, OWN_SETTING_PREFIX, get_short_name
from rag_assets.systems.code_memory.symbols.naming import (
    ANONYMOUS_PREFIX,
    OWN_PREFIX,
    REEXPORT_PREFIX,
    get_name_style,
    iter_own_spellings,
    iter_spellings,
    qualify_defined_name,
    resolve_spelling,
)

Direction: TypeAlias = Literal["out", "in", "both"]

NamesByRepository: TypeAlias = Mapping[str, Collection[str]]
"""Qualified names of definitions that share a short name, by repository."""

Permits: TypeAlias = Callable[[ScopedDocument], bool]
"""Returns whether the policy lets a caller read a document in a scope the caller may read."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The document versions of a build that a caller with these principals may read."""

    tenant_id: str
    generation: int
    principals: Collection[str]


@dataclass(frozen=True, slots=True)
class FoundSymbol:
    """A definition in a document that the caller may read.

    Attributes:
        name: the qualified name.
        role, public, line_start, line_end, content_hash: see relations.relations.Symbol.
        source: its repository.
        document_type, kinds: the document's source type, and the kinds of its definitions.
        local_name: its name within its own document.
        short: the short name by which it was found.
    """

    name: str
    role: str
    public: bool
    line_start: int
    line_end: int
    content_hash: str | None
    document_id: str
    uri: str
    source: str
    access_scope: str
    document_type: str
    kinds: Mapping[str, str] = field(hash=False)
    local_name: str = ""
    short: str = field(default="", compare=False)


class FoundEdge(NamedTuple):
    """An edge in a document that the caller may read; a tuple, because a walk creates thousands.

    Attributes:
        kind, stated_of, target, how, confidence, line_start, line_end: see
            relations.relations.Edge.
        evidence: see relations.relations.Edge; None if it is read later.
        path: the path of the file with the evidence, if it is not the document's file.
        uri: the URI of the file with the evidence.
        source: the repository.
        position: its index among the edges of its document's text.
    """

    kind: str
    stated_of: str
    target: str
    how: str
    confidence: float
    line_start: int
    line_end: int
    evidence: str | None
    path: str | None
    document_id: str
    uri: str
    source: str
    access_scope: str
    position: int


@dataclass(frozen=True, slots=True)
class FoundEdges:
    """Edges that start or end at the requested nodes; edges that start there come first.

    If `cut` is true, a limit has left out further edges.
    """

    edges: Sequence[FoundEdge]
    cut: bool = False


class FoundNameUses(NamedTuple):
    """The uses of one name in a document that the caller may read.

    Attributes:
        name: the name as the text spells it.
        places: lines and kinds of the uses in the format of symbols.model.
        source: its repository.
    """

    name: str
    places: str
    document_id: str
    uri: str
    source: str
    access_scope: str
    source_type: str


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that the caller may read; its source type is derived from its path."""

    document_id: str
    uri: str
    source: str
    access_scope: str
    source_type: str


_RELATIVE = (ANONYMOUS_PREFIX, FILE, OWN_PREFIX, ".", REEXPORT_PREFIX, OWN_SETTING_PREFIX)
"""Prefixes of names whose meaning depends on the path of the file."""


def qualify_name(name: str, uri: str) -> str:
    """Return the repository-wide form of a name in an edge; `uri` is the edge's document."""
    if not name.startswith(_RELATIVE):
        return name  # Nearly all names return here, without parsing the URI.
    if name.startswith(ANONYMOUS_PREFIX):
        return f"{uri}#{name}"  # An anonymous class is named after its line.
    if name.startswith(FILE):
        repository = get_repository_source(unquote(uri.partition("/")[0]))
        return FILE + build_uri(repository, name.removeprefix(FILE))
    return resolve_spelling(name, parse_path(uri))


def qualify_definition(name: str, uri: str) -> str:
    """Return the repository-wide name of a definition in a document."""
    if name.startswith(ANONYMOUS_PREFIX):
        return f"{uri}#{name}"
    if name.startswith(OWN_SETTING_PREFIX):
        return resolve_spelling(name, parse_path(uri))
    return name if get_name_style(uri) == "none" else qualify_defined_name(name, parse_path(uri))


def iter_target_spellings(name: str) -> Iterator[str]:
    """Yield the spellings of a node as the target of edges: as documents may refer to it."""
    if name.startswith(FILE):
        yield FILE + parse_path(name.removeprefix(FILE))
    else:
        yield from iter_spellings(name, get_short_name(name))


def iter_source_spellings(name: str) -> Iterator[str]:
    """Yield the spellings of a node as the source of edges."""
    if name.startswith(FILE):
        yield FILE + parse_path(name.removeprefix(FILE))
    else:
        yield from iter_own_spellings(name)


def separate_nameless(names: Iterable[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Separate the names of anonymous classes from all other names.

    The name of an anonymous class consists of a line number, so that many documents may contain it.
    It is therefore returned with the URI of its document.
    """
    global_names: list[str] = []
    nameless: list[tuple[str, str]] = []
    for name in names:
        uri, _, local_name = name.rpartition("#")
        if uri and local_name.startswith(ANONYMOUS_PREFIX):
            nameless.append((uri, local_name))
        else:
            global_names.append(name)
    return global_names, nameless
