"""Finds credentials in documentation with the rules of the project."""

from __future__ import annotations

import os
from pathlib import Path

from rag_assets.ingest.parsing.document_masker import masked
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.privacy.secrets.scanner import SecretScanner


class ProjectRules:
    """Masks documents by the project's rules, which are loaded at the first use.

    Args:
        cache: a private folder for compiled rules; by default one of the user's.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache
        self._scanner: SecretScanner | None = None

    def __call__(self, parsed: ParsedText) -> ParsedText:
        """See cutting.Mask."""
        if self._scanner is None:
            self._scanner = SecretScanner(_private(self._cache or _users()))
        return masked(parsed, self._scanner)


def _users() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "rag-assets" / "rules"


def _private(folder: Path) -> Path | None:
    """The folder, made for its owner alone; None where that is not possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    return folder if status.st_uid == os.getuid() and not status.st_mode & 0o022 else None
