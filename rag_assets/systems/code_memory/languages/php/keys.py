"""Settings that a PHP file returns: the keys of its array, including nested keys.

Fact `defines_setting` {name, of}: a key prefixed with the keys above it, "" for the whole array;
of: code.
Fact `reads_env` {key, setting}: the setting takes its value from an environment variable.

Translations are arrays, too: a file in which most values are prose states no settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.values import elements

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST: Final = 1_000
_DEEPEST: Final = 6
_WORDS: Final = re.compile(r"[^\x00-\x7f]|[A-Za-z,.;:!?)] +\S|[A-Z][a-z]+[.!?]?\Z")
_STRINGS: Final = frozenset({"string", "encapsed_string"})
_CALLS: Final = "function_call_expression"


@dataclass(frozen=True, slots=True)
class _Key:
    path: tuple[str, ...]
    element: Node
    value: Node


def key_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the settings in the array that a file returns."""
    for statement in source.statements():
        value = next(iter(statement.named_children), None)
        if statement.type != "return_statement" or value is None:
            continue
        if value.type == "array_creation_expression":
            yield from _of_array(source, statement, value)


def _of_array(source: PhpSource, statement: Node, array: Node) -> Iterator[Fact]:
    keys = list(_keys(source, array))
    if not keys or _are_words(source, keys):
        return
    yield _fact(source, "defines_setting", statement, "", {"name": "", "of": "code"})
    for one in keys:
        name = ".".join(one.path)
        values = {"name": name, "of": "code"}
        yield _fact(source, "defines_setting", one.element, one.path[0], values)
        for variable in _variables(source, one.value):
            values = {"key": variable, "setting": name}
            yield _fact(source, "reads_env", one.element, "", values)


def _keys(source: PhpSource, array: Node) -> Iterator[_Key]:
    todo: list[tuple[Node, tuple[str, ...]]] = [(array, ())]
    found = 0
    while todo:
        node, above = todo.pop()
        for key, value in elements(node):
            name = source.value(key)
            if not isinstance(name, str) or not name or found >= _MOST:
                continue
            found += 1
            path = (*above, name)
            yield _Key(path, value.parent or value, value)
            if value.type == "array_creation_expression" and len(path) < _DEEPEST:
                todo.append((value, path))


def _are_words(source: PhpSource, keys: list[_Key]) -> bool:
    """Return whether most values are prose, as in translation files."""
    values = [one.value for one in keys if one.value.type != "array_creation_expression"]
    words = [
        node
        for node in values
        if node.type in _STRINGS and _WORDS.search(source.tree.of(node).strip("'\""))
    ]
    return len(words) * 2 > len(values)


def _variables(source: PhpSource, value: Node) -> Iterator[str]:
    """Yield the environment variables that a value reads, without those in nested arrays."""
    if value.type == "array_creation_expression":
        return
    for node in source.tree.nodes(frozenset({_CALLS}), value):
        if source.tree.of(node.child_by_field_name("function")).lower() != "env":
            continue
        chain = source.chain(node)
        name = None if chain is None else source.value(chain.calls[0].argument(0))
        if isinstance(name, str) and name:
            yield name


def _fact(source: PhpSource, kind: str, node: Node, symbol: str, values: dict[str, str]) -> Fact:
    return Fact(kind, source.tree.start(node), source.tree.end(node), symbol, values)
