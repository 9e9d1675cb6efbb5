"""Masking of credentials in short texts, also if percent-encoded, with a cache of recent texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock

from cachetools import LRUCache

from rag_assets.common.batches import batched
from rag_assets.privacy.described import StrictScanner
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import merge_spans, redact

_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_TRIPLE = 3
_MAX_DECODINGS = 3
"""Limit of repeated decoding, which is needed if a percent sign is itself encoded."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text after percent-decoding, with offsets in the original."""

    text: str
    places: tuple[tuple[int, int], ...]
    """For each character of `text`, its start and end offset in the original."""


def decode_repeatedly(text: str) -> Iterator[Decoded]:
    """Yield a text decoded once, twice, and so on, as long as decoding changes it."""
    decoded = Decoded(text, tuple((at, at + 1) for at in range(len(text))))
    for _ in range(_MAX_DECODINGS):
        if _ENCODED.search(decoded.text) is None:
            return
        decoded = _decode(decoded)
        yield decoded


def _decode(encoded: Decoded) -> Decoded:
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for match in _ENCODED.finditer(encoded.text):
        start, end = match.span()
        parts.append(encoded.text[at:start])
        places += encoded.places[at:start]
        # Each byte that is not valid UTF-8 becomes a lone surrogate.
        read = bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogateescape")
        for character in read:
            width = _TRIPLE * len(character.encode("utf-8", "surrogateescape"))
            places.append((encoded.places[start][0], encoded.places[start + width - 1][1]))
            start += width
        parts.append(read)
        at = end
    parts.append(encoded.text[at:])
    places += encoded.places[at:]
    return Decoded("".join(parts), tuple(places))


MASKING_VERSION = 1
"""Increased by hand whenever more of the documents' metadata is masked than before."""

_MAX_CACHED_CHARACTERS = 8_000_000
_SEPARATOR = "\n\n"
_BATCH_CHARACTERS = 100_000

_MARK = re.compile(r"[=:@%\\]|\bp(?:in|w)\b", re.IGNORECASE)
_LONG_WORD = re.compile(r"[A-Za-z0-9]{10,}")
_MIN_RANDOM_LENGTH = 20
_WORDS = (
    *("pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "basic"),
    *("kennwort", "zugang", "contrase", "mot de"),
)


def might_hold_credential(text: str) -> bool:
    """Return whether a text may contain a credential, by a quick test of its characters."""
    if not text.isascii() or _MARK.search(text):
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or any(
        len(run) >= _MIN_RANDOM_LENGTH or not run.isalpha() for run in _LONG_WORD.findall(text)
    )


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A credential in a text: the number of the line on which it starts, and its rule."""

    line: int
    rule: str


class Masker:
    """Masks credentials in short texts, and caches the results; see get_masker()."""

    def __init__(self, scanner: SecretScanner | StrictScanner) -> None:
        self._scanner = scanner
        self._lock = Lock()
        self._loaded = Event()
        self._cache: LRUCache[str, str] = LRUCache(
            _MAX_CACHED_CHARACTERS, getsizeof=lambda masked: 64 + 2 * len(masked)
        )

    @property
    def loaded(self) -> bool:
        """Return whether the rules are loaded, which takes a quarter of a second."""
        return self._loaded.is_set()

    def load(self) -> None:
        """Load the rules now instead of with the first text."""
        self._scanner.load()
        self._loaded.set()

    def text(self, text: str) -> str:
        """Mask the credentials in a text, also percent-encoded ones; its length stays the same."""
        with self._lock:
            masked = self._cache.get(text)
        if masked is None:
            masked = self._masked(text)
            self._store(text, masked)
        return masked

    def mask_named_value(self, name: str, value: str) -> str:
        """Mask the credentials in a value, including those that only the value's name reveals."""
        prefix = f"{name}: "
        return self.text(prefix + self.text(value))[len(prefix) :]

    def prime(self, texts: Iterable[str]) -> None:
        """Scan many texts at once, so that masking each of them afterwards is cheap.

        Texts that are unlikely to contain a credential are joined and scanned together. If that
        scan finds anything, they are scanned separately later. All other texts are always scanned
        separately, because findings must not depend on neighbouring texts.
        """
        with self._lock:
            unknown = [text for text in dict.fromkeys(texts) if text not in self._cache]
        plain = [text for text in unknown if not might_hold_credential(text)]
        for batch in batched(plain, None, weight=len, max_weight=_BATCH_CHARACTERS):
            if not self._scanner.scan(_SEPARATOR.join(batch)):
                for text in batch:
                    self._store(text, text)

    def replace_credentials(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Replace each credential by the name of its rule; return the text and the rules' names."""
        spans = merge_spans(self._scanner.scan(text))
        parts: list[str] = []
        at = 0
        for span in spans:
            parts += [text[at : span.start], f"[{span.rule}]"]
            at = span.end
        self._loaded.set()
        return self.text("".join([*parts, text[at:]])), tuple(sorted({one.rule for one in spans}))

    def holds_credential(self, text: str) -> bool:
        """Return whether a text contains a credential."""
        return self.text(text) != text

    def find_credentials(self, text: str) -> list[Finding]:
        """Return the line and rule of each credential in a text, including percent-encoded ones."""
        starts = [(span.start, span.rule) for span in self._scanner.scan(text)]
        if "%" in text:
            starts += (
                (decoded.places[span.start][0], span.rule)
                for decoded in decode_repeatedly(text)
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
        for decoded in decode_repeatedly(text):
            for span in self._scanner.scan(decoded.text):
                for start, end in decoded.places[span.start : span.end]:
                    characters[start:end] = "*" * (end - start)
        return "".join(characters)

    def _store(self, text: str, masked: str) -> None:
        with self._lock:
            # The cache raises an error for a text larger than its capacity.
            if 64 + 2 * len(masked) <= _MAX_CACHED_CHARACTERS:
                self._cache[text] = masked


@lru_cache(maxsize=4)
def get_masker(local: Path | None) -> Masker:
    """Return the process's masker for an installation; its rules are loaded at their first use."""
    return Masker(get_scanner(local))


@lru_cache(maxsize=4)
def get_scanner(local: Path | None) -> SecretScanner:
    """Return the process's scanner, whose rules forks share; see get_masker."""
    return SecretScanner(None if local is None else local / "cache")
