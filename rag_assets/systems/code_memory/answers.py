"""Answers to questions about a repository: its routes, tables, tests, history and rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rag_assets.common.formatting import format_count
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit, SearchAnswer
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.derived.model import ROUTE
from rag_assets.systems.code_memory.history import Lines, describe_history
from rag_assets.systems.code_memory.name_resolver import NameResolver
from rag_assets.systems.code_memory.outlines import (
    LineFormatter,
    format_name,
    limit_lines,
    to_one_line,
)
from rag_assets.systems.code_memory.retrieval.nodes import (
    Node,
    NodeKey,
    Relation,
    build_file_node,
    build_node,
    get_class_of_constructor,
)
from rag_assets.systems.code_memory.retrieval.question_subject import build_quotation
from rag_assets.systems.code_memory.retrieval.questions import build_clarification
from rag_assets.systems.code_memory.retrieval.uses import (
    NO_USES,
    FoundUses,
    find_uses_of_nodes,
    find_uses_of_word,
    is_within,
)
from rag_assets.systems.code_memory.retrieval.view import IMPLEMENTED_BY, RelationView
from rag_assets.systems.code_memory.retrieval.walk import (
    MAX_NODES,
    MAX_STEPS,
    RelationQuestion,
    Walker,
    WalkResult,
)
from rag_assets.systems.code_memory.rules import RuleBook
from rag_assets.systems.code_memory.symbols.names import (
    ENV,
    FILE,
    PACKAGE,
    TABLE,
    format_path_template,
    parse_request,
    split_name,
)
from rag_assets.systems.code_memory.symbols.source_types import is_test
from rag_assets.tenants.model import Tenant

_ROUTE_DEPTH: Final = 4
_MIGRATIONS: Final = ("creates", "alters", "renames", "drops")
_MAX_ROUTES: Final = 3
_MAX_LISTED_NAMES: Final = 10
_MAX_RELATIONS: Final = 50
"""Maximum number of relations to a table's models whose users are searched."""
_MAX_TARGETS: Final = 3
_EXCERPT_CHARACTERS: Final = 240
_UNKNOWN_NAME_TEXT: Final = "Nothing that you may read has this name."
_UNUSED_TEXT: Final = "Nothing uses it in the files that were read."
_STEPS_BY_NAME: Final = 3
"""Maximum number of steps, each from a definition to its users, that are followed by name."""
_STEPS_TO_USERS: Final = 2
"""Maximum number of steps from a user found by name: to its route, then to the route's tests."""
_WORD: Final = re.compile(r"\w[\w-]{1,119}[?!]?")


