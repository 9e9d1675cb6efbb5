"""Names of nodes as stored in rows, and their meaning in a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from rag_assets.ingest.sources.model import path_of, uri_of
from rag_assets.systems.code_memory.sources.derived import repository_of
from rag_assets.systems.code_memory.symbols.naming import (
    HANDED,
    NAMELESS,
    OWN,
    defined_name,
    named_by,
    own_spellings,
    spellings,
    style_of,
)
from rag_assets.systems.code_memory.symbols.nodes import FILE, OWN_SETTING, short_name

_RELATIVE = (NAMELESS, FILE, OWN, ".", HANDED, OWN_SETTING)
"""Prefixes of names with a meaning that depends on the file's path."""


def qualified(name: str, uri: str) -> str:
    """Return the meaning of a document's name in its repository."""
    if not name.startswith(_RELATIVE):
        return name  # Nearly all names: the URI need not be parsed.
    if name.startswith(NAMELESS):
        return f"{uri}#{name}"  # A class without a name is named after its line.
    if name.startswith(FILE):
        repository = repository_of(unquote(uri.partition("/")[0]))
        return FILE + uri_of(repository, name.removeprefix(FILE))
    return named_by(name, path_of(uri))


def defined(name: str, uri: str) -> str:
    """Return the repository-wide name of a document's definition."""
    if name.startswith(NAMELESS):
        return f"{uri}#{name}"
    if name.startswith(OWN_SETTING):
        return named_by(name, path_of(uri))
    return name if style_of(uri) == "none" else defined_name(name, path_of(uri))


def spellings_of(name: str) -> Iterator[str]:
    """Yield the names by which documents may refer to a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from spellings(name, short_name(name))


def own_spellings_of(name: str) -> Iterator[str]:
    """Yield the names under which documents state something about a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from own_spellings(name)


class Nameless(NamedTuple):
    """A class without a name, or its member: only its own document refers to it.

    Attributes:
        uri: the URI of the document.
        own: its name in that document, after its line.
    """

    uri: str
    own: str


def nameless_apart(names: Iterable[str]) -> tuple[list[str], list[Nameless]]:
    """Separate names that any document may have from names based on a line.

    Every migration of an application may have a class in the same line: these are distinguished by
    their documents before they are looked up.
    """
    named, nameless = [], []
    for name in names:
        uri, _, own = name.rpartition("#")
        if uri and own.startswith(NAMELESS):
            nameless.append(Nameless(uri, own))
        else:
            named.append(name)
    return named, nameless
