"""Classes of parameters and return values, from the comments of methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.php.classes import OR, Method
from rag_assets.systems.code_memory.languages.php.names import NO_CLASSES
from rag_assets.systems.code_memory.languages.php.source import PhpSource

if TYPE_CHECKING:
    from tree_sitter import Node

_RETURN: Final = re.compile(r"@return\s+([\w\\|?\[\]]{1,200})(?=\s|$)")
_PARAMETER: Final = re.compile(r"@param\s+([\w\\|?\[\]]{1,200})\s+(\$\w{1,100})")
_LIST: Final = "[]"
_NO_OBJECTS: Final = NO_CLASSES | {"boolean", "integer", "double", "resource", "callback", "$this"}


def noted_parameters(source: PhpSource, method: Method) -> Mapping[str, tuple[str, ...]]:
    """Return the origins of parameters, according to the comment before a method."""
    comment = comment_of(source, method)
    found = {name: _origins(source, kind, method) for kind, name in _PARAMETER.findall(comment)}
    return {name: origins for name, origins in found.items() if origins}


def noted_return(source: PhpSource, method: Method) -> tuple[str, ...] | None:
    """Return the origins of a return value, according to the comment; None if it states none."""
    found = _RETURN.search(comment_of(source, method))
    return _origins(source, found[1], method) if found is not None else None


def comment_of(source: PhpSource, method: Method) -> str:
    """Return the comment before a method; "" if absent."""
    before: Node | None = method.node.prev_named_sibling
    return source.tree.of(before) if before is not None and before.type == "comment" else ""


def _origins(source: PhpSource, kind: str, method: Method) -> tuple[str, ...] | None:
    found = []
    for one in kind.lstrip("?").split(OR):
        bare = one.removesuffix(_LIST)
        if bare.lower() in _NO_OBJECTS or not bare:
            if bare.lower() not in {"null", "void", "false"}:
                return None  # The value may be something else.
            continue
        name = source.class_name(bare, method.node)
        found.append(f"{name}::all()" if one.endswith(_LIST) else name)
    return tuple(found) or None