@dataclass(frozen=True, slots=True)
class CodeAnswers:
    """Answers questions about the repositories of one tenant, for one caller.

    Attributes:
        reader: reads documents; it contains the catalog.
        settings: the settings of the installation; None if no repository may be opened.
    """

    reader: DocumentReader
    tenant: Tenant
    caller: Caller
    settings: Settings | None = None

    def who_serves(self, route: str) -> str:
        """Show a route's controller with its validation, guards, models, events and tables."""
        resolver = self._resolver
        if resolver is None:
            return _UNKNOWN_NAME_TEXT
        routes = resolver.find_routes(route)
        if not routes:
            walks = self.compute_walks([route], direction="out")
            return self._explain_unknown(resolver, route, walks, first=ROUTE)
        names = [node.name for node in routes[:_MAX_ROUTES]]
        walks = self.compute_walks(names, direction="out", depth=_ROUTE_DEPTH)
        lines = [*_explain_prefix(route, names)]
        if len(routes) > 1:
            lines += [*_iter_route_overview(names, walks), ""]
        notes: list[str] = []
        for name, walk in zip(names, walks, strict=True):
            lines += [*self._formatter.format_tree(walk, name), ""]
            tables = [node.name for node in walk.nodes if node.name.startswith(TABLE)]
            changes = self.compute_walks(tables, kinds=_MIGRATIONS, direction="in")
            for table, change in zip(tables, changes, strict=True):
                if change.relations:
                    described = self._formatter.format_relations(change.relations)
                    lines += [table, *(f"  {line}" for line in described)]
            notes += _list_gap_notes([walk, *changes])
        if others := [node.name.removeprefix(ROUTE) for node in routes[_MAX_ROUTES:]]:
            more = ", ".join(others[:_MAX_LISTED_NAMES])
            notes.append(f"{format_count(len(others), 'more route')}: {more}")
        return limit_lines(lines, notes=[*dict.fromkeys(notes)])

    def what_touches(
        self, *, table: str | None = None, symbol: str | None = None, path: str | None = None
    ) -> str:
        """List the users of a table or a definition.

        A user of a table reads it, maps to it, changes it, or uses one of its models.

        Args:
            table: the name of the table, or of a model.
            symbol: a class, method or function.
            path: a file, which stands for its definitions.
        """
        name = table or symbol or path or ""
        resolver = self._resolver
        if resolver is None or not name:
            return _UNKNOWN_NAME_TEXT
        names = [
            *(resolver.find_tables(table) if table else ()),
            *(resolver.find_start_names(symbol, with_external=True) if symbol else ()),
            *(resolver.find_names_in_file(path) if path else ()),
        ]
        if path and not names and (below := resolver.list_files_below(path)):
            return limit_lines(
                [f"{to_one_line(path)} is a folder. Ask for one of its files:", *below]
            )
        walks = self.compute_walks(names, direction="in")
        more: list[str] = []
        if table:
            through, more = self._walk_models(walks)
            walks += through
        start_nodes = _list_start_nodes(walks)
        relations = dict.fromkeys(relation for walk in walks for relation in walk.relations)
        members = _add_members(resolver.view, start_nodes)
        uses = find_uses_of_nodes(resolver.view, members, stated=relations)
        if symbol and all(name.startswith((ENV, PACKAGE)) for name in names):
            uses = find_uses_of_word(resolver.view, _get_last_name(symbol))
            relation_places = {(relation.uri, relation.line_start) for relation in relations}
            uses = replace(
                uses,
                possible=tuple(o for o in uses.possible if (o.uri, o.line) not in relation_places),
            )
        relations |= dict.fromkeys(use.relation for use in uses.certain)
        outside = [relation for relation in relations if not _is_internal(relation, start_nodes)]
        possible = [use for use in uses.possible if not _is_internal(use.relation, start_nodes)]
        if not outside and not possible:
            is_known = any(walk.nodes for walk in walks)
            return self._explain_unknown(resolver, name, walks, is_known=is_known)
        uses = replace(uses, possible=tuple(possible))
        notes = [
            *_list_gap_notes(walks),
            *more,
            _format_coverage_note(resolver, format_count(len(outside), "use"), uses),
            *_suggest_search(symbol or table or ""),
        ]
        heading: Iterable[str] = self._explain_interpretation(name, start_nodes)
        heading = resolver.explain_shorter_path(path) if path else heading
        lines = self._formatter.format_relations(outside)
        possible_lines = self._formatter.format_possible_uses(possible)
        return limit_lines([*heading, *lines, *possible_lines], notes=notes)

    def impact_of(self, *, symbols: Sequence[str] = (), paths: Sequence[str] = ()) -> str:
        """List all direct and indirect users of definitions, with routes and tests first."""
        return self._list_dependents(symbols, paths)

    def tests_of(
        self, *, symbols: Sequence[str] = (), paths: Sequence[str] = (), route: str | None = None
    ) -> str:
        """List the tests that reach definitions, files or a route: by HTTP, by calls or by name."""
        return self._list_dependents(symbols, paths, route, only_tests=True)

    def _list_dependents(
        self,
        symbols: Sequence[str],
        paths: Sequence[str],
        route: str | None = None,
        *,
        only_tests: bool = False,
    ) -> str:
        resolver = self._resolver
        if resolver is None:
            return _UNKNOWN_NAME_TEXT
        names = [name for symbol in symbols for name in resolver.find_start_names(symbol)]
        names += [name for path in paths for name in resolver.find_names_in_file(path)]
        if route:
            names += [node.name for node in resolver.find_routes(route)]
        walks = self.compute_walks(names, direction="in", depth=MAX_STEPS)
        notes = _list_gap_notes(walks)
        dependents = _Dependents(self, names, walks)
        uses = dependents.follow_by_name(resolver.view, _list_start_nodes(walks))
        nodes = dependents.list_nodes()
        is_known = bool(dependents.start_keys)
        label = ", ".join(filter(None, [*symbols, *paths, route]))
        if not uses.possible and not (is_known if only_tests else nodes):
            explained = self._explain_unknown(resolver, label, is_known=is_known)
            return explained if only_tests else "\n".join([explained, *notes])
        if only_tests:
            lines = [*self._formatter.format_tests(nodes, dependents.relations)]
            in_tests = (use for use in uses.possible if is_test(parse_path(use.uri)))
            uses = replace(uses, possible=tuple(in_tests))
            counted = format_count(sum(line.startswith(" ") for line in lines), "test")
        else:
            lines = [*self._formatter.format_groups(nodes, dependents.relations)]
            counted = format_count(len(nodes), "use")
        lines += self._formatter.format_possible_uses(uses.possible)
        if only_tests and not lines:
            lines = [f"No test is found that requests, calls or names {to_one_line(label)}."]
        heading = [line for path in paths for line in resolver.explain_shorter_path(path)]
        notes += [_format_coverage_note(resolver, counted, uses), *_suggest_search(*symbols)]
        return limit_lines([*heading, *lines], notes=notes)

    def outline(self, path: str) -> str:
        """List the definitions of a file with their lines, or the files of a folder."""
        resolver = self._resolver
        if resolver is None:
            return _UNKNOWN_NAME_TEXT
        uris = resolver.find_files(path)
        if definitions := resolver.view.list_definitions(uris):
            formatter = LineFormatter(shows_repository=True)
            return limit_lines(formatter.format_definitions(map(build_node, definitions)))
        if uris:
            return limit_lines(f"{uri} is there, and defines nothing by name." for uri in uris)
        below = resolver.list_files_below(path)
        return limit_lines(below) if below else self._explain_unknown(resolver, path)

    def history_of(self, *, symbol: str | None = None, path: str | None = None) -> str:
        """List the commits and agents' runs that changed a definition or a file."""
        name = symbol or path or ""
        resolver = self._resolver
        if resolver is None or self.settings is None:
            return _UNKNOWN_NAME_TEXT
        nodes = resolver.find_definitions(symbol) if symbol else []
        file = path or ("" if nodes else name)
        format_place = self._formatter.format_place
        targets: list[tuple[str, str, Lines | None]] = [
            (uri, format_place(uri), None) for uri in (resolver.find_files(file) if file else ())
        ]
        for node in nodes:
            if node.uri and node.line_start and node.line_end:
                label = f"{format_name(node.name)}  {format_place(node.uri, node.line_start)}"
                targets.append((node.uri, label, (node.line_start, node.line_end)))
        if not targets:
            return self._explain_unknown(resolver, name)
        answer: list[str] = []
        for target in targets[:_MAX_TARGETS]:
            answer += describe_history(self.tenant, self.settings, *target)
        files = [FILE + uri for uri in dict.fromkeys(uri for uri, *_ in targets[:_MAX_TARGETS])]
        runs = self.compute_walks(files, direction="out", kinds=("changed_by",))
        changes = [relation for walk in runs for relation in walk.relations]
        answer += self._formatter.format_relations(changes)
        omitted_count = len(targets) - _MAX_TARGETS
        notes = (
            [f"{format_count(omitted_count, 'more definition')} of the name"]
            if omitted_count > 0
            else []
        )
        return limit_lines(answer, notes=notes)

    def rules_for(self, paths: Sequence[str]) -> str:
        """List the rules, decisions, known bugs and documents that concern these files."""
        resolver = self._resolver
        if resolver is None:
            return _UNKNOWN_NAME_TEXT
        book = RuleBook(self.reader, self.tenant, self.caller, resolver.view, self._formatter)
        lines, notes = book.describe_documents([*dict.fromkeys(paths)])
        if not lines:
            return "\n".join(["No rule, decision or document names these files.", *notes])
        return limit_lines(lines, notes=notes)

    def list_hits(self, answer: SearchAnswer, question: str) -> str:
        """List hits with their locations and excerpts.

        The excerpt of a hit that contains the whole question starts at that line.
        """
        quotation = build_quotation(question)
        notes = [f"{warning.field}: {warning.problem}" for warning in answer.warnings]
        if not answer.hits:
            asking = answer.clarification
            return "\n".join([_UNKNOWN_NAME_TEXT if asking is None else asking.question, *notes])
        lines = []
        for hit in answer.hits:
            line, excerpt = _find_quotation(hit, quotation)
            where = self._formatter.format_place(hit.uri, line)
            differs = hit.origin is not None and bool(hit.origin.differs)
            changed = "  (file differs from the commit)" if differs else ""
            lines.append(f"{where}  {hit.source_type}  {hit.symbol or ''}{changed}".rstrip())
            lines.append(f"  {' '.join(excerpt.split())[:_EXCERPT_CHARACTERS]}")
        return limit_lines(lines, notes=notes)

    def compute_walks(
        self,
        names: Sequence[str],
        *,
        direction: Direction,
        depth: int = 1,
        kinds: Sequence[str] = (),
    ) -> list[WalkResult]:
        """Walk from each name; all walks read the same state of the relations."""
        tenant_id, walker = self.tenant.id, self._walker

        def walk(view: RelationView) -> list[WalkResult]:
            questions = (RelationQuestion(name, kinds, direction) for name in names)
            return [
                walker.walk_in_view(view, tenant_id, question, depth=depth)
                for question in questions
            ]

        walks = walker.read_with_view(tenant_id, self.caller, walk) if names else None
        return walks or [WalkResult() for _ in names]

    def _walk_models(self, walks: Sequence[WalkResult]) -> tuple[list[WalkResult], list[str]]:
        """Walk from the models of a table, and from the relations of other models to these models.

        Return the walks, and a note if a limit kept some relations from being followed.
        """
        models = _list_sources(walks, "maps_to")
        users = self.compute_walks(models, direction="in")
        related = [source for source in _list_sources(users, "relates_to") if source not in models]
        followed = self.compute_walks(related[:_MAX_RELATIONS], direction="in")
        omitted_relations = format_count(len(related) - _MAX_RELATIONS, "more relation")
        note = f"users of {omitted_relations} to its models were not looked for"
        return [*users, *followed], [note] if len(related) > _MAX_RELATIONS else []

    @property
    def _walker(self) -> Walker:
        return Walker(self.reader.catalog, self.reader.policy)

    @property
    def _resolver(self) -> NameResolver | None:
        """Return the resolver of names for the caller; None if no build serves searches."""
        view = self._walker.get_serving_view(self.tenant.id, self.caller)
        return None if view is None else NameResolver(view, self.tenant)

    @property
    def _formatter(self) -> LineFormatter:
        """Return the formatter; with several repositories, each path starts with its repository."""
        repositories = [source for source in self.tenant.sources if source.type in {"git", "files"}]
        return LineFormatter(shows_repository=len(repositories) > 1)

    def _explain_interpretation(
        self, question_name: str, start_nodes: Iterable[Node]
    ) -> Iterator[str]:
        """Yield a line for each definition that a name is taken for; none if that is obvious."""
        by_name = {node.name: node for node in start_nodes}
        plain = question_name.lstrip("\\").replace("@", "::").lower()
        if len(by_name) == 1 and next(iter(by_name)).lower().endswith(plain):
            return
        for name, node in [*by_name.items()][:_MAX_TARGETS]:
            where = self._formatter.format_place(node.uri, node.line_start)
            table_name = format_name(name.removeprefix(TABLE))
            taken_for = f"{node.source_type} {table_name}  {where}".rstrip()
            yield f"{to_one_line(question_name)} is taken for {taken_for}"

    def _explain_unknown(
        self,
        resolver: NameResolver,
        name: str,
        walks: Sequence[WalkResult] = (),
        *,
        is_known: bool = False,
        first: str = "",
    ) -> str:
        """Explain that a name is unknown or unused; list similar names and what may be missing.

        Args:
            walks: the walks from this name.
            first: prefix of the similar names that are listed first.
        """
        if not name:
            return _UNKNOWN_NAME_TEXT
        names = () if is_known else build_clarification(resolver.view, name, first=first).names
        message = _UNUSED_TEXT if is_known else _UNKNOWN_NAME_TEXT
        message = f"{message} Alike: {', '.join(map(to_one_line, names))}" if names else message
        notes = _list_gap_notes(walks)
        notes += [_format_coverage_note(resolver, "0 uses")] if is_known else []
        notes += resolver.describe_unread_routes() if first == ROUTE else []
        last = _get_last_name(name)
        if not last or is_known or first:
            return limit_lines([message], notes=notes)
        places = find_uses_of_word(resolver.view, last)
        notes += [*_format_omitted_note(places), *_suggest_search(name)]
        lines = self._formatter.format_possible_uses(places.possible)
        return limit_lines([message, *lines], notes=notes)


