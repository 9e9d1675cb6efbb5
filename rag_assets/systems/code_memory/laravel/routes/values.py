"""Values of expressions other than strings, numbers, booleans, null and arrays.

An array is a dict: its keys are strings and whole numbers, as in PHP.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is computed at run time.

    Attributes:
        why: the reason, in a few words.
        rest: the known part of a text.
    """

    why: str
    rest: str = ""


class RouterValue:
    """Represents the router as a value."""


ROUTER: Final = RouterValue()


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class.

    Attributes:
        name: the name of its class, fully qualified.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """A body of statements in a file.

    Attributes:
        path: the path of the file.
        symbol: the symbol of the enclosing function.
        block: the number of the body's block in that function.
    """

    path: str
    symbol: str
    block: int


@dataclass(frozen=True, slots=True)
class Closure:
    """An anonymous function.

    Attributes:
        body: its statements; None if they do not matter.
        parameters: the parameters as JSON.
        variables: the variables known at the place where it was written.
        this: the value of `$this` in it.
    """

    body: Body | None
    parameters: tuple[Mapping[str, Any], ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict, hash=False)
    this: Any = None


Value: TypeAlias = Any


LONGEST: Final = 2_000
"""Maximum characters of a text, and elements of an array; a larger value counts as unknown."""

_MANY: Final = 100
_LARGEST: Final = 1 << 63
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")


def bounded(value: Value) -> Value:
    """Return the value itself, or an unknown value if it is too large."""
    if isinstance(value, str | dict) and len(value) > LONGEST:
        return Unknown("a long text" if isinstance(value, str) else "a long array")
    return value


def few(values: Iterable[Value]) -> list[Value]:
    """Return the first values; the limit is higher than the number of middleware of any route."""
    return [value for value, _ in zip(values, range(_MANY), strict=False)]


def array(values: Iterable[Value]) -> dict[str | int, Value]:
    """Return a PHP array of these values with the keys 0, 1, 2 …."""
    return dict(enumerate(values))


def listed(value: Value) -> list[Value]:
    """Return the values of an array; a single value as a list; an empty list for null."""
    if isinstance(value, dict):
        return list(value.values())
    return [] if value is None else [value]


def is_list(value: Value) -> bool:
    """Return whether the keys of an array are 0, 1, 2 … in order."""
    return isinstance(value, dict) and list(value) == list(range(len(value)))


def key_of(value: Value) -> str | int | None:
    """Return the key that PHP would use for a value in an array; None if it cannot be a key."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else value
    if isinstance(value, int | float):
        return int(value) if math.isfinite(value) else 0
    return "" if value is None else None


def text_of(value: Value) -> str | None:
    """Return the text that PHP converts a value to; None if that text is unknown."""
    if value is None or value is False:
        return ""
    if value is True:
        return "1"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return None
    return str(value) if isinstance(value, str | int | float) else None


def truth_of(value: Value) -> bool | None:
    """Return whether a value is truthy in PHP; None if it is unknown."""
    if isinstance(value, Unknown):
        return None
    return value not in (None, False, 0, 0.0, "", "0", {})
