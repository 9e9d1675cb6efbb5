"""The reader of the units and facts of a text in any language."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.facts import list_framework_facts
from rag_assets.systems.code_memory.languages.name_index import index_names
from rag_assets.systems.code_memory.languages.sql import add_queries
from rag_assets.systems.code_memory.languages.tagged_units import add_definitions
from rag_assets.systems.code_memory.languages.tags import (
    Tags,
    load_tag_languages,
    read_other_tags,
    read_tags,
)
from rag_assets.systems.code_memory.languages.tree import add_rest_units, get_syntax_tree
from rag_assets.systems.code_memory.symbols.model import USES, CodeText

Reader: TypeAlias = Callable[[str], CodeText]

_LAST_PART: Final = re.compile(r"::|[.#\\]")

READERS: Mapping[str, str] = MappingProxyType(
    {
        "text/markdown": "languages.texts:read_markdown",
        "text/plain": "manifests:read_plain",
        "text/x-derived": "derived.model:read_document",
        "text/x-elixir": "manifests:read_elixir",
        "text/x-go": "languages.go:read_go",
        "text/x-groovy": "manifests:read_gradle",
        "text/x-ini": "settings.reader:read_ini",
        "text/x-java": "languages.java:read_java",
        "text/x-json": "settings.reader:read_json",
        "text/x-kotlin": "manifests:read_gradle",
        "text/x-javascript": "languages.javascript:read_javascript",
        "text/x-php": "laravel.reader:read",
        "text/x-python": "languages.python.facts:read",
        "text/x-ruby": "manifests:read_ruby",
        "text/x-run-event": "languages.texts:read_run_event",
        "text/x-rust": "languages.rust:read_rust",
        "text/x-sql": "languages.sql:read_sql",
        "text/x-svelte": "languages.components:read_svelte",
        "text/x-swift": "languages.swift:read_swift",
        "text/x-toml": "settings.reader:read_toml",
        "text/x-typescript": "languages.javascript:read_any_typescript",
        "text/x-vue": "languages.components:read_vue",
        "text/x-xml": "manifests:read_xml",
        "text/x-yaml": "settings.reader:read_yaml",
    }
)
"""The reader of each media type, as "module:function" below rag_assets.systems.code_memory."""

READ_FOR_USE: Final = frozenset(
    {"go", "java", "javascript", "php", "python", "rust", "sql", "svelte", "swift", "typescript"}
    | {"vue"}
)
"""Languages whose readers extract uses of names in addition to definitions."""
OTHER_LANGUAGE: Final = "other"
"""Language of programs that no reader and no query knows."""
_KNOWN_QUERIES: Final = frozenset({"php", "sql"})
"""Languages whose readers find queries, so that their strings are not searched for queries."""
_PROSE: Final = frozenset({"markdown", "plain"})
"""Languages of prose, in which only words that look like names are indexed."""
_STRUCTURED: Final = frozenset({"ini", "json", "toml", "xml", "yaml"})
_NOT_INDEXED: Final = frozenset({"css", "derived", "run-event"})
_MAX_STRUCTURED_CHARACTERS: Final = 1 << 17
"""Characters above which a structured file counts as data, whose names are not indexed."""


def read_code(text: str, media_type: str, frameworks: str = "") -> CodeText:
    """Return the units and facts of a text.

    A text in a language without a reader is cut at the definitions that the language's tag query
    finds (see languages.tags). A text in an unknown language is cut at blank lines. The last fact
    is the index of the names in the text.

    Args:
        text: the text of one file.
        frameworks: the tenant's own frameworks; see load_all_frameworks.
    """
    language = get_language_of_type(media_type)
    try:
        reading = _read_by_type(text, media_type)
        is_data = language in _STRUCTURED and len(text) > _MAX_STRUCTURED_CHARACTERS
        if language not in _NOT_INDEXED and not is_data:
            reading = _add_names(text, reading, language, frameworks)
        return _replace_nul(reading)
    finally:
        get_syntax_tree.cache_clear()


def _read_by_type(text: str, media_type: str) -> CodeText:
    name = READERS.get(media_type)
    if name is None:
        return CodeText(add_rest_units(text, ()), ())  # cut at blank lines
    module, _, function = name.partition(":")
    reader: Reader = getattr(import_module(f"{__package__}.{module}"), function)
    return reader(text)


def _replace_nul(reading: CodeText) -> CodeText:
    r"""Return a reading with each NUL in its names and values replaced by U+FFFD.

    A literal may contain NUL (`["\0" => 1]`), and Postgres cannot store it.
    """
    units = tuple(
        replace(
            unit,
            symbol=_replace_nul_in_value(unit.symbol),
            signature=_replace_nul_in_value(unit.signature),
        )
        if "\0" in unit.symbol or "\0" in unit.signature
        else unit
        for unit in reading.units
    )
    facts = tuple(
        replace(
            fact,
            symbol=_replace_nul_in_value(fact.symbol),
            values=_replace_nul_in_value(dict(fact.values)),
        )
        if "\0" in fact.symbol or _has_nul(fact.values)
        else fact
        for fact in reading.facts
    )
    return replace(reading, units=units, facts=facts)


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(map(_has_nul, value))


def _replace_nul_in_value(value: Any) -> Any:
    """Return a JSON value with each NUL replaced by U+FFFD."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {
            _replace_nul_in_value(key): _replace_nul_in_value(item) for key, item in value.items()
        }
    return (
        type(value)(map(_replace_nul_in_value, value)) if isinstance(value, list | tuple) else value
    )


def _add_names(text: str, reading: CodeText, name: str, frameworks: str) -> CodeText:
    """Return a reading with the index of names, and with facts from tags, queries and frameworks.

    Args:
        name: the language of the text.
        frameworks: the tenant's own frameworks; see load_all_frameworks.
    """
    language = load_tag_languages().get(name)
    if name == OTHER_LANGUAGE:
        tags = read_other_tags(text)
        reading = add_definitions(text, reading, tags)
    elif language is None:
        tags = Tags(comments=((0, len(text)),)) if name in _PROSE else Tags()
    else:
        tags = read_tags(text, language)
        if not language.is_interpreted:
            reading = add_definitions(text, reading, tags)
    if (language is not None or name in READ_FOR_USE) and name not in _KNOWN_QUERIES:
        reading = add_queries(text, reading)
    defined = () if tags.definitions else _list_definitions(text, reading)
    names = index_names(text, tags, language, defined=defined)
    stated, note = list_framework_facts(text, name, reading.facts, frameworks)
    # Even a text without names gets this fact, which shows that the text was scanned.
    index = Fact(USES, 0, 0, values={"names": names})
    notes = filter(None, (tags.note, note))
    return replace(reading, facts=(*reading.facts, *stated, index), notes=(*reading.notes, *notes))


def _list_definitions(text: str, reading: CodeText) -> list[tuple[str, int]]:
    """Return the last part of the name, and the line, of each definition that a reader found."""
    declared = [fact for fact in reading.facts if fact.kind == "declares" and fact.symbol]
    ends = [line_end.start() for line_end in re.finditer("\n", text)] if declared else []
    return [
        (_LAST_PART.split(fact.symbol)[-1], bisect_left(ends, fact.start) + 1) for fact in declared
    ]


def get_language_of_type(media_type: str) -> str:
    """Return the language of a media type of source code: `ruby` for `text/x-ruby`."""
    return media_type.rpartition("/")[2].removeprefix("x-")
