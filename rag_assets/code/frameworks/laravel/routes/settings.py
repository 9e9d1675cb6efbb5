"""Settings that a file returns: what `config('api.prefix')` would say, where the text tells it.

A value is a string, a number, a boolean, null or a list of those; `{"env": NAME, "default": …}`
where the environment decides and the text has a default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rag_assets.code.languages.php.source import PhpSource
from rag_assets.code.languages.php.values import COMPUTED, elements, is_static

if TYPE_CHECKING:
    from tree_sitter import Node

_PRIVATE: Final = re.compile(r"pass|secret|key|token|credential|salt|dsn|private|auth$", re.I)
_LONGEST: Final = 200
_MOST: Final = 500
_DEEPEST: Final = 6
_NONE: Final = object()


def settings_of(source: PhpSource) -> tuple[Node, dict[str, Any]] | None:
    """The settings that a file returns, with the statement; None if it is no such file.

    Files of translations return arrays, too; settings are told by asking the environment.
    """
    if "env(" not in source.text:
        return None
    returned = next((n for n in source.statements() if n.type == "return_statement"), None)
    array = None if returned is None else next(iter(returned.named_children), None)
    if returned is None or array is None or array.type != "array_creation_expression":
        return None
    found: dict[str, Any] = {}
    for name, value in _leaves(source, array):
        if len(found) >= _MOST:
            break
        found[name] = value
    return (returned, found) if found else None


def _leaves(source: PhpSource, array: Node) -> Iterator[tuple[str, Any]]:
    todo: list[tuple[str, Node, int]] = [("", array, 0)]
    while todo:
        prefix, held, depth = todo.pop(0)
        for key, value in elements(held):
            name = source.value(key) if key is not None else None
            if not isinstance(name, str) or _PRIVATE.search(name):
                continue
            told = _value(source, value)
            if told is not _NONE:
                yield prefix + name, told
            elif value.type == "array_creation_expression" and depth < _DEEPEST:
                todo.append((f"{prefix}{name}.", value, depth + 1))


def _value(source: PhpSource, node: Node) -> Any:
    asked = _asked(source, node)
    if asked is not _NONE:
        return asked
    value = source.value(node)
    if value is COMPUTED or isinstance(value, dict) or not is_static(value):
        return _NONE
    if isinstance(value, list) and any(isinstance(one, list | dict) for one in value):
        return _NONE
    return value if len(str(value)) <= _LONGEST else _NONE


def _asked(source: PhpSource, node: Node) -> Any:
    """What `env` gives if the environment says nothing."""
    if node.type != "function_call_expression":
        return _NONE
    chain = source.chain(node)
    if chain is None or chain.calls[0].name.lstrip("\\").lower() != "env":
        return _NONE
    name, default = (source.value(chain.calls[0].argument(index)) for index in (0, 1))
    if not isinstance(name, str) or isinstance(default, list | dict) or default is COMPUTED:
        return _NONE
    if _PRIVATE.search(name) or len(str(default)) > _LONGEST:
        return _NONE
    return {"env": name, "default": default}
