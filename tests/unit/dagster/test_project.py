import inspect
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from rag_assets.common.errors import ConfigurationError
from rag_assets.dagster import Installation, KnowledgeBaseComponent, build_defs
from rag_assets.definitions import build_defs as own_definitions
from tests.foreign_project.definitions import team_definitions

ROOT = Path(__file__).resolve().parents[3]
SYNCING = {"tenants", "source_files", "run_failures"}


@dg.asset
def wiki_export() -> None: ...


@dg.asset
def wiki_of_eu() -> None: ...


def team(**more: Any) -> dg.Definitions:
    """Return a team's definitions with an executor, a job `canary` and a resource `postgres`."""
    own = team_definitions()
    assets = [asset for asset in own.assets or () if asset.key.to_user_string() != "embeddings"]
    return dg.Definitions(
        assets=[*assets, wiki_export, wiki_of_eu],
        asset_checks=own.asset_checks,
        jobs=own.jobs,
        resources=own.resources,
        executor=dg.multiprocess_executor,
        **more,
    )


def names(definitions: dg.Definitions) -> Mapping[str, set[str]]:
    repository = definitions.get_repository_def()
    graph = repository.asset_graph
    return {
        "jobs": {job.name for job in repository.get_all_jobs()} - {"__ASSET_JOB"},
        "sensors": {sensor.name for sensor in repository.sensor_defs},
        "schedules": {schedule.name for schedule in repository.schedule_defs},
        "resources": set(definitions.resources or {}),
        "assets": {key.to_user_string() for key in graph.get_all_asset_keys()},
        "groups": {graph.get(key).group_name for key in graph.get_all_asset_keys()},
        "partitions": {
            definition.name or ""
            for key in graph.get_all_asset_keys()
            if isinstance(
                definition := graph.get(key).partitions_def, dg.DynamicPartitionsDefinition
            )
        },
    }


def test_a_project_s_sensors_tick_twice_a_minute_at_most() -> None:
    def intervals(definitions: dg.Definitions) -> list[int | None]:
        sensors = definitions.get_repository_def().sensor_defs
        return [sensor.minimum_interval_seconds for sensor in sensors]

    assert min(intervals(own_definitions()), default=0) == 5, "our own code location"
    assert min(intervals(build_defs(name="kb")), default=0) == 30


def test_everything_begins_with_the_name() -> None:
    found = names(build_defs(name="kb", key_prefix=["docs", "kb"], group="wiki"))
    for kind in ("jobs", "sensors", "schedules", "resources"):
        assert found[kind]
        assert all(name.startswith("kb_") for name in found[kind]), kind
    assert "kb_sync_tenant" in found["jobs"]
    assert all(key.startswith("docs/kb/") for key in found["assets"])
    assert all(group.startswith("wiki") for group in found["groups"])
    assert found["partitions"] == {"kb_tenants"}


def test_two_installations_merge_with_the_teams_definitions() -> None:
    elsewhere, eu = Installation(home="elsewhere"), {"eu": [wiki_of_eu]}
    merged = dg.Definitions.merge(
        team(),
        build_defs(upstream=["wiki_export"]),
        build_defs(name="other", key_prefix=["other"], upstream=eu, installation=elsewhere),
    )
    dg.Definitions.validate_loadable(merged)
    repository = merged.get_repository_def()
    assert repository.get_job("__ASSET_JOB").executor_def.name == "multiprocess"
    ours = ("rag_assets_sync_tenant", "other_sync_tenant")
    assert {repository.get_job(name).executor_def.name for name in ours} == {"in_process"}
    assert repository.get_job("canary").resource_defs["lake"] is not None, "the team's"
    parents = {
        key: {
            parent_key.to_user_string()
            for parent_key in repository.asset_graph.get(dg.AssetKey(key.split("/"))).parent_keys
        }
        for key in ("raw_documents", "other/raw_documents", "other/chunks")
    }
    assert parents == {
        "raw_documents": {"wiki_export"},
        "other/raw_documents": {"wiki_of_eu"},
        "other/chunks": {"other/parsed_text"},
    }


