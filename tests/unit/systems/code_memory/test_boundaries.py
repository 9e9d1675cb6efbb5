"""The core does not name code memory, except at the places listed here with a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import rag_assets

ROOT = Path(rag_assets.__file__).parent
NAMED: Final = re.compile(r"code[-_ ]memory", re.IGNORECASE)
ALLOWED = {
    # The client distribution has one class with all operations, and is installed without systems.
    "api/run_responses.py",
    "client/clients.py",
    "client/code_operations.py",
    # Help of options of the one search command, which says where they apply.
    "cli/arguments.py",
}


def test_the_core_names_code_memory_in_the_listed_modules_only() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
        and NAMED.search(path.read_text(encoding="utf-8"))
    }
    assert naming == ALLOWED
