"""Requirements in the syntax of Python packages."""

from __future__ import annotations

import re
from typing import Final

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?)[ \t]*+(?:\[[^\]\n]{0,400}\])?[ \t]*+"
    r"(?P<constraint>\(?(?:===|[<>=!~]=?)[^;#\n]{0,400}|@[^;\n]{0,2000})?[ \t]*+(?:[;#\\]|--|\r?$)"
)


def requirement(line: str) -> tuple[str, str] | None:
    """Return the package and constraint of a requirement; None if it is not a requirement."""
    found = _REQUIREMENT.match(line)
    if found is None:
        return None
    constraint = (found["constraint"] or "").partition(" #")[0].partition(" --")[0]
    return found["name"], constraint.strip().rstrip("\\").strip().strip("()").lstrip("@").strip()
