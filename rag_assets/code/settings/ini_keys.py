"""The entries of INI, properties and .env files: sections, and lines of a key and its value."""

from __future__ import annotations

import re
from typing import Final

from rag_assets.code.settings.entries import Entries, Entry, Path

_SECTION: Final = re.compile(r"[ \t]*+\[(?P<name>[^\]\n]{1,300})\]")
_KEY: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?:export[ \t]++)?(?P<name>[^\s=:\[#;!][^=:\n]{0,300}?)[ \t]*+[=:]"
    r"[ \t]*+(?P<value>[^\n]*+)"
)


def ini_entries(text: str) -> tuple[tuple[Entry, ...], bool]:
    """The entries of a text of sections and keys, and whether every line of it was read.

    An indented line continues the value before it, as Python's setup.cfg has them.
    """
    found = Entries()
    section: Path = ()
    at, end, whole = 0, 0, True
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        stripped = line.strip()
        if not stripped or stripped[0] in "#;!":
            continue
        if head := _SECTION.match(line):
            found.close(0, end)
            section = (head["name"].strip(),)
            found.open(0, section[0], start + line.index("["))
        elif line[0] in " \t" and found.innermost() == 1:
            found.open(2, "[]", start + line.index(stripped[0]))
            found.hold(stripped)
            found.close(2, start + len(line.rstrip()))
        elif key := _KEY.match(line):
            found.close(1, end)
            found.open(1, key["name"], start + key.start("name"))
            found.hold(key["value"].strip().strip("\"'"))
        else:
            whole = whole and bool(section)
        end = start + len(line.rstrip())
    found.close(0, end)
    return found.all(), whole
