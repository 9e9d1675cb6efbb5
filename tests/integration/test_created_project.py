"""A project made by create-dagster: `dg` finds, scaffolds and loads the component."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_assets.dagster import KnowledgeBaseComponent

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dagster-project.md").read_text(encoding="utf-8")
COMPONENT = "rag_assets.dagster.KnowledgeBaseComponent"
STAGES = ("raw_documents", "parsed_text", "chunks", "embeddings", "search_index")
CREATED = {
    "pyproject.toml": """
[project]
name = "team"
requires-python = ">=3.11,<3.15"
version = "0.1.0"
dependencies = ["dagster"]

[dependency-groups]
dev = ["dagster-webserver", "dagster-dg-cli"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "team"
registry_modules = ["team.components.*"]
""",
    "src/team/__init__.py": "",
    "src/team/definitions.py": """
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
""",
    "src/team/components/__init__.py": "",
    "src/team/defs/__init__.py": "",
    "dagster.yaml": "telemetry: {enabled: false}\n",
}
"""Files as create-dagster writes them, and the settings of an instance."""
WIKI_EXPORT = """
import dagster as dg


@dg.asset
def wiki_export() -> None: ...
"""


class CreatedProject:
    """A project folder in which `dg` is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.definition = folder / "src" / "team" / "defs" / "kb" / "defs.yaml"
        for name, text in CREATED.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def dg(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `dg` as in a terminal with an activated environment."""
        programs = Path(sys.executable).parent
        environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(programs.parent),
            "PYTHONPATH": str(self.folder / "src"),
            "DAGSTER_HOME": str(self.folder),
        }
        return subprocess.run(
            [str(programs / "dg"), *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def printed(self, *arguments: str) -> str:
        """Run a command that must succeed; return its output."""
        done = self.dg(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "currently in beta" not in done.stdout + done.stderr
        return done.stdout


@pytest.mark.long
def test_dg_scaffolds_checks_and_lists_the_component_of_the_page(tmp_path: Path) -> None:
    project = CreatedProject(tmp_path)
    scaffold, check = (
        line.split() for line in re.findall(r"^    dg ((?:scaffold|check).*)$", PAGE, re.M)
    )
    assert scaffold == ["scaffold", "defs", COMPONENT, "kb"]
    assert check == ["check", "defs"]

    components = json.loads(project.printed("list", "components", "--json"))["items"]
    [summary] = [component["summary"] for component in components if component["key"] == COMPONENT]
    assert summary == inspect.cleandoc(KnowledgeBaseComponent.__doc__ or "").partition("\n")[0]

    project.printed(*scaffold)
    assert project.definition.read_text().startswith(f"type: {COMPONENT}\n")
    assert "All definitions loaded successfully." in project.printed(*check)
    scaffolded = json.loads(project.printed("list", "defs", "--json"))
    assert {one["asset_key"] for one in scaffolded["assets"]} >= set(STAGES)
    assert "rag_assets_sync_tenant" in {one["name"] for one in scaffolded["jobs"]}

    [attributes] = re.findall(rf"^```yaml\n(type: {COMPONENT}\n.*?)^```", PAGE, re.M | re.S)
    project.definition.write_text(attributes)
    project.definition.parent.with_name("wiki_export.py").write_text(WIKI_EXPORT)
    listed = json.loads(project.printed("list", "defs", "--json"))
    upstream = {one["asset_key"]: one["dependency_keys"] for one in listed["assets"]}
    assert upstream.keys() >= {f"kb/{stage}" for stage in STAGES}
    assert upstream["kb/raw_documents"] == ["wiki_export"]
    assert {one["name"] for one in listed["jobs"]} >= {"kb_sync_tenant", "kb_refresh"}
    assert {one["name"] for one in listed["sensors"]} >= {"kb_tenants", "kb_source_files"}


@pytest.mark.long
def test_dg_check_names_an_attribute_that_the_component_does_not_have(tmp_path: Path) -> None:
    project = CreatedProject(tmp_path)
    project.definition.parent.mkdir()
    project.definition.write_text(f"type: {COMPONENT}\nattributes: {{upsteam: [wiki_export]}}\n")
    refused = project.dg("check", "defs")
    assert refused.returncode == 1
    assert "upsteam" in refused.stdout + refused.stderr
