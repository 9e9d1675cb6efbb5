"""A catalog that a newer program upgraded: an older one names both, and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rag_assets.common.errors import SchemaTooNew, ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime.stack import LocalStack
from rag_assets.storage.catalog import migrate
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from tests.installation import FAST, Installation

NEWER, VERSIONS = "9000", "alembic_version_workspace"


@pytest.fixture
def upgraded(installation: Installation) -> Installation:
    """Create an installation whose catalog a newer program has upgraded."""
    folder = installation.add_tenant("acme", **FAST)
    (folder / "a.md").write_text("# A\n\nThe valve is green.\n")
    installation.synced("acme")
    set_revision(installation, "alembic_version", NEWER)
    return installation


def set_revision(installation: Installation, table: str, revision: str) -> None:
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        statement = sql.SQL("UPDATE {} SET version_num = %s")
        connection.execute(statement.format(sql.Identifier("rag_catalog", table)), [revision])


def revision(installation: Installation) -> str:
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        row = connection.execute("SELECT version_num FROM rag_catalog.alembic_version").fetchone()
    assert row is not None
    return str(row[0])


def test_the_error_names_both_revisions_and_the_way_out(upgraded: Installation) -> None:
    with pytest.raises(SchemaTooNew) as refused:
        Catalog.open(upgraded.environment["RAG_ASSETS_DATABASE_URL"])
    assert f"the catalog has schema revision {NEWER}" in refused.value.message
    program = f"rag-assets {version('rag-assets')}, has {migrate.HEAD}"
    assert program in refused.value.message
    assert "run this with the program that upgraded the catalog" in (refused.value.hint or "")
    assert revision(upgraded) == NEWER


@pytest.mark.parametrize(
    "arguments", [("sync", "acme"), ("search", "acme", "valve"), ("tenants", "list"), ("serve",)]
)
def test_every_command_names_it(upgraded: Installation, arguments: tuple[str, ...]) -> None:
    said = upgraded.command(*arguments, RAG_ASSETS_DEBUG="")
    assert said.code == 1
    assert f"schema revision {NEWER}, which a newer program created" in said.err
    assert "unexpected" not in said.err
    assert revision(upgraded) == NEWER


def test_the_change_watcher_logs_it_in_one_line(upgraded: Installation) -> None:
    watcher = subprocess.run(
        [sys.executable, "-m", "rag_assets.cli.change_watcher"],
        env={**os.environ, **upgraded.environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert watcher.returncode == 1
    assert f"schema revision {NEWER}" in watcher.stderr
    assert "Traceback" not in watcher.stderr


def test_running_process_notices_the_upgrade(installation: Installation) -> None:
    catalog = Catalog.open(installation.environment["RAG_ASSETS_DATABASE_URL"])
    try:
        assert catalog.tenants.list_active_versions() == {}
        set_revision(installation, "alembic_version", NEWER)
        time.sleep(1.1)
        with pytest.raises(SchemaTooNew, match=f"schema revision {NEWER}"):
            catalog.tenants.list_active_versions()
        set_revision(installation, "alembic_version", migrate.HEAD)
        time.sleep(1.1)
        assert catalog.tenants.list_active_versions() == {}
    finally:
        catalog.close()


def test_running_watcher_logs_the_upgrade(installation: Installation, tmp_path: Path) -> None:
    installation.session().reconcile()
    log = tmp_path / "watcher.log"
    with log.open("w") as stderr:
        watcher = subprocess.Popen(
            [sys.executable, "-m", "rag_assets.cli.change_watcher"],
            env={**os.environ, **installation.environment},
            stderr=stderr,
        )
    try:
        # It reports when it watches, and when a process for syncs could be started.
        wait_for(lambda: other_connections(installation) > 0, 60)
        set_revision(installation, "alembic_version", NEWER)
        wait_for(lambda: f"schema revision {NEWER}" in log.read_text(), 30)
    finally:
        watcher.terminate()
        watcher.wait(30)
    assert "Traceback" not in log.read_text()


def test_status_of_an_older_program_reports_it(upgraded: Installation) -> None:
    shown = upgraded.command("status", "--json").json
    assert any(f"schema revision {NEWER}" in warning for warning in shown["warnings"]), shown


def test_status_and_check_report_a_connected_older_program(installation: Installation) -> None:
    folder = installation.add_tenant("acme", **FAST)
    (folder / "a.md").write_text("# A\n\nThe valve is green.\n")
    installation.synced("acme")
    with psycopg.connect(
        installation.environment["RAG_ASSETS_DATABASE_URL"],
        application_name="rag-assets schema 0001",
    ):
        shown = installation.command("status", "--json").json
        assert any("schema revision 0001 is connected" in line for line in shown["warnings"])
        checked = installation.command("check", "acme", "--json").json
    [found] = [one for one in checked["checks"] if one["check"] == "programs"]
    assert not found["passed"]
    assert "schema revision 0001 is connected" in found["description"]
    assert not any(
        "is connected" in w for w in installation.command("status", "--json").json["warnings"]
    )


def test_upgrade_under_a_running_older_daemon_is_refused(installation: Installation) -> None:
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    with database.begin() as connection:
        for name in ("pulled_rows", "pulled_queries", "pulled_sources", VERSIONS):
            connection.exec_driver_sql(f"DROP TABLE rag_catalog.{name}")
    daemon = LocalStack(Settings.from_environment()).dagster.daemon
    daemon.launch(["sleep", "300"], env=dict(os.environ), program="an older program")
    try:
        refused = installation.command("tenants", "list", RAG_ASSETS_DEBUG="")
        assert refused.code == 1
        assert daemon.name in refused.err
        assert "`rag-assets up` replaces them" in refused.err
        assert migrate.is_behind(database)
    finally:
        daemon.stop()
    assert installation.command("tenants", "list").code == 0
    assert not migrate.is_behind(database)
    database.close()


def other_connections(installation: Installation) -> int:
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE '%LISTEN%' AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.2)


def test_a_system_that_is_too_old_is_named(installation: Installation) -> None:
    installation.session().reconcile()
    set_revision(installation, "alembic_version_code_memory", NEWER)
    with pytest.raises(SchemaTooNew, match="tables of system 'code-memory' have") as refused:
        Catalog.open(installation.environment["RAG_ASSETS_DATABASE_URL"])
    assert "rag-assets" in refused.value.message


def test_a_standby_is_named(installation: Installation) -> None:
    """Make Postgres read-only, like a standby."""
    url = installation.environment["RAG_ASSETS_DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        statement = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
        connection.execute(statement.format(sql.Identifier(name)))
    database = Database(url)
    try:
        with (
            pytest.raises(ServiceUnavailable, match="Postgres is read-only") as refused,
            database.begin() as connection,
        ):
            connection.exec_driver_sql("CREATE TABLE x (y integer)")
        assert "primary server" in (refused.value.hint or "")
    finally:
        database.close()
