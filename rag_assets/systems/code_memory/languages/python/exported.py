"""The names in a module's `__all__`, if the list is written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.python.source import PythonSource
from rag_assets.systems.code_memory.languages.tree import is_comment

if TYPE_CHECKING:
    from tree_sitter import Node

_ALL: Final = "__all__"
_LISTS: Final = frozenset({"list", "tuple", "expression_list"})
_PLAIN: Final = frozenset({"string_start", "string_content", "string_end", "escape_sequence"})
_MOST: Final = 2_000


class _ComputedError(Exception):
    """The content of the list is known only at run time."""


def exported_of(source: PythonSource) -> Iterator[Fact]:
    """Yield the fact with the names that `from module import *` imports, if `__all__` limits them.

    A list that is computed, even in part, yields no fact, because its content is unknown.
    """
    if _ALL not in source.text:
        return
    found: dict[str, None] = {}
    stated: Node | None = None
    try:
        for statement, under in source.statements():
            held = statement.named_children[0] if statement.named_children else None
            if statement.type == "delete_statement" and _ALL in source.tree.of(statement):
                return
            if statement.type != "expression_statement" or held is None:
                continue
            added = _added(source, held)
            if added is None:
                continue
            stated = stated or held
            if held.type == "assignment" and not under:
                found = {}
            found |= dict.fromkeys(added)
    except _ComputedError:
        return
    if stated is not None and len(found) <= _MOST:
        values = {"names": [*found]}
        yield Fact("exports", source.tree.start(stated), source.tree.end(stated), "", values)


def _added(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that a statement adds to `__all__`; None if it does not concern the list."""
    if node.type == "call":
        return _called(source, node)
    if node.type not in {"assignment", "augmented_assignment"}:
        return None
    target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    named = source.tree.of(target)
    while value is not None and value.type == "assignment":
        named += " " + source.tree.of(value.child_by_field_name("left"))
        value = value.child_by_field_name("right")
    if _ALL not in named.split():
        if _ALL in named:  # Assignments such as `__all__[:] = …` or `__all__, other = …`
            raise _ComputedError
        return None
    if value is None:
        return None  # A mere annotation.
    operator = source.tree.of(node.child_by_field_name("operator"))
    if node.type == "augmented_assignment" and operator != "+=":
        raise _ComputedError
    return _listed(source, value)


def _called(source: PythonSource, node: Node) -> list[str] | None:
    """Return the names that `__all__.extend([…])` or `__all__.append("…")` adds."""
    function = source.tree.of(node.child_by_field_name("function"))
    if function.partition(".")[0] != _ALL:
        return None
    given = node.child_by_field_name("arguments")
    values = [] if given is None else [one for one in given.named_children if not is_comment(one)]
    if len(values) != 1 or function not in {f"{_ALL}.extend", f"{_ALL}.append"}:
        raise _ComputedError
    if function == f"{_ALL}.append":
        return [_text(source, values[0])]
    return _listed(source, values[0])


def _listed(source: PythonSource, node: Node) -> list[str]:
    """Return the strings in a written-out list, or in a sum of such lists."""
    found: list[str] = []
    todo = [node]
    while todo:
        at = todo.pop()
        parts = [one for one in at.named_children if not is_comment(one)]
        if at.type in _LISTS:
            found += [_text(source, one) for one in parts]
        elif at.type == "parenthesized_expression" or _is_sum(source, at):
            todo += reversed(parts)
        else:
            raise _ComputedError
    return found


def _is_sum(source: PythonSource, node: Node) -> bool:
    operator = node.child_by_field_name("operator")
    return node.type == "binary_operator" and source.tree.of(operator) == "+"


def _text(source: PythonSource, node: Node) -> str:
    if node.type not in {"string", "concatenated_string"}:
        raise _ComputedError
    parts = [node] if node.type == "string" else node.named_children
    inner = [one for part in parts if part.type == "string" for one in part.named_children]
    if any(one.type not in _PLAIN for one in inner):
        raise _ComputedError
    return "".join(source.tree.of(one) for one in inner if one.type == "string_content")
