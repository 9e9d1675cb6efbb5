"""Six patterns of credentials, applied without exceptions: each match is a credential.

The scanner's rules know the forms of credentials, and exclude text that only resembles a
credential. These patterns exclude nothing, because profiles with `drops_described_secrets` require
that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.privacy.secrets.spans import Scans, SecretSpan, merge_spans

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "described-sk": re.compile(r"sk-[A-Za-z0-9]{20,}"),
    "described-ghp": re.compile(r"ghp_[A-Za-z0-9]{20,}"),
    "described-akia": re.compile(r"AKIA[A-Z0-9]{16}"),
    "described-jwt": re.compile(r"eyJ[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    "described-slack": re.compile(r"xox[bp]-[A-Za-z0-9-]*"),
}
"""Patterns by the name of their rule."""
DESCRIBED: Final = "described-"
"""Name prefix of these rules."""
_RSA, _RSA_RULE = "BEGIN RSA", "described-rsa"
_LINE = re.compile(r"[^\r\n]*")
_MARKS = ("sk-", "ghp_", "AKIA", "eyJ", "xoxb-", "xoxp-", _RSA)


def is_described(rule: str) -> bool:
    """Return whether a rule is one of the six patterns; chunks with a match are dropped."""
    return rule.startswith(DESCRIBED)


def find_described_spans(text: str) -> list[SecretSpan]:
    """Return the matches of the six patterns in a text."""
    if not any(mark in text for mark in _MARKS):
        return []
    spans = [
        SecretSpan(match.start(), match.end(), rule)
        for rule, pattern in PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    return [*spans, *_find_rsa_lines(text)]


def _find_rsa_lines(text: str) -> Iterator[SecretSpan]:
    """Find the lines that start a private RSA key."""
    at = text.find(_RSA)
    while at >= 0:
        start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
        line = _LINE.match(text, start)
        end = line.end() if line else len(text)
        yield SecretSpan(start, end, _RSA_RULE)
        at = text.find(_RSA, end)


class StrictScanner:
    """Finds the credentials that a scanner finds, and all matches of the six patterns."""

    def __init__(self, scanner: Scans) -> None:
        self._scanner = scanner

    def load(self) -> None:
        """Load the scanner's rules now instead of on the first scan."""
        load: Callable[[], None] | None = getattr(self._scanner, "load", None)
        if load is not None:
            load()

    def scan(self, text: str) -> list[SecretSpan]:
        """Return the credentials in a text; a match of a pattern has the rule of that pattern."""
        described = find_described_spans(text)
        spans = merge_spans([*described, *self._scanner.scan(text)])
        return [_rename_by_pattern(span, described) for span in spans] if described else spans


def _rename_by_pattern(span: SecretSpan, described: Sequence[SecretSpan]) -> SecretSpan:
    rules = (
        secret_span.rule
        for secret_span in described
        if secret_span.start < span.end and span.start < secret_span.end
    )
    return replace(span, rule=next(rules, span.rule))
