"""The variables and context of a statement during evaluation, and the limits of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.routes.drafts import Context
from rag_assets.systems.code_memory.laravel.routes.groups import Attributes
from rag_assets.systems.code_memory.laravel.routes.values import Value

DEEPEST: Final = 40
"""Maximum depth of nested bodies, that is, of groups, files and functions."""

MOST_STEPS: Final = 2_000_000
"""Maximum number of expressions evaluated for one repository; each pass through a loop counts."""

MOST_STEPS_OF_ONE: Final = 500_000
"""Maximum number of expressions evaluated for one provider."""

MOST_CALLS: Final = 500
"""Maximum number of calls in one chain."""


class Exhausted(Exception):
    """A limit on the number of steps was reached."""


@dataclass(slots=True)
class Frame:
    """The variables of a function, a closure or a file.

    Attributes:
        path: the path of the file.
        symbol: the enclosing function; "" if absent.
        this: the object of `$this`; None if absent.
        variables: the variables, by name.
        assumed: assumptions behind the values of variables, by name of the variable.
        context: the context of its statements.
        depth: number of enclosing bodies.
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
        """Return the enclosing class; "" if absent."""
        owner, separator, _ = self.symbol.partition("::")
        return owner if separator else ""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Attributes that a group or route will get, as in Laravel's RouteRegistrar.

    Attributes:
        attributes: the attributes, by Laravel's names.
    """

    attributes: Attributes = field(hash=False)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        given: the positional arguments, in order.
        named: the named arguments, by name.
    """

    given: tuple[Value, ...]
    named: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def at(self, position: int, name: str = "", default: Value = None) -> Value:
        """Return an argument by its name, or else by its position."""
        if name in self.named:
            return self.named[name]
        return self.given[position] if position < len(self.given) else default

    @property
    def all(self) -> tuple[Value, ...]:
        """Return all arguments."""
        return (*self.given, *self.named.values())
