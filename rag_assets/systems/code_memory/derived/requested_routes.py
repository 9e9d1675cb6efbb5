"""Tests of routes, and the routes that only an API description (OpenAPI, Swagger) states.

The HTTP requests in test files become statements about routes. A request is matched with the routes
of its repository by method and path. A parameter of a route matches a value or a computed part in
the request's path; literal parts take precedence over parameters.

A server generated from a description has no route in its code: a program implements each operation
in a definition with the name of its `operationId`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    DESCRIBED_LINE,
    ROUTE,
    DerivedDocument,
    DerivedStatement,
    UnresolvedStatement,
)
from rag_assets.systems.code_memory.frameworks.definitions import Framework, RequestRules
from rag_assets.systems.code_memory.frameworks.repository import (
    LAST_PARTS,
    File,
    RepositoryFiles,
    get_last_part,
)
from rag_assets.systems.code_memory.frameworks.routers import singularize
from rag_assets.systems.code_memory.frameworks.statements import find_argument
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    FILE,
    fold_name,
    format_endpoint,
    format_path_template,
    iter_path_suffixes,
    list_described_route_keys,
)
from rag_assets.systems.code_memory.symbols.naming import qualify_defined_name
from rag_assets.systems.code_memory.symbols.source_types import is_test

REQUESTS: Final = "requests"
"""Kind of the statement that a test requests a route."""
_HOLE: Final = "{}"
_ANY: Final = "ANY"
_HOST: Final = re.compile(r"^https?://[^/]*", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"\{[^{}/]*\}|<[^<>/]*>|(?<=/):\w+")
_OPTIONAL_ENDING: Final = re.compile(r"(?<=[^/{}])\{[^{}/]*\?\}(?=/|$)")
"""Matches an optional ending of a part, such as the format in `/orders{format?}`."""
_PREFIX: Final = re.compile(r"api|rest|v\d+|[a-z]{2}(?:[-_][A-Za-z]{2})?")
"""Matches a leading part of a path that servers often add to all routes; `en` is a language."""
_MAX_CHAIN_CALLS: Final = 12
_MAX_TESTS: Final = 200
"""Maximum number of requests listed for one route."""
_MAX_REQUESTS: Final = 2_000
"""Maximum number of requests matched in one file."""
_MAX_PARTS: Final = 24


class _Request(NamedTuple):
    """A request in a test.

    Attributes:
        parts: the parts of its path; empty if it names a route instead.
        route: a key of the requested route, such as `name:orders` or `helper:edit_order`, else "".
    """

    method: str
    parts: tuple[str, ...]
    fact: Fact
    route: str = ""


def add_tests_to_routes(
    documents: Mapping[str, DerivedDocument],
    files: Sequence[FileFacts],
    frameworks: Sequence[Framework],
) -> tuple[dict[str, DerivedDocument], list[UnresolvedStatement]]:
    """Add the requests in tests to routes; also return notes about routes with too many."""
    rules = [(framework.languages, rule) for framework in frameworks for rule in framework.requests]
    routes = _Routes(documents)
    requests: dict[str, list[DerivedStatement]] = {}
    repositories: dict[str, RepositoryFiles] = {}
    for file_facts in files if routes.has_routes else ():
        if is_test(file_facts.path):
            file = File(file_facts)
            if file_facts.language not in repositories:
                files_of_language = [
                    File(other) for other in files if other.language == file_facts.language
                ]
                repositories[file_facts.language] = RepositoryFiles(files_of_language)
            own_rules = [rule for languages, rule in rules if file_facts.language in languages]
            for request in _iter_requests(file, repositories[file_facts.language], own_rules):
                # The statement is about the enclosing definition, or else about the file.
                fact = request.fact
                around = file.find_enclosing(file.declared, fact.start)
                source = (
                    qualify_defined_name(around[-1].symbol, file.path)
                    if around
                    else FILE + file.path
                )
                for name in routes.find_requested(request):
                    place = name, file.path, fact
                    statement = DerivedStatement.from_fact(REQUESTS, *place, source=source)
                    requests.setdefault(name, []).append(statement)
    routes_with_tests = dict(documents)
    cut = []
    for name, statements in requests.items():
        unique = [*dict.fromkeys(statements)]
        kept_statements = (*routes_with_tests[name].statements, *unique[:_MAX_TESTS])
        routes_with_tests[name] = replace(routes_with_tests[name], statements=kept_statements)
        if len(unique) > _MAX_TESTS:
            reason = f"{len(unique):,} requests of tests, of which {_MAX_TESTS} are listed"
            first = unique[_MAX_TESTS]
            cut.append(UnresolvedStatement(first.path, first.line_start, reason, name))
    return routes_with_tests, cut


@dataclass(slots=True)
class _Step:
    """A node in the tree of routes: child nodes by next path part, and the routes that end here."""

    next: dict[str, _Step]
    ends: list[tuple[frozenset[str], str]]


class _Routes:
    """The routes of a repository, indexed by path and by name."""

    def __init__(self, documents: Mapping[str, DerivedDocument]) -> None:
        self._root = _Step({}, [])
        self._named: dict[str, list[tuple[frozenset[str], str]]] = {}
        self.has_routes = False
        for name, document in documents.items():
            if document.source_type == "route":
                self.has_routes = True
                methods, _, path = name.removeprefix(ROUTE).partition(" ")
                end = frozenset(methods.split("|")), name
                is_described = DESCRIBED_LINE in document.lines
                for path_suffix in iter_path_suffixes(path) if is_described else [path]:
                    self._add_path(path_suffix, end)
                for key in _iter_route_keys(document, path):
                    self._named.setdefault(key, []).append(end)

    def _add_path(self, path: str, end: tuple[frozenset[str], str]) -> None:
        """Add a route at its path, and at its path without the last part if that is optional."""
        steps = [self._root]
        path = _OPTIONAL_ENDING.sub("", path)
        for part in _split_path(path):
            steps.append(steps[-1].next.setdefault(part, _Step({}, [])))
        steps[-1].ends.append(end)
        if path.endswith("?}"):
            steps[-2].ends.append(end)

    def find_requested(self, request: _Request) -> list[str]:
        """Return the routes that a request may reach; of several, those with the most literal path.

        If no route matches, leading parts that servers often add, such as `v1`, are dropped.
        """
        if request.route:
            return self._find_by_name(request)
        parts = request.parts
        names = self._find_by_path(request.method, parts)
        while not names and len(parts) > 1 and _PREFIX.fullmatch(parts[0]):
            parts = parts[1:]
            names = self._find_by_path(request.method, parts)
        return names

    def _find_by_path(self, method: str, parts: Sequence[str]) -> list[str]:
        steps = [self._root]
        for part in parts:
            # A request may add a format: `/orders.json`.
            names = dict.fromkeys((part, part.partition(".")[0] or part, _HOLE))
            following = (step.next[name] for step in steps for name in names if name in step.next)
            steps = [*islice(following, _MAX_PARTS)]
        for step in steps:
            matching = [
                name
                for methods, name in step.ends
                if method in methods or _ANY in methods or not method
            ]
            if matching:
                return matching
        return []

    def _find_by_name(self, request: _Request) -> list[str]:
        """Return the routes with the key in `request.route`, else with a handler of that name."""
        for key in (request.route, f"handler:{LAST_PARTS.split(request.route)[-1]}"):
            routes = self._named.get(key, ())
            paths = {name.partition(" ")[2] for _, name in routes}
            if routes and (len(paths) == 1 or key == request.route):
                method = request.method
                return [n for m, n in routes if method in m or _ANY in m or not method]
        return []


def _iter_route_keys(document: DerivedDocument, path: str) -> Iterator[str]:
    """Yield the keys by which `_Request.route` may name a route: name, handler, path helpers."""
    for line in document.lines:
        label, _, text = line.partition(": ")
        if label == "name":
            yield f"name:{text}"
        elif label == "handler":
            yield f"action:{text}"
            yield f"handler:{LAST_PARTS.split(text)[-1]}"
    parts = [part for part in _PARAMETER.sub(_HOLE, path).split("/") if part]
    words = [
        # A part before a parameter names one object.
        singularize(part) if after == _HOLE else part
        for part, after in zip(parts, [*parts, ""][1:], strict=True)
        if part != _HOLE
    ]
    *before, last = words or ["root"]
    yield "helper:" + "_".join([*before, last])
    if before:
        yield "helper:" + "_".join([last, *before])
        yield "helper:" + "_".join([last, *before[:-1], singularize(before[-1])])


def _iter_requests(
    file: File, repository: RepositoryFiles, rules: Sequence[RequestRules]
) -> Iterator[_Request]:
    """Yield the requests that a test file sends."""
    receivers = ((call.values.get("on", ["?"]), call) for call in file.calls)
    outer = {(on[1], on[2]): call for on, call in receivers if on[0] == "c"}
    count = 0
    for call in file.calls:
        for rule in rules:
            if call.values["name"] not in rule.calls or count >= _MAX_REQUESTS:
                continue
            values = (find_argument(call, rule.path), find_argument(call, "0"))
            paths = (_find_path(file, value, call, repository) for value in values)
            path = next(filter(None, paths), None)
            method = rule.calls[call.values["name"]] or _find_method(file, call, rule, outer)
            route = "" if path is not None else _find_route_name(file, call, rule)
            if path is not None or route:
                count += 1
                yield _Request(method, _split_path(path or ""), call, route)
                break


def _find_route_name(file: File, call: Fact, rule: RequestRules) -> str:
    """Return the key of the route that a call names: `reverse("orders")`, `edit_order_path`.

    "" if the call names no route.
    """
    value = find_argument(call, rule.path) or find_argument(call, "0")
    if value is not None and value[0] == "n":
        name = str(value[1])
        assignment = file.find_assignment(get_last_part(name), call.start)
        is_helper = name.endswith(rule.helpers) and assignment is None
        value = value if is_helper or assignment is None else list(assignment.values["value"])
    if value is not None and value[0] == "s" and rule.described_by:
        enclosing = file.find_enclosing(file.calls, call.start)
        described = [call for call in enclosing if call.values["name"] in rule.described_by]
        owners = [find_argument(call, "0") for call in reversed(described)]
        owner = next(
            (
                str(argument[1])
                for argument in owners
                if argument is not None and argument[0] == "n"
            ),
            "",
        )
        return f"action:{owner}::{value[1]}" if owner else ""
    if value is None or value[0] not in {"n", "c"}:
        return ""
    name = get_last_part(str(value[3] if value[0] == "c" else value[1]))
    for end in rule.helpers:
        if name.endswith(end):
            return f"helper:{name.removesuffix(end)}"
    inner = file.find_call(value)
    if inner is None or inner.values["name"] not in rule.named_by:
        return ""
    name_argument = find_argument(inner, "name|0")
    return (
        f"name:{name_argument[1]}" if name_argument is not None and name_argument[0] == "s" else ""
    )


def _find_method(
    file: File, call: Fact, rule: RequestRules, outer: Mapping[tuple[int, int], Fact]
) -> str:
    """Return the HTTP method of a request from its argument or its call chain; GET by default.

    "" if the method is computed.
    """
    value = find_argument(call, rule.method) if rule.method else None
    if value is not None and value[0] not in {"s", "n"}:
        return ""
    if value is not None:
        return LAST_PARTS.split(str(value[1]))[-1].upper().removeprefix("METHOD").lstrip("_")
    for chained in _walk_call_chain(file, call, outer):
        if chained.values["name"] in rule.verbs:
            return rule.verbs[chained.values["name"]]
        if rule.method_call and chained.values["name"] == rule.method_call:
            verb = find_argument(chained, "0")
            if verb is not None and verb[0] in {"s", "n"}:
                return LAST_PARTS.split(str(verb[1]))[-1].upper()
    return "GET"


def _walk_call_chain(
    file: File, call: Fact, outer: Mapping[tuple[int, int], Fact]
) -> Iterator[Fact]:
    """Yield the calls chained after a call, then the calls chained before it, nearest first."""
    following = outer.get((call.start, call.end))
    before = file.find_call(call.values.get("on"))
    for _ in range(_MAX_CHAIN_CALLS):
        if following is not None:
            yield following
            following = outer.get((following.start, following.end))
    for _ in range(_MAX_CHAIN_CALLS):
        if before is not None:
            yield before
            before = file.find_call(before.values.get("on"))


def _find_path(
    file: File, value: Sequence[Any] | None, call: Fact, repository: RepositoryFiles
) -> str | None:
    """Return the path that a value evaluates to, with `{}` for parts known only at run time.

    None if the value is not a path.
    """
    if value is None or value[0] not in {"s", "n", "+"}:
        return None
    parts = value[1] if value[0] == "+" else [value]
    texts = [repository.resolve_text(file, part, call.start) for part in parts]
    path = _HOST.sub("", "".join(_HOLE if text is None else text for text in texts))
    if path.startswith(f"{_HOLE}/"):
        path = path.removeprefix(_HOLE)  # A leading computed part is the server's address.
    return path if path.startswith("/") else None


def _split_path(path: str) -> tuple[str, ...]:
    template = format_path_template(_PARAMETER.sub(_HOLE, path))
    parts = (_HOLE if _HOLE in part else part for part in template.split("/") if part)
    return tuple(parts)[:_MAX_PARTS]


OPERATION: Final = "operation"
"""Kind of the fact that an API description states an operation."""
_MAX_HANDLERS: Final = 3
"""Maximum number of definitions of one operation; if more have its name, none is its handler."""
_MAX_NAMESAKES: Final = 100
"""Maximum number of definitions that are compared for one operation."""
_MIN_WORD_CHARACTERS: Final = 3
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_Definition = tuple[FileFacts, Fact]


def derive_operations(
    files: Sequence[FileFacts], routes: Iterable[DerivedDocument]
) -> Iterator[DerivedDocument]:
    """Yield a route for each operation of an API description that only a handler implements.

    Operations with a route in the code, or without a handler, yield nothing.

    Args:
        files: the files of one repository.
        routes: the documents derived from the code of the repository.
    """
    operations = [
        (file, fact)
        for file in files
        if not is_test(file.path)
        for fact in file.facts
        if fact.kind == OPERATION and fact.values["operation_id"]
    ]
    if not operations:
        return
    whole, ends = _index_served_paths(routes)
    definitions = _index_definitions(files, {fold_name(_get_id(fact)) for _, fact in operations})
    names: set[str] = set()
    for file, fact in operations:
        method, path = fact.values["method"], fact.values["path"]
        # A prefix may be missing on either side, but the rest must agree.
        suffixes = [(method, path_suffix) for path_suffix in iter_path_suffixes(path)]
        is_served = suffixes[0] in ends or not whole.isdisjoint(suffixes)
        handlers = _select_handlers(fact, definitions.get(fold_name(_get_id(fact)), ()))
        if handlers and not is_served and fact.symbol not in names:
            names.add(fact.symbol)
            yield _build_document(file, fact, handlers)


def _get_id(operation: Fact) -> str:
    return str(operation.values["operation_id"])


def _index_served_paths(
    routes: Iterable[DerivedDocument],
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return two sets of (method, path) of the routes: with whole paths, and with all suffixes."""
    whole: set[tuple[str, str]] = set()
    ends: set[tuple[str, str]] = set()
    for route in routes:
        if route.source_type == "route":
            methods, _, path = route.name.removeprefix(ROUTE).partition(" ")
            paths = [*iter_path_suffixes(path)]
            for method in methods.split("|"):
                whole.add((method, paths[0]))
                ends.update((method, path) for path in paths)
    return whole, ends