def test_a_job_materializes_what_is_upstream_of_all_tenants_or_of_one() -> None:
    upstream = {"eu": [wiki_of_eu], "us-east": [wiki_export, "else/table"]}
    merged = dg.Definitions.merge(team(), build_defs(name="kb", upstream=upstream))
    repository = merged.get_repository_def()
    ops = {
        name: {node.name for node in repository.get_job(name).graph.node_defs}
        for name in ("kb_refresh_eu", "kb_refresh_us_east", "kb_sync_tenant")
    }
    wiki = {"wiki_of_eu", "wiki_export"}
    assert {name: found & wiki for name, found in ops.items()} == {
        "kb_refresh_eu": {"wiki_of_eu"},
        "kb_refresh_us_east": {"wiki_export"},
        "kb_sync_tenant": set(),
    }
    assert all(found - wiki == ops["kb_sync_tenant"] for found in ops.values())


@pytest.mark.parametrize(
    ("automation", "sensors", "has_schedules"),
    [("sync", SYNCING, False), ("none", set(), False), ("all", SYNCING, True)],
)
def test_automation_chooses_parts(automation: Any, sensors: set[str], has_schedules: bool) -> None:
    found = names(build_defs(name="kb", automation=automation))
    plain = {name.removeprefix("kb_") for name in found["sensors"]}
    assert plain >= sensors
    assert (plain == sensors) is (automation != "all")
    assert bool(found["schedules"]) is has_schedules
    assert "kb_prune" in found["jobs"], "a team may schedule jobs itself"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "my kb"}, "name 'my kb' is not valid as a prefix of names in Dagster"),
        ({"group": "a-b"}, "group 'a-b' is not valid as a prefix of names in Dagster"),
        ({"automation": "some"}, "unknown automation 'some'"),
        ({"systems": ["workplace"]}, "systems are not installed: workplace"),
        ({"upstream": "wiki_export"}, "upstream is the string 'wiki_export' instead of a list"),
        ({"upstream": {"eu": "wiki_export"}},
         "upstream is the string 'wiki_export' instead of a list"),
        ({"upstream": {"a-b": ["wiki"], "a.b": ["wiki"]}},
         "upstream: the jobs of tenants 'a-b' and 'a.b' would have the same name"),
    ],
)  # fmt: skip
def test_arguments_that_are_not_usable_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        build_defs(**arguments)
    assert refused.value.message == message
    assert refused.value.hint


def test_upstream_with_other_partitions_is_refused() -> None:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["eu", "us"]))
    def regional() -> None: ...

    merged = dg.Definitions.merge(
        dg.Definitions(assets=[regional]), build_defs(name="kb", upstream=[regional])
    )
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="kb_refresh"):
        dg.Definitions.validate_loadable(merged)


# Of Dagster's own reading of YAML.
@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
def test_the_component_has_the_same_attributes() -> None:
    attributes: dict[str, Any] = {"name": "kb", "key_prefix": ["kb"], "group": "wiki"}
    attributes |= {"upstream": {"eu": ["wiki_of_eu"]}, "automation": "sync", "systems": []}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=KnowledgeBaseComponent,
            defs_path="kb",
            defs_yaml_contents={
                "type": "rag_assets.dagster.KnowledgeBaseComponent",
                "attributes": {**attributes, "installation": {"home": "/srv/kb"}},
            },
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, loaded):
            assert isinstance(component, KnowledgeBaseComponent)
            found = names(loaded)
            resources = loaded.resources or {}
    expected = build_defs(**attributes, installation=Installation(home="/srv/kb"))
    assert found == names(expected)
    assert resources["kb_postgres"].installation.home == "/srv/kb"


def test_loading_warns_of_nothing() -> None:
    code = "from rag_assets.dagster import build_defs; build_defs(upstream=['a'])"
    command = [sys.executable, "-W", "error::Warning:dagster", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_names_every_attribute_and_its_default() -> None:
    page = (ROOT / "docs" / "dagster-project.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", page, re.MULTILINE))
    arguments = inspect.signature(build_defs).parameters
    assert list(rows) == list(arguments)
    texts = {
        name: argument.default
        for name, argument in arguments.items()
        if isinstance(argument.default, str)
    }
    assert {name: rows[name] for name in texts} == texts
    assert set(KnowledgeBaseComponent.model_fields) == set(arguments) - {"resources"}


def test_pytest_and_dagster_find_what_is_theirs() -> None:
    modules = "dagster_dg_cli.registry_modules"
    groups = {"pytest11": "rag_assets.testing", modules: "rag_assets.dagster"}
    for group, module in groups.items():
        [found] = entry_points(group=group, name="rag_assets")
        assert found.value == module
