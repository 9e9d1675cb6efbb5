"""The core and the other systems load when one system is removed, and the core when all are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rag_assets.plugins.registry import installed_systems
from tests.installed_systems import folders

ROOT = Path(__file__).resolve().parents[3]
NAMES = tuple(sorted(folder.replace("_", "-") for folder in folders()))
PROGRAM = """
import importlib, pkgutil, sys
from tests.installed_systems import hide_all_but

kept = sys.argv[1:]
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
print(len(modules))
"""


def test_every_folder_is_an_installed_system() -> None:
    own = {one.name for one in installed_systems() if one.distribution.startswith("rag-assets ")}
    assert own == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("removed", [*([name] for name in NAMES), NAMES], ids="+".join)
def test_the_rest_loads_without_a_system(removed: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(name for name in NAMES if name not in removed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 500, "it imported the core"