class _Dependents:
    """The nodes that depend on definitions, found by a walk from each name.

    Attributes:
        relations: relations between these nodes.
        start_keys: the definitions that exist.
    """

    def __init__(
        self, answers: CodeAnswers, names: Sequence[str], walks: Sequence[WalkResult]
    ) -> None:
        self._compute_walks = answers.compute_walks
        self.relations: list[Relation] = []
        self.start_keys: set[NodeKey] = set()
        # Each node with the path of names that leads to it.
        self._found: dict[NodeKey, tuple[Node, Sequence[str]]] = {}
        for name, walk in zip(names, walks, strict=True):
            self.relations += walk.relations
            paths = _find_shortest_paths(walk, {*walk.start_names, name})
            self.start_keys |= {
                (n.repository, n.name) for n in walk.nodes if paths.get(n.name) == (n.name,)
            }
            for node in walk.nodes:
                if node.name in paths:
                    self._found.setdefault((node.repository, node.name), (node, paths[node.name]))

    def list_nodes(self) -> list[tuple[Node, Sequence[str]]]:
        """Return the dependent nodes, each with the path of names that leads to it."""
        return [value for key, value in self._found.items() if key not in self.start_keys]

    def follow_by_name(self, view: RelationView, start_nodes: Sequence[Node]) -> FoundUses:
        """Add users that are found only by name, step by step; return uses of the start nodes."""
        frontier = _add_members(view, start_nodes)
        first_uses: FoundUses | None = None
        omitted = 0
        for _ in range(_STEPS_BY_NAME):
            uses = find_uses_of_nodes(view, frontier, stated=self.relations)
            first_uses = uses if first_uses is None else first_uses
            omitted += uses.omitted
            owners = {node.name: node.repository for node in frontier}
            frontier = []
            for use in uses.certain:
                self.relations.append(use.relation)
                key = use.repository, use.source
                if key in self._found or key in self.start_keys:
                    continue
                if len(self._found) >= MAX_NODES:
                    omitted += 1
                    continue
                known_path = self._found.get((owners[use.target], use.target))
                before = (use.target,) if known_path is None else known_path[1]
                if use.within is None:
                    node = build_file_node(use.source, use.repository)
                else:
                    node = build_node(use.within)
                    frontier.append(node)
                self._found[key] = node, (*before, node.name)
            self._add_callers(frontier)
            if not frontier:
                break
        return replace(first_uses or NO_USES, omitted=omitted)

    def _add_callers(self, users: Sequence[Node]) -> None:
        """Add the routes and tests that depend on nodes, according to relations.

        Args:
            users: nodes that use a symbol and were found by its name.
        """
        names = [node.name for node in users]
        walks = self._compute_walks(names, direction="in", depth=_STEPS_TO_USERS)
        for user, walk in zip(users, walks, strict=True):
            self.relations += walk.relations
            paths = _find_shortest_paths(walk, {user.name})
            before = self._found[user.repository, user.name][1]
            for node in walk.nodes:
                key = node.repository, node.name
                is_new = node.name in paths and key not in self.start_keys
                if is_new and len(self._found) < MAX_NODES:
                    self._found.setdefault(key, (node, (*before, *paths[node.name][1:])))


