"""The derived documents and source types of a repository, for all frameworks that its files use.

A file shows by *signs* which frameworks its repository uses. The signs of all files together
determine which languages the derivation reads: files in other languages change nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived import laravel
from rag_assets.systems.code_memory.derived.model import (
    ROUTE,
    ROUTES,
    Derivation,
    DerivedDocument,
    DerivedStatement,
    UnresolvedStatement,
    build_description,
    link_groups,
)
from rag_assets.systems.code_memory.derived.requested_routes import (
    OPERATION,
    add_tests_to_routes,
    derive_operations,
)
from rag_assets.systems.code_memory.django.kinds import find_source_types as django_kinds
from rag_assets.systems.code_memory.django.urlconf import (
    build_path_template,
    list_parameters,
    read_routes,
)
from rag_assets.systems.code_memory.django.views import DjangoRoute
from rag_assets.systems.code_memory.frameworks.definitions import Framework, load_all_frameworks
from rag_assets.systems.code_memory.frameworks.repository import (
    LAST_PARTS,
    File,
    RepositoryFiles,
    get_last_part,
    group,
)
from rag_assets.systems.code_memory.frameworks.routes import (
    FrameworkRoute,
    RouteReader,
    find_page_route,
)
from rag_assets.systems.code_memory.frameworks.statements import (
    FOUND,
    GRAMMARS,
    INSIDE,
    PAGES,
    STATEMENTS,
)
from rag_assets.systems.code_memory.frameworks.tables import MappedColumn, TableReader
from rag_assets.systems.code_memory.frameworks.types import (
    CLUE_KINDS,
    find_types,
    keep_facts_with_clues,
    list_clues,
)
from rag_assets.systems.code_memory.languages.python.program import Evidence
from rag_assets.systems.code_memory.laravel import classes as laravel_classes
from rag_assets.systems.code_memory.relations.edge_rules import EVENTS
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.model import USES, FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    FILE,
    TABLE,
    fold_name,
    format_endpoint,
    list_route_keys,
    list_table_keys,
)
from rag_assets.systems.code_memory.symbols.naming import qualify_defined_name
from rag_assets.systems.code_memory.symbols.source_types import SourceType, is_test

SIGN_KINDS: Final = laravel.SIGN_KINDS | {FOUND, OPERATION, "imports"}
"""Kinds of the facts that list_signs reads."""
_LARAVEL: Final = "interpreter of Laravel"
_DJANGO: Final = "interpreter of Django"
_OPERATIONS: Final = "API description"
"""Signs for the interpreters; all other signs are names of frameworks, which contain no blank."""
_DJANGO_PACKAGES: Final = frozenset({"django", "rest_framework"})
"""Packages that only Django projects import."""

LABELLED: Final = frozenset({"php", "python", *GRAMMARS, *PAGES})
"""Languages with definitions or statements that frameworks interpret."""
READ_KINDS: Final = laravel_classes.READ_KINDS | CLUE_KINDS
"""Kinds of the facts that decide source types in a repository without Django."""
_DECIDES_NOTHING: Final = frozenset({"calls", USES, FOUND, *EVENTS, *STATEMENTS})
"""Kinds of facts that do not influence the source type of any definition."""


def list_signs(file: FileFacts, custom: str = "") -> set[str]:
    """Return the signs of a file: the frameworks and interpreters that its repository may use.

    Args:
        file: the file, with at least the facts of SIGN_KINDS.
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    signs = {name for fact in file.facts if fact.kind == FOUND for name in fact.values["names"]}
    if laravel.has_laravel_sign(file):
        signs.add(_LARAVEL)
    if imports_django(file):
        signs.add(_DJANGO)
    if any(fact.kind == OPERATION for fact in file.facts):
        signs.add(_OPERATIONS)
    for framework in _list_unmarked_frameworks(file.language, custom):
        paths = (find_page_route(page, file.path) for page in framework.pages)
        if _has_derivation_rules(framework) or any(path is not None for path in paths):
            signs.add(framework.name)
    return signs


