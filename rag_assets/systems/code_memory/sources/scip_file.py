"""Index files in the format SCIP: where they are, and their definitions and references as text.

An index (`index.scip`) is a protobuf message, see https://github.com/sourcegraph/scip. A source
lists it like a document, and returns this text in place of its bytes. The text has no passages;
derived/scip.py compares it with the current files. It has one line for each symbol that the index
defines (name and owner), then for each file a line (path, position encoding, hash of its text) and
its occurrences: line and columns, the number of the symbol or `-NAME` of another package, and `d`
for a definition:

    scip web/index.scip
    root shop/web
    symbol total Invoice
    file src/models.ts 2 -
    12 4 9 0 d

Local variables, parameters and modules are omitted.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from rag_assets.common.errors import DocumentRejected, DocumentTooLarge
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.sources.disk import stream_file
from rag_assets.systems.code_memory.derived.model import INDEX

FILE_NAME: Final = "index.scip"
MAX_BYTES: Final = 128 << 20
"""Size in bytes above which an index is refused."""
_MANIFESTS: Final = frozenset(
    {"Cargo.toml", "Gemfile", "build.gradle", "build.gradle.kts", "build.sbt", "composer.json"}
    | {"go.mod", "package.json", "pom.xml", "pubspec.yaml", "pyproject.toml", "setup.py"}
    | {"tsconfig.json"}
)
"""Names of files that make a folder the root of a subproject."""
_MAX_CHARACTERS: Final = 20_000_000
"""Maximum length of an index's text; the parser refuses a longer text as well."""
_MAX_ENTRIES: Final = 2_000_000
"""Maximum number of files and occurrences of an index; each takes more memory than its bytes."""
_MAX_ROOT_PARTS: Final = 3
"""Number of last folders of the project's root that are kept; the others describe a machine."""
NO_HASH: Final = "-"
"""Replaces the hash of a file's text if the index does not contain the text."""
_DEFINITION_BIT: Final = 1
"""Bit of `symbol_roles` for a definition."""
_ENCODINGS: Final = range(1, 4)
"""Known position encodings: code units of UTF-8, UTF-16 and UTF-32."""
_DESCRIPTOR: Final = re.compile(
    r"(?:`(?P<escaped>(?:[^`]|``)+)`|(?P<name>[\w+$-]+))(?P<suffix>\([^()]*\)\.|[/#.:!])"
    r"|[\[(](?P<parameter>`[^`]+`|[^\])]+)[\])]"
)


class ScipFiles:
    """The SCIP indexes that a source lists: those in its folders, and those it is configured with.

    Args:
        root: the top folder of the repository, absolute and resolved.
        named: paths below the root, or absolute paths that the tenant may read.
    """

    def __init__(self, root: Path, configured_paths: Iterable[str]) -> None:
        self._root = root
        self._named: dict[str, Path] = {}
        for path in configured_paths:
            # The listed path of an index outside of the root contains none of its folders.
            listed_path = f".scip/{compute_key('scip', path)[:8]}/{posixpath.basename(path)}"
            self._named[listed_path if path[0] == "/" else path] = root / path

    def __contains__(self, path: str) -> bool:
        """Return whether a SCIP index would have this path; the file need not exist."""
        return path in self._named or path.rpartition("/")[2] == FILE_NAME

    def find(self, paths: Iterable[str] = ()) -> dict[str, os.stat_result | None]:
        """Return the indexes by path, each with its metadata, or None if its file is missing.

        Indexes are expected in the root folder, and in those folders of `paths` that contain a
        manifest.
        """
        split = (path.rpartition("/") for path in paths)
        folders = {folder for folder, _, name in split if name in _MANIFESTS}
        usual = (f"{folder}/{FILE_NAME}".lstrip("/") for folder in sorted({"", *folders}))
        usual_files = {
            path: file_stat for path in usual if (file_stat := _find_file_stat(self._root / path))
        }
        return {
            **usual_files,
            **{path: _find_file_stat(place) for path, place in self._named.items()},
        }

    def read(self, path: str) -> str:
        """Return the text form of an index.

        Raises:
            DocumentRejected: the file is missing, damaged, too large, or not a SCIP index.
        """
        place = self._named.get(path, self._root / path)
        if path in self._named and _find_file_stat(place) is None:
            raise DocumentRejected(
                f"the SCIP index {path!r} is missing, or is a link",
                hint="create the file, or remove its path from `scip` of the source",
            )
        pieces = stream_file(place.parent, place.name, max_bytes=MAX_BYTES)
        return render_index(b"".join(pieces), path)