def _list_start_nodes(walks: Iterable[WalkResult]) -> list[Node]:
    return [node for walk in walks for node in walk.nodes if node.name in walk.start_names]


def _find_quotation(hit: Hit, quotation: re.Pattern[str] | None) -> tuple[int | None, str]:
    """Return the number of the first line to show, and the text: from that line, or the excerpt."""
    match = quotation.search(hit.text) if quotation is not None else None
    if match is None or hit.line_start is None or hit.line_end is None:
        return hit.line_start, hit.excerpt
    start = hit.text.rfind("\n", 0, match.start()) + 1
    is_whole = hit.text.rstrip("\n").count("\n") == hit.line_end - hit.line_start
    line = hit.line_start + (hit.text.count("\n", 0, start) if is_whole else 0)
    return line, hit.text[start:]


def _list_sources(walks: Iterable[WalkResult], kind: str) -> list[str]:
    relations = (relation for walk in walks for relation in walk.relations if relation.kind == kind)
    return [*dict.fromkeys(relation.source for relation in relations)]


def _format_coverage_note(resolver: NameResolver, counted: str, uses: FoundUses = NO_USES) -> str:
    """Return a note: the numbers of uses, and how the files of each language were read."""
    parts = [counted]
    if uses.possible:
        parts.append(format_count(len(uses.possible), "possible one"))
    parts += _format_omitted_note(uses)
    return "; ".join(filter(None, (*parts, resolver.describe_coverage())))


