"""Derives the routes that only an API description states: OpenAPI and Swagger.

A server generated from a description has no route in its code: a program implements each operation
in a definition with the name of its `operationId`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    DESCRIBED,
    ROUTE,
    DerivedDocument,
    Statement,
)
from rag_assets.systems.code_memory.frameworks.repository import LAST_PARTS
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ENDPOINT,
    described_route_keys,
    fold_name,
    format_endpoint,
    path_suffixes,
)
from rag_assets.systems.code_memory.symbols.naming import defined_name
from rag_assets.systems.code_memory.symbols.source_types import is_test

OPERATION: Final = "operation"
"""Kind of the fact that an API description states an operation."""
_MOST_HANDLERS: Final = 3
"""Maximum number of definitions of one operation; if more have its name, none is its handler."""
_MOST_NAMESAKES: Final = 100
"""Maximum number of definitions that are compared for one operation."""
_SHORTEST_WORD: Final = 3
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_Definition = tuple[FileFacts, Fact]


def derive_operations(
    files: Sequence[FileFacts], routes: Iterable[DerivedDocument]
) -> Iterator[DerivedDocument]:
    """Yield a route for each operation that has a handler and no route in the code.

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
    definitions = _index_definitions(files, {fold_name(_id(fact)) for _, fact in operations})
    known: set[str] = set()
    for file, fact in operations:
        method, path = fact.values["method"], fact.values["path"]
        # A prefix may be missing on either side, but the rest must agree.
        own = [(method, one) for one in path_suffixes(path)]
        is_served = own[0] in ends or not whole.isdisjoint(own)
        handlers = _select_handlers(fact, definitions.get(fold_name(_id(fact)), ()))
        if handlers and not is_served and fact.symbol not in known:
            known.add(fact.symbol)
            yield _build_document(file, fact, handlers)


def _id(operation: Fact) -> str:
    return str(operation.values["operation_id"])


def _index_served_paths(
    routes: Iterable[DerivedDocument],
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return method and path of the routes in the code: whole paths, and all ends of paths."""
    whole: set[tuple[str, str]] = set()
    ends: set[tuple[str, str]] = set()
    for route in routes:
        if route.source_type == "route":
            methods, _, path = route.name.removeprefix(ROUTE).partition(" ")
            paths = [*path_suffixes(path)]
            for method in methods.split("|"):
                whole.add((method, paths[0]))
                ends.update((method, one) for one in paths)
    return whole, ends


def _index_definitions(files: Sequence[FileFacts], names: set[str]) -> dict[str, list[_Definition]]:
    """Return the definitions outside of tests whose last part has one of these folded names."""
    found: dict[str, list[_Definition]] = {}
    for file in files:
        if is_test(file.path):
            continue
        for fact in file.facts:
            if fact.kind == "declares" and fact.symbol:
                last = fold_name(LAST_PARTS.split(fact.symbol)[-1])
                if last in names:
                    found.setdefault(last, []).append((file, fact))
    return found


def _select_handlers(operation: Fact, same: Sequence[_Definition]) -> Sequence[_Definition]:
    """Return the definitions that may implement an operation; empty if that is not clear.

    Of several definitions with the name, those whose class or file is named after the operation's
    tags or path implement it: `OwnersController.getOwner`, not `Pet.getOwner`.
    """
    if len(same) > _MOST_NAMESAKES:
        return ()
    if len(same) > 1:
        wanted = _words(
            " ".join([*filter(None, operation.values["tags"]), operation.values["path"]])
        )
        scored = [(len(wanted & _words(_describe_owner(one))), one) for one in same]
        best = max(score for score, _ in scored)
        same = [one for score, one in scored if score == best and (best or len(same) == 1)]
    return same if len(same) <= _MOST_HANDLERS else ()


def _describe_owner(definition: _Definition) -> str:
    """Return the class or module of a definition, with the name of its file."""
    file, fact = definition
    owners = LAST_PARTS.split(fact.symbol)[:-1][-1:]
    return " ".join([*owners, file.path.rpartition("/")[2]])


def _words(text: str) -> set[str]:
    """Return the words of a name in lower case and in the singular."""
    words = (word.lower().removesuffix("s") for word in _WORDS.findall(text))
    return {word for word in words if len(word) >= _SHORTEST_WORD}


def _build_document(
    file: FileFacts, operation: Fact, handlers: Sequence[_Definition]
) -> DerivedDocument:
    method, path = operation.values["method"], operation.values["path"]
    place = file.path, operation.line_start, operation.line_end, operation.evidence
    targets = [defined_name(fact.symbol, owner.path) for owner, fact in handlers]
    stated = [Statement("routes_to", "", one, "convention", *place) for one in targets]
    stated.append(
        Statement("serves", "", ENDPOINT + format_endpoint(method, path), "stated", *place)
    )
    lines = (
        f"route {operation.symbol}",
        f"methods: {method}",
        f"name: {_id(operation)}",
        DESCRIBED,
        *(f"handler: {one}" for one in targets),
    )
    called = described_route_keys((method,), path, _id(operation))
    return DerivedDocument("route", ROUTE + operation.symbol, called, lines, tuple(stated))
