"""The core does not name experience, except in the places listed here with a reason."""

from __future__ import annotations

from pathlib import Path

import rag_assets

ROOT = Path(rag_assets.__file__).parent
ALLOWED = {
    # The client distribution has one class with all operations, and is installed without systems.
    "api/experience_responses.py",
    "client/clients.py",
    "client/experience_operations.py",
    # Keys of tenants.yaml are fields of one model.
    "tenants/model.py",
    # The help of an option, which names two of its values as examples.
    "cli/thresholds.py",
}


def test_the_core_names_experience_in_the_listed_modules_only() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
        and "experience" in path.read_text(encoding="utf-8").lower()
    }
    assert naming == ALLOWED
