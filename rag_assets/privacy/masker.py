"""Masks credentials in short texts, with a cache of recent ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock

from cachetools import LRUCache

from rag_assets.common.batches import batched
from rag_assets.privacy.described import StrictScanner
from rag_assets.privacy.percent_encoding import decodings
from rag_assets.privacy.secrets.masking import redact
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import merged

MASKING_VERSION = 1
"""Raised by hand whenever more of the metadata of documents is masked than before."""

_CACHED_CHARACTERS = 8_000_000
_SEPARATOR = "\n\n"
_BATCH_CHARACTERS = 100_000

_MARK = re.compile(r"[=:@%\\]|\bp(?:in|w)\b", re.IGNORECASE)
_LONG_WORD = re.compile(r"[A-Za-z0-9]{10,}")
_RANDOM_LENGTH = 20
_WORDS = (
    *("pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "basic"),
    *("kennwort", "zugang", "contrase", "mot de"),
)


def might_hold_credential(text: str) -> bool:
    """Whether a text has a mark, a name or a long word, as nearly every credential has or is."""
    if not text.isascii() or _MARK.search(text):
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or any(
        len(run) >= _RANDOM_LENGTH or not run.isalpha() for run in _LONG_WORD.findall(text)
    )


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A credential in a text.

    Attributes:
        line: on which it begins, from 1.
        rule: that found it.
    """

    line: int
    rule: str


class Masker:
    """Masks credentials; one per process, see masker_of().

    It caches recent texts: names and questions recur.

    Args:
        scanner: finds credentials.
    """

    def __init__(self, scanner: SecretScanner | StrictScanner) -> None:
        self._scanner = scanner
        self._lock = Lock()
        self._loaded = Event()
        self._cache: LRUCache[str, str] = LRUCache(
            _CACHED_CHARACTERS, getsizeof=lambda masked: 64 + 2 * len(masked)
        )

    @property
    def loaded(self) -> bool:
        """Whether the rules are loaded, which takes a quarter of a second."""
        return self._loaded.is_set()

    def load(self) -> None:
        """Load the rules now rather than with the first text."""
        self._scanner.load()
        self._loaded.set()

    def text(self, text: str) -> str:
        """Mask the credentials in a text, also percent-encoded ones.

        Its length and all other characters stay the same.
        """
        with self._lock:
            masked = self._cache.get(text)
        if masked is None:
            masked = self._masked(text)
            self._store(text, masked)
        return masked

    def named_value(self, name: str, value: str) -> str:
        """Mask a value, which its name may mark as a credential."""
        prefix = f"{name}: "
        return self.text(prefix + self.text(value))[len(prefix) :]

    def prime(self, texts: Iterable[str]) -> None:
        """Scan many texts at once, so that masking each one afterwards is cheap.

        Texts that hardly hold a credential are scanned joined together, and one by one later if
        anything is found. All others are left to be scanned one by one: findings in a text must not
        depend on the texts beside it.
        """
        with self._lock:
            unknown = [text for text in dict.fromkeys(texts) if text not in self._cache]
        plain = [text for text in unknown if not might_hold_credential(text)]
        for batch in batched(plain, None, weight=len, most=_BATCH_CHARACTERS):
            if not self._scanner.scan(_SEPARATOR.join(batch)):
                for text in batch:
                    self._store(text, text)

    def replaced(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A text with the name of a rule in place of each credential, and the rules' names.

        Where offsets need not stay valid, a name tells a reader more than blanked characters.
        """
        spans = merged(self._scanner.scan(text))
        parts: list[str] = []
        at = 0
        for span in spans:
            parts += [text[at : span.start], f"[{span.rule}]"]
            at = span.end
        self._loaded.set()
        return self.text("".join([*parts, text[at:]])), tuple(sorted({one.rule for one in spans}))

    def holds_credential(self, text: str) -> bool:
        """Whether a text holds a credential."""
        return self.text(text) != text

    def findings(self, text: str) -> list[Finding]:
        """The credentials in a text, also percent-encoded ones, by line.

        Raises:
            TimeoutError: the scan took too long.
        """
        starts = [(span.start, span.rule) for span in self._scanner.scan(text)]
        if "%" in text:
            starts += (
                (decoded.places[span.start][0], span.rule)
                for decoded in decodings(text)
                for span in self._scanner.scan(decoded.text)
            )
        self._loaded.set()
        return sorted({Finding(text.count("\n", 0, at) + 1, rule) for at, rule in starts})

    def _masked(self, text: str) -> str:
        masked = redact(text, self._scanner)
        self._loaded.set()
        if "%" not in text:
            return masked
        characters = list(masked)
        for decoded in decodings(text):
            for span in self._scanner.scan(decoded.text):
                for start, end in decoded.places[span.start : span.end]:
                    characters[start:end] = "*" * (end - start)
        return "".join(characters)

    def _store(self, text: str, masked: str) -> None:
        with self._lock:
            # The cache raises an error for a text larger than itself.
            if 64 + 2 * len(masked) <= _CACHED_CHARACTERS:
                self._cache[text] = masked


@lru_cache(maxsize=4)
def masker_of(local: Path | None) -> Masker:
    """The process's masker for an installation, its rules loaded when they are first needed.

    Args:
        local: the installation's own folder, which caches compiled rules; None for no cache.
    """
    return Masker(scanner_of(local))


@lru_cache(maxsize=4)
def scanner_of(local: Path | None) -> SecretScanner:
    """The process's scanner for an installation; see masker_of. Forks share the rules it loaded."""
    return SecretScanner(None if local is None else local / "cache")