def _find_file_stat(place: Path) -> os.stat_result | None:
    """Return the metadata of a regular file; None if it is missing or not a regular file."""
    try:
        file_stat = place.lstat()
    except OSError:
        return None
    return file_stat if stat.S_ISREG(file_stat.st_mode) else None


class IndexedSymbol(NamedTuple):
    """The name of a symbol's definition, and the name of the type that contains it."""

    name: str
    owner: str


def render_index(data: bytes, path: str) -> str:
    """Return the definitions and references of an index as text, in the form of this module.

    Raises:
        DocumentRejected: the file is damaged, too large, or not a SCIP index.
    """
    if len(data) > MAX_BYTES:
        raise DocumentTooLarge(
            f"the SCIP index {path!r} is larger than {MAX_BYTES >> 20} MiB",
            hint="create a separate index for each subproject",
        )
    try:
        root, documents = _decode_index(memoryview(data))
    except (ValueError, IndexError) as error:
        raise DocumentRejected(
            f"{path!r} is damaged, or is not a SCIP index",
            hint="create the index again with the tool that wrote it",
        ) from error
    text = "\n".join(_write_lines(path, root, documents)) + "\n"
    if len(text) > _MAX_CHARACTERS:
        raise DocumentTooLarge(
            f"the text of the SCIP index {path!r} has more than {_MAX_CHARACTERS:,} characters",
            hint="create a separate index for each subproject",
        )
    return text


_RawOccurrence: TypeAlias = tuple[int, int, int, str, bool]
"""Line, columns and symbol of an occurrence, and whether it is the symbol's definition."""


@dataclass(slots=True)
class _Document:
    path: str = ""
    text_hash: str = NO_HASH
    encoding: int = 0
    occurrences: list[_RawOccurrence] = field(default_factory=list)


def _decode_index(data: memoryview) -> tuple[str, list[_Document]]:
    """Return the root folder of the project, and the documents of an index."""
    root, is_index = "", False
    documents: list[_Document] = []
    entries = 0
    symbols: dict[str, str] = {}
    for number, value in _read_fields(data):
        match number:
            case 1:
                is_index = True
                of_metadata = dict(_read_fields(_require_bytes(value)))
                root = str(
                    _require_bytes(of_metadata.get(_PROJECT_ROOT_FIELD, memoryview(b""))), "utf-8"
                )
            case 2:
                documents.append(_read_document(_require_bytes(value), symbols, entries))
                entries += 1 + len(documents[-1].occurrences)
    if not is_index:
        raise ValueError("the index has no metadata")
    return root, documents


def _read_document(data: memoryview, symbols: dict[str, str], entries: int) -> _Document:
    """Return one file of an index.

    Args:
        symbols: the symbols so far, each with itself, so that equal strings share memory.
        entries: number of files and occurrences before this file; limits the total.
    """
    document = _Document()
    for number, value in _read_fields(data):
        if entries + len(document.occurrences) >= _MAX_ENTRIES:
            raise DocumentTooLarge(
                f"the SCIP index has more than {_MAX_ENTRIES:,} files and occurrences",
                hint="create a separate index for each subproject",
            )
        match number, value:
            case 1, memoryview():
                document.path = str(value, "utf-8")
            case 2, memoryview():
                if (occurrence := _read_occurrence(value)) is not None:
                    line, start, end, symbol, is_definition = occurrence
                    symbol = symbols.setdefault(symbol, symbol)
                    document.occurrences.append((line, start, end, symbol, is_definition))
            case 5, memoryview() if len(value):
                document.text_hash = hash_text(str(value, "utf-8"))
            case 6, int() if value in _ENCODINGS:
                document.encoding = value
    return document


def _read_occurrence(data: memoryview) -> _RawOccurrence | None:
    """Return an occurrence; None for a local symbol, and for a range of several lines."""
    places: list[int] = []
    symbol, roles = "", 0
    for number, value in _read_fields(data):
        match number, value:
            case 1, int():
                places.append(value)
            case 1, memoryview():
                places += _read_numbers(value)
            case 2, memoryview():
                symbol = str(value, "utf-8")
            case 3, int():
                roles = value
            case 8, memoryview():
                of_range = dict(_read_fields(value))
                places = [
                    at for key in _RANGE_FIELDS if isinstance(at := of_range.get(key, 0), int)
                ]
    if not symbol or symbol.startswith("local ") or len(places) != len(_RANGE_FIELDS):
        return None
    line, start, end = places
    return line, start, end, symbol, bool(roles & _DEFINITION_BIT)


