"""Credentials that only the name of their column gives away: `user | password` above the values.

A value counts by the rules for `password = value`; so a policy of passwords, or a placeholder, is
left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rag_assets.parsing.model import MaskedSpan, ParsedText
from rag_assets.secrets.values import is_secret_value

_RULE = "credential-column"
_NAMED = re.compile(
    r"(password|passwd|passphrase|passcode|pwd|secret|token|(?:api|access|secret)[ _-]?key)$",
    re.IGNORECASE,
)
_DELIMITERS = "|,;\t"
_MOST_COLUMNS = 500


class _Cell(NamedTuple):
    start: int
    end: int


class _Columns(NamedTuple):
    """Which columns hold credentials, by position, and what parts the cells of a row."""

    delimiter: str
    named: dict[int, str]


def credential_cells(parsed: ParsedText) -> Iterator[MaskedSpan]:
    """Cells below a column whose name promises a credential, in order."""
    columns: _Columns | None = None
    for block in parsed.blocks:
        if block.kind == "heading":
            columns = _columns(parsed.text, block.start, block.end)
        elif block.kind == "row" and columns is not None:
            yield from _found(parsed.text, block.start, block.end, columns)
        elif block.kind == "table":
            yield from _in_table(parsed.text, block.start, block.end)


def _in_table(text: str, start: int, end: int) -> Iterator[MaskedSpan]:
    """A table of lines, the first of which names the columns."""
    lines = list(_lines(text, start, end))
    columns = _columns(text, *lines[0]) if lines else None
    if columns is not None:
        for line in lines[1:]:
            yield from _found(text, *line, columns)


def _columns(text: str, start: int, end: int) -> _Columns | None:
    if _mentions(text, start, end):
        for delimiter in _DELIMITERS:
            cells = list(_cells(text, start, end, delimiter))
            named = {n: m[1] for n, c in enumerate(cells) if (m := _name(text, c))}
            if named and len(cells) > 1:
                return _Columns(delimiter, named)
    return None


def _mentions(text: str, start: int, end: int) -> bool:
    """Whether it is worth taking a line apart."""
    lowered = text[start:end].lower()
    return any(word in lowered for word in ("pass", "pwd", "secret", "token", "key"))


def _name(text: str, cell: _Cell) -> re.Match[str] | None:
    return _NAMED.search(text[cell.start : cell.end].strip("*_` "))


def _found(text: str, start: int, end: int, columns: _Columns) -> Iterator[MaskedSpan]:
    for number, cell in enumerate(_cells(text, start, end, columns.delimiter)):
        name = columns.named.get(number)
        value = text[cell.start : cell.end]
        if not name or not value or any(map(str.isspace, value)):
            continue
        if is_secret_value(name.lower(), value, quoted=False):
            yield MaskedSpan(cell.start, cell.end, _RULE)


def _cells(text: str, start: int, end: int, delimiter: str) -> Iterator[_Cell]:
    """Cells of one record without quotation marks, code marks and blanks around them."""
    at = start
    for _ in range(_MOST_COLUMNS):
        stop = text.find(delimiter, _after_quotation(text, at, end), end)
        stop = end if stop < 0 else stop
        yield _trimmed(text, at, stop)
        if stop == end:
            return
        at = stop + 1


def _after_quotation(text: str, start: int, end: int) -> int:
    """Where the quotation ends that begins a cell; a doubled mark in it is one of its characters.

    The cell's own start where it is not quoted, or the quotation is never closed.
    """
    if not text.startswith('"', start):
        return start
    close = text.find('"', start + 1, end)
    while close >= 0 and text.startswith('"', close + 1, end):
        close = text.find('"', close + 2, end)
    return max(close, start)


def _trimmed(text: str, start: int, end: int) -> _Cell:
    inner = text[start:end].lstrip(" \t\"'`")
    start = end - len(inner)
    return _Cell(start, start + len(inner.rstrip(" \t\"'`\r\n")))


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for line in text[start:end].splitlines(keepends=True):
        yield at, at + len(line.rstrip("\r\n"))
        at += len(line)


def joined(spans: Iterable[MaskedSpan]) -> tuple[MaskedSpan, ...]:
    """Spans in order, those that overlap made one under the first one's rule."""
    done: list[MaskedSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if done and span.start < done[-1].end:
            last = done[-1]
            done[-1] = MaskedSpan(last.start, max(last.end, span.end), last.rule)
        else:
            done.append(span)
    return tuple(done)
