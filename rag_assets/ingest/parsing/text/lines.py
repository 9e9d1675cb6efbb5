"""Lines of Markdown, and the recognition of blocks by a single line.

No function backtracks: each scans a line at most once from the left and once from the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n)?")
_ATX = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?![^ \t])")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_INDENT = 3


class Line(NamedTuple):
    """A line without its line break; start and end are character offsets of its text."""

    start: int
    end: int
    text: str
    blank: bool


def split_lines(text: str) -> Iterator[Line]:
    r"""Split at \n, \r\n and \r, as Markdown does, and nowhere else."""
    at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        if found is None:  # pragma: no cover - the pattern matches anything
            return
        yield Line(at, found.end(1), found[1], not found[1].strip())
        at = found.end()


def atx_heading(line: str) -> tuple[int, str] | None:
    """Return level and text of `## heading ##`; None if the line is not such a heading."""
    found = _ATX.match(line)
    if found is None:
        return None
    text = line[found.end() :].strip(" \t")
    open_text = text.rstrip("#")
    if open_text != text and (not open_text or open_text[-1] in " \t"):
        text = open_text.rstrip(" \t")
    return len(found[1]), text


def setext_level(line: str) -> int:
    """Return 1 for a line of `===`, 2 for `---`, else 0."""
    text = line.strip(" \t")
    if not text or len(line) - len(line.lstrip(" \t")) > _INDENT or text.strip(text[0]):
        return 0
    return {"=": 1, "-": 2}.get(text[0], 0)


def fence_opening(line: str) -> str | None:
    """Return the run of back-ticks or tildes if a line opens a fence; otherwise None."""
    found = _FENCE.match(line)
    if found is None or (found[1][0] == "`" and "`" in line[found.end() :]):
        return None
    return found[1]


def fence_closes(line: str, opening: str) -> bool:
    """Return whether a line closes the fence that is open."""
    found = _FENCE.match(line)
    return found is not None and found[1].startswith(opening) and not line[found.end() :].strip()


def is_list_item(line: str) -> bool:
    """Return whether a line starts a list item; a thematic break is not a list item."""
    if _LIST_ITEM.match(line) is None:
        return False
    text = line.strip(" \t")
    marks = text.replace(" ", "").replace("\t", "")
    return not (len(marks) > 2 and text[0] in "-*" and not marks.strip(text[0]))  # noqa: PLR2004


def is_indented(line: str) -> bool:
    """Return whether a line is indented far enough for code and is not blank."""
    return _INDENTED.match(line) is not None and bool(line.strip())


def is_table_rule(line: str) -> bool:
    """Return whether a line is the rule `|---|:-:|` below a table's head."""
    return "-" in line and "|" in line and not line.strip(" \t|:-")
