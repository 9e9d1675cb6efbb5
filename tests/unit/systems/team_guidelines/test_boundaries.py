"""The core does not name guidelines, except in the places listed here with a reason."""

from __future__ import annotations

from pathlib import Path

import rag_assets

ROOT = Path(rag_assets.__file__).parent
ALLOWED = {
    # The client distribution has one class with all operations, and is installed without systems.
    "api/guideline_responses.py",
    "client/clients.py",
    "client/exchange.py",
    "client/guideline_operations.py",
    # An option of `organizations put`, a column of its table, and a field of its JSON.
    "cli/projects.py",
    # The column behind the opt-in of organizations, which the first release of its table named.
    "storage/catalog/tables.py",
    # The sentence of one kind of failure, which every interface shows.
    "common/failure_kinds.py",
}


def test_the_core_names_guidelines_in_the_listed_modules_only() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
        and "guideline" in path.read_text(encoding="utf-8").lower()
    }
    assert naming == ALLOWED
