"""The rules for credentials, compiled once for all processes of a test session.

Kingfisher needs six seconds to compile them, unless a folder contains the compiled rules. That
scanners use this folder is tested in tests/unit/privacy/secrets/test_scanner.py.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from kingfisher_sdk import Rules

from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.runtime.processes import hold_lock

SHARED_RULES = "RAG_ASSETS_TEST_RULES"
"""Environment variable: the folder of the rules of a session with several processes."""


@cache
def shared_scanner() -> SecretScanner:
    """Return the scanner of this process."""
    return SecretScanner(_compiled())


def with_rules(folder: Path) -> Path:
    """Copy the compiled rules into a folder, which may not exist; return it."""
    shutil.copytree(_compiled(), folder, dirs_exist_ok=True)
    return folder


@cache
def _compiled() -> Path:
    root = os.environ.get(SHARED_RULES)
    if root is None:
        root = tempfile.mkdtemp(prefix="rag-assets-rules-")
        atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder = Path(root) / "rules"
    with hold_lock(Path(root) / "lock"):
        if not folder.exists():
            draft = Path(root) / "draft"
            draft.mkdir(mode=0o700)
            Rules(cache=True, cache_dir=draft)
            draft.rename(folder)
    return folder
