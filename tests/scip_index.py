"""SCIP indexes with content that the indexes of real tools do not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Document:
    """A document of an index.

    Attributes:
        occurrences: line, first and last column, descriptors of the symbol, and roles.
    """

    path: str
    occurrences: Sequence[tuple[int, int, int, str, int]]
    encoding: int = 0
    text: str = ""


def index_of(documents: Sequence[Document], root: str = "file:///ci/project") -> bytes:
    """Return the bytes of an index."""
    metadata = _bytes(2, _bytes(1, b"made")) + _bytes(3, root.encode())
    return _bytes(1, metadata) + b"".join(_bytes(2, _document(document)) for document in documents)


def _document(one: Document) -> bytes:
    found = _bytes(1, one.path.encode())
    for line, start, end, descriptors, roles in one.occurrences:
        places = b"".join(map(_varint, (line, start, end)))
        symbol = _bytes(2, f"made . project 1 {descriptors}".encode())
        found += _bytes(2, _bytes(1, places) + symbol + _number(3, roles))
    if one.text:
        found += _bytes(5, one.text.encode())
    return found + _number(6, one.encoding)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])
