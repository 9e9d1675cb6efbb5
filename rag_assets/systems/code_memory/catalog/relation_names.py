"""Names of nodes as stored in rows, and what they refer to in a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from rag_assets.ingest.sources.model import path_of, uri_of
from rag_assets.systems.code_memory.sources.derived import repository_of
from rag_assets.systems.code_memory.symbols.names import FILE, OWN_SETTING, short_name
from rag_assets.systems.code_memory.symbols.naming import (
    HANDED,
    NAMELESS,
    OWN,
    defined_name,
    own_spellings,
    resolve_spelling,
    spellings,
    style_of,
)

_RELATIVE = (NAMELESS, FILE, OWN, ".", HANDED, OWN_SETTING)
"""Prefixes of names whose meaning depends on the path of the file."""


def qualified(name: str, uri: str) -> str:
    """Return the repository-wide name that a name in a document stands for."""
    if not name.startswith(_RELATIVE):
        return name  # Nearly all names return here, without parsing the URI.
    if name.startswith(NAMELESS):
        return f"{uri}#{name}"  # An anonymous class is named after its line.
    if name.startswith(FILE):
        repository = repository_of(unquote(uri.partition("/")[0]))
        return FILE + uri_of(repository, name.removeprefix(FILE))
    return resolve_spelling(name, path_of(uri))


def defined(name: str, uri: str) -> str:
    """Return the repository-wide name of a definition in a document."""
    if name.startswith(NAMELESS):
        return f"{uri}#{name}"
    if name.startswith(OWN_SETTING):
        return resolve_spelling(name, path_of(uri))
    return name if style_of(uri) == "none" else defined_name(name, path_of(uri))


def spellings_of(name: str) -> Iterator[str]:
    """Yield the names by which documents may refer to a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from spellings(name, short_name(name))


def own_spellings_of(name: str) -> Iterator[str]:
    """Yield the names of a node in documents that state something about it."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from own_spellings(name)


class Nameless(NamedTuple):
    """An anonymous class, or a member of one: only its own document refers to it.

    Attributes:
        uri: the URI of the document.
        own: its name in that document, which is based on its line.
    """

    uri: str
    own: str


def separate_nameless(names: Iterable[str]) -> tuple[list[str], list[Nameless]]:
    """Separate names that any document may contain from names that are based on a line.

    Every migration of an application may have an anonymous class in the same line. Such classes
    must be distinguished by their documents before they are looked up.
    """
    named, nameless = [], []
    for name in names:
        uri, _, own = name.rpartition("#")
        if uri and own.startswith(NAMELESS):
            nameless.append(Nameless(uri, own))
        else:
            named.append(name)
    return named, nameless
