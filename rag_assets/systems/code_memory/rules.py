"""Rules, decisions, known bugs and documents about files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.common.formatting import format_count
from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.ingest.sources.model import build_uri, parse_path
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.found_relations import FoundDocument
from rag_assets.systems.code_memory.languages.texts import read_markdown
from rag_assets.systems.code_memory.outlines import LineFormatter
from rag_assets.systems.code_memory.relations.edge_rules import list_targets_of_mention
from rag_assets.systems.code_memory.retrieval.view import MAX_EDGES, RelationView
from rag_assets.systems.code_memory.sources.repositories.attributes import split_path
from rag_assets.systems.code_memory.symbols.names import FILE, GLOB, list_path_spellings
from rag_assets.systems.code_memory.symbols.source_types import get_type_of_path
from rag_assets.tenants.model import Tenant

MAX_DOCUMENTS: Final = 200
"""Maximum number of documents that are read for one answer."""

_RULE_KINDS: Final = ("cursor_rule", "claude_rule")
_OTHER_KINDS: Final = ("adr", "known_bug", "readme", "doc")
_KIND_ORDER: Final = (*_RULE_KINDS, *_OTHER_KINDS)
_MENTION_EDGES: Final = "documents"
"""The kind of the edges from a document to the names that it mentions."""
_KINDS_OF_NAMES: Final = ("path", "symbol", "name")
_FILE: Final = "file"
"""The source type of documents from plain folders; the path determines a more specific type."""
_TOOL_FOLDER: Final = re.compile(r"(?:(?<=/)|^)\.(?:claude|cursor)/.*")
"""Matches the folder of an assistant; its rules apply to the folder that contains it."""

_QUALIFIED: Final = frozenset("\\#.")
"""Characters of qualified names, which mean the same definition in every repository."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A file in a question; the file need not exist yet.

    Attributes:
        paths: its possible paths within each repository, by repository.
        names: names by which documents of these repositories may mention it.
    """

    path_as_written: str
    paths: Mapping[str, Sequence[str]]
    names: frozenset[str]

    def matches(self, source: str, globs: Sequence[str], folder: str) -> bool:
        """Return whether a rule of a repository applies to this file.

        Args:
            globs: globs relative to the folder or the repository's root; without globs, the rule
                applies to every file in its folder.
            folder: the folder of the rule, with a slash at its end; "" for the whole repository.
        """
        paths = [path for path in self.paths.get(source, ()) if path.startswith(folder)]
        return any(
            not globs or _match_globs(globs, path) or _match_globs(globs, path.removeprefix(folder))
            for path in paths
        )

    def find_mention(self, source: str, names: frozenset[str]) -> str | None:
        """Return the first name by which a document mentions this file; None if it does not.

        For a document of a different repository, only a qualified name counts as a mention.
        """
        known = self.names & names
        if source not in self.paths:
            qualified = (name for name in known if not _QUALIFIED.isdisjoint(name))
            known = frozenset(name for name in qualified if "/" not in name and "@" not in name)
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A document that may be about the files in a question; globs as in QuestionFile.matches."""

    document: FoundDocument
    kind: str
    globs: tuple[str, ...]

    def governs(self, file: QuestionFile) -> bool:
        """Return whether the document is a rule that applies to a file."""
        if self.kind not in _RULE_KINDS:
            return False
        path = _TOOL_FOLDER.sub("", parse_path(self.document.uri))
        return file.matches(self.document.source, self.globs, path[: path.rfind("/") + 1])

    def explain_concern(
        self, text: str, files: Sequence[QuestionFile]
    ) -> tuple[str, QuestionFile] | None:
        """Return why the document concerns one of these files, and which; None if it does not."""
        facts = read_markdown(text).facts
        mentioned_names = frozenset(
            str(f.values["name"]).lstrip("\\") for f in facts if f.kind == "mentions"
        )
        for file in files:
            if self.governs(file):
                return ", ".join(self.globs) or "always", file
            if hit := file.find_mention(self.document.source, mentioned_names):
                return f"names {hit}", file
        return None


