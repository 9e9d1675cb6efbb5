"""Kingfisher's rules for credentials of about a hundred services, run offline."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.spans import SecretSpan

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_CONTINUATION = re.compile(rb"[\x80-\xbf]")  # continuation bytes of UTF-8
# Greedy across lines and quotation marks; commands.py has a rule for each of its flags.
_REPLACED_RULES = ("curl-auth-user",)
_WINDOW = 8_192
_OVERLAP = 2_048
_ADDRESS = re.compile(r"://[^/\s]*@")


class Kingfisher:
    """Kingfisher's scanner, loaded at its first use.

    Credentials are not verified with their services: no data leaves the process. All instances in a
    process share the rules that the first of them loads, because the rules are the same everywhere.

    Args:
        cache_dir: a private folder for the compiled rules; without it they are compiled each time.
        timeout: the maximum number of seconds of one scan.
    """

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _scanner: ClassVar[Scanner | None] = None

    def __init__(self, cache_dir: Path | None, timeout: float) -> None:
        self._cache_dir = cache_dir
        self._timeout = timeout

    def load(self) -> Scanner:
        """Return the rules; load them if no scan of the process has loaded them yet."""
        with Kingfisher._lock:
            if Kingfisher._scanner is None:
                from kingfisher_sdk import Rules, Scanner

                folder = self._cache_dir
                Kingfisher._scanner = Scanner(Rules(cache=folder is not None, cache_dir=folder))
            return Kingfisher._scanner

    def scan(self, text: str) -> Iterator[SecretSpan]:
        """Find credentials in a text.

        Raises:
            TimeoutError: the scan took too long; there is no partial answer.
        """
        scanner = self.load()
        for start, end in _windows(len(text)):
            for span in self._in_window(scanner, text[start:end]):
                yield SecretSpan(start + span.start, start + span.end, span.rule)

    def _in_window(self, scanner: Scanner, text: str) -> Iterator[SecretSpan]:
        raw = text.encode("utf-8", "surrogatepass")
        found = [
            (at["start_offset"], at["end_offset"], finding.rule_id)
            for finding in scanner.scan(raw, timeout=self._timeout)
            if finding.visible
            and not finding.rule_id.endswith(_REPLACED_RULES)
            and (at := finding.location)
        ]
        if not found:
            return
        characters = _character_offsets(raw, {n for low, high, _ in found for n in (low, high)})
        for low, high, rule in found:
            start, end = characters[low], characters[high]
            value = text[start:end]
            # In an address, only the password is a credential; the project's own rule finds it.
            if _ADDRESS.search(value) or is_placeholder(value):
                continue
            if not is_placeholder(value.rpartition(":")[2]):
                yield SecretSpan(start, end, rule)


def _windows(length: int) -> Iterator[tuple[int, int]]:
    """Split a text into overlapping parts, since some rules take time quadratic in its length."""
    start = 0
    while start + _WINDOW < length:
        yield start, start + _WINDOW
        start += _WINDOW - _OVERLAP
    yield start, length


def _character_offsets(raw: bytes, offsets: set[int]) -> dict[int, int]:
    """Convert byte offsets to character offsets.

    An offset inside a character is converted to that character's offset.
    """
    characters: dict[int, int] = {}
    at = count = 0
    for offset in sorted(offsets):
        count += offset - at - len(_CONTINUATION.findall(raw, at, offset))
        characters[offset] = count
        at = offset
    return characters
