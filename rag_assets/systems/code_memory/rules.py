"""Rules, decisions, known bugs and documents that concern given files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.common.formatting import format_count
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import FoundDocument
from rag_assets.systems.code_memory.languages.texts import read_markdown
from rag_assets.systems.code_memory.outlines import place
from rag_assets.systems.code_memory.relations.edge_rules import targets_of_mention
from rag_assets.systems.code_memory.retrieval.view import MOST_EDGES, View
from rag_assets.systems.code_memory.symbols.names import FILE, GLOB, path_spellings
from rag_assets.systems.code_memory.symbols.source_types import type_of_place
from rag_assets.tenants.model import Tenant

MOST_DOCUMENTS: Final = 200
"""Maximum number of documents that are read for one answer."""

_RULES: Final = ("cursor_rule", "claude_rule")
_OTHERS: Final = ("adr", "known_bug", "readme", "doc")
_ORDER: Final = (*_RULES, *_OTHERS)
_NAMES: Final = "documents"
"""The kind of the edges from a document to the names that it mentions."""
_KINDS_OF_NAMES: Final = ("path", "symbol", "name")
_FILE: Final = "file"
"""The type of documents from plain folders; their path determines a more specific type."""
_TOOL_FOLDER: Final = re.compile(r"(?:(?<=/)|^)\.(?:claude|cursor)/.*")
"""Matches the folder of an assistant; its rules apply to the folder that contains it."""

_QUALIFIED: Final = frozenset("\\#.")
"""Characters of qualified names; such a name means the same thing in every repository."""


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file in a question; the file need not exist yet.

    Attributes:
        paths: its possible paths within each repository, by repository.
        names: names by which documents of these repositories may mention it.
    """

    said: str
    paths: Mapping[str, tuple[str, ...]]
    names: frozenset[str]

    def matches(self, source: str, globs: Sequence[str], folder: str) -> bool:
        """Return whether a rule applies to this file.

        Args:
            source: the repository of the rule.
            globs: globs of the rule, relative to its folder or the repository's root; a rule
                without globs applies to every file of its folder.
            folder: the folder of the rule, with a slash at its end; "" for the whole repository.
        """
        paths = [path for path in self.paths.get(source, ()) if path.startswith(folder)]
        return any(
            not globs or _matches(globs, path) or _matches(globs, path.removeprefix(folder))
            for path in paths
        )

    def named(self, source: str, names: frozenset[str]) -> list[str]:
        """Return the names by which a document of a repository mentions this file.

        For a document of a different repository, only a qualified name counts as a mention.
        """
        known = self.names if source in self.paths else frozenset(filter(_is_qualified, self.names))
        return sorted(known & names)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A document that may concern files.

    Attributes:
        globs: the globs of a rule; a rule without globs applies to every file of its folder.
    """

    document: FoundDocument
    kind: str
    globs: tuple[str, ...]

    def is_applicable_rule(self, files: Sequence[AskedFile]) -> bool:
        """Return whether the document is a rule that applies to at least one of these files."""
        return any(self._governs_file(file) for file in files)

    def rank(self, files: Sequence[AskedFile]) -> tuple[bool, int, str]:
        """Return a sort key that puts rules for these files first."""
        return not self.is_applicable_rule(files), _ORDER.index(self.kind), self.document.uri

    def describe(self, text: str, files: Sequence[AskedFile], *, several: bool) -> Iterator[str]:
        """Yield the document's title, why it concerns a file, and the text of a rule.

        Yield nothing if the document concerns none of the files.

        Args:
            several: whether to show places with their repository.
        """
        facts = read_markdown(text).facts
        named = frozenset(str(f.values["name"]).lstrip("\\") for f in facts if f.kind == "mentions")
        for file in files:
            if self._governs_file(file):
                why = ", ".join(self.globs) or "always"
            elif hit := file.named(self.document.source, named):
                why = f"names {hit[0]}"
            else:
                continue
            where = place(self.document.uri, 1, several=several)
            title = next((ln.strip("# ") for ln in text.split("\n") if ln.startswith("#")), "")
            yield f"{where}  {self.kind}  {title}  ({why}; for {file.said})"
            if self.kind in _RULES:
                yield from (f"  {line}" for line in text.split("\n") if line.strip())
            return

    def _governs_file(self, file: AskedFile) -> bool:
        if self.kind not in _RULES:
            return False
        path = _TOOL_FOLDER.sub("", parse_path(self.document.uri))
        return file.matches(self.document.source, self.globs, path[: path.rfind("/") + 1])


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The documents of a tenant's repositories that a caller may read."""

    reader: DocumentReader
    tenant: Tenant
    caller: Caller
    view: View

    def about(self, files: Sequence[AskedFile], *, several: bool) -> tuple[list[str], list[str]]:
        """Return lines that describe the documents about files, rules first, and notes on gaps.

        Args:
            several: whether to show places with their repository.
        """
        spoken = self.view.naming(_list_edge_targets(files), _NAMES)
        found, left = self._find_candidates(files, naming={edge.document_id for edge in spoken})
        ids = [one.document.document_id for one in found[:MOST_DOCUMENTS]]
        texts = self.reader.read_all(self.tenant.id, self.caller, ids)
        lines: list[str] = []
        for one in found[:MOST_DOCUMENTS]:
            read = texts.get(one.document.document_id)
            lines += one.describe("" if read is None else read.text, files, several=several)
        left += max(0, len(found) - MOST_DOCUMENTS)
        lacking = [f"{format_count(left, 'more document')} not read"] if left else []
        if len(spoken) >= MOST_EDGES:
            lacking.append(f"they are named at more than {MOST_EDGES:,} places")
        return lines, [f"this may lack something: {one}" for one in lacking]

    def _find_candidates(
        self, files: Sequence[AskedFile], naming: Collection[str]
    ) -> tuple[list[_Candidate], int]:
        """Return documents that may concern files, rules first, and how many may be missing.

        Args:
            naming: ids of documents that seem to mention the files.
        """
        stated = self.view.stated("applies_to")
        globs: dict[str, list[str]] = {}
        for edge in stated:
            globs.setdefault(edge.document_id, []).append(edge.target.removeprefix(GLOB))
        # If the list of edges was cut off, the globs of the last document and of all later ones may
        # be missing.
        cut = stated[-1].uri if len(stated) >= MOST_EDGES else None
        found: list[_Candidate] = []
        unknown = 0
        for document in self.view.documents([*_ORDER, _FILE]):
            kind = _get_type(document)
            if kind not in _ORDER:
                continue
            one = _Candidate(document, kind, tuple(globs.get(document.document_id, ())))
            if cut is not None and kind in _RULES and document.uri >= cut:
                unknown += 1
            elif one.is_applicable_rule(files) or document.document_id in naming:
                found.append(one)
        return sorted(found, key=lambda one: one.rank(files)), unknown

    def locate_file(self, said: str) -> AskedFile:
        """Return a file given by its path within a repository, or as hits show it."""
        sources = [one.name for one in self.tenant.sources if one.type in {"git", "files"}]
        # A guessed repository name must not reveal whether that repository exists.
        repositories = self.view.list_readable_sources(sources)
        bare, *shorter = path_spellings(said)[1:] or path_spellings(said) or [""]
        paths: Mapping[str, Sequence[str]] = {}
        for path in (bare, *(one for one in shorter if "/" in one)):
            # An absolute path may start with the folder of a checkout.
            if paths := self._find_existing_paths(path, repositories):
                bare = path
                break
        else:
            paths = _list_possible_paths(bare, repositories)
        held = {build_uri(source, path) for source, each in paths.items() for path in each}
        names = self._names([*held]) | {bare, *(path for each in paths.values() for path in each)}
        last = bare.rpartition("/")[2]
        return AskedFile(said, {name: tuple(each) for name, each in paths.items()}, names | {last})

    def _find_existing_paths(self, bare: str, repositories: Sequence[str]) -> dict[str, list[str]]:
        """Return the paths of the existing files that a path may refer to, by repository."""
        first, _, rest = bare.partition("/")
        uris = [bare, *(build_uri(source, bare) for source in repositories)]
        if first in repositories and rest:
            uris.append(build_uri(first, rest))
        paths: dict[str, list[str]] = {}
        for file in self.view.files([FILE + uri for uri in dict.fromkeys(uris)]):
            paths.setdefault(file.repository, []).append(parse_path(file.uri or ""))
        return paths

    def _names(self, uris: Sequence[str]) -> frozenset[str]:
        """Return the names of the definitions in files."""
        nodes = self.view.within_any(uris)
        shorts = {node.name.rpartition("\\")[2] for node in nodes}
        methods = {name.replace("::", "@") for name in shorts}
        return frozenset({node.name for node in nodes} | shorts | methods)


def _list_possible_paths(bare: str, repositories: Sequence[str]) -> dict[str, list[str]]:
    """Return the possible paths of a file that does not exist, by repository."""
    first, _, rest = bare.partition("/")
    if first not in repositories or not rest:
        return {name: [bare] for name in repositories}
    if len(repositories) > 1:
        return {first: [rest]}
    return {first: [rest, bare]}


def _list_edge_targets(files: Sequence[AskedFile]) -> list[str]:
    """Return the possible targets of edges from documents that mention these files."""
    names = {name for file in files for name in file.names}
    each = (targets_of_mention(name, kind) for name in names for kind in _KINDS_OF_NAMES)
    return sorted({target for targets in each for target in targets})


def _get_type(document: FoundDocument) -> str:
    if document.source_type == _FILE:
        return type_of_place(parse_path(document.uri))
    return document.source_type


def _is_qualified(name: str) -> bool:
    return not _QUALIFIED.isdisjoint(name) and "/" not in name and "@" not in name


def _matches(globs: Sequence[str], path: str) -> bool:
    folder, slash, name = path.rpartition("/")
    rules = compile_globs(globs, ignore_case=False)
    return bool(rules.decide((folder + slash).encode(), name.encode(), is_folder=False))
