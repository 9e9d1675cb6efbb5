"""Changed behaviour for commands in tests: rules of a later version, no waiting, other bounds."""

from __future__ import annotations

import re

import pytest

from rag_assets.privacy.secrets import scanner as scanners
from rag_assets.privacy.secrets.scanner import SecretScanner, SecretSpan

ALSO_FOUND = "RAG_ASSETS_TEST_FINDS"
"""Environment variable of commands in tests: the word that their rules find, too."""
NO_WAIT = "RAG_ASSETS_TEST_NO_WAIT"
"""Environment variable: if set, nothing waits while Elasticsearch keeps deletions as history."""
TESTED_BOUNDS = "RAG_ASSETS_TEST_BOUNDS"
"""Environment variable: the `provider/model` whose vectors near entries are merged by."""


def find_also(word: str, patched: pytest.MonkeyPatch) -> None:
    """Add a rule `later-rule` to this process, which finds a word."""
    former = SecretScanner.scan

    def scan(self: SecretScanner, text: str) -> list[SecretSpan]:
        found = [SecretSpan(*m.span(), "later-rule") for m in re.finditer(re.escape(word), text)]
        return sorted([*former(self, text), *found], key=lambda span: span.start)

    patched.setattr(SecretScanner, "scan", scan)
    patched.setattr(scanners, "RULES_VERSION", scanners.RULES_VERSION + 1)
    scanners.rules_version.cache_clear()


def wait_for_no_history(patched: pytest.MonkeyPatch) -> None:
    """Do not wait until Elasticsearch removes deleted entries from its files."""
    from rag_assets.storage.index.elasticsearch import administration

    patched.setattr(administration, "_HISTORY_SECONDS", 0.0)


def merge_near(embedder: str, patched: pytest.MonkeyPatch) -> None:
    """Merge similar entries of experience by the vectors of an embedder."""
    from rag_assets.systems.experience import assignment
    from rag_assets.systems.experience.assignment import BOUNDS, Bounds

    bounds = {**BOUNDS, embedder: Bounds(problem=0.9, solution=0.9)}
    patched.setattr(assignment, "BOUNDS", bounds)
