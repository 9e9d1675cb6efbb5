"""The core and the other systems work when one system is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rag_assets.plugins.registry import installed_systems

PROGRAM = """
import importlib, importlib.abc, importlib.metadata, os, pkgutil, sys

# What the core imports of others, for all systems at once; nothing of the project is imported here.
import aiohttp, dagster, elasticsearch, fastapi, mcp.server, psycopg, sqlalchemy


def load_without(name):
    folder = "rag_assets.systems." + name.replace("-", "_")

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
    print("loaded", name, len(modules))


assert not any(name.partition(".")[0] == "rag_assets" for name in sys.modules)
for name in sys.argv[1:]:
    if os.fork() == 0:
        load_without(name)
        sys.exit()
    os.wait()
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, int]:
    """The modules that were imported without each system; without an error none is left out."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *installed_systems().names],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    sys.stderr.write(done.stderr)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("loaded ")]
    return {name: int(count) for _, name, count in lines}


@pytest.mark.slow
@pytest.mark.parametrize("name", installed_systems().names)
def test_the_rest_loads_without_a_system(name: str, loaded: dict[str, int]) -> None:
    assert loaded.get(name, 0) > 500, "it imported the core; what failed is in the captured output"
