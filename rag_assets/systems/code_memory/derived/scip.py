"""Derivation of exact references from SCIP indexes, which a compiler or type checker has written.

The text of an index (see sources/scip_file.py) is compared with the present files. References that
agree with them become derived documents, one for each file. A file that has changed since the
index was written is stale: its part of the index is ignored.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import (
    INDEX,
    REFERENCES,
    DerivedDocument,
    DerivedStatement,
)
from rag_assets.systems.code_memory.sources.scip_file import NO_HASH, IndexedSymbol, hash_text
from rag_assets.systems.code_memory.symbols.names import ELSEWHERE
from rag_assets.systems.code_memory.symbols.naming import get_name_style, qualify_defined_name

_UTF8, _UTF16, _UTF32 = 1, 2, 3
_LIKELY_ENCODINGS: Final = (_UTF16, _UTF32, _UTF8)
"""Encodings to try for an index that states none, such as indexes of scip-python."""
_CODECS: Final = {_UTF8: ("utf-8", 1), _UTF16: ("utf-16-le", 2), _UTF32: ("utf-32-le", 4)}
"""Codec and bytes per code unit, by the number of a position encoding."""

_CONSTRUCTORS: Final = frozenset(
    {"<constructor>", "constructor", "__init__", "<init>", "__construct"}
)
_MAX_ALIASES: Final = 1_000
"""Maximum number of names in one file that are compared with its imports and exports."""
_IMPORT: Final = re.compile(r"\s*(?:import|export|from|use|using)\b")
_CALL: Final = re.compile(r"\s*(?:<[^()]*>)?\(")
_MAX_EVIDENCE_CHARACTERS: Final = 200
"""Maximum number of characters of a line that are kept as evidence."""
_IMPLICIT: Final = re.compile(r"__\w+__|default|parent|self|static|super|this")
"""Matches words that stand for a definition with another name: `self.__module__` for its class."""
_MARKS: Final = "\"'`#$@"
"""Characters that may be part of an occurrence, but not of its symbol's name."""


class SourceFile(NamedTuple):
    """A file of the repository as it is now.

    Attributes:
        is_masked: whether a credential in the text is masked, without changing its length.
    """

    uri: str
    facts: Sequence[Fact]
    text: str
    is_masked: bool = False


class _Occurrence(NamedTuple):
    """An occurrence of a symbol in an index: line and columns count from 0, columns in code units.

    Attributes:
        symbol: number of the symbol in the index; for a symbol of another package, its name.
    """

    line: int
    start: int
    end: int
    symbol: int | str
    is_definition: bool


@dataclass(slots=True)
class _IndexedFile:
    """A file as an index describes it.

    Attributes:
        encoding: the position encoding of its columns; 0 if the index states none.
    """

    encoding: int
    text_hash: str
    occurrences: list[_Occurrence] = field(default_factory=list)


@dataclass(slots=True)
class ScipIndex:
    """A SCIP index, read from its text.

    Attributes:
        path: the path under which its source lists it.
        root: the last folders of the path of the indexed project's root.
        symbols: the symbols that it defines or refers to; occurrences state their positions here.
        files: the files that it describes, by path within its project.
    """

    path: str
    root: str = ""
    symbols: list[IndexedSymbol] = field(default_factory=list)
    files: dict[str, _IndexedFile] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> ScipIndex:
        """Return the index that a text in the form of scip_file.render_index describes.

        An occurrence is left out if masking a credential has changed the numbers in its line.
        """
        heading, *lines = text.rstrip("\n").split("\n")
        index = cls(unquote(heading.removeprefix(INDEX)))
        occurrences: list[_Occurrence] = []
        for line in lines:
            kind, *values = line.split(" ")
            if kind == "root":
                index.root = unquote(values[0])
            elif kind == "symbol":
                index.symbols.append(IndexedSymbol(*map(unquote, (*values, "")[:2])))
            elif kind == "file":
                encoding = int(values[1]) if values[1].isdecimal() else 0
                file = _IndexedFile(encoding, values[2])
                occurrences = index.files.setdefault(unquote(values[0]), file).occurrences
            elif (occurrence := index._read_occurrence(kind, values)) is not None:
                occurrences.append(occurrence)
        return index

    def _read_occurrence(self, line: str, values: Sequence[str]) -> _Occurrence | None:
        try:
            start, end, symbol, *mark = values
            which = unquote(symbol[1:]) if symbol.startswith("-") else int(symbol)
            place = int(line), int(start), int(end)
        except ValueError:
            return None
        is_known = isinstance(which, str) or 0 <= which < len(self.symbols)
        return _Occurrence(*place, which, bool(mark)) if is_known else None

    def locate_files(self, paths: Collection[str]) -> dict[str, _IndexedFile]:
        """Return the files of the index that exist, by path within the repository.

        The project's folder is the index's folder, the repository's root, or a folder named like
        the project's root, whichever contains most of the files.
        """
        parts = self.root.split("/")
        ends = ("/".join(parts[at:]) for at in range(len(parts)))
        folders = dict.fromkeys((posixpath.dirname(self.path), "", *ends))
        located = (
            {
                place: file
                for path, file in self.files.items()
                if ".." not in path.split("/")
                and (place := posixpath.normpath(posixpath.join(folder, path))) in paths
            }
            for folder in folders
        )
        return max(located, key=len)


