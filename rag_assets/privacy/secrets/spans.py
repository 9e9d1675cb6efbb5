"""Spans of credentials in a text: joining them, and masking them without changing offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """A credential's character offsets (half open), and the rule that found it."""

    start: int
    end: int
    rule: str


class Scans(Protocol):
    """Protocol of scanners that find credentials in a text; see SecretScanner."""

    def scan(self, text: str) -> list[SecretSpan]:
        """Return the credentials, sorted, with overlapping spans joined."""
        ...


_GENERIC = frozenset(
    {"assigned-secret", "told-secret", "command-line-secret", "argument-secret", "login-secret"}
)
"""Rules that know the position of a credential but not its kind; the name of another rule is
preferred."""


def merge_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Return the spans sorted, and overlapping spans joined under the rule of the first of them."""
    result: list[SecretSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.rule in _GENERIC)):
        if span.end <= span.start:
            continue
        if result and span.start < result[-1].end:
            last = result[-1]
            result[-1] = SecretSpan(last.start, max(last.end, span.end), last.rule)
        else:
            result.append(span)
    return result


FILLERS = ("*", "·", "█", "🔒")  # by UTF-8 width, from one byte to four
_WIDTH_STARTS = (0x80, 0x800, 0x10000)


class Span(Protocol):
    """Protocol of values with a start and an end offset (half open), such as SecretSpan."""

    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def mask(text: str, spans: Iterable[Span]) -> str:
    """Mask the spans of a text, which are in order and do not overlap.

    The number of characters, the number of UTF-8 bytes and the line breaks of the text stay the
    same, so that all offsets remain valid.
    """
    parts: list[str] = []
    at = 0
    for span in spans:
        parts.append(text[at : span.start])
        parts.append(_fill(text[span.start : span.end]))
        at = span.end
    parts.append(text[at:])
    return "".join(parts)


def redact(text: str, scanner: Scans) -> str:
    """Mask the credentials in a short text: a title, file name, URI or logged query."""
    return mask(text, scanner.scan(text))


def _fill(piece: str) -> str:
    if piece.isascii() and "\n" not in piece and "\r" not in piece:
        return "*" * len(piece)
    return "".join(map(_select_filler, piece))


def _select_filler(character: str) -> str:
    if character in "\r\n":
        return character
    return FILLERS[sum(ord(character) >= start for start in _WIDTH_STARTS)]
