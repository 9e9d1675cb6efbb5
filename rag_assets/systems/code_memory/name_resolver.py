"""The name resolver: finds the definitions, routes, tables and files that an inexact name means."""

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
from rag_assets.systems.code_memory.frameworks.definitions import load_all_frameworks
from rag_assets.systems.code_memory.languages.tags import load_tag_languages
from rag_assets.systems.code_memory.laravel.inflection import table_of_class
from rag_assets.systems.code_memory.outlines import to_one_line
from rag_assets.systems.code_memory.reading import (
    OTHER_LANGUAGE,
    READ_FOR_USE,
    get_language_of_type,
)
from rag_assets.systems.code_memory.retrieval.nodes import PREFIXES, Node, build_node
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.symbols.names import (
    ENV,
    FILE,
    PACKAGE,
    TABLE,
    iter_route_endings,
    iter_route_spellings,
    list_path_spellings,
    list_symbol_spellings,
    list_table_spellings,
    parse_request,
)
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES
from rag_assets.tenants.model import Tenant

MAX_MEANINGS: Final = 5
"""Maximum number of definitions that are found by the last part of their names."""

_MAX_LISTED_LANGUAGES: Final = 3
_MAX_BASES: Final = 6
"""Maximum number of steps from a class to a base class that defines a member."""
_FILE_TYPES: Final = (*SOURCE_TYPES, "file")
_MAX_SIMILAR: Final = 500
_ANY: Final = "route:ANY "
"""Start of the names of routes for all methods."""
_INTERPRETED: Final = frozenset({"php", "python"})
"""Languages whose routes an interpreter reads."""
_SEPARATORS: Final = ("::", "#", ".", "\\")


