"""References that a compiler or a type checker has resolved, taken from SCIP indexes.

The text of an index (see sources/scip_file.py) is compared with the present files. References that
agree with them become derived documents, one for each file. A file that has changed since the
index was written is stale: its part of the index is ignored.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple
from urllib.parse import unquote

from rag_assets.common.formatting import counted
from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.derived.model import DerivedDocument, Statement
from rag_assets.systems.code_memory.derived.text import INDEX, REFERENCES
from rag_assets.systems.code_memory.sources.scip_file import IndexedSymbol, hash_of_text
from rag_assets.systems.code_memory.symbols.naming import defined_name, style_of
from rag_assets.systems.code_memory.symbols.nodes import ELSEWHERE

_UTF8, _UTF16, _UTF32 = 1, 2, 3
_LIKELY_ENCODINGS: Final = (_UTF16, _UTF32, _UTF8)
"""Encodings to try for an index that states none, as those of scip-python and scip-typescript."""
_CODECS: Final = {_UTF8: ("utf-8", 1), _UTF16: ("utf-16-le", 2), _UTF32: ("utf-32-le", 4)}
"""Codec and bytes per code unit, by the number of a position encoding."""

_CONSTRUCTORS: Final = frozenset(
    {"<constructor>", "constructor", "__init__", "<init>", "__construct"}
)
_IMPORT: Final = re.compile(r"\s*(?:import|export|from|use|using)\b")
_DEFAULT_IMPORT: Final = re.compile(r"\s*import\s+(?:type\s+)?([\w$]+)\s*(?:,|\bfrom\b)")
"""Matches an import of JavaScript that gives a default export a name of its own."""
_CALL: Final = re.compile(r"\s*(?:<[^()]*>)?\(")
_EVIDENCE: Final = 200
"""Maximum number of characters of a line that are kept as evidence."""
_IMPLICIT: Final = re.compile(r"__\w+__|default|parent|self|static|super|this")
"""Matches words that stand for a definition with another name: `self.__module__` for its class."""
_MARKS: Final = "\"'`#$@"
"""Characters that may be part of an occurrence, but not of its symbol's name."""


class SourceFile(NamedTuple):
    """A present file of the repository.

    Attributes:
        uri: the URI of its document.
        facts: the facts that its text states.
        text: its text.
        is_masked: whether a credential in the text is masked, without changing its length.
    """

    uri: str
    facts: Sequence[Fact]
    text: str
    is_masked: bool = False


class _Occurrence(NamedTuple):
    """A place in a file: line and columns from 0, in code units.

    Attributes:
        symbol: number of the symbol; for a symbol of another package, its name.
    """

    line: int
    start: int
    end: int
    symbol: int | str
    is_definition: bool


@dataclass(slots=True)
class _IndexedFile:
    """A file as an index describes it."""

    encoding: int
    text_hash: str
    occurrences: list[_Occurrence] = field(default_factory=list)


@dataclass(slots=True)
class ScipIndex:
    """An index, read from its text.

    Attributes:
        path: the path under which its source lists it.
        root: the last folders of the root of its project.
        symbols: the symbols that it defines.
        files: the files that it describes, by path within its project.
    """

    path: str
    root: str = ""
    symbols: list[IndexedSymbol] = field(default_factory=list)
    files: dict[str, _IndexedFile] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> ScipIndex:
        """Return the index that a text describes; see text_of_index."""
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
                file = _IndexedFile(int(values[1]), values[2])
                occurrences = index.files.setdefault(unquote(values[0]), file).occurrences
            else:
                start, end, symbol, *mark = values
                which = unquote(symbol[1:]) if symbol.startswith("-") else int(symbol)
                place = int(kind), int(start), int(end)
                occurrences.append(_Occurrence(*place, which, bool(mark)))
        return index

    def placed(self, paths: Collection[str]) -> dict[str, _IndexedFile]:
        """Return the files of the index that exist, by path within the repository.

        The folder of the project is that of the index, the repository's root, or a folder with the
        name of the project's root: the one below which most files exist.

        Args:
            paths: the paths of the present files.
        """
        parts = self.root.split("/")
        ends = ("/".join(parts[at:]) for at in range(len(parts)))
        folders = dict.fromkeys((posixpath.dirname(self.path), "", *ends))
        found = (
            {
                place: file
                for path, file in self.files.items()
                if ".." not in path.split("/")
                and (place := posixpath.normpath(posixpath.join(folder, path))) in paths
            }
            for folder in folders
        )
        return max(found, key=len)


