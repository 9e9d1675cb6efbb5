"""The client does not import the service."""

import json
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from rag_assets.client import Client
from rag_assets.client.exchange import from_environment
from rag_assets.common.errors import ConfigurationError
from tests.distributions import build_wheel, find_dependencies

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"dagster", "polars", "elasticsearch", "sqlalchemy", "numpy", "fastapi", "mcp", "openai"}


@pytest.mark.slow
def test_client_distribution_imports_only_what_it_declares(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path, "client")) as wheel:
        wheel.extractall(tmp_path / "installed")
    program = """
import importlib, json, pkgutil, rag_assets_client as package
for module in pkgutil.walk_packages(package.__path__, "rag_assets_client."):
    importlib.import_module(module.name)
print(json.dumps([*sys.modules]))
"""
    path = [str(tmp_path / "installed"), sysconfig.get_path("purelib")]
    # Without site: modules that .pth files import are not the client's.
    command = [sys.executable, "-S", "-c", f"import sys; sys.path += {path}\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    names = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "rag_assets" not in names
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    needed = find_dependencies(*project["dependencies"])
    owners_of = packages_distributions()
    owners = {canonicalize_name(owners_of[name][0]) for name in names if name in owners_of}
    assert {"anyio", "httpx2", "pydantic"} <= owners <= needed.keys()
    assert f"installs {len(needed) + 1} packages" in (ROOT / "docs" / "client.md").read_text()
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == whole["version"]


@pytest.mark.slow
def test_importing_the_client_loads_nothing_heavy() -> None:
    code = "import sys, rag_assets.client; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "httpx2" in loaded
    assert not HEAVY & set(loaded)


def test_the_environment_has_url_token_tenant_and_project() -> None:
    given = {"RAG_ASSETS_TOKEN": "t", "RAG_ASSETS_URL": "https://rag.example"}
    found = {"url": "https://rag.example", "token": "t"}
    assert from_environment(given) == {**found, "tenant": None, "project": None}
    named = {"RAG_ASSETS_TENANT": "acme", "RAG_ASSETS_PROJECT": "web"}
    assert from_environment({**given, **named}) == {**found, "tenant": "acme", "project": "web"}
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_TOKEN"):
        from_environment({})


def test_a_client_does_not_show_its_token() -> None:
    with Client("https://rag.example", "secret") as client:
        assert repr(client) == "Client('https://rag.example')"
