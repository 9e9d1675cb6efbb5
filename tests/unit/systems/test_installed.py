"""Installed systems: their parts, ops, problems, tables, profiles and documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets.api.problems import KINDS, get_kinds_by_error, get_problem_kind
from rag_assets.common.errors import ConfigurationError
from rag_assets.dagster import build_defs
from rag_assets.definitions import build_defs as build_installation
from rag_assets.models.factory import get_embedder_id
from rag_assets.plugins.registry import installed_systems
from rag_assets.plugins.system import PART_KINDS
from rag_assets.tenants.application_settings import ApplicationSettings, overlay_settings
from rag_assets.tenants.kinds import installed_kinds
from rag_assets.tenants.model import Tenant
from tests.chunking import require_records_by_default
from tests.unit.dagster.test_project import names


def test_our_own_systems_are_installed_like_any_other() -> None:
    own = {system.name: system.distribution.partition(" ")[0] for system in installed_systems()}
    assert own == dict.fromkeys(
        ("agent-docs", "code-memory", "documents", "experience", "team-guidelines", "workspace"),
        "rag-assets",
    )


def test_every_op_but_one_that_marks_its_run_has_the_workbench() -> None:
    jobs = build_installation().get_repository_def().get_all_jobs()
    ops = {node.name: node.required_resource_keys for job in jobs for node in ops_of(job)}
    assert len(ops) > 20
    without = {name for name, keys in ops.items() if "rag_assets_workbench" not in keys}
    assert without == {"pull_tenants"}, "it marks its run itself"


def ops_of(job: dg.JobDefinition) -> list[dg.OpDefinition]:
    return [node for node in job.all_node_defs if isinstance(node, dg.OpDefinition)]


def test_each_problem_of_a_system_has_the_name_that_the_system_declares() -> None:
    problems = installed_systems().load("problems")
    assert problems
    assert all(get_problem_kind(error).name == name for name, error in problems.items())
    assert set(get_kinds_by_error()) == {*KINDS, *problems.values()}


PROGRAM = (
    "from rag_assets.storage.catalog.tables import list_all_tables;"
    "print(*(table.name for table in list_all_tables()))"
)


def test_all_tables_in_a_new_process_include_those_of_every_system() -> None:
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(installed_systems().parts("tables")) <= set(ran.stdout.split())


def test_a_system_that_is_left_out_adds_nothing() -> None:
    """A project without tenants of a system has none of its sensors and schedules."""
    kinds = ("jobs", "sensors", "schedules")
    core = names(build_defs(name="kb", systems=[]))
    every = {kind: set(core[kind]) for kind in kinds}
    for installed in installed_systems():
        found = names(build_defs(name="kb", systems=[installed.name]))
        for kind in kinds:
            own = {f"kb_{name}" for name in getattr(installed.system, kind)}
            assert found[kind] == core[kind] | own, (installed.name, kind)
            every[kind] |= own
    assert all(every[kind] > core[kind] for kind in kinds), "systems add some of each kind"
    assert {kind: names(build_defs(name="kb"))[kind] for kind in kinds} == every


@pytest.mark.parametrize("profile", installed_systems().profiles)
def test_every_profile_makes_a_tenant(profile: str) -> None:
    config = {"id": "a", "profile": profile, "organization": "acme", "project": "web"}
    assert Tenant.from_config(config).profile == profile


@pytest.mark.parametrize(
    ("profile", "embedder"),
    [
        ("workspace", "openai/text-embedding-3-large@3072"),
        ("experience", "openai/text-embedding-3-small@1536"),
    ],
)
def test_a_profile_has_the_model_of_its_description(profile: str, embedder: str) -> None:
    config = {"id": "a", "profile": profile, "organization": "acme", "project": "web"}
    assert get_embedder_id(Tenant.from_config(config).embedder) == embedder


def test_rows_of_a_workspace_are_records_too() -> None:
    require_records_by_default("workspace")


DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_kind_of_part_is_described() -> None:
    text = (DOCS / "systems.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .+ \| .+ \|$", text, re.M)
    named = [name for row in rows for name in re.findall(r"\w+", row)]
    assert sorted(named) == sorted(PART_KINDS)


def test_agents_as_tenants_are_described_as_they_are_loaded() -> None:
    text = (DOCS / "agents.md").read_text()
    section = text.partition("## With Dagster\n")[2].partition("\n## ")[0]
    [owner] = [found for found in installed_systems() if found.system.tenant_lists]
    system = owner.system
    assert system.profile is not None
    for name in (system.name, *system.tenant_lists, *system.source_kinds):
        assert re.search(rf"`{name}`|\[`{name}`\]|{name}: \[", section), name
    configuration = (DOCS / "configuration.md").read_text()
    for name in system.source_kinds:
        fields = installed_kinds().sources[name].config.model_fields
        described = configuration.partition(f"### `sources` of {name}\n")[2].partition("\n#")[0]
        assert re.findall(r"^\| `(\w+)` \|", described, re.M) == list(fields)
    for name in system.chunkers:
        assert f"| `{name}` |" in configuration


@pytest.mark.parametrize(
    ("section", "settings"),
    [("workspace", {"resolved_comment_days": 3}), ("experience", {"code_tenant": "b"})],
)
def test_settings_of_another_profile_are_refused(section: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"tenant 'a': {section}: .* 'documents'") as e:
        Tenant.from_config({"id": "a", section: settings})
    assert f"remove {section}" in (e.value.hint or "")
    assert Tenant.from_config({"id": "a", "profile": section, section: settings})


def test_settings_of_an_application_override_the_operators() -> None:
    config = {
        "id": "a",
        "embedder": {"provider": "local"},
        "profile": "workspace",
        "workspace": {"resolved_comment_days": 5},
    }
    assert Tenant.from_config(config).workspace.resolved_comment_days == 5
    settings = ApplicationSettings(resolved_comment_days=0, vector_backend="pgvector")
    workspace = Tenant.from_config(overlay_settings(config, settings)).workspace
    assert (workspace.resolved_comment_days, workspace.vector_backend) == (0, "pgvector")
    assert Tenant.from_config({"id": "a"}).workspace.resolved_comment_days == 30
    assert overlay_settings({"id": "a"}, settings) == {"id": "a"}, (
        "left from when it was a workspace"
    )
