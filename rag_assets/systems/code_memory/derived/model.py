"""Derived documents with the statements that support them, and what could not be resolved.

The text of a document is a description, followed by EVIDENCE and the lines of code that support it.
Only the description is embedded, so a line that only moves in its file needs no new embedding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import unquote

from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import EVIDENCE, Fact
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit
from rag_assets.systems.code_memory.symbols.names import (
    FILE,
    GROUP,
    TABLE,
    list_described_route_keys,
    list_route_keys,
    list_search_keys,
)

DerivedType: TypeAlias = Literal["route", "table", "scip"]
"""Types of derived documents; scip: the references of one file, from a SCIP index."""

MEDIA_TYPE: Final = "text/x-derived"
"""Media type of a derived document's text."""

ROUTE: Final = "route:"
"""Prefix of a route's node: `route:GET /invoices/{invoice}`."""
DESCRIBED_LINE: Final = "framework: API description"
"""The line of a route that only an API description states; its paths may lack a server's prefix."""

ROUTES: Final = "routes"
TABLES: Final = "tables"
INDEXES: Final = "scip"
"""Value of `about` for the figures of a SCIP index, stored with the unresolved statements."""


@dataclass(frozen=True, slots=True)
class DerivedStatement:
    """A statement about a node, supported by lines of a repository file.

    Attributes:
        source: the node that the statement is about; "" for the derived document's own node.
        how: see relations.relations.How.
        line_start, line_end: first and last line in the file, counted from 1.
        evidence: the text of these lines on one line, with credentials masked.
    """

    kind: str
    source: str
    target: str
    how: How
    path: str
    line_start: int
    line_end: int
    evidence: str

    @classmethod
    def from_fact(
        cls, kind: str, target: str, path: str, fact: Fact, *, source: str = "", how: How = "stated"
    ) -> DerivedStatement:
        """Return the statement that a fact of the file at this path supports."""
        lines = fact.line_start, fact.line_end
        return cls(kind, source, target, how, path, *lines, fact.evidence)


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A route or a table, or the references of a file.

    Attributes:
        called: search keys by which users find the document; see symbols.names.
        lines: its description; the first line is its heading.
    """

    source_type: DerivedType
    name: str
    called: tuple[str, ...]
    lines: tuple[str, ...]
    statements: tuple[DerivedStatement, ...]


@dataclass(frozen=True, slots=True)
class UnresolvedStatement:
    """A statement that can only be resolved by running the code.

    Attributes:
        about: what may be incomplete because of it: ROUTES or TABLES for any route or table; the
            name of one node; "" if unknown; INDEXES if the statement is about a SCIP index.
    """

    path: str
    line: int
    reason: str
    about: str = ""

    @property
    def description(self) -> str:
        """Return location and reason as one line for people."""
        if self.about == INDEXES:
            return f"{self.path}: {self.reason}"
        return f"{self.path}:{self.line} {self.reason}" if self.path else self.reason

    @property
    def as_json(self) -> list[Any]:
        """Return the statement as the JSON list that the catalog stores."""
        return [self.path, self.line, self.reason, self.about]

    @classmethod
    def from_json(cls, stored: Any) -> UnresolvedStatement:
        """Return a statement from its stored form; older versions stored only the reason."""
        return cls("", 0, stored) if isinstance(stored, str) else cls(*stored)


@dataclass(frozen=True, slots=True)
class Derivation:
    """The documents derived from a repository's files.

    Attributes:
        documents: routes in the router's order, then tables by name.
        unresolved: statements that only running code resolves; they may add or change documents.
    """

    documents: tuple[DerivedDocument, ...]
    unresolved: tuple[UnresolvedStatement, ...]


def link_groups(places: Iterable[DerivedStatement]) -> Iterator[DerivedStatement]:
    """Yield statements: a route is in each of its groups, and each group is in the next outer one.

    Args:
        places: the groups, outermost first.
    """
    outer = ""
    for place in places:
        name = f"{GROUP}{place.path}:{place.line_start}"
        # Groups that start on the same line are distinguished by their depth.
        name += "'" * (len(outer) - len(name) + 1) if outer.rstrip("'") == name else ""
        yield replace(place, kind="in_group", source="", target=name)
        if outer:
            yield replace(place, kind="in_group", source=name, target=outer)
        outer = name


def limit_unresolved(
    statements: Sequence[UnresolvedStatement], most: int
) -> list[UnresolvedStatement]:
    """Return at most `most` statements about routes and as many about tables.

    Statements that may affect any document come first. If some are omitted, the last returned
    statement says how many.
    """
    kept_statements = []
    for about in (TABLES, ROUTES):
        statements_of_kind = [
            statement
            for statement in statements
            if statement.about.startswith((TABLES, TABLE)) == (about == TABLES)
        ]
        statements_of_kind.sort(key=lambda statement: statement.about != about)
        kept_statements += statements_of_kind[:most]
        if more := statements_of_kind[most:]:
            last = kept_statements.pop()
            reason = f"{last.reason}, and {format_count(len(more), 'statement')} after it"
            kept_statements.append(UnresolvedStatement(last.path, last.line, reason, about))
    return kept_statements


def build_description(heading: str, labelled: Mapping[str, str]) -> tuple[str, ...]:
    """Return the lines of a description: the heading, then each label that has a text."""
    return heading, *(f"{label}: {text}" for label, text in labelled.items() if text)


_SPECIAL: Final = re.compile(r"[\s%\x00-\x1f\x7f]")
_EVIDENCE_LINE: Final = re.compile(
    r"(?P<path>\S+):(?P<first>\d+)(?:-(?P<last>\d+))?(?: (?P<evidence>.*))?"
)
_STATEMENT_LINE: Final = re.compile(
    r"  (?:(?P<source>\S+) )?(?P<kind>[a-z_]+) (?P<target>\S+?)(?: \((?P<how>\w+)\))?"
)
_HEADING: Final = re.compile(r"(?P<type>route|table) (?P<name>.+)")
_METHODS: Final = "methods: "
_NAME: Final = "name: "
_HOWS: Final = frozenset(get_args(How))
_STATED_HOW: Final = "stated"
INDEX: Final = "scip "
"""Start of the text of a SCIP index, see derived.scip."""
REFERENCES: Final = "references "
"""Start of the heading of a document with the references of one file; the file's URI follows."""