class _Place(NamedTuple):
    """An occurrence in the present text of a file.

    Attributes:
        line: the line from 0.
        start, end: character offsets in the text.
        written: the characters there.
    """

    line: int
    start: int
    end: int
    written: str
    symbol: int | str
    is_definition: bool


def _agreeing(
    indexed: _IndexedFile, source: SourceFile, symbols: Sequence[IndexedSymbol]
) -> list[_Place] | None:
    """Return the occurrences of an indexed file; None if the file has changed since."""
    if indexed.text_hash not in {"-", hash_of_text(source.text)} and not source.is_masked:
        return None
    lines = source.text.split("\n")
    for encoding in (indexed.encoding,) if indexed.encoding else _LIKELY_ENCODINGS:
        places = _places(indexed.occurrences, lines, encoding)
        if places is not None and _agrees(places, lines, source.text, symbols):
            return places
    return None


def _places(
    occurrences: Sequence[_Occurrence], lines: Sequence[str], encoding: int
) -> list[_Place] | None:
    """Return occurrences with their character offsets; None if one lies outside the text."""
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    found = []
    for line, start, end, *rest in occurrences:
        text = lines[line] if line < len(lines) else ""
        first, last = (_column(text, units, encoding) for units in (start, end))
        if not 0 <= first < last <= len(text):
            return None
        at = begins[line]
        found.append(_Place(line, at + first, at + last, text[first:last], *rest))
    return found


def _column(line: str, units: int, encoding: int) -> int:
    """Return the number of characters in the first code units of a line; -1 past its end."""
    if line.isascii():
        return units
    codec, width = _CODECS[encoding]
    encoded = line.encode(codec, "surrogatepass")
    at = units * width
    return len(encoded[:at].decode(codec, "replace")) if at <= len(encoded) else -1


def _agrees(
    places: Sequence[_Place], lines: Sequence[str], text: str, symbols: Sequence[IndexedSymbol]
) -> bool:
    """Return whether each place still holds the name of its symbol, or an alias of it."""
    aliases: set[tuple[int | str, str]] = set()
    others = []
    for one in places:
        symbol, written = _symbol_of(one, symbols), one.written.strip(_MARKS)
        first, _, alias = written.partition(" as ")
        if first in _names_of(symbol):
            aliases.add((one.symbol, alias.strip()))
        elif (default := _DEFAULT_IMPORT.match(lines[one.line])) and default[1] == written:
            aliases.add((one.symbol, written))
        elif one.is_definition or not _IMPLICIT.fullmatch(written):
            others.append((one, symbol.name, written))
    return all(
        (one.symbol, written) in aliases
        or re.search(rf"\b{re.escape(name)}\s+as\s+{re.escape(written)}\b", text)
        for one, name, written in others
    )


def _names_of(symbol: IndexedSymbol) -> tuple[str, ...]:
    """Return the names by which code calls a symbol; a constructor also has that of its class."""
    return (
        (symbol.name, "constructor", symbol.owner) if symbol.name in _CONSTRUCTORS else symbol[:1]
    )


def _symbol_of(place: _Place, symbols: Sequence[IndexedSymbol]) -> IndexedSymbol:
    if isinstance(place.symbol, str):
        return IndexedSymbol(place.symbol, "")
    return symbols[place.symbol]


class ScipReferences(NamedTuple):
    """The references of some indexes.

    Attributes:
        documents: one derived document for each file with references.
        reports: path and figures of each index.
    """

    documents: Sequence[DerivedDocument]
    reports: Sequence[tuple[str, str]]


def exact_references(
    indexes: Iterable[ScipIndex], sources: Mapping[str, SourceFile]
) -> ScipReferences:
    """Return the references of indexes that agree with the present files.

    Args:
        indexes: the indexes of one repository.
        sources: its present files, by path.
    """
    stated: dict[str, dict[Statement, None]] = defaultdict(dict)
    reports = []
    declared = _Declared(sources)
    for index in indexes:
        placed = index.placed(sources)
        agreeing = {
            path: places
            for path, file in placed.items()
            if (places := _agreeing(file, sources[path], index.symbols)) is not None
        }
        nodes = declared.nodes(index, placed, agreeing)
        for path, places in agreeing.items():
            found = _Referring(path, sources[path], declared, index.symbols, nodes)
            stated[sources[path].uri] |= dict.fromkeys(found.statements(places))
        reports.append((index.path, _figures(index, len(placed), len(agreeing))))
    documents = (
        DerivedDocument("scip", uri, (), (REFERENCES + uri,), tuple(found))
        for uri, found in sorted(stated.items())
        if found
    )
    return ScipReferences(tuple(documents), reports)


