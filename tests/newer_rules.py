"""Rules for credentials of a later version, which find one more word."""

from __future__ import annotations

import re

import pytest

from rag_assets.privacy.secrets import scanner as scanners
from rag_assets.privacy.secrets.scanner import SecretScanner, SecretSpan

ALSO_FOUND = "RAG_ASSETS_TEST_FINDS"
"""Environment variable of commands in tests: the word that their rules find, too."""
NO_WAIT = "RAG_ASSETS_TEST_NO_WAIT"
"""Environment variable: if set, nothing waits while Elasticsearch keeps deletions as history."""


def find_also(word: str, patched: pytest.MonkeyPatch) -> None:
    """Have the rules of this process find a word, under the name `later-rule`."""
    former = SecretScanner.scan

    def scan(self: SecretScanner, text: str) -> list[SecretSpan]:
        found = [SecretSpan(*m.span(), "later-rule") for m in re.finditer(re.escape(word), text)]
        return sorted([*former(self, text), *found], key=lambda span: span.start)

    patched.setattr(SecretScanner, "scan", scan)
    patched.setattr(scanners, "RULES_VERSION", scanners.RULES_VERSION + 1)
    scanners.rules_version.cache_clear()


def wait_for_no_history(patched: pytest.MonkeyPatch) -> None:
    """Leave deleted entries in files that Elasticsearch does not let go of at once."""
    from rag_assets.storage.index.elasticsearch import administration

    patched.setattr(administration, "_HISTORY_SECONDS", 0.0)