_Alias: TypeAlias = tuple[int | str, str]
"""A symbol, and a name that imports or exports give to it."""


class _Place(NamedTuple):
    """An occurrence of a symbol in the current text of a file.

    Attributes:
        written: the text from `start` to `end`.
    """

    line: int
    start: int
    end: int
    written: str
    symbol: int | str
    is_definition: bool


def _find_current_places(
    placed: Mapping[str, _IndexedFile],
    sources: Mapping[str, SourceFile],
    symbols: Sequence[IndexedSymbol],
) -> dict[str, list[_Place]]:
    """Return the occurrences in the files that have not changed since they were indexed.

    If the index states no position encoding, the encoding that fits most of its files is used.

    Args:
        placed: files of the index, by path within the repository.
        sources: the present files, by the same path.
    """
    is_stated = all(file.encoding or sources[path].text.isascii() for path, file in placed.items())
    candidates = []
    for encoding in _LIKELY_ENCODINGS[:1] if is_stated else _LIKELY_ENCODINGS:
        read = {
            path: places
            for path, file in placed.items()
            if (places := _list_places(file, sources[path], encoding)) is not None
        }
        aliases = {
            alias
            for path, places in read.items()
            for alias in _iter_aliases(places, sources[path].text, symbols)
        }
        agreeing = {
            path: places
            for path, places in read.items()
            if _matches_symbols(places, symbols, aliases)
        }
        candidates.append(agreeing)
    return max(candidates, key=len)


