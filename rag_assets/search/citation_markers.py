"""Citation markers: `[1]`, and the other forms that models write.

Other forms are `[1, 3]`, `[1; 3]`, `[1-3]`, `[^1]`, `【1】` and `[1†source]`. Any form is rewritten
as `[1, 3]`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

_MAX_CITED = 20
"""Maximum numbers in one marker. Brackets with more are not a citation but, for example, a range of
values."""

_GAP = r"[^\S\r\n]{0,2}"
_SPAN = rf"\^?\d{{1,4}}(?:{_GAP}[-‐‑‒–—]{_GAP}\^?\d{{1,4}})?"
_MARKER = re.compile(
    rf"(?P<lead>[ \t]?)[\[【［]{_GAP}(?P<spans>{_SPAN}(?:{_GAP}[,;，；]{_GAP}{_SPAN}){{0,19}})"
    rf"{_GAP}(?:†[^\[\]【】［］\r\n]{{0,80}})?[\]】］]"
)
_NUMBER = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[,;，；]")


def cited_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that a text cites, in order, without duplicates."""
    found = (number for marker in _MARKER.finditer(text) for number in _numbers(marker))
    return tuple(dict.fromkeys(found))


def blank_markers(text: str) -> str:
    """Replace markers in a text with spaces, keeping its length."""
    return _MARKER.sub(_blank, text)


def only_known_markers(text: str, known: Container[int]) -> str:
    """Return the text with its markers in plain form, without numbers that are not known.

    Args:
        text: a text with markers.
        known: the numbers that exist.
    """
    return _MARKER.sub(lambda marker: _plain(marker, known), text)


def _plain(marker: re.Match[str], known: Container[int]) -> str:
    numbers = tuple(_numbers(marker))
    if not numbers:
        return marker[0]
    kept = dict.fromkeys(str(number) for number in numbers if number in known)
    return f"{marker['lead']}[{', '.join(kept)}]" if kept else ""


def _blank(marker: re.Match[str]) -> str:
    return " " * len(marker[0]) if tuple(_numbers(marker)) else marker[0]


def _numbers(marker: re.Match[str]) -> Iterator[int]:
    """Yield the numbers of a marker, with ranges expanded; none if the marker is not a citation."""
    ranges = [_range(span) for span in _SEPARATOR.split(marker["spans"])]
    if all(ranges) and sum(map(len, ranges)) <= _MAX_CITED:
        for numbers in ranges:
            yield from numbers


def _range(span: str) -> range:
    ends = [int(number) for number in _NUMBER.findall(span)]
    return range(ends[0], ends[-1] + 1)
