"""Reads settings files: a unit for each top-level key, and the settings that the keys define."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.settings.entries import (
    ITEM,
    Entry,
    ini_entries,
    json_entries,
    toml_entries,
    yaml_entries,
)
from rag_assets.systems.code_memory.settings.units import covered, units_of
from rag_assets.systems.code_memory.symbols.model import CodeText

BROKEN: Final = "a part of it could not be read"
MOST_SETTINGS: Final = 5_000
"""Maximum number of settings reported for one file."""

_LONGEST_NAME: Final = 500
"""Maximum characters of a setting's name; a setting with a longer name is left out."""

_EVIDENCE: Final = 1_000
"""Maximum characters of a fact's evidence."""

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")

_Entries: TypeAlias = Callable[[str], tuple[tuple[Entry, ...], bool]]

FORMATS: Final[dict[str, _Entries]] = {
    "ini": ini_entries,
    "json": json_entries,
    "toml": toml_entries,
    "yaml": yaml_entries,
}
"""The function that reads the entries of each format."""


def read_json(text: str) -> CodeText:
    """Return the units and facts of JSON."""
    return _read(text, "json")


def read_yaml(text: str) -> CodeText:
    """Return the units and facts of YAML."""
    return _read(text, "yaml")


def read_toml(text: str) -> CodeText:
    """Return the units and facts of TOML."""
    return _read(text, "toml")


def read_ini(text: str) -> CodeText:
    """Return the units and facts of INI, properties and .env files."""
    return _read(text, "ini")


def _read(text: str, language: str) -> CodeText:
    from rag_assets.systems.code_memory.manifests.facts import facts_of_entries
    from rag_assets.systems.code_memory.settings.openapi import operations_of

    entries, whole = FORMATS[language](text)
    tops = _tables(entries) if language == "toml" else [e for e in entries if len(e.path) == 1]
    operations = operations_of(text, entries)
    units = units_of(text, tops, symbol=lambda entry: ".".join(entry.path))
    if operations:
        held = [one.entry for one in operations]
        first, last = held[0].start, held[-1].end
        units = [one for one in units if one.end <= first or one.start >= last]
        names = {one.entry.start: one.name for one in operations}
        units += units_of(text, held, symbol=lambda e: names[e.start], role="operation")
    ends = sorted(
        {entry.end for entry in entries if 1 < len(entry.path) <= (4 if operations else 3)}
    )
    facts: list[Fact] = [one.fact for one in operations]
    facts += facts_of_entries(language, text, entries)
    facts += islice(_settings(language, entries), MOST_SETTINGS)
    facts = [replace(one, end=min(one.end, one.start + _EVIDENCE)) for one in facts]
    facts.sort(key=lambda fact: (fact.start, fact.end))
    notes = () if whole else (BROKEN,)
    return CodeText(covered(text, units, ends), tuple(facts), language, notes)


def _tables(entries: Sequence[Entry]) -> list[Entry]:
    """Return the outermost entries: tables by their header, and keys outside all tables."""
    found: list[Entry] = []
    at = 0
    for entry in entries:
        if entry.start >= at:
            found.append(entry)
            at = entry.end
    return found


def _settings(language: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    """Yield facts `defines_setting` {name, of} for keys with scalars; names include outer keys.

    `of` is environment if the key is an environment variable.
    """
    for entry in entries:
        if entry.value is None or ITEM in entry.path:
            continue
        # Without this limit, a long key would be copied into the names of thousands of keys below
        # it.
        if sum(map(len, entry.path)) + len(entry.path) - 1 <= _LONGEST_NAME:
            values = {"name": ".".join(entry.path)}
            if language == "ini" and len(entry.path) == 1 and _VARIABLE.fullmatch(entry.path[0]):
                values["of"] = "environment"
            yield Fact("defines_setting", entry.start, entry.end, entry.path[0], values)