@dataclass(frozen=True, slots=True)
class RuleBook:
    """A finder of the rules and documents about files, limited to what a caller may read."""

    reader: DocumentReader
    tenant: Tenant
    caller: Caller
    view: RelationView
    formatter: LineFormatter

    def describe_documents(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return lines about the documents that concern files, and notes on what may be missing.

        Rules come first, each with its text.
        """
        files = [self._locate_file(path) for path in paths]
        spoken = self.view.find_edges_naming(_list_edge_targets(files), _MENTION_EDGES)
        candidates, omitted_count = self._find_candidates(
            files, naming={edge.document_id for edge in spoken}
        )
        ids = [candidate.document.document_id for candidate in candidates[:MAX_DOCUMENTS]]
        texts = self.reader.read_all(self.tenant.id, self.caller, ids)
        lines: list[str] = []
        for candidate in candidates[:MAX_DOCUMENTS]:
            read = texts.get(candidate.document.document_id)
            text = "" if read is None else read.text
            if (concern := candidate.explain_concern(text, files)) is not None:
                why, file = concern
                where = self.formatter.format_place(candidate.document.uri, 1)
                title = next((ln.strip("# ") for ln in text.split("\n") if ln.startswith("#")), "")
                lines.append(
                    f"{where}  {candidate.kind}  {title}  ({why}; for {file.path_as_written})"
                )
                if candidate.kind in _RULE_KINDS:
                    lines += (f"  {line}" for line in text.split("\n") if line.strip())
        omitted_count += max(0, len(candidates) - MAX_DOCUMENTS)
        lacking = (
            [f"{format_count(omitted_count, 'more document')} not read"] if omitted_count else []
        )
        if len(spoken) >= MAX_EDGES:
            lacking.append(f"they are named at more than {MAX_EDGES:,} places")
        return lines, [f"this may lack something: {gap}" for gap in lacking]

    def _find_candidates(
        self, files: Sequence[QuestionFile], naming: Collection[str]
    ) -> tuple[list[_Candidate], int]:
        """Return documents that may concern files, rules first, and how many may be missing.

        Args:
            naming: ids of documents that seem to mention the files.
        """
        edges = self.view.list_edges_of_kind("applies_to")
        globs: dict[str, list[str]] = {}
        for edge in edges:
            globs.setdefault(edge.document_id, []).append(edge.target.removeprefix(GLOB))
        # If the list of edges is cut off, globs of the last and of later documents may be missing.
        cut = edges[-1].uri if len(edges) >= MAX_EDGES else None
        ranked: list[tuple[bool, int, str, _Candidate]] = []
        unknown = 0
        for document in self.view.list_documents([*_KIND_ORDER, _FILE]):
            kind = document.source_type
            kind = get_type_of_path(parse_path(document.uri)) if kind == _FILE else kind
            if kind not in _KIND_ORDER:
                continue
            candidate = _Candidate(document, kind, tuple(globs.get(document.document_id, ())))
            governs = any(map(candidate.governs, files))
            if cut is not None and kind in _RULE_KINDS and document.uri >= cut:
                unknown += 1
            elif governs or document.document_id in naming:
                ranked.append((not governs, _KIND_ORDER.index(kind), document.uri, candidate))
        ranked.sort(key=lambda entry: entry[:3])
        return [candidate for *_, candidate in ranked], unknown

    def _locate_file(self, path_as_written: str) -> QuestionFile:
        """Return the file that a path means, either in its repository or as hits show it."""
        sources = [source.name for source in self.tenant.sources if source.type in {"git", "files"}]
        # A guessed repository name must not reveal whether that repository exists.
        repositories = self.view.list_readable_sources(sources)
        spelled = list_path_spellings(path_as_written)
        bare, *shorter = spelled[1:] or spelled or [""]
        paths: Mapping[str, Sequence[str]] = {}
        for path in (bare, *(suffix for suffix in shorter if "/" in suffix)):
            # An absolute path may start with the folder of a checkout.
            if paths := self._find_existing_paths(path, repositories):
                bare = path
                break
        else:
            paths = _list_possible_paths(bare, repositories)
        source_paths = [(source, path) for source, some in paths.items() for path in some]
        names = self._list_names(list({build_uri(source, path) for source, path in source_paths}))
        names |= {bare, bare.rpartition("/")[2], *(path for _, path in source_paths)}
        return QuestionFile(path_as_written, paths, names)

    def _find_existing_paths(self, bare: str, repositories: Sequence[str]) -> dict[str, list[str]]:
        """Return the paths of the existing files that a path may refer to, by repository."""
        first, _, rest = bare.partition("/")
        uris = [bare, *(build_uri(source, bare) for source in repositories)]
        if first in repositories and rest:
            uris.append(build_uri(first, rest))
        paths: dict[str, list[str]] = {}
        for file in self.view.find_files([FILE + uri for uri in dict.fromkeys(uris)]):
            paths.setdefault(file.repository, []).append(parse_path(file.uri or ""))
        return paths

    def _list_names(self, uris: Sequence[str]) -> frozenset[str]:
        """Return the names by which documents may mention the definitions in files."""
        nodes = self.view.list_definitions(uris)
        shorts = {node.name.rpartition("\\")[2] for node in nodes}
        methods = {name.replace("::", "@") for name in shorts}
        return frozenset({node.name for node in nodes} | shorts | methods)


def _list_possible_paths(bare: str, repositories: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths that a file which does not exist may have, by repository."""
    first, _, rest = bare.partition("/")
    if first not in repositories or not rest:
        return {name: [bare] for name in repositories}
    return {first: [rest] if len(repositories) > 1 else [rest, bare]}


def _list_edge_targets(files: Sequence[QuestionFile]) -> list[str]:
    """Return the possible targets of edges from documents that mention these files."""
    names = {name for file in files for name in file.names}
    target_lists = (
        list_targets_of_mention(name, kind) for name in names for kind in _KINDS_OF_NAMES
    )
    return sorted({target for targets in target_lists for target in targets})


def _match_globs(globs: Sequence[str], path: str) -> bool:
    rules = compile_globs(globs, ignore_case=False)
    return bool(rules.decide(*split_path(path), is_folder=False))
