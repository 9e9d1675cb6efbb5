"""Functions of PHP and Laravel whose results follow from their arguments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rag_assets.systems.code_memory.laravel.inflection import plural, singular, snake, studly
from rag_assets.systems.code_memory.laravel.routes.groups import joined
from rag_assets.systems.code_memory.laravel.routes.program import ROOT
from rag_assets.systems.code_memory.laravel.routes.values import (
    LONGEST,
    Unknown,
    Value,
    array,
    is_list,
    listed,
    text_of,
)

_PLACE: Final = re.compile(r"%(?:(\d+)\$)?([sdi%])")

_Arguments = Sequence[Value]


def called(name: str, arguments: _Arguments) -> Value:
    """Return the result of a function; unknown if its arguments do not determine the result.

    Args:
        name: the name, in lower case.
        arguments: the arguments, in order.
    """
    function = _FUNCTIONS.get(name)
    if function is None or any(isinstance(one, Unknown) for one in arguments):
        return Unknown(f"{name}()")
    try:
        return function(arguments)
    except (IndexError, AttributeError, TypeError, ValueError, OverflowError):
        return Unknown(f"{name}()")


def _texts(function: Callable[[str], str]) -> Callable[[_Arguments], Value]:
    def made(arguments: _Arguments) -> Value:
        text = text_of(arguments[0])
        return Unknown("no text") if text is None else function(text)

    return made


def _trimmed(left: bool, right: bool) -> Callable[[_Arguments], Value]:
    def made(arguments: _Arguments) -> Value:
        text = str(joined(arguments[0]))
        characters = str(arguments[1]) if len(arguments) > 1 else " \t\n\r\0\x0b"
        text = text.lstrip(characters) if left else text
        return text.rstrip(characters) if right else text

    return made


def _printed(arguments: _Arguments) -> Value:
    """Return the result of `sprintf` with text and integer arguments."""
    form, rest = str(arguments[0]), list(arguments[1:])
    following = iter(rest)

    def one(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        value = rest[int(found[1]) - 1] if found[1] else next(following, "")
        return text_of(value) or ""

    return _PLACE.sub(one, form)


def _merged(arguments: _Arguments) -> Value:
    found: dict[str | int, Value] = {}
    following = 0
    for one in arguments:
        for key, value in one.items():
            if isinstance(key, int):
                found[following] = value
                following += 1
            else:
                found[key] = value
    return found


def _folder(arguments: _Arguments) -> Value:
    path = str(arguments[0])
    for _ in range(min(int(arguments[1]) if len(arguments) > 1 else 1, len(path))):
        path = posixpath.dirname(path.rstrip("/"))
    return path if path.startswith(ROOT.rstrip("/")) else ROOT.rstrip("/")


def _imploded(arguments: _Arguments) -> Value:
    glue, pieces = (arguments[0], arguments[1]) if len(arguments) > 1 else ("", arguments[0])
    texts = [text_of(one) for one in listed(pieces)]
    return Unknown("no texts") if None in texts else str(glue).join(map(str, texts))


def _replaced(arguments: _Arguments) -> Value:
    old, new, text = (str(one) for one in arguments[:3])
    return text.replace(old, new)


def _counted(arguments: _Arguments) -> Value:
    """Return the result of `range` with integers, ascending or descending."""
    first, last = int(arguments[0]), int(arguments[1])
    if abs(last - first) >= LONGEST:
        return Unknown("a long range")
    way = 1 if last >= first else -1
    step = abs(int(arguments[2])) if len(arguments) > 2 else 1  # noqa: PLR2004
    return array(range(first, last + way, way * max(step, 1)))


_FUNCTIONS: Final[Mapping[str, Callable[[_Arguments], Value]]] = {
    "sprintf": _printed,
    "array_merge": _merged,
    "implode": _imploded,
    "join": _imploded,
    "dirname": _folder,
    "realpath": lambda given: given[0],
    "basename": _texts(posixpath.basename),
    "strtolower": _texts(str.lower),
    "strtoupper": _texts(str.upper),
    "ucfirst": _texts(lambda text: text[:1].upper() + text[1:]),
    "lcfirst": _texts(lambda text: text[:1].lower() + text[1:]),
    "trim": _trimmed(left=True, right=True),
    "ltrim": _trimmed(left=True, right=False),
    "rtrim": _trimmed(left=False, right=True),
    "str_replace": _replaced,
    "array_values": lambda given: array(given[0].values()),
    "array_keys": lambda given: array(given[0].keys()),
    "array_filter": lambda given: {k: v for k, v in given[0].items() if v},
    "explode": lambda given: array(str(given[1]).split(str(given[0]))),
    "range": _counted,
    "array_is_list": lambda given: is_list(given[0]),
    "collect": lambda given: given[0],
}
"""Functions by name; if the arguments cause an error, the result is unknown."""

STRINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "plural": plural,
    "singular": singular,
    "snake": snake,
    "studly": studly,
    "lower": str.lower,
    "upper": str.upper,
    "kebab": lambda text: snake(text).replace("_", "-"),
    "ucfirst": lambda text: text[:1].upper() + text[1:],
}
"""Methods of `Illuminate\\Support\\Str`."""
