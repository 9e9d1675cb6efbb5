"""A catalog that a newer program upgraded: an older one names both, and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import psycopg
import pytest
from psycopg import sql

from rag_assets.common.errors import SchemaTooNew, ServiceUnavailable
from rag_assets.storage.catalog import migrate
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from tests.installation import FAST, Installation

NEWER = "9000"


@pytest.fixture
def upgraded(installation: Installation) -> Installation:
    """An installation whose catalog a newer program has upgraded."""
    folder = installation.add_tenant("acme", **FAST)
    (folder / "a.md").write_text("# A\n\nThe valve is green.\n")
    installation.synced("acme")
    set_revision(installation, "alembic_version", NEWER)
    return installation


def set_revision(installation: Installation, table: str, revision: str) -> None:
    with psycopg.connect(installation.environment["DATABASE_URL"]) as connection:
        statement = sql.SQL("UPDATE {} SET version_num = %s")
        connection.execute(statement.format(sql.Identifier("rag_catalog", table)), [revision])


def revision(installation: Installation) -> str:
    with psycopg.connect(installation.environment["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT version_num FROM rag_catalog.alembic_version").fetchone()
    assert row is not None
    return str(row[0])


def test_the_error_names_both_revisions_and_the_way_out(upgraded: Installation) -> None:
    with pytest.raises(SchemaTooNew) as refused:
        Catalog.open(upgraded.environment["DATABASE_URL"])
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
    assert f"schema revision {NEWER}, which a newer program made" in said.err
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


def test_a_system_that_is_too_old_is_named(installation: Installation) -> None:
    installation.session().reconcile()
    set_revision(installation, "alembic_version_code_memory", NEWER)
    with pytest.raises(SchemaTooNew, match="tables of system 'code-memory' have") as refused:
        Catalog.open(installation.environment["DATABASE_URL"])
    assert "rag-assets" in refused.value.message


def test_a_standby_is_named(installation: Installation) -> None:
    """Postgres that only reads, as a standby does."""
    url = installation.environment["DATABASE_URL"]
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
