"""The languages for which there are tag queries, as listed in languages.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tree_sitter import Query

_PACK: Final = "tree_sitter_language_pack.bindings."
DEFAULT_WORD: Final = re.compile(r"\b[^\W\d]\w{1,119}")
"""Matches a name of at least two characters; of a longer name, the first 120.

Used for languages without their own pattern, and for texts without a tag query.
"""


@dataclass(frozen=True, slots=True)
class TagGrammar:
    """A grammar, and the query to run on its trees.

    Attributes:
        module, function: the Python module, and its function that returns the grammar.
        query: names of files in queries/, separated by spaces; together they form one query.
        where: pattern that a text must contain to be read with this grammar; None for any text.
    """

    module: str
    function: str
    query: str
    where: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class TagLanguage:
    """A language for whose files there is a tag query.

    Attributes:
        name: its name in media types.
        grammars: grammars in order of preference: the first that parses a text without errors is
            used; if all report errors, the first.
        separators: characters that join the parts of a qualified name.
        family: a group of languages whose files use each other's definitions.
        word: matches a name.
        is_interpreted: whether the language has its own reader for definitions and chunks.
        is_open_in_folder: whether files in one folder see each other's names without an import.
    """

    name: str
    grammars: tuple[TagGrammar, ...]
    separators: tuple[str, ...]
    family: str
    word: re.Pattern[str]
    is_interpreted: bool
    is_open_in_folder: bool


@cache
def tag_languages() -> Mapping[str, TagLanguage]:
    """Return all languages by name."""
    listed = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {name: _language(name, row) for name, row in listed.items()}


def family_of(language: str) -> str:
    """Return the family of a language; a language without a tag query is its own family."""
    known = tag_languages().get(language)
    if known is None:
        return _FAMILIES.get(language, language)
    return known.family


_FAMILIES: Final[Mapping[str, str]] = {"svelte": "javascript", "vue": "javascript"}


@cache
def query_of(grammar: TagGrammar) -> Query:
    """Return the compiled query of a grammar."""
    from tree_sitter import Language, Query

    language = Language(getattr(import_module(grammar.module), grammar.function)())
    folder = files(__package__).joinpath("queries")
    names = grammar.query.split()
    text = "\n".join(folder.joinpath(f"{name}.scm").read_text("utf-8") for name in names)
    return Query(language, text)


def _language(name: str, row: Mapping[str, Any]) -> TagLanguage:
    return TagLanguage(
        name=name,
        grammars=tuple(_grammar(one) for one in row["grammars"]),
        separators=tuple(row.get("separators", ())),
        family=row.get("family", name),
        word=re.compile(row["word"]) if "word" in row else DEFAULT_WORD,
        is_interpreted=row.get("interpreted", False),
        is_open_in_folder=row.get("own_folder", False),
    )


def _grammar(row: Mapping[str, str]) -> TagGrammar:
    module = row.get("module") or _PACK + row["grammar"]
    query = row.get("query") or row["grammar"]
    where = re.compile(row["where"]) if "where" in row else None
    return TagGrammar(module, row.get("function", "language"), query, where)