def _index_definitions(files: Sequence[FileFacts], names: set[str]) -> dict[str, list[_Definition]]:
    """Return definitions outside tests, by the last part of their name, if that is in `names`."""
    definitions: dict[str, list[_Definition]] = {}
    for file in files:
        if is_test(file.path):
            continue
        for fact in file.facts:
            if fact.kind == "declares" and fact.symbol:
                last = fold_name(LAST_PARTS.split(fact.symbol)[-1])
                if last in names:
                    definitions.setdefault(last, []).append((file, fact))
    return definitions


def _select_handlers(operation: Fact, same_named: Sequence[_Definition]) -> Sequence[_Definition]:
    """Return the definitions that may implement an operation; empty if that is not clear.

    If several definitions have the name, only those whose class or file is named after the
    operation's tags or path count: `OwnersController.getOwner`, not `Pet.getOwner`.
    """
    if len(same_named) > _MAX_NAMESAKES:
        return ()
    if len(same_named) > 1:
        words = _split_words(
            " ".join([*filter(None, operation.values["tags"]), operation.values["path"]])
        )
        # An owner is the innermost class or module, and the file.
        owners = (
            " ".join([*LAST_PARTS.split(fact.symbol)[:-1][-1:], file.path.rpartition("/")[2]])
            for file, fact in same_named
        )
        counts = (len(words & _split_words(owner)) for owner in owners)
        scored = [*zip(counts, same_named, strict=True)]
        best = max(score for score, _ in scored)
        same_named = [
            definition
            for score, definition in scored
            if score == best and (best or len(same_named) == 1)
        ]
    return same_named if len(same_named) <= _MAX_HANDLERS else ()


def _split_words(text: str) -> set[str]:
    words = (word.lower().removesuffix("s") for word in _WORDS.findall(text))
    return {word for word in words if len(word) >= _MIN_WORD_CHARACTERS}


def _build_document(
    file: FileFacts, operation: Fact, handlers: Sequence[_Definition]
) -> DerivedDocument:
    method, path = operation.values["method"], operation.values["path"]
    place = file.path, operation.line_start, operation.line_end, operation.evidence
    targets = [qualify_defined_name(fact.symbol, owner.path) for owner, fact in handlers]
    statements = [
        DerivedStatement("routes_to", "", target, "convention", *place) for target in targets
    ]
    statements.append(
        DerivedStatement("serves", "", ENDPOINT + format_endpoint(method, path), "stated", *place)
    )
    lines = (
        f"route {operation.symbol}",
        f"methods: {method}",
        f"name: {_get_id(operation)}",
        DESCRIBED_LINE,
        *(f"handler: {target}" for target in targets),
    )
    keys = list_described_route_keys((method,), path, _get_id(operation))
    return DerivedDocument("route", ROUTE + operation.symbol, keys, lines, tuple(statements))
