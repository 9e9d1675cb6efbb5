"""The core reads and deletes rows of systems, even in a process that has not used them."""

from __future__ import annotations

import subprocess
import sys

from rag_assets.plugins.registry import installed_systems

PROGRAM = (
    "from rag_assets.storage.catalog.tables import list_all_tables;"
    "print(*(table.name for table in list_all_tables()))"
)


def test_all_tables_in_a_new_process_include_those_of_every_system() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert set(installed_systems().parts("tables")) <= set(ran.stdout.split())