@dataclass(frozen=True, slots=True)
class NameResolver:
    """A resolver of names to nodes that a caller may read."""

    view: RelationView
    tenant: Tenant

    def find_routes(self, name: str) -> list[Node]:
        """Return the routes that a text names: by name, by path, or by controller."""
        is_path = name.strip().startswith("/") or (" " in name.strip() and "/" in name)
        return self._find_by_name_or_path(name) or (
            [] if is_path else self._find_by_controller(name)
        )

    def _find_by_name_or_path(self, name: str) -> list[Node]:
        """Return the routes with this name, path or requested path; GET routes come first.

        If there is none, the path is tried without its first parts, because servers may add a
        prefix, and last as the path of an operation that only an API description states.
        """
        spelled = dict.fromkeys([name, *iter_route_spellings(name)])
        method, path = parse_request(name) or ("", name)
        of_any_method = [path, *iter_route_spellings(path)] if method else []
        for ends, start in ((spelled, ""), (of_any_method, _ANY), (iter_route_endings(name), "")):
            for end in ends:
                routes = (node for node in self._find_exact(end) if node.source_type == "route")
                if matching := [node for node in routes if node.name.startswith(start)]:
                    return _sort_routes(matching)
        described = [node for spelling in spelled for node in self._find_exact(spelling)]
        return _sort_routes(node for node in described if node.source_type == "api_endpoint")

    def _find_by_controller(self, name: str) -> list[Node]:
        names = {node.name for node in self.find_definitions(name)}
        members = tuple(f"{name}::" for name in names if "::" not in name)
        nodes = (node for name in names for node in self._find_exact(name))
        methods = self._list_names_in(sorted({node.uri for node in nodes if node.uri}))
        edges = self.view.find_edges_of_names(sorted(names.union(methods)), "in").edges
        controllers = [
            edge.stated_of
            for edge in edges
            if edge.kind == "routes_to"
            and (edge.target in names or edge.target.startswith(members))
        ]
        routes = self.view.find_by_qualified_names([*dict.fromkeys(controllers)])
        return _sort_routes(map(build_node, routes))

    def find_definitions(self, name: str) -> list[Node]:
        """Return the definitions that a name refers to, in any spelling.

        If there is none, return an inherited member, or else definitions that end with the name.
        """
        for spelled in list_symbol_spellings(name):
            if definitions := self._find_exact(spelled):
                return definitions
        inherited = self._find_inherited(name)
        return inherited or self._find_by_last_part(list_symbol_spellings(name))

    def find_start_names(self, name: str, *, with_external: bool = False) -> list[str]:
        """Return the names of the nodes from which a walk for this name starts.

        Args:
            with_external: whether the name may also mean an environment variable or a package.
        """
        if name.startswith(tuple(PREFIXES)) or self.view.find_by_name(name):
            return [name]
        names = [node.name for node in self.find_definitions(name)]
        names = names or self._list_names_in(self.find_files(name))
        if with_external and not names:
            names = self._find_external_names(name)
        return [*dict.fromkeys(names)] or [name]

    def _find_external_names(self, name: str) -> list[str]:
        """Return the environment variable and the package with this name that some file uses."""
        external_names = [ENV + name, PACKAGE + name]
        known = {node.name for external in external_names for node in self._find_exact(external)}
        known.update(
            edge.target for edge in self.view.find_edges_of_names(external_names, "in").edges
        )
        return [external for external in external_names if external in known]

    def find_tables(self, name: str) -> list[str]:
        """Return the tables that a name refers to: the name of a table or of a model's class."""
        spelled = list_table_spellings(name)
        for spelling in spelled:
            if tables := self._list_tables(spelling):
                return tables
        models = [node.name for name in spelled for node in self._find_exact(name)]
        edges = self.view.find_edges_of_names(models, "out").edges if models else []
        mapped = [edge.target for edge in edges if edge.kind == "maps_to"]
        usual = [table for name in spelled for table in self._list_tables(table_of_class(name))]
        return [*dict.fromkeys([*mapped, *usual])] or [TABLE + name for name in spelled[:1]]

    def find_files(self, path: str) -> list[str]:
        """Return the URIs of the files that a path may refer to; empty if there is no such file."""
        spelled = list_path_spellings(path)
        for spelling in spelled:
            if uris := self._find_exact_path(spelling):
                return uris
        end = f"/{spelled[-1].lower()}" if spelled else ""
        uris = [uri for uri in self._uris if end and f"/{uri.lower()}".endswith(end)]
        # A path may start with the checkout's folder, as absolute paths do.
        within = list_path_spellings(f"/{spelled[-1]}")[2:] if spelled else []
        shorter = (spelling for spelling in within if "/" in spelling)
        return uris or next(filter(None, map(self._find_exact_path, shorter)), [])

    def explain_shorter_path(self, path: str) -> list[str]:
        """Return a line that names the file if only the end of a path matches it; else []."""
        spelled = list_path_spellings(path)
        uris = self.find_files(path)
        end = "/" + (spelled[1:] or spelled or [""])[0].lower()
        if not uris or any(f"/{uri.lower()}".endswith(end) for uri in uris):
            return []
        return [f"{to_one_line(path)} is taken for {', '.join(uris[:_MAX_LISTED_LANGUAGES])}"]

    def list_files_below(self, path: str) -> list[str]:
        """Return the URIs of the files in a folder."""
        folder = (list_path_spellings(path) or [""])[-1].lower()
        return [uri for uri in self._uris if folder and f"/{folder}/" in f"/{uri.lower()}"]

    def find_names_in_file(self, path: str) -> list[str]:
        """Return the names of a file's definitions; without definitions, the file's own name."""
        uris = self.find_files(path)
        return self._list_names_in(uris) or [FILE + uri for uri in uris]

    def describe_coverage(self) -> str:
        """Return a line on how many files of each language were read, and by which means."""
        counts = Counter(filter(None, map(_get_program_language, self._uris)))
        unscanned = self.view.list_documents(_FILE_TYPES, only_unscanned=True)
        unread = sum(_get_program_language(file.uri) != "" for file in unscanned)
        by_name = load_tag_languages().keys() - READ_FOR_USE
        rest = sorted(counts.keys() - READ_FOR_USE - by_name)
        parts = [
            f"{depth}: {', '.join(sorted(languages, key=lambda name: (-counts[name], name)))}"
            for depth, languages in (
                ("read for uses", counts.keys() & READ_FOR_USE),
                ("read for uses by name", counts.keys() & by_name),
            )
            if languages
        ]
        files = ", ".join(
            f"{format_count(counts[language], 'file')} in"
            f" {'other languages' if language == OTHER_LANGUAGE else language}"
            for language in rest
        )
        if files:
            parts.append(f"read for names only: {files}")
        if unread:
            parts.append(f"not read for uses yet: {format_count(unread, 'file')}")
        return "; ".join(parts)

    def describe_unread_routes(self) -> list[str]:
        """Return notes on routes that are not known because no rules read them."""
        frameworks = load_all_frameworks(self.tenant.own_frameworks_json)
        reading = (
            framework
            for framework in frameworks
            if framework.routes or framework.pages or framework.resources
        )
        read = {
            language for framework in reading for language in framework.languages
        } | _INTERPRETED
        counts = Counter(filter(None, map(_get_program_language, self._uris)))
        unread = sorted((counts.keys() & load_tag_languages().keys()) - read)
        notes = [f"routes are not read from files in {', '.join(unread)}"] if unread else []
        if counts and not self.view.list_documents(["route"]):
            notes.insert(0, "no route of this repository is known")
        return notes

    def _find_exact_path(self, path: str) -> list[str]:
        uris = [path, *(build_uri(source.name, path) for source in self.tenant.sources)]
        return [file.uri for file in self.view.find_files([FILE + uri for uri in uris]) if file.uri]

    def _find_exact(self, name: str) -> list[Node]:
        return [*map(build_node, self.view.find_by_name(name))]

    def _list_tables(self, name: str) -> list[str]:
        nodes = self._find_exact(TABLE + name)
        if tables := [node.name for node in nodes if node.source_type == "table"]:
            return [*dict.fromkeys(tables)]
        return [TABLE + name] if self.view.find_edges_of_names([TABLE + name], "in").edges else []

    def _list_names_in(self, uris: Sequence[str]) -> list[str]:
        return [definition.name for definition in self.view.list_definitions(uris)]

    def _find_inherited(self, name: str) -> list[Node]:
        """Return the inherited member that a name such as `Class::member` refers to."""
        for spelled in list_symbol_spellings(name):
            owner, mark, last = spelled.rpartition("::" if "::" in spelled else ".")
            classes = {node.name for node in self._find_exact(owner)} if owner else set()
            for _ in range(_MAX_BASES):
                if not classes:
                    break
                edges = self.view.find_edges_of_names(sorted(classes), "out").edges
                classes = {edge.target for edge in edges if edge.kind == "extends"}
                members = (self._find_exact(f"{class_}{mark}{last}") for class_ in sorted(classes))
                if inherited := [*chain.from_iterable(members)]:
                    return inherited
        return []

    def _find_by_last_part(self, spelled: Sequence[str]) -> list[Node]:
        """Return definitions whose last part is this name, such as methods of any class."""
        lowercase_names = {name.lower() for name in spelled}
        like = (
            self.view.find_by_parts(sorted(lowercase_names), _MAX_SIMILAR)
            if lowercase_names
            else []
        )
        nodes = [
            build_node(definition)
            for definition in like
            if _get_last_part(definition.name).lower() in lowercase_names
        ]
        return nodes[:MAX_MEANINGS]

    @property
    def _uris(self) -> list[str]:
        """Return the URIs of all files of repositories; each access queries all documents."""
        documents = self.view.list_documents([*_FILE_TYPES])
        return [
            document.uri
            for document in documents
            if get_repository_source(document.source) == document.source
        ]


def _get_program_language(uri: str) -> str:
    """Return the language of a program file; "" for other files."""
    media_type = find_repository_type(parse_path(uri)) or ""
    language = get_language_of_type(media_type) if media_type in SOURCE_CODE else ""
    return "" if language in NO_PROGRAMS else language


def _sort_routes(routes: Iterable[Node]) -> list[Node]:
    return sorted(routes, key=lambda node: (":GET " not in node.name, node.name))


def _get_last_part(name: str) -> str:
    for mark in _SEPARATORS:
        name = name.rpartition(mark)[2]
    return name
