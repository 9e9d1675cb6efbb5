"""Postgres roles: what each is not allowed to do, and that each can do its work."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import text

from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.installation.roles import (
    ROLES,
    Role,
    build_roles_sql,
    is_superuser,
    service_rights,
)
from rag_assets.storage.catalog.migrate import HEAD
from tests.databases import create_empty_database, drop_database, execute, name_of, roles_of
from tests.installation import FAST, Installation, new_installation
from tests.panel_site import SECRET
from tests.security.service_process import started

EVERYBODY = (
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT * FROM pg_authid",
    "CREATE ROLE another SUPERUSER",
    "ALTER SYSTEM SET fsync = off",
    "SET session_replication_role = replica",
)
NOT_OWNER = (
    "CREATE TABLE rag_catalog.planted (a int)",
    "CREATE FUNCTION rag_catalog.planted() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE rag_catalog.documents ADD COLUMN planted int",
    "ALTER TABLE rag_catalog.source_records DISABLE TRIGGER USER",
    "DROP TABLE rag_catalog.documents",
    "DROP SCHEMA rag_catalog CASCADE",
    "TRUNCATE rag_catalog.documents",
    "UPDATE rag_catalog.alembic_version SET version_num = '9999'",
    "DELETE FROM rag_catalog.alembic_version_workspace",
)
FORBIDDEN: Mapping[Role, tuple[str, ...]] = {
    "owner": ("SELECT * FROM rag_dagster.runs", "DROP TABLE rag_dagster.event_logs"),
    "writer": NOT_OWNER,
    "service": (
        *NOT_OWNER,
        "SELECT * FROM rag_dagster.runs",
        "DELETE FROM rag_dagster.event_logs",
        "CREATE TABLE public.planted (a int)",
        "CREATE SCHEMA planted",
        "INSERT INTO rag_catalog.service_tokens (token_id) VALUES ('planted')",
        "UPDATE rag_catalog.service_tokens SET role = 'admin'",
        "DELETE FROM rag_catalog.receipts",
        "UPDATE rag_catalog.receipts SET tenant = 'another'",
        "DELETE FROM rag_catalog.holds",
        "DELETE FROM rag_catalog.installation",
        "UPDATE rag_catalog.check_results SET tenant = 'another'",
    ),
    "dagster": (
        *NOT_OWNER,
        "SELECT * FROM rag_catalog.documents",
        "SELECT * FROM rag_catalog.provider_keys",
        "UPDATE rag_catalog.tenants SET state = 'ACTIVE'",
        "CREATE SCHEMA planted",
        "CREATE TABLE public.planted (a int)",
    ),
}


@pytest.fixture(scope="module")
def installed(
    postgres_url: str, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    home = tmp_path_factory.mktemp("roles") / "home"
    with new_installation(home, postgres_url, elasticsearch_url) as made:
        yield made


@pytest.fixture(scope="module")
def urls(installed: Installation) -> Mapping[Role, str]:
    return roles_of(installed.environment["RAG_ASSETS_DATABASE_URL"])


def environment_of(urls: Mapping[Role, str]) -> dict[str, str]:
    return {
        "RAG_ASSETS_DATABASE_URL": urls["writer"],
        "RAG_ASSETS_OWNER_DATABASE_URL": urls["owner"],
        "RAG_ASSETS_SERVICE_DATABASE_URL": urls["service"],
        "RAG_ASSETS_DAGSTER_DATABASE_URL": urls["dagster"],
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role_cannot_do_more_than_its_work(urls: Mapping[Role, str], role: Role) -> None:
    others = [name_of(urls[other]) + f"_{other}" for other in ROLES if other != role]
    if role == "writer":
        others = [name for name in others if not name.endswith("_dagster")]
    taking = [f'SET ROLE "{name}"' for name in others]
    assert not is_superuser(urls[role])
    with psycopg.connect(urls[role], autocommit=True) as connection:
        for statement in (*EVERYBODY, *FORBIDDEN[role], *taking):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(statement.encode())
            assert isinstance(refused.value, InsufficientPrivilege), (statement, refused.value)


def test_the_service_changes_only_what_requests_change(urls: Mapping[Role, str]) -> None:
    with psycopg.connect(urls["service"], autocommit=True) as connection:
        rights = {
            (table, right)
            for table, right, has in connection.execute(
                "SELECT relname, r, has_table_privilege(c.oid, r) FROM pg_class c,"
                " unnest('{INSERT,UPDATE,DELETE,TRUNCATE,TRIGGER,REFERENCES,MAINTAIN}'::text[]) r"
                " WHERE relnamespace = 'rag_catalog'::regnamespace AND relkind = 'r'"
            )
            if has
        }
        readable = "SELECT bool_and(has_table_privilege(oid, 'SELECT')) FROM pg_class"
        readable += " WHERE relnamespace = 'rag_catalog'::regnamespace AND relkind = 'r'"
        assert connection.execute(readable.encode()).fetchone() == (True,)
        names = connection.execute("SELECT tablename FROM pg_tables")
        tables = {name for (name,) in names}
    assert service_rights().keys() <= tables, "no table of these names"
    assert {right for _, right in rights} == {"INSERT", "UPDATE", "DELETE"}
    for table, service_right in service_rights().items():
        whole = {right.strip() for right in service_right.split(",") if right.strip().isalpha()}
        assert {right for name, right in rights if name == table} == whole, table


def test_nobody_else_connects(postgres_url: str, urls: Mapping[Role, str]) -> None:
    stranger = f"stranger_{secrets.token_hex(4)}"
    execute(postgres_url, "CREATE ROLE {} LOGIN PASSWORD 'example'", stranger)
    try:
        place = urls["owner"].rpartition("@")[2]
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(f"postgresql://{stranger}:example@{place}")
    finally:
        execute(postgres_url, "DROP ROLE {}", stranger)


def test_vectors_of_builds_are_the_writers_and_the_service_reads_them(
    urls: Mapping[Role, str],
) -> None:
    with psycopg.connect(urls["writer"], autocommit=True) as connection:
        connection.execute("CREATE SCHEMA rag_vectors_example")
        connection.execute("CREATE TABLE rag_vectors_example.rag_chunks AS SELECT 7 AS seven")
    with psycopg.connect(urls["service"], autocommit=True) as connection:
        read = "SELECT seven FROM rag_vectors_example.rag_chunks"
        assert connection.execute(read).fetchall() == [(7,)]
        with pytest.raises(InsufficientPrivilege):
            connection.execute("DELETE FROM rag_vectors_example.rag_chunks")


def test_the_owner_makes_the_tables_and_the_others_use_them(postgres_url: str) -> None:
    database = f"r{secrets.token_hex(6)}"
    url = create_empty_database(postgres_url, database)
    try:
        urls = roles_of(url)
        with pytest.raises(ServiceUnavailable) as refused:
            Catalog.open(urls["writer"])
        assert "RAG_ASSETS_OWNER_DATABASE_URL" in str(refused.value.hint)
        with pytest.raises(ConfigurationError, match="a different database"):
            Catalog.open(urls["writer"], postgres_url)
        with closing(Catalog.open(urls["writer"], urls["owner"])):
            pass
        with psycopg.connect(urls["service"]) as connection:
            version = connection.execute("SELECT version_num FROM rag_catalog.alembic_version")
            assert version.fetchone() == (HEAD,)
        # No upgrade is pending, so neither needs the owner.
        for role in ("writer", "service"):
            Catalog.open(urls[role]).close()
        # A later migration's table gets the same grants as the others.
        with psycopg.connect(urls["owner"]) as connection:
            connection.execute("CREATE TABLE rag_catalog.later (a int)")
            connection.execute("UPDATE rag_catalog.alembic_version SET version_num = version_num")
        with psycopg.connect(url) as connection:
            connection.execute(build_roles_sql().encode())
        with psycopg.connect(urls["service"]) as connection:
            connection.execute("INSERT INTO rag_catalog.later VALUES (1)")
    finally:
        drop_database(postgres_url, database)


def test_an_upgrade_grants_the_service_what_it_newly_needs(postgres_url: str) -> None:
    database = f"r{secrets.token_hex(6)}"
    url = create_empty_database(postgres_url, database)
    try:
        urls = roles_of(url)
        Catalog.open(urls["writer"], urls["owner"]).close()
        with closing(Database(urls["owner"])) as owner, owner.begin() as connection:
            connection.execute(text("DROP TABLE rag_catalog.alembic_version_workspace"))
            for name in ("rows", "queries", "sources"):
                connection.execute(text(f"DROP TABLE rag_catalog.pulled_{name}"))
            service = f"{database}_service"
            revoke = f'REVOKE UPDATE (listing_digest) ON rag_catalog.syncs FROM "{service}"'
            connection.execute(text(revoke))
        Catalog.open(urls["writer"], urls["owner"]).close()
        with psycopg.connect(urls["service"]) as connection:
            connection.execute("UPDATE rag_catalog.syncs SET listing_digest = NULL")
    finally:
        drop_database(postgres_url, database)


@pytest.mark.long
def test_each_role_can_do_its_work(
    installed: Installation,
    urls: Mapping[Role, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment_of(urls).items():
        monkeypatch.setenv(name, value)
    used = Installation(installed.home, {**installed.environment, **environment_of(urls)})
    used.add_tenant(
        "acme",
        **{
            **FAST,
            "sources": [
                {"name": "files", "root": str(installed.home.parent / "files")},
                {"name": "pushed", "type": "records"},
                {"name": "uploads", "type": "uploads"},
            ],
        },
    )
    root = installed.home.parent / "files"
    root.mkdir()
    (root / "valves.md").write_text("# Valves\n\nThe valve opens at 4 bar.\n")
    assert used.synced("acme")["search_index"]
    made = used.cli("tokens", "create", "acme", "--role", "admin", "--principal", "bot", "--json")
    token = {"Authorization": f"Bearer {made.json['token']}"}
    with (
        started(used, tmp_path / "log", RAG_ASSETS_JWT_SECRET=SECRET) as (_, port),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=token, timeout=60) as client,
    ):
        service = f"{name_of(urls['service'])}_service"
        assert service in connected_roles(installed.environment["RAG_ASSETS_DATABASE_URL"])
        found = client.post("/rag/query", json={"query": "At what pressure does it open?"})
        assert "4 bar" in found.text
        body = {"title": "Pump", "text": "The pump stands in cellar 9."}
        pushed = client.put("/rag/records/page/pump", json=body)
        assert pushed.status_code in {200, 202}, pushed.text
        gone = client.delete("/rag/records/page/pump")
        assert gone.is_success, gone.text
    assert used.cli("sync", "acme").code == 0
    [document] = used.context("acme").catalog.documents.all("acme")
    purged = used.cli("purge", "acme", "--document", document.document_id, "--yes")
    assert purged.code == 0, purged.err
    assert "superuser" not in used.cli("status").out
    used.release()


def connected_roles(url: str) -> set[str]:
    """Return the roles of all connections to a database."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT usename FROM pg_stat_activity WHERE datname = current_database()"
            " AND starts_with(application_name, 'rag-assets')"
        ).fetchall()
    return {name for (name,) in rows}


def test_status_names_an_account_that_may_do_everything(
    installed: Installation, urls: Mapping[Role, str]
) -> None:
    alone = installed.command("status").out
    assert "a superuser (commands, service, Dagster)" in alone
    assert "`rag-assets roles`" in alone
    separate = environment_of(urls)
    assert "a superuser" not in installed.command("status", **separate).out
    separate["RAG_ASSETS_SERVICE_DATABASE_URL"] = os.environ["RAG_ASSETS_DATABASE_URL"]
    assert "a superuser (service)" in installed.command("status", **separate).out


def test_the_command_prints_sql_that_may_run_again(
    installed: Installation, urls: Mapping[Role, str]
) -> None:
    printed = installed.command("roles").out
    with psycopg.connect(installed.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        connection.execute(printed.encode())
    assert not is_superuser(urls["service"])