@lru_cache(maxsize=128)
def list_languages_to_read(signs: frozenset[str], custom: str = "") -> frozenset[str] | None:
    """Return the languages of the files that derive_documents reads; None for all files.

    Files in other languages do not change the derived documents. The languages for the union of two
    sets of signs are the union of their languages.

    Args:
        signs: the signs of all files of a repository.
    """
    if _LARAVEL in signs or _OPERATIONS in signs:
        return None  # Both need definitions in any language.
    frameworks = load_all_frameworks(custom)
    used = [o for o in frameworks if o.name in signs and (o.pages or _has_derivation_rules(o))]
    languages = {language for framework in used for language in framework.languages}
    if _DJANGO in signs:
        languages.add("python")
    if _DJANGO in signs or any(
        framework.routes or framework.resources or framework.pages for framework in used
    ):
        # Requests in tests are matched with routes.
        languages.update(language for o in frameworks if o.requests for language in o.languages)
    return frozenset(languages)


def uses_django(signs: frozenset[str]) -> bool:
    """Return whether signs show that a repository uses Django, so that its interpreter reads it."""
    return _DJANGO in signs


@lru_cache(maxsize=128)
def _list_unmarked_frameworks(language: str, custom: str) -> tuple[Framework, ...]:
    """Return the frameworks of a language that need no marker in a file to apply."""
    return tuple(
        o for o in load_all_frameworks(custom) if language in o.languages and not o.markers
    )


def _has_derivation_rules(framework: Framework) -> bool:
    """Return whether a framework has rules that derive routes or tables from facts."""
    rules = framework.routes, framework.resources, framework.tables, framework.changes
    return any(map(bool, rules))


def derive_documents(files: Sequence[FileFacts], custom: str = "") -> Derivation:
    """Derive routes and tables from all these files together, without duplicates.

    Args:
        files: the files of one repository, all readable by the same callers.
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    frameworks = load_all_frameworks(custom)
    derivations: list[Derivation] = []
    is_php = any(file.language == "php" for file in files)
    if is_php and any(map(laravel.has_laravel_sign, files)):
        derivations.append(laravel.derive(files))
    if any(map(imports_django, files)):
        derivations.append(derive_django_routes(files))
    derivations.append(derive_by_framework_rules(files, frameworks))
    documents: dict[str, DerivedDocument] = {}
    for derivation in derivations:
        for document in derivation.documents:
            documents.setdefault(document.name, document)
    for document in [*derive_operations(files, documents.values())]:
        documents.setdefault(document.name, document)
    documents, cut = add_tests_to_routes(documents, files, frameworks)
    unresolved = (why for derivation in derivations for why in derivation.unresolved)
    return Derivation(tuple(documents.values()), (*unresolved, *cut))


def keep_deciding_facts(facts: Sequence[Fact], language: str, custom: str = "") -> tuple[Fact, ...]:
    """Return the facts that determine source types in a file of a repository without Django.

    Args:
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    kept = {id(fact) for fact in keep_facts_with_clues(facts, language, custom)}
    is_read = laravel_classes.is_read_fact
    return tuple(
        fact for fact in facts if id(fact) in kept or (language == "php" and is_read(fact))
    )


