"""The core and the other systems work when one system is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rag_assets.plugins.registry import installed_systems

PROGRAM = """
import importlib, importlib.abc, importlib.metadata, pkgutil, sys

folder, name = sys.argv[1], sys.argv[1].rpartition(".")[2].replace("_", "-")

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, module, path, target=None):
        if module == folder or module.startswith(folder + "."):
            raise ModuleNotFoundError(f"{module} is not installed", name=module)

sys.meta_path.insert(0, Missing())
every = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **group: [
    one for one in every(**group) if one.name != name
]

import rag_assets
from rag_assets.cli.app import run
from rag_assets.definitions import build_defs
from rag_assets.plugins.registry import installed_systems

modules = [one.name for one in pkgutil.walk_packages(rag_assets.__path__, "rag_assets.")
           if not one.name.startswith("rag_assets.systems.") and ".migrations." not in one.name
           and not one.name.endswith("__main__")]
for module in modules:
    importlib.import_module(module)
assert name not in installed_systems().names, installed_systems().names
build_defs().get_repository_def()
assert run(["--help"]) == 0
print(len(modules))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", installed_systems().names)
def test_the_rest_loads_without_a_system(name: str) -> None:
    folder = f"rag_assets.systems.{name.replace('-', '_')}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 500, "it imported the core"
