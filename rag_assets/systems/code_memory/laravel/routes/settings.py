"""Settings that a file returns: the value of `config('api.prefix')`, if the code shows it.

A value is one of: a string, a number, a boolean, null or a list of these; `{"env": NAME, "default":
…}` if the environment decides and the code has a default; or an expression, see expressions.py.
`providers` are the classes that the file lists as providers; `untold` are existing settings whose
value is unknown.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, elements, is_static
from rag_assets.systems.code_memory.languages.tree import descendants
from rag_assets.systems.code_memory.laravel.routes.expressions import Expressions, Json

if TYPE_CHECKING:
    from tree_sitter import Node

_PRIVATE: Final = re.compile(
    # Names of columns, and of Laravel's password brokers, are not secret.
    r"pass(?!words$)|secret|(?<!foreign_)(?<!morph_)(?<!pivot_)key|token|credential|salt|dsn|private"
    r"|auth$",
    re.I,
)
_NAMES: Final = re.compile(r"_(?:TABLE|COLUMN|CONNECTION|DRIVER)$")
"""Matches environment variables that hold no secret, whatever the rest of their name suggests."""

_TOLD: Final = re.compile(
    r"prefix|middleware|domain|route|ur[il]|path|namespace|guard|controller|slug|host"
    r"|table|column|foreign_key|morph_key|pivot_key|driver|connection|^default$",
    re.I,
)
_LONGEST: Final = 200
_MOST: Final = 500
_DEEPEST: Final = 6
_NONE: Final = object()


def settings_of(source: PhpSource) -> tuple[Node, dict[str, Any]] | None:
    """Return the statement that returns settings, with `values` and `untold`; None if absent.

    Translation files also return arrays, but they do not read the environment. If a file does not
    read the environment, only values that routes and tables may depend on are included, and no text
    of several words.
    """
    if "return" not in source.text:
        return None
    returned = next((n for n in source.statements() if n.type == "return_statement"), None)
    array = None if returned is None else next(iter(returned.named_children), None)
    if returned is None or array is None or array.type != "array_creation_expression":
        return None
    leaves = _leaves(source, array, all_of_it="env(" in source.text)
    every = dict(leaf for leaf, _ in zip(leaves, range(_MOST), strict=False))
    found = {name: value for name, value in every.items() if value is not _NONE}
    untold = [name for name in every if name not in found]
    providers = _providers(source, array)
    if providers:
        found["providers"] = providers
    if not found:
        return None
    return returned, {"values": found, **({"untold": untold} if untold else {})}


def _leaves(source: PhpSource, array: Node, *, all_of_it: bool) -> Iterator[tuple[str, Any]]:
    todo: deque[tuple[str, Node, int]] = deque([("", array, 0)])
    while todo:
        prefix, held, depth = todo.popleft()
        for key, value in elements(held):
            name = source.value(key) if key is not None else None
            if not isinstance(name, str):
                continue
            if _PRIVATE.search(name):
                yield prefix + name, _NONE
                continue
            if value.type == "array_creation_expression" and not _is_list(value):
                if depth < _DEEPEST:
                    todo.append((f"{prefix}{name}.", value, depth + 1))
                continue
            matters = all_of_it or _may_matter(source, prefix + name, value)
            told = _value(source, value) if matters else _NONE
            yield prefix + name, _NONE if not all_of_it and _is_sentence(told) else told


def _is_list(array: Node) -> bool:
    return all(key is None for key, _ in elements(array))


def _may_matter(source: PhpSource, name: str, node: Node) -> bool:
    if _TOLD.search(name) is not None or node.type == "boolean":
        return True
    return node.type == "class_constant_access_expression" and source.tree.of(node).endswith(
        "::class"
    )


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and " " in value.strip()


def _value(source: PhpSource, node: Node) -> Any:
    if node.end_byte - node.start_byte > _LONGEST:
        return _NONE
    asked = _asked(source, node)
    if asked is not _NONE:
        return asked
    value = source.value(node)
    if value is COMPUTED or not is_static(value):
        return _expression(source, node)
    if isinstance(value, dict):
        return _NONE
    plain = not isinstance(value, list) or not any(isinstance(one, list | dict) for one in value)
    return value if plain else _NONE


def _asked(source: PhpSource, node: Node) -> Any:
    """Return the value that `env` returns if the environment does not set the variable."""
    if node.type != "function_call_expression":
        return _NONE
    chain = source.chain(node)
    if chain is None or chain.calls[0].name.lstrip("\\").lower() != "env":
        return _NONE
    name, default = (source.value(chain.calls[0].argument(index)) for index in (0, 1))
    if not isinstance(name, str) or isinstance(default, list | dict):
        return _NONE
    if _PRIVATE.search(name) and not _NAMES.search(name):
        return _NONE
    return _expression(source, node) if default is COMPUTED else {"env": name, "default": default}


def _expression(source: PhpSource, node: Node) -> Json:
    """Return a value that functions compute, as in `explode(',', env('HOSTS'))`."""
    if _PRIVATE.search(source.tree.of(node)):
        return _NONE
    found = Expressions(source, lambda _: 0).read(node, runs=False)
    return found if isinstance(found, dict) and found["of"] in {"chain", "join", "array"} else _NONE


def _providers(source: PhpSource, array: Node) -> list[str]:
    """Return the listed provider classes in order; the list may be merged with Laravel's own."""
    named = (
        (key is None or source.value(key) == "providers") and value
        for key, value in elements(array)
    )
    found = [
        source.class_name(source.tree.of(node.named_children[0]), node)
        for value in named
        if value
        for node in descendants(value)
        if node.type == "class_constant_access_expression"
    ]
    providers = dict.fromkeys(one for one in found if one != "Illuminate\\Support\\ServiceProvider")
    return [one for one in providers if not one.startswith("Illuminate\\")]
