"""What a statement knows while it runs, and limits of all that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.code.frameworks.laravel.routes.drafts import Context
from rag_assets.code.frameworks.laravel.routes.groups import Attributes
from rag_assets.code.frameworks.laravel.routes.values import Value

DEEPEST: Final = 40
"""Levels of bodies within bodies: groups, files, functions."""

MOST_STEPS: Final = 2_000_000
"""Expressions that are evaluated for one repository; loops count each turn."""

MOST_STEPS_OF_ONE: Final = 500_000
"""Expressions that are evaluated for one provider."""

MOST_CALLS: Final = 500
"""Calls of one chain."""


class Exhausted(Exception):
    """Says that more was to be run than is run."""


@dataclass(slots=True)
class Frame:
    """The variables of a function, a closure or a file.

    Attributes:
        path: of the file.
        symbol: the function that the code stands in; "" for none.
        this: the object that `$this` is; None for none.
        variables: by name.
        assumed: what the values of variables assume, by name.
        context: of its statements.
        depth: of bodies around it.
    """

    path: str
    symbol: str
    this: Value
    variables: dict[str, Value]
    context: Context
    depth: int
    assumed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """The class that the code stands in; "" for none."""
        owner, separator, _ = self.symbol.partition("::")
        return owner if separator else ""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Attributes that wait for a group or a route: Laravel's RouteRegistrar.

    Attributes:
        attributes: by Laravel's names.
    """

    attributes: Attributes = field(hash=False)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        given: in order.
        named: by name.
    """

    given: tuple[Value, ...]
    named: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def at(self, position: int, name: str = "", default: Value = None) -> Value:
        """An argument by its name, or else its position."""
        if name in self.named:
            return self.named[name]
        return self.given[position] if position < len(self.given) else default

    @property
    def all(self) -> tuple[Value, ...]:
        """All of them."""
        return (*self.given, *self.named.values())
