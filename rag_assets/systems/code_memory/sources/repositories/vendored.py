"""Paths of vendored code: dependencies and copies of libraries.

The patterns are GitHub Linguist's, from `lib/linguist/vendor.yml` at commit
b45dbe9b2825a43285bcd035861be91cc0a7299e, verbatim in `vendor.yml` next to its licence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_AT_COMPONENT = ("(^|/)", r"(^|\/)")
_OWN = ".github/"
"""Folder of workflows and templates; Linguist lists it only to leave it out of its statistics."""
_IDLE = (r"([^\s]*)", "(.*?)")
"""Starts of patterns that match anything and therefore have no effect in a search."""


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns, grouped by where they may match, so that few are tried at each position.

    Attributes:
        at_start: pattern that matches at the start of the path.
        at_component: pattern that matches at the start of any path component.
        anywhere: pattern that matches anywhere in the path.
    """

    at_start: re.Pattern[str]
    at_component: re.Pattern[str]
    anywhere: re.Pattern[str]


def is_vendored(path: str) -> bool:
    """Return whether a path belongs to vendored code.

    Args:
        path: the path of a file, below the top of its repository.
    """
    if path.startswith(_OWN):
        return False
    patterns = _patterns()
    if patterns.at_start.match(path) or patterns.anywhere.search(path):
        return True
    at = 0
    while True:
        if patterns.at_component.match(path, at):
            return True
        at = path.find("/", at) + 1
        if not at:
            return False


@cache
def _patterns() -> _Patterns:
    text = files(__package__).joinpath("vendor.yml").read_text("utf-8")
    start, component, anywhere = [], [], []
    for line in text.splitlines():
        if not line.startswith("- "):
            continue
        pattern = line[2:].strip()
        prefix = next((p for p in _AT_COMPONENT if pattern.startswith(p)), None)
        idle = next((p for p in _IDLE if pattern.startswith(p)), "")
        if prefix is not None:
            component.append(pattern[len(prefix) :])
        elif pattern.startswith("^"):
            start.append(pattern[1:])
        else:
            anywhere.append(pattern[len(idle) :])
    return _Patterns(*(_join_patterns(patterns) for patterns in (start, component, anywhere)))


def _join_patterns(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
