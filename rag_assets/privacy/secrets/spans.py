"""Spans of credentials in a text, and the union of overlapping spans."""

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
    """Finds credentials in a text; see SecretScanner."""

    def scan(self, text: str) -> list[SecretSpan]:
        """Return the credentials, sorted, with overlapping spans joined."""
        ...


_GENERIC = frozenset(
    {"assigned-secret", "told-secret", "command-line-secret", "argument-secret", "login-secret"}
)
"""Rules that know the position of a credential but not its kind; the name of another rule is
preferred."""


def merged(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort spans, and join overlapping spans under the rule of the first one."""
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
