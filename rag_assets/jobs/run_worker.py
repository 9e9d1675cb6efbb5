"""Executes a run that the daemon launched, in a fork with all modules imported."""

from __future__ import annotations

import sys


def execute_run(arguments: str) -> None:
    """Execute a run; exit with its code if it failed."""
    from rag_assets import dagster_compat
    from rag_assets.common.settings import Settings
    from rag_assets.resources.tenant_lock import get_marks_folder
    from rag_assets.runtime.liveness import hold_liveness_lock

    hold_liveness_lock(get_marks_folder(Settings.from_environment()))
    code = dagster_compat.execute_run(arguments)
    if code:
        sys.exit(code)
