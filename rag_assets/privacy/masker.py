"""Masks credentials in short texts; what was seen lately is not scanned again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Any

from cachetools import LRUCache

from rag_assets.common.batches import batched
from rag_assets.privacy.percent_encoding import decodings
from rag_assets.privacy.secrets.masking import redact
from rag_assets.privacy.secrets.scanner import SecretScanner

MASKING_VERSION = 1
"""Raised whenever more of the metadata of documents is masked than before."""

_REMEMBERED_CHARACTERS = 8_000_000
_APART = "\n\n"
_BATCH_CHARACTERS = 100_000

_SIGN = re.compile(r"[=:@%\\]|\bp(?:in|w)\b", re.IGNORECASE)
_LONG = re.compile(r"[A-Za-z0-9]{10,}")
_SURELY_LONG = 20
_WORDS = (
    *("pass", "pwd", "secret", "token", "key", "cred", "auth", "bearer", "basic"),
    *("kennwort", "zugang", "contrase", "mot de"),
)


def might_hold_credential(text: str) -> bool:
    """Whether a text has anything that hardly a credential lacks; if not, none is worth a scan."""
    if not text.isascii() or _SIGN.search(text):
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or any(
        len(run) >= _SURELY_LONG or not run.isalpha() for run in _LONG.findall(text)
    )


class Masker:
    """Covers up credentials; made once per process, see masker_of().

    It caches recent texts: names and questions recur.

    Args:
        scanner: finds them.
    """

    def __init__(self, scanner: SecretScanner) -> None:
        self._scanner = scanner
        self._lock = Lock()
        self._loaded = Event()
        self._known: LRUCache[str, str] = LRUCache(
            _REMEMBERED_CHARACTERS, getsizeof=lambda masked: 64 + 2 * len(masked)
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
        """A text, credentials in it masked, also where they are percent-encoded.

        It is as long as before, with every other character in its place.
        """
        with self._lock:
            masked = self._known.get(text)
        if masked is None:
            masked = self._masked(text)
            self._keep(text, masked)
        return masked

    def named(self, name: str, value: str) -> str:
        """A value, which may be a credential for what it is called."""
        alone = self.text(value)
        called = f"{name}: "
        return self.text(called + alone)[len(called) :]

    def prime(self, texts: Iterable[str]) -> None:
        """Have many texts looked at together, so that each costs next to nothing afterwards.

        Texts in which hardly a credential could be are scanned joined together; where anything
        is found in that, each by itself. All others are scanned by themselves from the start:
        the text beside it must not decide what is found in it.
        """
        with self._lock:
            unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        plain = [text for text in unknown if not might_hold_credential(text)]
        for batch in batched(plain, None, weight=len, most=_BATCH_CHARACTERS):
            if not self._scanner.scan(_APART.join(batch)):
                for text in batch:
                    self._keep(text, text)

    def holds_credential(self, text: str) -> bool:
        """Whether there is one in a text."""
        return self.text(text) != text

    def anything(self, value: Any) -> Any:
        """Values of JSON, all texts in them masked, names of fields too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.anything(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self.anything(item) for name, item in value.items()}
        return value

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

    def _keep(self, text: str, masked: str) -> None:
        with self._lock:
            # Too large a text is not worth its room; the cache refuses it itself.
            if 64 + 2 * len(masked) <= _REMEMBERED_CHARACTERS:
                self._known[text] = masked


@lru_cache(maxsize=4)
def masker_of(local: Path | None) -> Masker:
    """The process's masker for an installation, its rules loaded when they are first needed.

    Args:
        local: the installation's own folder, which keeps compiled rules; None: nothing does.
    """
    return Masker(SecretScanner(None if local is None else local / "cache"))