def _format_omitted_note(uses: FoundUses) -> list[str]:
    return [f"at least {format_count(uses.omitted, 'place')} not looked at"] if uses.omitted else []


def _get_last_name(name: str) -> str:
    """Return the last part of a name in code; "" if that part is not a word."""
    last = (split_name(name, folded=False) or ("",))[-1]
    return last if _WORD.fullmatch(last) else ""


def _suggest_search(*questions: str) -> list[str]:
    """Return a command that finds all occurrences of names; none if no name is a word."""
    names = (question for question in questions if "/" not in question)
    words = [word for word in dict.fromkeys(map(_get_last_name, names)) if word][:_MAX_TARGETS]
    if not words:
        return []
    patterns = " ".join(f"-e {shlex.quote(word)}" for word in words)
    return [f"every place of the name: rg -nFw {patterns}"]


def _add_members(view: RelationView, nodes: Sequence[Node]) -> list[Node]:
    """Return definitions and their members: who uses a member also uses the definition."""
    nodes_by_key = {(node.repository, node.name): node for node in nodes}
    uris = sorted({node.uri for node in nodes if node.uri})
    names = tuple(f"{node.name}{mark}" for node in nodes for mark in ("::", ".", "#"))
    members = (
        [
            definition
            for definition in view.list_definitions(uris)
            if definition.name.startswith(names)
        ]
        if names
        else []
    )
    for member in members:
        nodes_by_key.setdefault((member.source, member.name), build_node(member))
    return [*nodes_by_key.values()]