def list_deciding_facts(facts: Sequence[Fact], language: str, custom: str = "") -> list[object]:
    """Return the facts of a file that determine source types, in a comparable form.

    If two results are equal, the source types are equal too, in this file and in others.

    Args:
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    clues = list_clues(facts, language, custom)
    if language == "php":
        return [*laravel_classes.select_read_facts(facts), *clues]
    # Django's views, models and routes depend on nearly all facts of a module.
    return [
        *clues,
        *(
            (fact.kind, fact.symbol, fact.values)
            for fact in facts
            if language == "python" and fact.kind not in _DECIDES_NOTHING
        ),
    ]


def find_source_types(
    files: Sequence[FileFacts], custom: str = ""
) -> Mapping[tuple[str, str], SourceType]:
    """Return the source type of each definition that has one, by path and qualified name.

    The interpreters of Laravel and Django take precedence over the rules of other frameworks, which
    are not applied to the Python files of a repository that uses Django.

    Args:
        custom: the tenant's own frameworks as JSON; see load_all_frameworks.
    """
    php = [file for file in files if file.language == "php"]
    python = [file for file in files if file.language == "python"]
    source_types = dict(laravel_classes.find_source_types(php)) if php else {}
    is_django = any(map(imports_django, python))
    if is_django:
        source_types |= django_kinds(python)
    others = [file for file in files if not (is_django and file.language == "python")]
    return find_types(others, custom) | source_types


def imports_django(file_facts: FileFacts) -> bool:
    """Return whether a Python file imports from Django or Django REST framework."""
    return file_facts.language == "python" and any(
        fact.kind == "imports" and str(fact.values["name"]).partition(".")[0] in _DJANGO_PACKAGES
        for fact in file_facts.facts
    )


_MAX_ROUTES: Final = 5_000
_PARAMETERS: Final = (
    (re.compile(r"\(\?P?<(\w+)>(?:[^()]|\([^()]*\))*\)"), r"{\1}"),
    (re.compile(r"\?<[^\n]*$"), ""),
    (re.compile(r"<([\w-]+)\.\.>"), r"{\1}"),
    (re.compile(r"(?<=[/.-]):(\w+)\{[^{}/]*\}"), r"{\1}"),
    (re.compile(r"\{([\w$]+)(?::[^{}]*|\?|=[^{}]*)\}"), r"{\1}"),
    (re.compile(r"\[\[?(?:\.\.\.)?([\w-]+)\]\]?"), r"{\1}"),
    (re.compile(r"<(?:[^<>:]*:)?([\w-]+)>"), r"{\1}"),
    (re.compile(r"(?<=[/.-]):(\w+)(?:\([^()]*\))?\??"), r"{\1}"),
    (re.compile(r"(?<=/)\*{1,2}(\w+)"), r"{\1}"),
)
_HOST: Final = re.compile(r"^/?[a-z][a-z0-9+.-]{0,20}:/{1,2}[^/]*", re.IGNORECASE)
"""Matches a scheme and host, with an optional user and password; they are not part of a route."""


def derive_by_framework_rules(
    files: Sequence[FileFacts], frameworks: Sequence[Framework]
) -> Derivation:
    """Derive the routes and tables of a repository by the rules of these frameworks."""
    read = [File(file) for file in files if not is_test(file.path)]
    handlers = _Handlers(read)
    documents: list[DerivedDocument] = []
    unresolved: list[UnresolvedStatement] = []
    for framework in frameworks:
        files_of_languages = [file for file in read if file.language in framework.languages]
        if framework.markers and not any(
            framework.name in file.frameworks for file in files_of_languages
        ):
            continue
        reader = RouteReader(framework, files_of_languages)
        routes = [*islice(reader.iter_routes(), _MAX_ROUTES)]
        documents += _merge_routes(routes, handlers)
        unresolved += (UnresolvedStatement(*statement, ROUTES) for statement in reader.unresolved)
        documents += _iter_tables(framework, files_of_languages)
    return Derivation(tuple(documents), tuple(dict.fromkeys(unresolved)))


_FUNCTIONS: Final = frozenset({"function", "method"})
"""Roles of definitions that a wrapped handler may have."""
_MAX_NAMESAKES: Final = 100
"""Maximum number of definitions with the name of a call in a handler; with more, it is ignored."""
_TYPES: Final = frozenset({"class", "module", "type"})
"""Roles of definitions that may own a handler."""


class _Handlers:
    """The definitions of a repository by the last part of their names; finds handlers of routes."""

    def __init__(self, files: Sequence[File]) -> None:
        self._repository = RepositoryFiles(files)
        self._known = group(
            (LAST_PARTS.split(fact.symbol)[-1], (file, fact))
            for file in files
            for fact in file.declared
            if fact.symbol not in file.modules_by_name
        )

    def find(self, route: FrameworkRoute) -> tuple[str, str]:
        """Return the name of a route's handler as written, and its node.

        The handler is the only function that its call wraps, else the called function. The node is
        "" unless exactly one definition matches.
        """
        nodes = ((name, self._find_node(route, name, _FUNCTIONS)) for name in route.wrapped)
        functions = [(name, node) for name, node in nodes if node]
        if len(functions) > 1:
            return route.handler, ""
        if not functions and "" in route.wrapped:
            return "", ""
        if functions:
            return functions[0]
        # An action that the repository does not define is inherited, or is run by its module.
        owner = route.handler.rpartition("::")[0]
        node = self._find_node(route, route.handler)
        if not node:
            classes = (self._find_node(route, name, _TYPES) for name in (owner, *route.wrapped))
            node = next(filter(None, classes), "")  # `OrderView.as_view("orders")`
        return route.handler, node

    def list_called(self, route: FrameworkRoute) -> list[str]:
        """Return the functions of the repository that a handler written in the route calls.

        A receiver must name the class or the file of the method, as `orderService` does for
        `OrderService.create`, unless the repository has a single definition with this name, and the
        name has several words.
        """
        called: dict[str, None] = {}
        for receiver, name in route.fact.values.get(INSIDE, ()):
            if len(self._known.get(name, ())) > _MAX_NAMESAKES:
                continue
            candidates = self._list_candidates(
                route.file, [*filter(None, [receiver]), name], _FUNCTIONS
            )
            owner = fold_name(get_last_part(receiver.removesuffix("()")))
            own = [c for c in candidates if c[0] is route.file]
            if receiver:
                owned = [c for c in candidates if owner in _list_folded_owners(*c)]
                is_telling = len(candidates) == 1 and len(_WORDS.findall(name)) > 1
                candidates = owned or (candidates if is_telling else [])
            else:
                candidates = own or candidates
            if len(candidates) == 1:
                file, fact = candidates[0]
                called[qualify_defined_name(fact.symbol, file.path)] = None
        return [*called]

    def _find_node(
        self, route: FrameworkRoute, name: str, roles: frozenset[str] = frozenset()
    ) -> str:
        """Return the only definition that a name in a route may mean; "" if there is none.

        Args:
            roles: roles that the definition may have; empty for all.
        """
        parts = [part for part in LAST_PARTS.split(name) if part]
        candidates = self._list_candidates(route.file, parts, roles) if parts else []
        own = [c for c in candidates if c[0] is route.file]
        of_type = [
            c
            for c in candidates
            if route.owner and route.owner in LAST_PARTS.split(c[1].symbol)[:-1]
        ]
        if name == route.handler and of_type:
            candidates = of_type
        elif route.handler_at >= 0:
            after = [c for c in own if c[1].end > route.handler_at]
            around = [c for c in after if c[1].start <= route.handler_at]
            ends = [c for c in own if c[1].end >= route.handler_at]
            candidates = (around or ends)[:1]
        elif len(parts) > 1 and parts[-2] not in {"self", "this"}:
            candidates = self._select_candidates_of_owner(parts, candidates)
        elif len(candidates) > 1:
            candidates = own or candidates
        if len(candidates) > 1:
            folder = posixpath.dirname(route.file.path)
            near = [c for c in candidates if posixpath.dirname(c[0].path) == folder]
            candidates = near or candidates
        if len(candidates) != 1:
            return ""
        file, fact = candidates[0]
        return qualify_defined_name(fact.symbol, file.path)

    def _list_candidates(
        self, file: File, parts: Sequence[str], roles: frozenset[str]
    ) -> list[tuple[File, Fact]]:
        """Return the definitions with a name, of these roles if any are given.

        If the first part of the name is imported, those in the imported file take precedence.

        Args:
            parts: the parts of the name: `orders`, `show`.
        """
        first = parts[0].partition(".")[0]
        module = file.modules_by_name.get(first, "")
        last = file.get_original_name(first) if len(parts) == 1 and module else parts[-1]
        candidates = [
            (other, fact)
            for other, fact in (*self._known.get(last, ()), *self._known.get(parts[-1], ()))
            if other.language == file.language and (not roles or fact.values.get("role") in roles)
        ]
        candidates = [*dict.fromkeys(candidates)]
        if not module or len(candidates) <= 1:
            return candidates
        files = self._repository.find_modules(file, module)
        files = files or self._repository.find_modules(file, module.rpartition(".")[0])
        return [candidate for candidate in candidates if candidate[0] in files] or candidates

    def _select_candidates_of_owner(
        self, parts: Sequence[str], candidates: Sequence[tuple[File, Fact]]
    ) -> list[tuple[File, Fact]]:
        """Return the candidates whose class, module or file the handler's name starts with."""
        owner_parts = [part.lower().lstrip("_") for part in parts[:-1]]
        close: list[tuple[File, Fact]] = []
        suffix: list[tuple[File, Fact]] = []
        for file, fact in candidates:
            owners = LAST_PARTS.split(fact.symbol.lower())[:-1]
            if owners == owner_parts:
                return [(file, fact)]
            if owner_parts[-1] in owners:
                close.append((file, fact))
                if owners[-len(owner_parts) :] == owner_parts:
                    suffix.append((file, fact))
        if close:
            return suffix or close
        shared = [_count_shared_parts(owner_parts, file.path) for file, _ in candidates]
        most = max(shared, default=0)
        in_path = [c for c, count in zip(candidates, shared, strict=True) if most and count == most]
        return in_path or ([] if parts[-2][:1].isupper() else [*candidates])


