"""OpenAPI 3 and Swagger 2: the operations that a file describes.

Its content identifies the format.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.settings.entries import ITEM, Entry

_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_DEPTH: Final = 3
"""Depth of the keys of operations: each is within a path, which is a key of `paths`."""
_LONGEST_PATH: Final = 500
"""Maximum characters of a path, and of a server's path; each operation has a copy of both."""

_ORIGIN: Final = re.compile(r"^(?:[a-zA-Z][\w+.-]*:)?//[^/]*")
_SCHEMAS: Final = re.compile(r"^#/(?:components/schemas|definitions)/([^/]+)$")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of an API description.

    Attributes:
        entry: the entry of its key, which is below its path.
        name: method and path template, including the server's path: `GET /api/invoices/{id}`.
        fact: `operation` {method, path, operation_id, tags, parameters, schemas}.
    """

    entry: Entry
    name: str
    fact: Fact


def operations_of(text: str, entries: Sequence[Entry]) -> list[Operation]:
    """Return the operations in a file; empty if the file is not an API description.

    Args:
        entries: the entries of the file, outer entries before the entries inside them.
    """
    tops = {entry.path[0] for entry in entries if len(entry.path) == 1}
    if "paths" not in tops or not tops & {"openapi", "swagger"}:
        return []
    base = _base(entries)
    starts = [entry.start for entry in entries]
    found = []
    for index, entry in enumerate(entries):
        if _is_operation(entry):
            last = bisect_left(starts, entry.end, index)
            found.append(_operation(entry, entries[index + 1 : last], base))
    return found


def _is_operation(entry: Entry) -> bool:
    path = entry.path
    if path[0] != "paths" or len(path) != _DEPTH or not path[1].startswith("/"):
        return False
    return len(path[1]) <= _LONGEST_PATH and path[2].lower() in _METHODS


def _base(entries: Sequence[Entry]) -> str:
    """Return the path prefix of all operations."""
    for entry in entries:
        if entry.value is not None and entry.path in {("basePath",), ("servers", ITEM, "url")}:
            return _ORIGIN.sub("", entry.value)[:_LONGEST_PATH].rstrip("/")
    return ""


def _operation(entry: Entry, inner: Sequence[Entry], base: str) -> Operation:
    method, path = entry.path[2].upper(), base + entry.path[1]
    name = f"{method} {path}"
    told = {one.path[3]: one.value for one in inner if len(one.path) == _DEPTH + 1}
    values = {
        "method": method,
        "path": path,
        "operation_id": told.get("operationId") or "",
        "tags": [one.value for one in inner if one.path[3:] == ("tags", ITEM)],
        "parameters": [
            one.value for one in inner if one.path[3:] == ("parameters", ITEM, "name") and one.value
        ],
        "schemas": _schemas(inner),
    }
    return Operation(entry, name, Fact("operation", entry.start, entry.end, name, values))


def _schemas(inner: Sequence[Entry]) -> list[str]:
    named = (_SCHEMAS.match(one.value or "") for one in inner if one.path[-1] == "$ref")
    return list(dict.fromkeys(match[1] for match in named if match))
