"""Names of nodes as rows have them, and what names of rows mean in a repository."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from rag_assets.code.naming import (
    HANDED,
    OWN,
    defined_name,
    local_names,
    named_by,
    own_spellings,
    spellings,
    style_of,
)
from rag_assets.code.nodes import FILE, short_name
from rag_assets.code.setting_names import OWN_SETTING
from rag_assets.ingest.sources.derived import repository_of
from rag_assets.ingest.sources.model import path_of, uri_of

_NAMELESS = "class@"
_RELATIVE = (_NAMELESS, FILE, OWN, ".", HANDED, OWN_SETTING)
"""Beginnings of names whose meaning depends on where the file lies."""


def qualified(name: str, uri: str) -> str:
    """What a name in a document means in its repository."""
    if not name.startswith(_RELATIVE):
        return name  # Nearly all are: nothing of the uri need be read.
    if name.startswith(_NAMELESS):
        return f"{uri}#{name}"  # A class without a name is called after its line.
    if name.startswith(FILE):
        repository = repository_of(unquote(uri.partition("/")[0]))
        return FILE + uri_of(repository, name.removeprefix(FILE))
    return named_by(name, path_of(uri))


def defined(name: str, uri: str) -> str:
    """The name in its repository of what a document defines."""
    if name.startswith(_NAMELESS):
        return f"{uri}#{name}"
    if name.startswith(OWN_SETTING):
        return named_by(name, path_of(uri))
    return name if style_of(uri) == "none" else defined_name(name, path_of(uri))


def spellings_of(name: str) -> Iterator[str]:
    """The names by which documents may speak of a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    elif _is_nameless(name):
        yield name.rpartition("#")[2]
    else:
        yield from spellings(name, short_name(name))


def own_spellings_of(name: str) -> Iterator[str]:
    """The names under which documents state something of a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from own_spellings(name) if not _is_nameless(name) else local_names_of(name)


def local_names_of(name: str) -> Iterator[str]:
    """The names that a definition may have in its own text."""
    yield from (name.rpartition("#")[2],) if _is_nameless(name) else local_names(name)


def _is_nameless(name: str) -> bool:
    uri, separator, own = name.rpartition("#")
    return bool(uri and separator) and own.startswith(_NAMELESS)
