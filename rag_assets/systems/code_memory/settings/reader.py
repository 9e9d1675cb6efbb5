"""The reader of settings files: a unit for each top-level key, and the settings that keys define.

An OpenAPI 3 or Swagger 2 file, recognized by its content, has a unit for each operation.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import add_rest_units, select_cuts_within
from rag_assets.systems.code_memory.settings.entries import (
    ITEM,
    SettingsEntry,
    read_ini_entries,
    read_json_entries,
    read_toml_entries,
    read_yaml_entries,
)
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit, sort_facts

_COMMENT: Final = re.compile(r"[ \t]*(?:#|//|;|/\*|\*)")
_TEXT_AFTER_VALUE: Final = re.compile(r"[ \t]*+,?+[ \t]*+(?:(?:#|//)[^\n]*+)?")
_MAX_SYMBOL_CHARACTERS: Final = 500
_WORD: Final = re.compile(r"\w")


def _list_units(
    text: str,
    entries: Sequence[SettingsEntry],
    *,
    symbol: Callable[[SettingsEntry], str] | None = None,
    role: Role = "key",
) -> list[Unit]:
    """Return a unit for each outermost of these entries, sorted by start.

    Args:
        symbol: returns the name of an entry; by default, its last key.
    """
    units: list[Unit] = []
    at = 0
    for entry in entries:
        if entry.start < at or entry.end <= entry.start:
            continue
        start, end = (
            _find_start_with_comments(text, entry.start, at),
            _find_end_with_comma(text, entry.end),
        )
        name = entry.path[-1] if symbol is None else symbol(entry)
        units.append(Unit(start, end, role, name[:_MAX_SYMBOL_CHARACTERS]))
        at = end
    return units


def _cover_text(text: str, units: Sequence[Unit], ends: Sequence[int]) -> tuple[Unit, ...]:
    """Return units that cover a text, each with the `ends` in it; brackets join a neighbour."""
    covering_units: list[Unit] = []
    opening: Unit | None = None
    for unit in add_rest_units(text, units):
        bare = unit.role == "rest" and not _WORD.search(text, unit.start, unit.end)
        if bare and covering_units:
            covering_units[-1] = replace(covering_units[-1], end=unit.end)
            continue
        if bare:
            opening = opening or unit
            continue
        covering_units.append(unit if opening is None else replace(unit, start=opening.start))
        opening = None
    if opening is not None:
        covering_units.append(replace(opening, end=len(text.rstrip())))
    return tuple(replace(unit, cuts=select_cuts_within(ends, unit)) for unit in covering_units)


def _find_start_with_comments(text: str, start: int, at: int) -> int:
    """Return the start of the comments above an entry.

    Without comments, return the start of its line, or its own start if other text precedes it.
    """
    line = max(text.rfind("\n", at, start) + 1, at)
    if text[line:start].strip():
        return start
    while line > at:
        above = max(text.rfind("\n", at, line - 1) + 1, at)
        if not _COMMENT.match(text, above, line):
            break
        line = above
    return line


def _find_end_with_comma(text: str, end: int) -> int:
    after = _TEXT_AFTER_VALUE.match(text, end)
    last = end if after is None else after.end()
    if last < len(text) and text[last] not in "\r\n":
        last = end + (text[end:last].find(",") + 1)
    return last if text[last - 1] not in " \t" else end + len(text[end:last].rstrip())


_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_OPERATION_KEY_DEPTH: Final = 3
"""Depth of the keys of operations, as in `paths./invoices.get`."""
_MAX_PATH_CHARACTERS: Final = 500
"""Maximum characters of a path, and of a server's path, which each operation repeats."""

_ORIGIN: Final = re.compile(r"^(?:[a-zA-Z][\w+.-]*:)?//[^/]*")


def _read_operations(entries: Sequence[SettingsEntry]) -> list[tuple[SettingsEntry, Fact]]:
    """Return the operations in a file; empty if the file is not an API description.

    The fact `operation` has {method, path, operation_id, tags}. Its symbol is method and path
    template, including the server's path: `GET /api/invoices/{id}`.

    Args:
        entries: the entries of the file, outer entries before the entries inside them.
    """
    tops = {entry.path[0] for entry in entries if len(entry.path) == 1}
    if "paths" not in tops or not tops & {"openapi", "swagger"}:
        return []
    base = _read_server_path(entries)
    starts = [entry.start for entry in entries]
    operations = []
    for index, entry in enumerate(entries):
        top, path, verb = entry.path if len(entry.path) == _OPERATION_KEY_DEPTH else ("", "", "")
        is_path = top == "paths" and path.startswith("/") and len(path) <= _MAX_PATH_CHARACTERS
        if not is_path or verb.lower() not in _METHODS:
            continue
        inner = entries[index + 1 : bisect_left(starts, entry.end, index)]
        own_values = {
            entry.path[3]: entry.value
            for entry in inner
            if len(entry.path) == _OPERATION_KEY_DEPTH + 1
        }
        method = verb.upper()
        values = {
            "method": method,
            "path": base + path,
            "operation_id": own_values.get("operationId") or "",
            "tags": [entry.value for entry in inner if entry.path[3:] == ("tags", ITEM)],
        }
        symbol = f"{method} {base}{path}"
        operations.append((entry, Fact("operation", entry.start, entry.end, symbol, values)))
    return operations


