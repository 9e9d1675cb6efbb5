"""What is found of the relations of repositories: definitions, edges, documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

Direction: TypeAlias = Literal["out", "in", "both"]

NamesCalled: TypeAlias = Mapping[str, Collection[str]]
"""Qualified names of definitions that people call alike, by repository."""


class ScopedDocument(Protocol):
    """A document, or what lies in one, as the catalog has it now."""

    @property
    def access_scope(self) -> str:
        """The scope that its readers need."""
        ...

    @property
    def uri(self) -> str:
        """Its address."""
        ...


Permits: TypeAlias = Callable[[ScopedDocument], bool]
"""Whether a caller may read a document of a scope that is open to them."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The versions that a caller may read.

    Attributes:
        generation: that answers.
        principals: of the caller.
    """

    tenant_id: str
    generation: int
    principals: Collection[str]


@dataclass(frozen=True, slots=True)
class FoundSymbol:
    """A definition in a document that the caller may read.

    Attributes:
        name: qualified.
        role, public, line_start, line_end, content_hash: see rag_assets.code.relations.Symbol.
        document_id, uri, access_scope: of the document.
        source: its repository.
        document_type: the document's source type.
        kinds: what the definitions of the document are.
        local_name: as its own text gives it.
        short: the key that it was found by, of those that people call it by.
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
    """An edge with its evidence, in a document that the caller may read.

    A tuple, because a walk makes thousands of them.

    Attributes:
        kind, stated_of, target, how, confidence, line_start, line_end, evidence: see
            rag_assets.code.relations.Edge; no evidence where it is read later.
        path: of the file that has the evidence, where it is not the document's.
        document_id, uri, source, access_scope: as of a symbol, but for uri, which is that of the
            file that has the evidence.
        position: among the edges of its document's text.
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
    """Edges at nodes.

    Attributes:
        edges: each once, those that begin there first.
        cut: whether there are more of them.
    """

    edges: Sequence[FoundEdge]
    cut: bool = False


class FoundNameUses(NamedTuple):
    """The places of a name in a document that the caller may read.

    Attributes:
        name: as the text has it.
        places: see rag_assets.code.name_uses.uses_of.
        document_id, uri, access_scope, source_type: of the document.
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
    """A document that the caller may read.

    Attributes:
        source: its repository.
        source_type: what its place tells.
    """

    document_id: str
    uri: str
    source: str
    access_scope: str
    source_type: str
