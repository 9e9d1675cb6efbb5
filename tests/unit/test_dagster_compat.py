"""One module uses private names of Dagster, and states the last release it was tested with."""

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from rag_assets import dagster_compat, dagster_tables

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = re.compile(r"\bdagster(?:_\w+)?\.(?:\w+\.)*_[a-z]")


def test_private_names_of_dagster_occur_in_one_module() -> None:
    modules = [
        path
        for folder in ("rag_assets", "sensors", "checks", "resources")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(modules) > 500
    users = {
        path.relative_to(ROOT).as_posix() for path in modules if PRIVATE.search(path.read_text())
    }
    assert users == {"rag_assets/dagster_compat.py"}


@pytest.mark.parametrize("name", dagster_compat.LAZY_MODULES)
def test_each_module_that_the_fork_server_imports_exists(name: str) -> None:
    assert find_spec(name) is not None


def test_installed_dagster_is_older_than_the_release_to_look_again() -> None:
    installed = [int(part) for part in version("dagster").split(".")[:2]]
    look_again = [int(part) for part in dagster_compat.LOOK_AGAIN.split(".")]
    assert installed < look_again, "compare dagster_compat with the public API of this release"


@pytest.mark.parametrize("name", dagster_compat.__all__)
def test_each_name_is_used(name: str) -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("rag_assets", "sensors", "resources")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "dagster_compat.py" and "dagster_compat" in path.read_text(encoding="utf-8")
    )
    assert re.search(rf"\b{name}\b", text)


def test_tables_of_dagster_have_the_named_columns() -> None:
    from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
    from dagster._core.storage.runs.schema import RunStorageSqlMetadata
    from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata

    tables = {
        table.name: table
        for metadata in (
            SqlEventLogStorageMetadata,
            RunStorageSqlMetadata,
            ScheduleStorageSqlMetadata,
        )
        for table in metadata.sorted_tables
    }
    assert {*tables, "alembic_version"} == {*dagster_tables.TABLES}
    for name, column in dagster_tables.texts_of_tenant(dagster_tables.EVENTS_OF_TENANT):
        assert column in tables[name.partition(".")[2]].c
    columns = {
        "event_logs": {"event", "partition", "run_id"},
        "asset_check_executions": {"partition"},
        "asset_keys": {"last_run_id"},
        "run_tags": {"run_id", "key", "value"},
        "runs": {"run_id", "run_body"},
        "instigators": {"instigator_body"},
        "job_ticks": {"id", "timestamp", "type"},
    }
    for name, expected in columns.items():
        assert expected <= {*tables[name].c.keys()}
