"""Formatting of answers about code as text for agents, with `path:line` and within a token limit.

Texts from repositories are escaped, so that agents do not mistake them for statements of this tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.common.tokens import count_text
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.contexts import escape_imitations
from rag_assets.systems.code_memory.retrieval.nodes import EVIDENCE_NAMES, Node, Relation
from rag_assets.systems.code_memory.retrieval.uses import MAX_CANDIDATES, Use
from rag_assets.systems.code_memory.retrieval.walk import WalkResult
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.symbols.source_types import is_test

MAX_TOKENS: Final = 2_000
_RESERVED_TOKENS: Final = 60
_MAX_EVIDENCE_CHARACTERS: Final = 120
_MAX_NAME_CHARACTERS: Final = 300
_FILE: Final = "file:"
_ROUTE: Final = "route:"


def limit_lines(lines: Iterable[str], *, notes: Sequence[str] = ()) -> str:
    """Return the lines that fit the token limit, the number of omitted lines, and notes."""
    ending = list(notes)
    room = MAX_TOKENS - _RESERVED_TOKENS - sum(count_text(note) + 1 for note in ending)
    shown_lines: list[str] = []
    omitted_lines = 0
    for line in lines:
        safe = escape_imitations(line)
        needed = count_text(safe) + 1
        if omitted_lines or needed > room:
            omitted_lines += 1
            continue
        shown_lines.append(safe)
        room -= needed
    if omitted_lines:
        ending.insert(0, f"… and {omitted_lines:,} more lines: ask for less")
    return "\n".join([*shown_lines, *ending])


def to_one_line(name: str) -> str:
    """Return a name from a repository on one line, shortened and escaped for answers."""
    return escape_imitations(" ".join(name.split()))[:_MAX_NAME_CHARACTERS]


_MAX_SHOWN_PARTS: Final = 3
_DOTTED: Final = re.compile(r"[\w$]+(?:\.[\w$]+){2,}")


def format_name(name: str) -> str:
    """Return the name of a node without package or namespace, as answers also show its file."""
    if name.startswith(_FILE):
        return parse_path(name.removeprefix(_FILE))
    # An anonymous class is named after its file.
    shown_name = (name.partition("#")[2] or name).removeprefix(_ROUTE)
    namespaces = shown_name.split("::")
    if len(namespaces) > _MAX_SHOWN_PARTS and "\\" not in shown_name:
        return "::".join(namespaces[-2:])
    if not _DOTTED.fullmatch(shown_name):
        return shown_name
    parts = shown_name.split(".")
    kept_parts = parts[-2:] if len(parts) > _MAX_SHOWN_PARTS else parts
    first_type = next((at for at, part in enumerate(kept_parts) if part[0].isupper()), 0)
    return ".".join(kept_parts[first_type:])


_FIRST_IN_TREE: Final = (
    *("routes_to", "guarded_by", "validates_with", "authorizes", "uses_model", "queries_table"),
    *("maps_to", "fires", "dispatches", "listens_to", "responds_with", "calls"),
)
"""Kinds of relations that a tree shows first, in this order; other kinds follow."""
_FIRST_IN_LIST: Final = (
    *("maps_to", "queries_table", "creates", "alters", "renames", "drops"),
    *("references", "relates_to", "uses_model"),
)
"""Kinds of relations that a list shows first, in this order; other kinds follow."""
_FIRST_TYPES: Final = (
    *("route", "test", "api_endpoint", "job", "listener", "event", "controller_method"),
)
_MAX_LISTED_USES: Final = 20
"""Maximum number of possible uses shown for one definition, and of tests among other users."""


def _get_rank(kind: str, order: Sequence[str]) -> int:
    return order.index(kind) if kind in order else len(order)


@dataclass(frozen=True, slots=True)
class LineFormatter:
    """Formats nodes and relations as lines; paths may start with the name of their repository."""

    shows_repository: bool

    def format_place(self, uri: str | None, line: int | None = None) -> str:
        """Return `path:line` for a location; "" for a derived document."""
        if uri is None or get_repository_source(uri.partition("/")[0]) != uri.partition("/")[0]:
            return ""  # Derived documents have no lines: the lines that state them are shown.
        path = uri if self.shows_repository else parse_path(uri)
        return path if line is None else f"{path}:{line}"

    def format_tree(self, walk: WalkResult, root: str) -> Iterator[str]:
        """Yield a line for a node, then indented lines for the relations from it."""
        node = next((node for node in reversed(walk.nodes) if node.name == root), None)
        if node is None:
            yield format_name(root)
        else:
            where = self.format_place(node.uri, node.line_start)
            yield f"{node.source_type} {format_name(root)}  {where}".rstrip()
        by_source: dict[str, list[Relation]] = {}
        for walked in walk.relations:
            by_source.setdefault(walked.source, []).append(walked)
        for relations in by_source.values():
            relations.sort(
                key=lambda relation: (
                    _get_rank(relation.kind, _FIRST_IN_TREE),
                    relation.uri,
                    relation.line_start,
                )
            )
        opened = {root}
        waiting = [(relation, 1) for relation in reversed(by_source.get(root, []))]
        while waiting:
            relation, depth = waiting.pop()
            where = self.format_place(relation.uri, relation.line_start)
            how = "" if relation.how == "stated" else EVIDENCE_NAMES.get(relation.how, relation.how)
            target = format_name(relation.target) + (f" ({how})" if how else "")
            yield f"{'  ' * depth}{relation.kind} {target}  {where}"
            if relation.target not in opened and not relation.target.startswith(_FILE):
                opened.add(relation.target)
                below = by_source.get(relation.target, [])
                waiting += [(relation, depth + 1) for relation in reversed(below)]

    def format_relations(self, relations: Iterable[Relation]) -> Iterator[str]:
        """Yield lines for relations grouped by kind, with source, location and evidence of each."""
        by_kind: dict[str, list[Relation]] = {}
        for relation in relations:
            by_kind.setdefault(relation.kind, []).append(relation)
        for kind in sorted(by_kind, key=lambda kind: (_get_rank(kind, _FIRST_IN_LIST), kind)):
            yield f"{kind}:"
            for relation in sorted(
                by_kind[kind], key=lambda relation: (relation.uri, relation.line_start)
            ):
                where = self.format_place(relation.uri, relation.line_start)
                evidence = relation.evidence[:_MAX_EVIDENCE_CHARACTERS]
                by = f" ({EVIDENCE_NAMES[relation.how]})" if relation.how in EVIDENCE_NAMES else ""
                yield f"  {where}  {format_name(relation.source)}  {evidence}".rstrip() + by

    def format_possible_uses(self, uses: Sequence[Use]) -> Iterator[str]:
        """Yield lines for possible uses, grouped by the definition that they may refer to."""
        by_target: dict[str, list[Use]] = {}
        for use in uses:
            by_target.setdefault(use.target, []).append(use)
        for target, uses_of_target in by_target.items():
            count = max(use.candidates for use in uses_of_target)
            which = f"one of {count} definitions of the name" if count > 1 else "by its name alone"
            heading = f"possibly {format_name(target)}, {which} ({len(uses_of_target)})"
            if count > MAX_CANDIDATES:
                yield heading
                continue
            yield f"{heading}:"
            for possible_use in uses_of_target[:_MAX_LISTED_USES]:
                relation = possible_use.relation
                where = self.format_place(possible_use.uri, possible_use.line)
                source = (
                    "" if possible_use.within is None else f"  {format_name(possible_use.source)}"
                )
                yield f"  {where}  {relation.kind}{source}  {relation.evidence}"
            if len(uses_of_target) > _MAX_LISTED_USES:
                yield f"  … and {len(uses_of_target) - _MAX_LISTED_USES:,} more"

    def format_groups(
        self, nodes_with_paths: Sequence[tuple[Node, Sequence[str]]], stated: Sequence[Relation]
    ) -> Iterator[str]:
        """Yield nodes grouped by type, entry points first, each with the path of names to it.

        Only the first tests are listed, to leave room for other types; `format_tests` lists all.

        Args:
            nodes_with_paths: nodes, each with the path of names that leads to it.
            stated: relations; a node without line numbers is shown with its relation's lines.
        """
        by_type: dict[str, list[tuple[Node, Sequence[str]]]] = {}
        defining = {node.uri for node, _ in nodes_with_paths if not node.name.startswith(_FILE)}
        for node, path in nodes_with_paths:
            if not node.name.startswith(_FILE) or node.uri not in defining:
                by_type.setdefault(node.source_type, []).append((node, path))
        lines = {relation.source: (relation.uri, relation.line_start) for relation in stated}
        evidence = {
            (relation.source, relation.target): f" ({EVIDENCE_NAMES[relation.how]})"
            for relation in stated
            if relation.how in EVIDENCE_NAMES
        }
        for kind in sorted(by_type, key=lambda kind: (_get_rank(kind, _FIRST_TYPES), kind)):
            yield f"{kind} ({len(by_type[kind])}):"
            most = _MAX_LISTED_USES if kind == "test" else len(by_type[kind])
            for node, path in by_type[kind][:most]:
                where = self.format_place(node.uri, node.line_start)
                where = where or self.format_place(*lines.get(node.name, (None, None)))
                through = " < ".join(format_name(name) for name in reversed(path[1:-1]))
                shown_node = format_name(node.name) + (f"  < {through}" if through else "")
                by = evidence.get((node.name, path[-2]), "") if len(path) > 1 else ""
                yield f"  {where}  {shown_node}{by}"
            if len(by_type[kind]) > most:
                yield f"  … and {len(by_type[kind]) - most:,} more"

    def format_tests(
        self, nodes_with_paths: Sequence[tuple[Node, Sequence[str]]], stated: Iterable[Relation]
    ) -> Iterator[str]:
        """Yield tests, grouped by how they reach the code; see format_groups."""
        requesting: list[str] = []
        calling: list[str] = []
        lines = {relation.source: (relation.uri, relation.line_start) for relation in stated}
        for node, path in nodes_with_paths:
            if node.uri is None or not is_test(parse_path(node.uri)):
                continue
            where = self.format_place(*lines.get(node.name, (node.uri, node.line_start)))
            through = " < ".join(format_name(name) for name in reversed(path[:-1]))
            is_request = any(name.startswith(_ROUTE) for name in path)
            line = f"  {where}  {format_name(node.name)}  < {through}"
            (requesting if is_request else calling).append(line)
        for heading, listed_tests in (
            ("tests that request it by HTTP", requesting),
            ("tests that call it", calling),
        ):
            if listed_tests:
                yield f"{heading} ({len(listed_tests)}):"
                yield from listed_tests

    def format_definitions(self, nodes: Iterable[Node]) -> Iterator[str]:
        """Yield a line for each definition of a file, in the order of the file's lines."""
        for node in sorted(nodes, key=lambda node: (node.uri or "", node.line_start or 0)):
            where = self.format_place(node.uri, node.line_start)
            yield f"{where}-{node.line_end}  {node.source_type}  {node.name}"