def _count_shared_parts(name_parts: Sequence[str], path: str) -> int:
    """Return how many parts of a name, from its end, a path contains in the same order."""
    *folders, stem = posixpath.splitext(path.lower())[0].split("/")
    places = [*folders, *stem.split("."), fold_name(re.sub(r"[.-]", "", stem))]
    places = places if fold_name(name_parts[-1]) == places[-1] else places[:-1]
    if fold_name(name_parts[-1]) == places[-1]:
        return 1
    if name_parts[-1] not in places:
        return 0
    ends = zip(
        reversed(name_parts), reversed(places[: places.index(name_parts[-1]) + 1]), strict=False
    )
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))


_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def _list_folded_owners(file: File, fact: Fact) -> set[str]:
    """Return the class or module of a definition, and its file, without case and separators."""
    stem = posixpath.basename(file.path).partition(".")[0]
    return {fold_name(owner) for owner in (*LAST_PARTS.split(fact.symbol)[:-1], stem)}


def _merge_routes(
    routes: Sequence[FrameworkRoute], handlers: _Handlers
) -> Iterator[DerivedDocument]:
    names: set[str] = set()
    for route in routes:
        path = _build_path_template(route.path)
        name = f"{'|'.join(route.methods)} {path}"
        if name in names:
            continue
        names.add(name)
        handler, target = handlers.find(route)
        labelled = {
            "methods": ", ".join(route.methods),
            "name": route.name,
            "framework": route.framework,
            "handler": handler or "a function without a name",
        }
        called = handlers.list_called(route) if not target else []
        if called:
            labelled["calls"] = ", ".join(called)
        targets = [("routes_to", target)] if target else [("calls", node) for node in called]
        targets += [("serves", ENDPOINT + format_endpoint(verb, path)) for verb in route.methods]
        place = route.file.path, route.fact
        statements = [DerivedStatement.from_fact(kind, node, *place) for kind, node in targets]
        keys = list_route_keys(route.methods, path, route.name)
        lines = build_description(f"route {name}", labelled)
        yield DerivedDocument("route", ROUTE + name, keys, lines, tuple(statements))


