r"""Origins of objects, as texts that can be followed once the other files are known.

    App\Models\Team->servers()->first()     starts with an object of a class
    App\Models\Server::query()->get()->[]   starts with a static call; [] is an element
    currentTeam()->servers                  starts with a function; a property
    @user->currentTeam()                    starts with the signed-in user

An expression with several possible values has several origins. An expression without an object
(null) has no origins; a computed expression has unknown origins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_assets.systems.code_memory.languages.php.classes import OR
from rag_assets.systems.code_memory.languages.php.names import NO_CLASSES

if TYPE_CHECKING:
    from tree_sitter import Node

THEN: Final = "->"
"""Separator between the steps of an origin."""

ELEMENT: Final = "[]"
SIGNED_IN: Final = "@user"
CALLED: Final = "()"

MOST_STEPS: Final = 12
_MOST_CHARACTERS: Final = 600
_MOST_ORIGINS: Final = 4
"""Maximum number of origins of an expression; if there are more, its origins are unknown."""

Origins: TypeAlias = "tuple[str, ...] | None"
"""Origins of an expression; None if they are unknown."""


def branches_of(node: Node, operator: str) -> Sequence[Node]:
    """Return the possible values of an expression: a conditional, `match` or `??` has several."""
    if node.type == "conditional_expression":
        chosen = node.child_by_field_name("body") or node.child_by_field_name("condition")
        found = [chosen, node.child_by_field_name("alternative")]
    elif node.type in {"binary_expression", "augmented_assignment_expression"}:
        sides = [node.child_by_field_name(one) for one in ("left", "right")]
        found = sides if operator in {"??", "??="} else []
    elif node.type == "match_expression":
        block = node.child_by_field_name("body")
        arms = block.named_children if block is not None else ()
        found = [one.child_by_field_name("return_expression") for one in arms]
    else:
        return ()
    return [one for one in found if one is not None]


def looped(node: Node) -> tuple[Node | None, Node | None]:
    """Return the iterated expression of a loop, and the variable that holds each element."""
    parts = [one for one in node.named_children if one.type != "comment"]
    if len(parts) < 2:  # noqa: PLR2004 - it is broken
        return None, None
    value, target = parts[:2]
    if target.type in {"pair", "by_ref"} and target.named_children:
        target = target.named_children[-1]
    return value, target


def classes_in(kind: str) -> Origins:
    """Return the classes of a type."""
    named = tuple(one for one in kind.split(OR) if one and one not in NO_CLASSES)
    return named or None


def either(several: Iterable[Origins]) -> Origins:
    """Return all origins together; None if any are unknown or if there are too many."""
    found: dict[str, None] = {}
    for one in several:
        if one is None:
            return None
        found |= dict.fromkeys(one)
    return tuple(found) if len(found) <= _MOST_ORIGINS else None


def joined(begun: Origins, steps: Sequence[str]) -> Origins:
    """Return origins with further steps; None if one of the results is too long."""
    if begun is None or not steps:
        return begun
    found = tuple(THEN.join((one, *steps)) for one in begun)
    longest = max((one.count(THEN) for one in found), default=0)
    size = max(map(len, found), default=0)
    return found if longest <= MOST_STEPS and size <= _MOST_CHARACTERS else None
