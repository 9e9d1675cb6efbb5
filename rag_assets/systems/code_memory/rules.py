"""Which rules, decisions, known bugs and documents are about files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.code.documents import read_markdown
from rag_assets.code.nodes import FILE, GLOB
from rag_assets.code.places import type_of_place
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.ingest.sources.model import path_of, uri_of
from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.found_relations import FoundDocument
from rag_assets.systems.code_memory.outlines import place
from rag_assets.tenants.model import Tenant

MOST_DOCUMENTS: Final = 200
"""Documents that are read for one answer."""

_RULES: Final = ("cursor_rule", "claude_rule")
_OTHERS: Final = ("adr", "known_bug", "readme", "doc")
_ORDER: Final = (*_RULES, *_OTHERS)
_FILE: Final = "file"
"""The type of documents of folders, whose place tells more."""
_QUALIFIED: Final = frozenset("\\#.")
"""What stands in names that mean one thing whatever the repository."""


@dataclass(frozen=True, slots=True)
class AskedFile:
    """A file that somebody asks about; there may be none yet.

    Attributes:
        said: as it was named.
        paths: within the repositories that it may lie in, by their names.
        names: by which documents of these repositories may speak of it.
    """

    said: str
    paths: Mapping[str, tuple[str, ...]]
    names: frozenset[str]

    def matches(self, source: str, globs: Sequence[str]) -> bool:
        """Whether globs of a repository hold it; those of no globs hold every file there."""
        paths = self.paths.get(source, ())
        return any(not globs or _matches(globs, path) for path in paths)

    def named(self, source: str, names: frozenset[str]) -> list[str]:
        """The names that a document of a repository calls it by.

        What stands in another repository means it only by a qualified name.
        """
        known = self.names if source in self.paths else frozenset(filter(_is_qualified, self.names))
        return sorted(known & names)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The documents of a tenant's repositories that a caller may read, asked about files.

    Attributes:
        reader: reads documents.
        tenant: whose repositories.
        caller: who asks.
        view: what the caller may read of the relations.
    """

    reader: DocumentReader
    tenant: Tenant
    caller: Caller
    view: View

    def about(self, files: Sequence[AskedFile], *, several: bool) -> tuple[list[str], list[str]]:
        """Lines about files, rules that hold them first, and what the answer may lack.

        Args:
            files: that are asked about.
            several: whether places are told with the repository.
        """
        globs: dict[str, list[str]] = {}
        for edge in self.view.stated("applies_to"):
            globs.setdefault(edge.document_id, []).append(edge.target.removeprefix(GLOB))
        held = [(one, _type_of(one)) for one in self.view.documents([*_ORDER, _FILE])]
        wanted = sorted(
            ((one, kind) for one, kind in held if kind in _ORDER),
            key=lambda pair: _rank(pair[0], pair[1], globs.get(pair[0].document_id, []), files),
        )
        lines: list[str] = []
        for document, kind in wanted[:MOST_DOCUMENTS]:
            stated = globs.get(document.document_id, [])
            lines += self._told(document, kind, stated, files, several=several)
        left = len(wanted) - MOST_DOCUMENTS
        notes = [f"this may lack something: {left:,} more documents were not read"]
        return lines, notes if left > 0 else []

    def asked(self, said: str) -> AskedFile:
        """A file by its path, within a repository or, as hits name it, with the repository's."""
        repositories = [one.name for one in self.tenant.sources if one.type in {"git", "files"}]
        bare = said.lstrip("/")
        first, _, rest = bare.partition("/")
        uris = [bare, *(uri_of(source, bare) for source in repositories)]
        if first in repositories and rest:
            uris.append(uri_of(first, rest))
        found = self.view.files([FILE + uri for uri in dict.fromkeys(uris)])
        paths: dict[str, list[str]] = {}
        for file in found:
            paths.setdefault(file.repository, []).append(path_of(file.uri or ""))
        if not paths:
            paths = _places(bare, repositories)
        held = {uri_of(source, path) for source, each in paths.items() for path in each}
        names = self._names([*held]) | {bare, *(path for each in paths.values() for path in each)}
        last = bare.rpartition("/")[2]
        return AskedFile(said, {name: tuple(each) for name, each in paths.items()}, names | {last})

    def _names(self, uris: Sequence[str]) -> frozenset[str]:
        """What the definitions of files are called."""
        nodes = self.view.within_any(uris)
        shorts = {one.name.rpartition("\\")[2] for one in nodes}
        methods = {name.replace("::", "@") for name in shorts}
        return frozenset({one.name for one in nodes} | shorts | methods)

    def _told(
        self,
        document: FoundDocument,
        kind: str,
        globs: Sequence[str],
        files: Sequence[AskedFile],
        *,
        several: bool,
    ) -> Iterator[str]:
        """A document that is about one of the files, with why; a rule with its text."""
        is_rule = kind in _RULES
        text = self.reader.read(self.tenant.id, self.caller, document.document_id).text
        facts = read_markdown(text).facts
        named = frozenset(str(f.values["name"]).lstrip("\\") for f in facts if f.kind == "mentions")
        for file in files:
            if is_rule and file.matches(document.source, globs):
                why = ", ".join(globs) or "always"
            elif hit := file.named(document.source, named):
                why = f"names {hit[0]}"
            else:
                continue
            where = place(document.uri, 1, several=several)
            title = next((ln.strip("# ") for ln in text.split("\n") if ln.startswith("#")), "")
            yield f"{where}  {kind}  {title}  ({why}; for {file.said})"
            if is_rule:
                yield from (f"  {line}" for line in text.split("\n") if line.strip())
            return


def _places(bare: str, repositories: Sequence[str]) -> dict[str, list[str]]:
    """Where a file may be meant to lie that there is not."""
    first, _, rest = bare.partition("/")
    if first not in repositories or not rest:
        return {name: [bare] for name in repositories}
    if len(repositories) > 1:
        return {first: [rest]}
    return {first: [rest, bare]}


def _rank(
    document: FoundDocument, kind: str, globs: Sequence[str], files: Sequence[AskedFile]
) -> tuple[bool, int, str]:
    holds = kind in _RULES and any(file.matches(document.source, globs) for file in files)
    return not holds, _ORDER.index(kind), document.uri


def _type_of(document: FoundDocument) -> str:
    if document.source_type == _FILE:
        return type_of_place(path_of(document.uri))
    return document.source_type


def _is_qualified(name: str) -> bool:
    return not _QUALIFIED.isdisjoint(name) and "/" not in name and "@" not in name


def _matches(globs: Sequence[str], path: str) -> bool:
    folder, slash, name = path.rpartition("/")
    rules = compile_globs(globs, ignore_case=False)
    return bool(rules.decide((folder + slash).encode(), name.encode(), is_folder=False))