def _iter_tables(framework: Framework, files: Sequence[File]) -> Iterator[DerivedDocument]:
    for table in TableReader(framework, files).list_tables():
        names = [_find_model_node(model.file, model.fact, model.model) for model in table.models]
        columns = table.columns.values()
        lines = (
            *build_description(f"table {table.name}", {"models": ", ".join(filter(None, names))}),
            *(["columns:"] if columns else []),
            *(f"- {_describe_column(column)}" for column in columns),
        )
        build = DerivedStatement.from_fact
        statements = [
            build("changed_in", FILE + file.path, file.path, call) for file, call in table.changes
        ]
        statements += [
            build("references", TABLE + column.refers_to, column.file.path, column.fact)
            for column in columns
            if column.refers_to
        ]
        for model, name in zip(table.models, names, strict=True):
            how: How = "stated" if model.is_named else "convention"
            place = TABLE + table.name, model.file.path, model.fact
            source = name or FILE + model.file.path
            statements.append(build("maps_to", *place, source=source, how=how))
        keys = list_table_keys(table.name)
        yield DerivedDocument("table", TABLE + table.name, keys, lines, tuple(statements))


def _describe_column(column: MappedColumn) -> str:
    shown = f"{column.name} {column.kind}".rstrip() + (", nullable" if column.is_nullable else "")
    return f"{shown}, refers to {column.refers_to}" if column.refers_to else shown


