"""Reading a text of any language: its units and facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, TypeAlias

from rag_assets.code.languages.keywords import LANGUAGES, with_definitions
from rag_assets.code.languages.queries import with_queries
from rag_assets.code.languages.units import covering
from rag_assets.code.model import CodeText

Reader: TypeAlias = Callable[[str], CodeText]

READERS: Mapping[str, str] = MappingProxyType(
    {
        "text/markdown": "documents:read_markdown",
        "text/plain": "manifests.lines:read_plain",
        "text/x-derived": "derived.text:read",
        "text/x-elixir": "manifests.lines:read_elixir",
        "text/x-go": "languages.go:read_go",
        "text/x-groovy": "manifests.lines:read_groovy",
        "text/x-ini": "settings.reader:read_ini",
        "text/x-java": "languages.java:read_java",
        "text/x-json": "settings.reader:read_json",
        "text/x-kotlin": "manifests.lines:read_kotlin",
        "text/x-javascript": "languages.javascript:read_javascript",
        "text/x-php": "frameworks.laravel.reader:read",
        "text/x-python": "languages.python.reader:read",
        "text/x-ruby": "manifests.lines:read_ruby",
        "text/x-run-event": "runs:read",
        "text/x-rust": "languages.rust:read_rust",
        "text/x-sql": "languages.sql:read_sql",
        "text/x-svelte": "languages.components:read_svelte",
        "text/x-swift": "languages.swift:read_swift",
        "text/x-toml": "settings.reader:read_toml",
        "text/x-typescript": "languages.javascript:read_any_typescript",
        "text/x-vue": "languages.components:read_vue",
        "text/x-xml": "manifests.lines:read_xml",
        "text/x-yaml": "settings.reader:read_yaml",
    }
)
"""What reads texts of a media type, as "module:function" below rag_assets.code."""

READ_FOR_USE: Final = frozenset(
    {"go", "java", "javascript", "php", "python", "rust", "sql", "svelte", "swift", "typescript"}
    | {"vue"}
)
"""Languages whose files tell what they use, beside what they define."""
NO_PROGRAMS: Final = frozenset(
    {"css", "derived", "ini", "json", "run-event", "toml", "xml", "yaml"}
)
"""Languages, as media types name them, whose files use no definition by name."""

_WITH_QUERIES: Final = (READ_FOR_USE | LANGUAGES) - {"php", "sql"}
"""Languages of whose strings queries are read; of PHP the calls that send them are known."""

READING_VERSION = 16
"""Increased whenever the same text would give other units, facts or relations."""


def read_code(text: str, media_type: str) -> CodeText:
    """The units and facts of a text.

    A language without a grammar is cut at the lines that begin definitions (see
    languages.keywords), one that is not known at blank lines.

    Args:
        text: of one file.
        media_type: of its content.
    """
    name = READERS.get(media_type)
    if name is None:
        reading = unread(text, media_type)
    else:
        module, _, function = name.partition(":")
        reader: Reader = getattr(import_module(f"rag_assets.code.{module}"), function)
        reading = reader(text)
    language = language_of_type(media_type)
    if language in LANGUAGES:
        reading = with_definitions(text, reading)
    return with_queries(text, reading) if language in _WITH_QUERIES else reading


def unread(text: str, media_type: str, *notes: str) -> CodeText:
    """A text that no grammar read: units between blank lines, and no facts."""
    return CodeText(covering(text, ()), (), language_of_type(media_type), notes)


def language_of_type(media_type: str) -> str:
    """Return the language of a media type of source code: `ruby` for `text/x-ruby`."""
    return media_type.rpartition("/")[2].removeprefix("x-")
