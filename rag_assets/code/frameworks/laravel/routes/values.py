"""Values of expressions, beside strings, numbers, booleans, null and arrays.

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
    """A value that only running the program would tell.

    Attributes:
        why: in a few words.
        rest: what is known of a text.
    """

    why: str
    rest: str = ""


class RouterValue:
    """Stands for the router."""


ROUTER: Final = RouterValue()


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class.

    Attributes:
        name: of its class, fully qualified.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """A body of statements in a file.

    Attributes:
        path: of the file.
        symbol: of the function that it stands in.
        block: its number there.
    """

    path: str
    symbol: str
    block: int


@dataclass(frozen=True, slots=True)
class Closure:
    """A function without a name.

    Attributes:
        body: its statements; None where they do not matter.
        parameters: as JSON.
        variables: what was known where it was written.
        this: what `$this` is in it.
    """

    body: Body | None
    parameters: tuple[Mapping[str, Any], ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict, hash=False)
    this: Any = None


Value: TypeAlias = Any


LONGEST: Final = 2_000
"""Characters of a text, and elements of an array, that are kept; what is longer is unknown."""

_MANY: Final = 100
_LARGEST: Final = 1 << 63
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")


def bounded(value: Value) -> Value:
    """A value, if it is not too large to be kept."""
    if isinstance(value, str | dict) and len(value) > LONGEST:
        return Unknown("a long text" if isinstance(value, str) else "a long array")
    return value


def few(values: Iterable[Value]) -> list[Value]:
    """The first of many values: no route has as many middleware as are kept."""
    return [value for value, _ in zip(values, range(_MANY), strict=False)]


def array(values: Iterable[Value]) -> dict[str | int, Value]:
    """An array of values without keys."""
    return dict(enumerate(values))


def listed(value: Value) -> list[Value]:
    """The values of an array, or the one value; null is none."""
    if isinstance(value, dict):
        return list(value.values())
    return [] if value is None else [value]


def is_list(value: Value) -> bool:
    """Whether an array's keys count from 0 on."""
    return isinstance(value, dict) and list(value) == list(range(len(value)))


def key_of(value: Value) -> str | int | None:
    """A value as the key of an array, as PHP takes it; None for what can be none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else value
    if isinstance(value, int | float):
        return int(value) if math.isfinite(value) else 0
    return "" if value is None else None


def text_of(value: Value) -> str | None:
    """A value as PHP writes it into a text; None for what has no text that is known."""
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
    """Whether PHP takes a value as true; None where that is not known."""
    if isinstance(value, Unknown):
        return None
    return value not in (None, False, 0, 0.0, "", "0", {})