def _figures(index: ScipIndex, placed: int, agreeing: int) -> str:
    """Return how much of an index is used, in words for people."""
    others = len(index.files) - placed
    unknown = f", {others:,} not among the indexed files" if others else ""
    return f"{counted(placed, 'document')} read, {placed - agreeing:,} stale, ignored{unknown}"


class _Declared:
    """The definitions that the facts of the present files declare."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self._facts = {
            path: [one for one in source.facts if one.kind == "declares" and one.symbol]
            for path, source in sources.items()
        }
        # Only in these languages, names are not unique within the repository.
        self._counts = Counter(
            one.symbol
            for path, facts in self._facts.items()
            if style_of(path) == "none"
            for one in facts
        )

    def around(self, path: str, at: int, name: str = "") -> Fact | None:
        """Return the innermost definition around an offset; with a name, only one called so."""
        around = (
            one
            for one in self._facts[path]
            if one.start <= at < one.end and (not name or _parts(one.symbol)[-1] == name)
        )
        return min(around, key=lambda one: one.end - one.start, default=None)

    def nodes(
        self,
        index: ScipIndex,
        placed: Mapping[str, _IndexedFile],
        agreeing: Mapping[str, Sequence[_Place]],
    ) -> dict[int, str]:
        """Return the nodes of the symbols that an index defines.

        In a stale file, a definition is found by its name, if only one definition has it.

        Args:
            index: the index.
            placed: its files that exist.
            agreeing: the occurrences in those that have not changed.
        """
        found: dict[int, str] = {}
        for path, file in placed.items():
            for one in agreeing.get(path, file.occurrences):
                if not one.is_definition or not isinstance(one.symbol, int):
                    continue
                name, owner = index.symbols[one.symbol]
                if name in _CONSTRUCTORS:
                    name, owner = owner, ""
                fact = (
                    self.around(path, one.start, name)
                    if isinstance(one, _Place)
                    else self._only(path, name, owner)
                )
                if fact is not None and self._counts[fact.symbol] <= 1:
                    found[one.symbol] = defined_name(fact.symbol, path)
        return found

    def _only(self, path: str, name: str, owner: str) -> Fact | None:
        wanted = [owner, name] if owner else [name]
        found = [one for one in self._facts[path] if _parts(one.symbol)[-len(wanted) :] == wanted]
        return found[0] if len(found) == 1 else None


def _parts(symbol: str) -> list[str]:
    return re.split(r"::|[.#\\]", symbol)


class _Referring:
    """Turns the occurrences in one file into statements."""

    def __init__(
        self,
        path: str,
        source: SourceFile,
        declared: _Declared,
        symbols: Sequence[IndexedSymbol],
        nodes: Mapping[int, str],
    ) -> None:
        self._path, self._source, self._declared = path, source, declared
        self._symbols, self._nodes = symbols, nodes
        self._lines = source.text.split("\n")
        self._names = {one.name for one in symbols}
        self._inheriting = [
            (one.kind, one.start, one.end)
            for one in source.facts
            if one.kind in {"imports", "extends", "implements"}
        ]

    def statements(self, places: Iterable[_Place]) -> Iterator[Statement]:
        """Yield the references to definitions, and the places of names that mean none of them."""
        for one in places:
            if one.is_definition:
                continue
            target = self._nodes.get(one.symbol) if isinstance(one.symbol, int) else None
            written = one.written.strip(_MARKS)
            if target is not None:
                kind = self._kind(one)
                around = None if kind == "imports" else self._declared.around(self._path, one.start)
                origin = "" if around is None else defined_name(around.symbol, self._path)
                if origin != target:
                    yield self._statement(one, kind, origin, target)
            is_alias = target is not None and written != _parts(target)[-1]
            if written in self._names and (target is None or is_alias):
                yield self._statement(one, ELSEWHERE, "", f"{ELSEWHERE}:{written}")

    def _kind(self, place: _Place) -> str:
        """Return the kind of a reference, by the text around it."""
        facts = (kind for kind, start, end in self._inheriting if start <= place.start < end)
        if kind := next(facts, None):
            return kind
        if _IMPORT.match(self._lines[place.line]):
            return "imports"
        return "calls" if _CALL.match(self._source.text, place.end) else "uses"

    def _statement(self, place: _Place, kind: str, source: str, target: str) -> Statement:
        line, evidence = place.line + 1, self._lines[place.line].strip()[:_EVIDENCE]
        return Statement(kind, source, target, "scip", self._path, line, line, evidence)
