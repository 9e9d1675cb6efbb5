"""Path patterns of Django: their templates and parameters."""

from __future__ import annotations

import re
from typing import Final

_CONVERTED: Final = re.compile(r"<(?:(?P<converter>[^<>:()?]{1,80}):)?(?P<name>[^\W\d]\w{0,80})>")
_GROUP: Final = re.compile(r"\(\?P<(\w{1,80})>")
_MARKS: Final = re.compile(r"\\([-./_ @:])|\\[AZz]|[\^$]")


def template_of(pattern: str) -> str:
    """Return the path template (`invoices/{pk}/`) of a pattern, even of a regular expression."""
    found: list[str] = []
    for piece, name, _ in _pieces(pattern):
        found.append(f"{{{name}}}" if name else _plain(piece))
    return "".join(found)


def parameters_of(pattern: str) -> tuple[tuple[str, str], ...]:
    """Return a pattern's parameters in order, with their converters or regular expressions."""
    return tuple((name, kind) for _, name, kind in _pieces(pattern) if name)


def _plain(piece: str) -> str:
    return _MARKS.sub(lambda found: found.group(1) or "", piece)


def _pieces(pattern: str) -> list[tuple[str, str, str]]:
    """Return the text between parameters, and each parameter with its converter."""
    found: list[tuple[str, str, str]] = []
    at = plain = 0
    while at < len(pattern):
        group = _GROUP.match(pattern, at)
        converted = None if group else _CONVERTED.match(pattern, at)
        if group is None and converted is None:
            at += 2 if pattern[at] == "\\" else 1
            continue
        found.append((pattern[plain:at], "", ""))
        if group is not None:
            end = _closed(pattern, at)
            found.append(("", group.group(1), pattern[group.end() : end - 1]))
        elif converted is not None:
            end = converted.end()
            found.append(("", converted["name"], converted["converter"] or "str"))
        at = plain = end
    found.append((pattern[plain:], "", ""))
    return found


def _closed(pattern: str, start: int) -> int:
    """Return the offset after the bracket that closes a group."""
    depth, at, within = 0, start, False
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            at += 1
        elif within:
            within = mark != "]"
        elif mark == "[":
            within = True
        elif mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(pattern)