def _read_server_path(entries: Sequence[SettingsEntry]) -> str:
    """Return the path prefix that an API description states for all operations; "" if absent."""
    for entry in entries:
        if entry.value is not None and entry.path in {("basePath",), ("servers", ITEM, "url")}:
            return _ORIGIN.sub("", entry.value)[:_MAX_PATH_CHARACTERS].rstrip("/")
    return ""


BROKEN: Final = "parts of the file could not be read"
MAX_SETTINGS: Final = 5_000
"""Maximum number of settings reported for one file."""

_MAX_NAME_CHARACTERS: Final = 500
"""Maximum characters of a setting's name; a setting with a longer name is left out."""

_MAX_EVIDENCE_CHARACTERS: Final = 1_000
"""Maximum characters of a fact's evidence."""

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")

_Entries: TypeAlias = Callable[[str], tuple[tuple[SettingsEntry, ...], bool]]

FORMATS: Final[dict[str, _Entries]] = {
    "ini": read_ini_entries,
    "json": read_json_entries,
    "toml": read_toml_entries,
    "yaml": read_yaml_entries,
}
"""The function that reads the entries of each format."""


def _read_settings(text: str, language: str) -> CodeText:
    """Return the units and facts of a text in a format of FORMATS."""
    from rag_assets.systems.code_memory.manifests import iter_manifest_facts

    entries, whole = FORMATS[language](text)
    tops = [entry for entry in entries if len(entry.path) == 1]
    if language == "toml":
        tops = _list_outermost_entries(entries)
    operations = _read_operations(entries)
    units = _list_units(text, tops, symbol=lambda entry: ".".join(entry.path))
    if operations:
        entries_of_operations = [entry for entry, _ in operations]
        first, last = entries_of_operations[0].start, entries_of_operations[-1].end
        units = [unit for unit in units if unit.end <= first or unit.start >= last]
        names = {entry.start: fact.symbol for entry, fact in operations}
        units += _list_units(
            text, entries_of_operations, symbol=lambda e: names[e.start], role="operation"
        )
    ends = sorted(
        {entry.end for entry in entries if 1 < len(entry.path) <= (4 if operations else 3)}
    )
    facts: list[Fact] = [fact for _, fact in operations]
    facts += iter_manifest_facts(language, entries)
    facts += islice(_iter_setting_facts(language, entries), MAX_SETTINGS)
    facts = [
        replace(fact, end=min(fact.end, fact.start + _MAX_EVIDENCE_CHARACTERS)) for fact in facts
    ]
    notes = () if whole else (BROKEN,)
    return CodeText(_cover_text(text, units, ends), sort_facts(facts), notes)


read_ini: Final = partial(_read_settings, language="ini")
read_json: Final = partial(_read_settings, language="json")
read_toml: Final = partial(_read_settings, language="toml")
read_yaml: Final = partial(_read_settings, language="yaml")


def _list_outermost_entries(entries: Sequence[SettingsEntry]) -> list[SettingsEntry]:
    """Return the outermost entries: tables by their header, and keys outside all tables."""
    outermost: list[SettingsEntry] = []
    at = 0
    for entry in entries:
        if entry.start >= at:
            outermost.append(entry)
            at = entry.end
    return outermost


def _iter_setting_facts(language: str, entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    """Yield a fact `defines_setting` {name, of} for each key with a scalar value.

    The name includes the outer keys. `of` is "environment" for an environment variable.
    """
    for entry in entries:
        if entry.value is None or ITEM in entry.path:
            continue
        # Without this limit, thousands of keys below a long key would each repeat it.
        if sum(map(len, entry.path)) + len(entry.path) - 1 <= _MAX_NAME_CHARACTERS:
            values = {"name": ".".join(entry.path)}
            if language == "ini" and len(entry.path) == 1 and _VARIABLE.fullmatch(entry.path[0]):
                values["of"] = "environment"
            yield Fact("defines_setting", entry.start, entry.end, entry.path[0], values)
