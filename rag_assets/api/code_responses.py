"""What the endpoints of code memory answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RelationDirection: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class CodeNode:
    """A definition, or something else that relations name.

    Attributes:
        name: qualified; with a prefix for what is no definition: `table:invoices`.
        source_type: what it is; "code" where nothing more is known.
        repository: the source that it is in.
        path: of the document that defines it, as hits name it; None for what is no definition.
        line_start, line_end: there.
        content_hash: of the text that is embedded for it; None where it has no chunk of its own.
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
    """A relation of two nodes of one repository, with its evidence.

    Attributes:
        kind: of the relation.
        source, target: names of nodes.
        how: stated; by convention; or inferred.
        confidence: 0 to 1.
        path, line_start, line_end: where the evidence is.
        evidence: its text, at most 200 characters.
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
    """What relates to a name.

    Attributes:
        complete: whether nothing was left out.
        why: what was left out; None if nothing was.
        uses: places that use the name, found by it: certain ones (`how` is "name") first, then
            possible ones ("possible", of which `confidence` is the share).
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
    """An answer about a repository, as agents get it.

    Attributes:
        answer: lines of text, each place as `path:line`; the last lines say what may be missing.
    """

    answer: str
