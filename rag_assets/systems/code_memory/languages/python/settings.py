"""Settings in Python: constants that a module defines, and reads of settings or the environment.

| kind | symbol | values |
|---|---|---|
| defines_setting | "" | name: of a constant at top level; of: code |
| configured_by | the definition | key: of `settings.KEY` |
| reads_env | the definition | key: of `os.environ["KEY"]`, `os.getenv("KEY")`, `env("KEY")` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.expressions import dotted_name
from rag_assets.systems.code_memory.languages.python.facts import fact, top_level
from rag_assets.systems.code_memory.languages.python.scopes import Scopes, inside
from rag_assets.systems.code_memory.languages.python.source import Definition, PythonSource

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST: Final = 500
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_SPEAKS: Final = re.compile(r"\b(?:environ|getenv|env|config|settings)\b")
_MODULES: Final = ("settings", "config", "conf")
_GETS: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault"})
_READERS: Final = frozenset({"env", "config"})
"""Conventional names of the functions that read settings in django-environ and decouple."""


def settings_of(source: PythonSource, scopes: Scopes) -> Iterator[Fact]:
    """Yield the settings that a file defines, and the settings that a file reads."""
    yield from _defined(source)
    if not _SPEAKS.search(source.text):
        return
    yield from _read(source, scopes, None, top_level(source))
    for one in source.definitions:
        yield from _read(source, scopes, one, inside(one))


def _defined(source: PythonSource) -> Iterator[Fact]:
    seen: set[str] = set()
    for statement, _ in source.statements(None):
        node = next(iter(statement.named_children), None)
        if statement.type != "expression_statement" or node is None or node.type != "assignment":
            continue
        name = source.tree.of(node.child_by_field_name("left"))
        if _CONSTANT.fullmatch(name) and name not in seen and len(seen) < _MOST:
            seen.add(name)
            yield fact(source, "defines_setting", node, "", {"name": name, "of": "code"})


def _read(
    source: PythonSource, scopes: Scopes, one: Definition | None, nodes: Iterator[Node]
) -> Iterator[Fact]:
    symbol = "" if one is None else one.symbol
    seen: set[tuple[str, str]] = set()
    for node in nodes:
        found = _reading(source, scopes, one, node)
        if found is not None and found not in seen:
            seen.add(found)
            yield fact(source, found[0], node, symbol, {"key": found[1]})


def _reading(
    source: PythonSource, scopes: Scopes, one: Definition | None, node: Node
) -> tuple[str, str] | None:
    if node.type == "attribute":
        owner, _, key = dotted_name(source.tree, node).rpartition(".")
        if owner and _CONSTANT.fullmatch(key) and _are_settings(scopes.reference(owner, one)):
            return "configured_by", key
    elif node.type == "subscript":
        owner = dotted_name(source.tree, node.child_by_field_name("value"))
        if owner and scopes.reference(owner, one) == "os.environ":
            return _variable(source, node.child_by_field_name("subscript"))
    elif node.type == "call":
        name = dotted_name(source.tree, node.child_by_field_name("function"))
        arguments = node.child_by_field_name("arguments")
        reads = name.partition(".")[0] in _READERS or scopes.reference(name, one) in _GETS
        if name and reads and arguments is not None and arguments.named_children:
            return _variable(source, arguments.named_children[0])
    return None


def _are_settings(reference: str) -> bool:
    """Return whether a reference is a settings module, or Django's object `settings`."""
    name = reference.lstrip(".:")
    return reference == "django.conf.settings" or (
        (reference != name or "." in name) and name.rpartition(".")[2] in _MODULES
    )


def _variable(source: PythonSource, node: Node | None) -> tuple[str, str] | None:
    text = source.tree.of(node).strip("\"'") if node is not None and node.type == "string" else ""
    return ("reads_env", text) if _CONSTANT.fullmatch(text) else None