def _list_places(indexed: _IndexedFile, source: SourceFile, encoding: int) -> list[_Place] | None:
    """Return the occurrences in a current file; None if it has changed since it was indexed."""
    is_hashed = indexed.text_hash != NO_HASH and not source.is_masked
    if is_hashed and indexed.text_hash != hash_text(source.text):
        return None
    encoding = indexed.encoding or encoding
    lines = source.text.split("\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    offsets: dict[int, Sequence[int]] = {}
    places = []
    for occurrence in indexed.occurrences:
        line = occurrence.line
        text = lines[line] if line < len(lines) else ""
        first, last = occurrence.start, occurrence.end
        if not text.isascii():
            if line not in offsets:
                codec, width = _CODECS[encoding]
                units = (
                    len(character.encode(codec, "surrogatepass")) // width for character in text
                )
                offsets[line] = [0, *accumulate(units)]
            # Columns in code units become columns in characters, or -1 past the end of the line.
            before = offsets[line]
            first, last = (
                bisect_left(before, at) if at <= before[-1] else -1 for at in (first, last)
            )
        if not 0 <= first < last <= len(text):
            return None
        at = begins[line]
        place = line, at + first, at + last, text[first:last]
        places.append(_Place(*place, occurrence.symbol, occurrence.is_definition))
    return places


def _iter_aliases(
    places: Iterable[_Place], text: str, symbols: Sequence[IndexedSymbol]
) -> Iterator[_Alias]:
    """Yield the symbols that imports and exports in a file rename, each with the new name."""
    searched: set[_Alias] = set()
    for place in places:
        name, written = _get_symbol(place, symbols).name, place.written
        first, _, alias = written.partition(" as ")
        if alias and first == name:
            yield place.symbol, alias.strip()
        elif written != name and not place.is_definition:
            if (place.symbol, written) in searched or len(searched) >= _MAX_ALIASES:
                continue
            searched.add((place.symbol, written))
            renamed = rf"\b(?:default|{re.escape(name)})\s+as\s+{re.escape(written)}\b"
            imported = rf"\bimport +(?:type +)?{re.escape(written)}(?:, *[{{*]| +from +[\"'])"
            if re.search(f"{renamed}|{imported}", text):
                yield place.symbol, written


def _matches_symbols(
    places: Iterable[_Place], symbols: Sequence[IndexedSymbol], aliases: Collection[_Alias]
) -> bool:
    """Return whether the text at each place is still a name or an alias of its symbol."""
    return all(
        written.partition(" as ")[0] in _list_called_names(_get_symbol(place, symbols))
        or (place.symbol, written) in aliases
        or (not place.is_definition and _IMPLICIT.fullmatch(written) is not None)
        for place in places
        for written in (place.written.strip(_MARKS),)
    )


def _list_called_names(symbol: IndexedSymbol) -> tuple[str, ...]:
    """Return the names that code may use for a symbol; for a constructor, also its class's name."""
    names = symbol.name, "constructor", symbol.owner
    return names if symbol.name in _CONSTRUCTORS else symbol[:1]


def _get_symbol(place: _Place, symbols: Sequence[IndexedSymbol]) -> IndexedSymbol:
    if isinstance(place.symbol, str):
        return IndexedSymbol(place.symbol, "")
    return symbols[place.symbol]


class ScipReferences(NamedTuple):
    """The references of several indexes.

    Attributes:
        documents: one derived document for each file with references.
        reports: for each index, its path and a line about how many of its files were used.
    """

    documents: Sequence[DerivedDocument]
    reports: Sequence[tuple[str, str]]


def find_exact_references(
    indexes: Iterable[ScipIndex], sources: Mapping[str, SourceFile]
) -> ScipReferences:
    """Return the references of indexes in the files that have not changed since indexing."""
    statements: dict[str, dict[DerivedStatement, None]] = defaultdict(dict)
    reports = []
    definitions = _Definitions(sources)
    for index in indexes:
        placed = index.locate_files(sources)
        agreeing = _find_current_places(placed, sources, index.symbols)
        nodes = definitions.find_nodes(index, placed, agreeing)
        for path, places in agreeing.items():
            reader = _ReferenceReader(path, sources[path], definitions, nodes)
            statements[sources[path].uri] |= dict.fromkeys(reader.iter_statements(places))
        others, stale = len(index.files) - len(placed), len(placed) - len(agreeing)
        figures = f"{format_count(len(placed), 'document')} read, {stale:,} stale, ignored"
        unknown = f", {others:,} not among the indexed files" if others else ""
        reports.append((index.path, figures + unknown))
    documents = (
        DerivedDocument("scip", uri, (), (REFERENCES + uri,), tuple(reader))
        for uri, reader in sorted(statements.items())
        if reader
    )
    return ScipReferences(tuple(documents), reports)


class _Definitions:
    """The definitions that the facts of the current files declare."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self._facts: dict[str, list[Fact]] = {}
        # Counted are names in languages in which a repository may use a name twice.
        self._counts: Counter[str] = Counter()
        self.names: set[str] = set()
        for path, source in sources.items():
            facts = [fact for fact in source.facts if fact.kind == "declares" and fact.symbol]
            self._facts[path] = sorted(facts, key=lambda fact: fact.start)
            self._counts.update(fact.symbol for fact in facts if get_name_style(path) == "none")
            self.names.update(_list_parts(fact.symbol)[-1] for fact in facts)

    def find_enclosing(self, path: str, at: int, name: str = "") -> Fact | None:
        """Return the innermost definition around an offset; if `name` is set, with this name."""
        facts = self._facts[path]
        for fact in reversed(facts[: bisect_right(facts, at, key=lambda fact: fact.start)]):
            if at < fact.end and (not name or _list_parts(fact.symbol)[-1] == name):
                return fact
        return None

    def find_nodes(
        self,
        index: ScipIndex,
        placed: Mapping[str, _IndexedFile],
        agreeing: Mapping[str, Sequence[_Place]],
    ) -> dict[int, str]:
        """Return the node of each symbol that an index defines, by the number of the symbol.

        In a stale file, a definition is found by its name, if only one definition has it.

        Args:
            placed: the files of the index that exist in the repository.
            agreeing: the occurrences in these files, without files that have changed.
        """
        nodes: dict[int, str] = {}
        for path, file in placed.items():
            for occurrence in agreeing.get(path, file.occurrences):
                if not occurrence.is_definition or not isinstance(occurrence.symbol, int):
                    continue
                name, owner = index.symbols[occurrence.symbol]
                if name in _CONSTRUCTORS:
                    name, owner = owner, ""
                fact = (
                    self.find_enclosing(path, occurrence.start, name)
                    if isinstance(occurrence, _Place)
                    else self._find_only_definition(path, name, owner)
                )
                if fact is not None and self._counts[fact.symbol] <= 1:
                    nodes[occurrence.symbol] = qualify_defined_name(fact.symbol, path)
        return nodes

    def _find_only_definition(self, path: str, name: str, owner: str) -> Fact | None:
        name_parts = [owner, name] if owner else [name]
        matching = [
            fact
            for fact in self._facts[path]
            if _list_parts(fact.symbol)[-len(name_parts) :] == name_parts
        ]
        return matching[0] if len(matching) == 1 else None


def _list_parts(symbol: str) -> list[str]:
    return re.split(r"::?|[.#\\]", symbol)


class _ReferenceReader:
    """A reader that turns the occurrences in one file into statements."""

    def __init__(
        self, path: str, source: SourceFile, definitions: _Definitions, nodes: Mapping[int, str]
    ) -> None:
        self._path, self._source, self._definitions = path, source, definitions
        self._nodes = nodes
        self._lines = source.text.split("\n")
        self._imports = [fact for fact in source.facts if fact.kind == "imports"]
        self._bases = {
            (fact.symbol, _list_parts(str(fact.values.get("name", "")))[-1]): fact.kind
            for fact in source.facts
            if fact.kind in {"extends", "implements"}
        }

    def iter_statements(self, places: Iterable[_Place]) -> Iterator[DerivedStatement]:
        """Yield a statement for each reference to a definition of the repository.

        Also yield a statement ELSEWHERE for each use of a definition's name that refers to
        something else.
        """
        for place in places:
            if place.is_definition:
                continue
            target = self._nodes.get(place.symbol) if isinstance(place.symbol, int) else None
            written = place.written.strip(_MARKS)
            if target is not None:
                yield from self._describe_reference(place, written, target)
            is_named_so = target is not None and written == _list_parts(target)[-1]
            if written in self._definitions.names and not is_named_so:
                yield self._build_statement(place, ELSEWHERE, "", f"{ELSEWHERE}:{written}")

    def _describe_reference(
        self, place: _Place, written: str, target: str
    ) -> Iterator[DerivedStatement]:
        """Yield the statement of a reference; its source is the definition around it."""
        if self._is_import(place):
            yield self._build_statement(place, "imports", "", target)
            return
        enclosing = self._definitions.find_enclosing(self._path, place.start)
        base = None if enclosing is None else self._bases.get((enclosing.symbol, written))
        kind = "calls" if _CALL.match(self._source.text, place.end) else "uses"
        source = "" if enclosing is None else qualify_defined_name(enclosing.symbol, self._path)
        if source != target:
            yield self._build_statement(place, base or kind, source, target)

    def _is_import(self, place: _Place) -> bool:
        is_stated = any(fact.start <= place.start < fact.end for fact in self._imports)
        return is_stated or _IMPORT.match(self._lines[place.line]) is not None

    def _build_statement(
        self, place: _Place, kind: str, source: str, target: str
    ) -> DerivedStatement:
        line, evidence = place.line + 1, self._lines[place.line].strip()[:_MAX_EVIDENCE_CHARACTERS]
        return DerivedStatement(kind, source, target, "scip", self._path, line, line, evidence)