_RANGE_FIELDS: Final = (1, 2, 3)
"""Fields of a range within one line: line, first and last column."""
_PROJECT_ROOT_FIELD: Final = 3
_CONTINUATION_BIT: Final = 1 << 7
"""Bit that is set if one more byte of the same number follows."""
_MAX_BITS: Final = 64
_LENGTH_WIRE_TYPE: Final = 2
"""Wire type of texts and messages, which start with their length."""
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""Bytes of a number of fixed size, by its wire type."""


def _read_fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field of a protobuf message."""
    at, end = 0, len(data)
    while at < end:
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        size = _FIXED_BYTES.get(kind, -1)
        if kind == _LENGTH_WIRE_TYPE:
            size, at = _read_varint(data, at)
        if size < 0 or at + size > end or not key >> 3:
            raise ValueError("the bytes are not a protobuf message")
        yield key >> 3, data[at : at + size]
        at += size


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number of variable length (varint), and the offset after it."""
    byte = data[at]
    value = shift = 0
    while byte >= _CONTINUATION_BIT and shift < _MAX_BITS:
        value |= (byte - _CONTINUATION_BIT) << shift
        shift += 7
        at += 1
        byte = data[at]
    return value | byte << shift, at + 1


def _read_numbers(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield value


def _require_bytes(value: int | memoryview) -> memoryview:
    if not isinstance(value, memoryview):
        raise ValueError("a field contains a number instead of a message")  # noqa: TRY004
    return value


def hash_text(text: str) -> str:
    """Return a hash of a text that does not depend on its line ends (LF or CRLF)."""
    return sha256_hex(text.replace("\r\n", "\n"))[:16]


def _write_lines(path: str, root: str, documents: Iterable[_Document]) -> Iterator[str]:
    placed = sorted(documents, key=lambda document: document.path)
    yield INDEX + quote(path)
    yield "root " + quote("/".join(unquote(root).rstrip("/").split("/")[-_MAX_ROOT_PARTS:]))
    parsed: dict[str, IndexedSymbol | None] = {}
    numbers: dict[str, int] = {}
    for document in placed:
        for *_, symbol, is_definition in document.occurrences:
            if symbol not in parsed:
                parsed[symbol] = _parse_symbol(symbol)
            parsed_symbol = parsed[symbol]
            if is_definition and parsed_symbol is not None and symbol not in numbers:
                numbers[symbol] = len(numbers)
                yield f"symbol {quote(parsed_symbol.name)} {quote(parsed_symbol.owner)}".rstrip()
    own_names = {
        parsed_symbol.name for symbol in numbers if (parsed_symbol := parsed[symbol]) is not None
    }
    for document in placed:
        yield f"file {quote(document.path)} {document.encoding} {document.text_hash}"
        for line, start, end, symbol, is_definition in sorted(set(document.occurrences)):
            parsed_symbol = parsed[symbol]
            if symbol in numbers:
                mark = " d" if is_definition else ""
                yield f"{line} {start} {end} {numbers[symbol]}{mark}"
            elif parsed_symbol is not None and parsed_symbol.name in own_names:
                yield f"{line} {start} {end} -{quote(parsed_symbol.name)}"


def _parse_symbol(symbol: str) -> IndexedSymbol | None:
    """Return the last parts of a symbol; None for a module, a parameter or a type parameter."""
    # Spaces within a part are doubled.
    descriptors = re.split(r"(?<! ) (?! )", symbol, maxsplit=4)[-1]
    matches: list[re.Match[str]] = []
    at = 0
    # From one descriptor to the next: a search from each character would take quadratic time.
    while at < len(descriptors):
        if (match := _DESCRIPTOR.match(descriptors, at)) is None:
            return None
        matches.append(match)
        at = match.end()
    if not matches or matches[-1]["suffix"] in {None, "/", ":"}:
        return None
    name, before = _get_name(matches[-1]), matches[-2] if len(matches) > 1 else None
    is_owned = before is not None and before["suffix"] in {None, "#"}
    return IndexedSymbol(name, _get_name(before) if before is not None and is_owned else "")


def _get_name(descriptor: re.Match[str]) -> str:
    escaped = (descriptor["escaped"] or "").replace("``", "`")
    return escaped or descriptor["name"] or (descriptor["parameter"] or "").strip("`")