def _is_internal(relation: Relation, nodes: Iterable[Node]) -> bool:
    return any(
        is_within(relation.source, n.name) and is_within(relation.target, n.name) for n in nodes
    )


def _explain_prefix(written: str, routes: Sequence[str]) -> Iterator[str]:
    """Yield a line if the requested path has more or fewer parts than the paths of its routes."""
    request = parse_request(written)
    route_names = [name.removeprefix(ROUTE) for name in routes]
    depths = {format_path_template(name.partition(" ")[2]).count("/") for name in route_names}
    if request and format_path_template(request[1]).count("/") not in depths:
        taken_for = ", ".join(route_names)
        yield f"{to_one_line(written)} is taken for {taken_for}: the server may add a prefix"


def _iter_route_overview(routes: Sequence[str], walks: Sequence[WalkResult]) -> Iterator[str]:
    """Yield a line for each route, because the details of one route may fill an answer."""
    for name, walk in zip(routes, walks, strict=True):
        keys = (name, "routes_to"), (name, "calls")
        runs = [
            relation.target
            for relation in walk.relations
            if (relation.source, relation.kind) in keys
        ]
        yield f"{name.removeprefix(ROUTE)}  {', '.join(map(format_name, runs))}".rstrip()


def _list_gap_notes(walks: Iterable[WalkResult]) -> list[str]:
    """Return lines about what walks may lack, without duplicates."""
    reasons = dict.fromkeys(walk.why for walk in walks if not walk.complete)
    return [f"this may lack something: {reason}" for reason in reasons]


def _get_owner(name: str) -> str:
    """Return the name of the definition that contains the definition `name`; "" if none does."""
    at = max(name.rfind(mark) for mark in ("::", ".", "#"))
    return name[:at] if at > 0 else ""


def _find_shortest_paths(walk: WalkResult, start_names: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the shortest path of names from a start node to each node, by the node's name."""
    paths: dict[str, tuple[str, ...]] = {
        node.name: (node.name,) for node in walk.nodes if node.name in start_names
    }
    frontier = list(paths)
    users: dict[str, list[str]] = {}
    for relation in walk.relations:
        users.setdefault(relation.target, []).append(relation.source)
        # A user of a method is also a user of its class.
        if owner := _get_owner(relation.target):
            users.setdefault(owner, []).append(relation.source)
        if relation.kind == IMPLEMENTED_BY and relation.source in start_names:
            users.setdefault(relation.source, []).append(relation.target)
    while frontier:
        new = []
        for name in frontier:
            for user in (*users.get(name, ()), *users.get(get_class_of_constructor(name), ())):
                if user not in paths:
                    paths[user] = (*paths[name], user)
                    new.append(user)
        frontier = new
    return paths
