"""Resolves names from agents, which may be inexact, to definitions, routes, tables and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from rag_assets.common.formatting import format_count
from rag_assets.ingest.parsing.media_types import SOURCE_CODE
from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.systems.code_memory.chunker import NO_PROGRAMS
from rag_assets.systems.code_memory.languages.tags import tag_languages
from rag_assets.systems.code_memory.laravel.inflection import table_of_class
from rag_assets.systems.code_memory.outlines import one_line
from rag_assets.systems.code_memory.reading import READ_FOR_USE, language_of_type
from rag_assets.systems.code_memory.retrieval.nodes import PREFIXES, Node, build_node
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.symbols.names import (
    FILE,
    TABLE,
    parse_request,
    path_spellings,
    route_endings,
    route_spellings,
    symbol_spellings,
    table_spellings,
)
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES
from rag_assets.tenants.model import Tenant

MOST_MEANT: Final = 5
"""Maximum number of definitions returned for a name that is only the last part of their names."""

_MOST_NAMED: Final = 3
_MOST_BASES: Final = 6
"""Maximum number of steps from a class to a base class that defines a member."""
_OF_FILES: Final = (*SOURCE_TYPES, "file")
_LOOKED_AT: Final = 500
_ROUTE: Final = "route"
_ANY: Final = "route:ANY "
"""Start of the names of routes for all methods."""
_OPERATION: Final = "api_endpoint"
_SEPARATORS: Final = ("::", "#", ".", "\\")


@dataclass(frozen=True, slots=True)
class NameResolver:
    """Resolves names within the part of the index that a caller may read."""

    view: View
    tenant: Tenant

    def find_routes(self, said: str) -> list[Node]:
        """Return the routes with this name or path, or that run this controller or method."""
        is_path = said.strip().startswith("/") or (" " in said.strip() and "/" in said)
        return self._find_requested(said) or ([] if is_path else self._find_run_by(said))

    def _find_requested(self, said: str) -> list[Node]:
        """Return the routes with this name, path or requested path; GET routes come first.

        If there is none, the first parts of the path count as a prefix that the server adds,
        and at last for the path of an operation that only an API description states.
        """
        spelled = dict.fromkeys([said, *route_spellings(said)])
        method, path = parse_request(said) or ("", said)
        of_any_method = [path, *route_spellings(path)] if method else []
        for ends, start in ((spelled, ""), (of_any_method, _ANY), (route_endings(said), "")):
            for end in ends:
                found = [
                    node
                    for node in self._find_definitions(end)
                    if node.source_type == _ROUTE and node.name.startswith(start)
                ]
                if found:
                    return _sort_routes(found)
        described = [node for one in spelled for node in self._find_definitions(one)]
        return _sort_routes(one for one in described if one.source_type == _OPERATION)

    def _find_run_by(self, said: str) -> list[Node]:
        """Return the routes that run a controller or one of its methods."""
        names = {node.name for node in self.symbols(said)}
        members = {f"{name}::" for name in names if "::" not in name}
        edges = self.view.edges(sorted(names | self._find_methods(names)), "in").edges
        found = [
            edge.stated_of
            for edge in edges
            if edge.kind == "routes_to"
            and (edge.target in names or edge.target.startswith(tuple(members)))
        ]
        return _sort_routes(build_node(one) for one in self.view.defined([*dict.fromkeys(found)]))

    def symbols(self, said: str) -> list[Node]:
        """Return the definitions that a name refers to, as written or as spelled in the index."""
        for spelled in symbol_spellings(said):
            if definitions := self._find_definitions(spelled):
                return definitions
        inherited = self._find_inherited(said)
        return inherited or self._find_by_last_part(symbol_spellings(said))

    def names(self, said: str) -> list[str]:
        """Return the names of the nodes from which a walk for this name starts."""
        if said.startswith(tuple(PREFIXES)) or self.view.named(said):
            return [said]
        found = self.symbols(said) or self.within(said)
        return [*dict.fromkeys(node.name for node in found)] or [said]

    def tables(self, said: str) -> list[str]:
        """Return the tables that a name refers to: a table, a model, or a class in the plural."""
        spelled = table_spellings(said)
        for name in spelled:
            if found := self._list_tables(name):
                return found
        models = [node.name for name in spelled for node in self._find_definitions(name)]
        edges = self.view.edges(models, "out").edges if models else []
        mapped = [edge.target for edge in edges if edge.kind == "maps_to"]
        usual = [table for name in spelled for table in self._list_tables(table_of_class(name))]
        return [*dict.fromkeys([*mapped, *usual])] or [TABLE + name for name in spelled[:1]]

    def documents(self, said: str) -> list[str]:
        """Return the URIs of the files that a path refers to; empty if there is no such file."""
        spelled = path_spellings(said)
        for path in spelled:
            if found := self._find_exact_path(path):
                return found
        end = f"/{spelled[-1].lower()}" if spelled else ""
        found = [uri for uri in self._uris if end and f"/{uri.lower()}".endswith(end)]
        # A path may start with the checkout's folder, as absolute paths do.
        within = path_spellings(f"/{spelled[-1]}")[2:] if spelled else []
        shorter = (path for path in within if "/" in path)
        return found or next(filter(None, map(self._find_exact_path, shorter)), [])

    def shorter_path(self, said: str) -> list[str]:
        """Return a line that names the file if only the end of the path matches it."""
        spelled = path_spellings(said)
        uris = self.documents(said)
        end = "/" + (spelled[1:] or spelled or [""])[0].lower()
        if not uris or any(f"/{uri.lower()}".endswith(end) for uri in uris):
            return []
        return [f"{one_line(said)} is taken for {', '.join(uris[:_MOST_NAMED])}"]

    def below(self, said: str) -> list[str]:
        """Return the URIs of the files in a folder."""
        folder = (path_spellings(said) or [""])[-1].lower()
        return [uri for uri in self._uris if folder and f"/{folder}/" in f"/{uri.lower()}"]

    def within(self, said: str) -> list[Node]:
        """Return the definitions of the files that a path refers to."""
        return [*map(build_node, self.view.within_any(self.documents(said)))]

    def coverage(self) -> str:
        """Return how the files of each language were read, for the end of an answer about uses."""
        counts = Counter(filter(None, map(_language, self._uris)))
        unread = sum(_language(file.uri) != "" for file in self.view.without_names(_OF_FILES))
        by_name = tag_languages().keys() - READ_FOR_USE
        rest = sorted(counts.keys() - READ_FOR_USE - by_name)
        parts = [
            f"{depth}: {', '.join(sorted(languages, key=lambda one: (-counts[one], one)))}"
            for depth, languages in (
                ("read for uses", counts.keys() & READ_FOR_USE),
                ("read for uses by name", counts.keys() & by_name),
            )
            if languages
        ]
        files = ", ".join(f"{format_count(counts[one], 'file')} in {one}" for one in rest)
        if files:
            parts.append(f"read for names only: {files}")
        if unread:
            parts.append(f"not read for uses yet: {format_count(unread, 'file')}")
        return "; ".join(parts)

    def _find_exact_path(self, path: str) -> list[str]:
        """Return the URIs of the files with exactly this path, in any repository."""
        uris = [path, *(build_uri(source.name, path) for source in self.tenant.sources)]
        return [file.uri for file in self.view.files([FILE + uri for uri in uris]) if file.uri]

    def _find_definitions(self, name: str) -> list[Node]:
        return [*map(build_node, self.view.named(name))]

    def _list_tables(self, name: str) -> list[str]:
        found = [
            node.name
            for node in self._find_definitions(TABLE + name)
            if node.source_type == "table"
        ]
        if found:
            return [*dict.fromkeys(found)]
        return [TABLE + name] if self.view.edges([TABLE + name], "in").edges else []

    def _find_methods(self, names: Iterable[str]) -> set[str]:
        """Return the definitions in the documents of these classes, including their methods."""
        nodes = [node for name in names for node in self._find_definitions(name)]
        uris = sorted({node.uri for node in nodes if node.uri})
        return {one.name for one in self.view.within_any(uris)}

    def _find_inherited(self, said: str) -> list[Node]:
        """Return the member of the nearest base class that a class inherits under this name."""
        for spelled in symbol_spellings(said):
            owner, mark, last = spelled.rpartition("::" if "::" in spelled else ".")
            classes = {node.name for node in self._find_definitions(owner)} if owner else set()
            for _ in range(_MOST_BASES):
                edges = self.view.edges(sorted(classes), "out").edges if classes else ()
                classes = {edge.target for edge in edges if edge.kind == "extends"}
                members = (
                    self._find_definitions(f"{class_}{mark}{last}") for class_ in sorted(classes)
                )
                if found := [*chain.from_iterable(members)]:
                    return found
        return []

    def _find_by_last_part(self, spelled: Sequence[str]) -> list[Node]:
        """Return definitions whose last part is this name, such as a method of any class."""
        wanted = {name.lower() for name in spelled}
        like = self.view.like(sorted(wanted), _LOOKED_AT) if wanted else []
        found = [build_node(one) for one in like if _last_part(one.name).lower() in wanted]
        return found[:MOST_MEANT]

    @property
    def _uris(self) -> list[str]:
        """Return the URIs of all files; they are read only if no file has exactly the path."""
        found = self.view.documents([*_OF_FILES])
        return [one.uri for one in found if get_repository_source(one.source) == one.source]


def _language(uri: str) -> str:
    """Return the language of a program file; "" for other files."""
    media_type = find_repository_type(parse_path(uri)) or ""
    language = language_of_type(media_type) if media_type in SOURCE_CODE else ""
    return "" if language in NO_PROGRAMS else language


def _sort_routes(routes: Iterable[Node]) -> list[Node]:
    return sorted(routes, key=lambda node: (":GET " not in node.name, node.name))


def _last_part(name: str) -> str:
    """Return a name without its qualifiers."""
    for mark in _SEPARATORS:
        name = name.rpartition(mark)[2]
    return name