def render_document(document: DerivedDocument) -> str:
    """Return the text of a derived document."""
    statements = "\n".join(_render_statements(document.statements))
    return "\n".join(document.lines) + EVIDENCE + statements + "\n"


def read_document(text: str) -> CodeText:
    """Return the text of a derived document as a single unit, and its statements as facts.

    References and SCIP indexes have no unit, because they are not embedded.
    """
    first = text.partition("\n")[0]
    if first.startswith(INDEX):
        return CodeText((), ())
    if first.startswith(REFERENCES):
        name = FILE + first.removeprefix(REFERENCES)
        return CodeText((), tuple(_iter_statement_facts(text, name)))
    heading = _HEADING.fullmatch(first)
    if heading is None:
        unit = Unit(0, len(text.rstrip()), "rest", alone=False)
        return CodeText((unit,), (), ("it has no heading",))
    prefix = "route:" if heading["type"] == "route" else TABLE
    name = prefix + heading["name"]
    end = len(text.rstrip())
    cuts = tuple(match.end() for match in re.finditer("\n", text[:end]))
    values = {"role": heading["type"], "public": True, "called": list(_read_keys(heading, text))}
    facts = [Fact("declares", 0, heading.end(), name, values), *_iter_statement_facts(text, name)]
    unit = Unit(0, end, "derived", name, heading.group(), cuts=cuts)
    return CodeText((unit,), tuple(facts))


def _read_keys(heading: re.Match[str], text: str) -> tuple[str, ...]:
    if heading["type"] == "table":
        return list_search_keys(f"table:{heading['name']}")[1:]
    lines = text.partition(EVIDENCE)[0].split("\n")
    methods = next((ln.removeprefix(_METHODS) for ln in lines if ln.startswith(_METHODS)), "")
    name = next((ln.removeprefix(_NAME) for ln in lines if ln.startswith(_NAME)), "")
    _, _, uri = heading["name"].partition(" ")
    path = uri[uri.find("/") :]
    make_keys = list_described_route_keys if DESCRIBED_LINE in lines else list_route_keys
    return make_keys(tuple(filter(None, methods.split(", "))), path, name)


def _iter_statement_facts(text: str, name: str) -> Iterator[Fact]:
    start = text.find(EVIDENCE)
    if start < 0:
        return
    at = start + len(EVIDENCE)
    place: dict[str, Any] = {}
    for line in text[at:].split("\n"):
        statement, place_match = _STATEMENT_LINE.fullmatch(line), _EVIDENCE_LINE.fullmatch(line)
        if statement is not None and place and (statement["how"] or _STATED_HOW) in _HOWS:
            values = {
                "kind": statement["kind"],
                "how": statement["how"] or _STATED_HOW,
                "source": unquote(statement["source"] or "") or name,
                "target": unquote(statement["target"]),
                **place,
            }
            yield Fact("states", at, at + len(line), name, values)
        elif place_match is not None:
            place = {
                "path": unquote(place_match["path"]),
                "lines": [
                    int(place_match["first"]),
                    int(place_match["last"] or place_match["first"]),
                ],
                "evidence": place_match["evidence"] or "",
            }
        at += len(line) + 1


def _render_statements(statements: Iterable[DerivedStatement]) -> Iterator[str]:
    """Yield the lines of evidence, each followed by the statements that it supports."""
    places: dict[str, list[str]] = {}
    for statement in statements:
        last = f"-{statement.line_end}" if statement.line_end > statement.line_start else ""
        evidence = " ".join(statement.evidence.split())
        place = f"{_quote_name(statement.path)}:{statement.line_start}{last} {evidence}".rstrip()
        source = f"{_quote_name(statement.source)} " if statement.source else ""
        how = f" ({statement.how})" if statement.how != _STATED_HOW else ""
        line = f"  {source}{statement.kind} {_quote_name(statement.target)}{how}"
        places.setdefault(place, []).append(line)
    for place, below in places.items():
        yield place
        yield from below


def _quote_name(name: str) -> str:
    """Return a name in which white space is percent-encoded."""
    return _SPECIAL.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)
