"""The core and the other systems load without any one system, and the core without all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rag_assets.plugins.registry import installed_systems
from tests.installed_systems import folders

ROOT = Path(__file__).resolve().parents[3]
NAMES = tuple(sorted(folder.replace("_", "-") for folder in folders()))
CASES = {name: [other for other in NAMES if other != name] for name in NAMES} | {"all": []}
PROGRAM = """
import importlib, json, os, pkgutil, sys

# Libraries that the core imports, once for all cases; nothing of the project is imported here.
import aiohttp, dagster, elasticsearch, fastapi, mcp.server, psycopg, sqlalchemy


def load_with(kept):
    from tests.installed_systems import hide_all_but

    hide_all_but(kept)
    import rag_assets
    from rag_assets.cli.app import run
    from rag_assets.definitions import build_defs
    from rag_assets.plugins.registry import installed_systems

    modules = [one.name for one in pkgutil.walk_packages(rag_assets.__path__, "rag_assets.")
               if not one.name.startswith("rag_assets.systems.") and ".migrations." not in one.name
               and not one.name.endswith("__main__")]
    for module in modules:
        importlib.import_module(module)
    assert sorted(installed_systems().names) == sorted(kept), installed_systems().names
    build_defs().get_repository_def()
    assert run(["--help"]) == 0
    return len(modules)


assert not any(name.partition(".")[0] == "rag_assets" for name in sys.modules)
for case, kept in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        print("loaded", case, load_with(kept))
        sys.exit()
    os.wait()
"""


def test_every_folder_is_an_installed_system() -> None:
    ours = [one for one in installed_systems() if one.distribution.startswith("rag-assets ")]
    assert {system.name for system in ours} == set(NAMES)


@pytest.fixture(scope="module")
def loaded() -> dict[str, int]:
    """Return the number of modules imported without each system; no entry after an error."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(CASES)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    sys.stderr.write(done.stderr)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("loaded ")]
    return {case: int(count) for _, case, count in lines}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_rest_loads_without_a_system(case: str, loaded: dict[str, int]) -> None:
    assert loaded.get(case, 0) > 500, "it imported the core; what failed is in the captured output"
