"""Finding credentials in a text: kingfisher's rules, offline, and ours for what it misses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.secrets import rules, wraps
from rag_assets.secrets.placeholders import is_placeholder
from rag_assets.secrets.rules import SecretSpan

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_CONTINUATION = re.compile(rb"[\x80-\xbf]")  # bytes that start no character of UTF-8

__all__ = ["RULES_VERSION", "SecretScanner", "SecretSpan", "rules_version"]

RULES_VERSION: str
"""Changes with our rules and with kingfisher's version; a part of keys."""


def __getattr__(name: str) -> str:
    if name == "RULES_VERSION":
        return rules_version()
    raise AttributeError(name)


@cache
def rules_version() -> str:
    """Work out RULES_VERSION, once and without loading the scanner."""
    from importlib.metadata import version

    patterns = "\n".join(rule.token.pattern for rule in rules.TOKEN_RULES)
    ours = hashlib.sha256(patterns.encode()).hexdigest()[:8]
    return f"{rules.RULES_REVISION}.{ours}+kingfisher-{version('kingfisher-secret-scanner')}"


class SecretScanner:
    """Finds credentials; keep one for the process, for loading it costs 0.3 s to 3 s.

    It never asks anyone whether a credential is valid: nothing leaves the process.

    Args:
        cache_dir: a private folder for kingfisher's compiled rules, which makes every load but
            the first a matter of 0.3 s; without one, rules are compiled each time.
        timeout: seconds one scan may take.
    """

    def __init__(self, cache_dir: Path | None = None, *, timeout: float = 60.0) -> None:
        self._cache_dir = cache_dir
        self._timeout = timeout
        self._scanner: Scanner | None = None

    def load(self) -> None:
        """Load the rules now rather than on the first scan."""
        if self._scanner is None:
            from kingfisher_sdk import Rules, Scanner

            folder = self._cache_dir
            self._scanner = Scanner(Rules(cache=folder is not None, cache_dir=folder))

    def scan(self, text: str) -> list[SecretSpan]:
        """Find the credentials in a text, sorted, overlapping ones joined.

        Raises:
            TimeoutError: the scan took too long; there is no partial answer.
        """
        ours = chain(
            wraps.private_keys(text),
            wraps.rsa_lines(text),
            wraps.tokens(text),
            rules.aws_secrets(text),
            rules.assigned(text),
        )
        return merged(chain(ours, self._kingfisher(text)))

    def _kingfisher(self, text: str) -> Iterator[SecretSpan]:
        self.load()
        assert self._scanner is not None  # noqa: S101 - load() just set it
        raw = text.encode("utf-8", "surrogatepass")
        found = [
            (at["start_offset"], at["end_offset"], finding.rule_id)
            for finding in self._scanner.scan(raw, timeout=self._timeout)
            if finding.visible and (at := finding.location)
        ]
        characters = _character_offsets(raw, {n for low, high, _ in found for n in (low, high)})
        for low, high, rule in found:
            start, end = characters[low], characters[high]
            if not (rule.endswith("generic-credential-uri") and is_placeholder(text[start:end])):
                yield SecretSpan(start, end, rule)


def merged(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sorted, with overlapping spans joined under the rule of the first."""
    result: list[SecretSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.end <= span.start:
            continue
        if result and span.start < result[-1].end:
            last = result[-1]
            result[-1] = SecretSpan(last.start, max(last.end, span.end), last.rule)
        else:
            result.append(span)
    return result


def _character_offsets(raw: bytes, offsets: set[int]) -> dict[int, int]:
    """For byte offsets, the characters they belong to; one within a character is its start."""
    characters: dict[int, int] = {}
    at = count = 0
    for offset in sorted(offsets):
        count += offset - at - len(_CONTINUATION.findall(raw, at, offset))
        characters[offset] = count
        at = offset
    return characters