def _find_model_node(file: File, fact: Fact, model: str) -> str:
    last = LAST_PARTS.split(model)[-1]
    definitions = [d for d in file.declared if LAST_PARTS.split(d.symbol)[-1] == last]
    return qualify_defined_name(definitions[0].symbol, file.path) if definitions and model else ""


def _build_path_template(path: str) -> str:
    template = "/" + _HOST.sub("", path).strip("/")
    for pattern, by in _PARAMETERS:
        template = pattern.sub(by, template)
    return " ".join(template.split())


_NOWHERE = Fact("", 0, 0)


def derive_django_routes(files: Sequence[FileFacts]) -> Derivation:
    """Derive the routes of a Django repository.

    A route has a document for each HTTP method with a view of its own, or else one document.
    """
    python = [file for file in files if file.language == "python"]
    lines = _FactIndex(python)
    routes = read_routes(python)
    documents: list[DerivedDocument] = []
    for route in routes.routes:
        views: list[tuple[Sequence[str], str]]
        views = [([method.upper()], action) for method, action in route.view.actions]
        for methods, action in views or [(route.view.methods, "")]:
            documents.append(_build_django_document(route, methods, action, lines))
    computed = (
        (" ".join(statement.reason.split()), statement.evidence) for statement in routes.unresolved
    )
    unresolved = (
        UnresolvedStatement(at.path, lines.find_fact(at).line_start, why, ROUTES)
        for why, at in computed
    )
    return Derivation(tuple(documents), tuple(unresolved))


class _FactIndex:
    """The facts of files by path and start offset, used to find the lines of evidence."""

    def __init__(self, files: Sequence[FileFacts]) -> None:
        # Of the facts at one offset, the longest counts.
        self._facts = {
            file.path: {fact.start: fact for fact in sorted(file.facts, key=lambda f: f.end)}
            for file in files
        }

    def find_fact(self, evidence: Evidence) -> Fact:
        """Return the fact at the start of the evidence, else the nearest fact before it."""
        starts = self._facts.get(evidence.path, {})
        before = (start for start in starts if start <= evidence.start)
        nearest = evidence.start if evidence.start in starts else max(before, default=None)
        return _NOWHERE if nearest is None else starts[nearest]

    def build_statement(self, kind: str, target: str, evidence: Evidence) -> DerivedStatement:
        """Return a statement supported by the lines of its evidence."""
        return DerivedStatement.from_fact(kind, target, evidence.path, self.find_fact(evidence))


def _build_django_document(
    route: DjangoRoute, methods: Sequence[str], action: str, lines: _FactIndex
) -> DerivedDocument:
    path = "/" + build_path_template(route.pattern).lstrip("/")
    name = f"{'|'.join(methods) or 'ANY'} {path}"
    handler, owner = route.view.handlers.get(action, ""), route.view.name
    parameters = [f"{parameter} ({kind})" for parameter, kind in list_parameters(route.pattern)]
    labelled = {
        "methods": ", ".join(methods),
        "name": route.name,
        "view": handler or (f"{owner}.{action}" if action and owner else owner) or "computed",
        "parameters": ", ".join(parameters),
        "conditional": "yes" if route.conditional else "",
    }
    statements: list[DerivedStatement] = []
    if route.evidence:
        *groups, last = route.evidence
        statements += link_groups(lines.build_statement("in_group", "", group) for group in groups)
        # An inherited action also routes to the view. An action that only a package defines routes
        # to the view alone.
        unlisted_owner = "" if handler.startswith(f"{owner}.") else owner
        ends = [("routes_to", target) for target in (handler, unlisted_owner) if target]
        served = (format_endpoint(method, path) for method in methods or ("ANY",))
        ends += [("serves", ENDPOINT + endpoint) for endpoint in served]
        statements += [lines.build_statement(kind, target, last) for kind, target in ends]
    keys, shown = (
        list_route_keys(tuple(methods), path, route.name),
        build_description(f"route {name}", labelled),
    )
    return DerivedDocument("route", ROUTE + name, keys, shown, tuple(statements))
