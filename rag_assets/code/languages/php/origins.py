r"""Where objects come from, as texts that whoever knows the other files can follow.

    App\Models\Team->servers()->first()     of an object of a class
    App\Models\Server::query()->get()->[]   of a static call; an element of what is given
    currentTeam()->servers                  of a function; a property
    @user->currentTeam()                    of whoever is signed in

An expression comes from several where it may be one of them. One that holds no object (null) comes
from none; of one that is computed nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_assets.code.languages.php.classes import OR
from rag_assets.code.languages.php.names import NO_CLASSES

if TYPE_CHECKING:
    from tree_sitter import Node

THEN: Final = "->"
"""Stands between the steps of an origin."""

ELEMENT: Final = "[]"
SIGNED_IN: Final = "@user"
CALLED: Final = "()"

MOST_STEPS: Final = 12
_MOST_CHARACTERS: Final = 600
_MOST_ORIGINS: Final = 4
"""Origins that an expression may have; with more nothing is known of it."""

Origins: TypeAlias = "tuple[str, ...] | None"
"""Of an expression; None where nothing is known."""


def branches_of(node: Node, operator: str) -> Sequence[Node]:
    """The expressions that one of several is: of a condition, of `match`, of `??`."""
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
    """What a loop goes over, and the variable that holds each element."""
    parts = [one for one in node.named_children if one.type != "comment"]
    if len(parts) < 2:  # noqa: PLR2004 - it is broken
        return None, None
    value, target = parts[:2]
    if target.type in {"pair", "by_ref"} and target.named_children:
        target = target.named_children[-1]
    return value, target


def classes_in(kind: str) -> Origins:
    """The classes of a type."""
    named = tuple(one for one in kind.split(OR) if one and one not in NO_CLASSES)
    return named or None


def either(several: Iterable[Origins]) -> Origins:
    """The origins of all of several; None where one is computed, or where they are many."""
    found: dict[str, None] = {}
    for one in several:
        if one is None:
            return None
        found |= dict.fromkeys(one)
    return tuple(found) if len(found) <= _MOST_ORIGINS else None


def joined(begun: Origins, steps: Sequence[str]) -> Origins:
    """Origins with steps after them; None where one gets too long."""
    if begun is None or not steps:
        return begun
    found = tuple(THEN.join((one, *steps)) for one in begun)
    longest = max((one.count(THEN) for one in found), default=0)
    size = max(map(len, found), default=0)
    return found if longest <= MOST_STEPS and size <= _MOST_CHARACTERS else None
