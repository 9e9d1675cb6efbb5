"""Responses of the code memory endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RelationDirection: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class CodeNode:
    """A definition, or another thing that relations name.

    Attributes:
        name: qualified name; other things than definitions have a prefix: `table:invoices`.
        source_type: type of the node; "code" if the type is unknown.
        repository: source of the node.
        path: path of the defining document, as hits name it; None if the node is not a definition.
        line_start, line_end: lines of the definition in that document.
        content_hash: hash of the embedded text; None if the node lacks a chunk of its own.
    """

    name: str
    source_type: str
    repository: str
    path: str | None
    line_start: int | None
    line_end: int | None
    content_hash: str | None


@dataclass(frozen=True, slots=True)
class CodeEdge:
    """A relation between two nodes of the same repository, with its evidence.

    Attributes:
        kind: kind of the relation.
        source, target: names of the nodes.
        how: stated; by convention; inferred; or scip: a SCIP index resolves it.
        confidence: 0 to 1.
        path, line_start, line_end: location of the evidence.
        evidence: text of the evidence, at most 200 characters.
    """

    kind: str
    source: str
    target: str
    how: str
    confidence: float
    path: str
    line_start: int
    line_end: int
    evidence: str


@dataclass(frozen=True, slots=True)
class CodeRelations:
    """The relations of a name.

    Attributes:
        complete: whether the result is complete.
        why: what was left out; None if the result is complete.
        uses: places that use the name, found by searching for it: certain uses (`how` is "name" or
            "scip") first, then possible uses ("possible", with one candidate's share as
            `confidence`).
    """

    nodes: tuple[CodeNode, ...]
    edges: tuple[CodeEdge, ...]
    complete: bool
    why: str | None
    uses: tuple[CodeEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeSymbols:
    """Definitions of a name, or of a document."""

    symbols: tuple[CodeNode, ...]


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """An answer about a repository, in the text that agents get.

    Attributes:
        answer: lines of text, with each place as `path:line`; the last lines name what may be
            missing.
    """

    answer: str
