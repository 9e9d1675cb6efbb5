"""The tables of our own Dagster instance, and the migration of earlier versions' tables."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.instance.ref import InstanceRef
from psycopg import sql

from rag_assets.common.errors import ConfigurationError, OlderProgramRuns
from rag_assets.resources.own_runs import PARTITION_TAG, RUN_TAGS
from rag_assets.runtime.program_processes import strip_driver
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.erasure.traces import TextColumnStore, list_scanned_columns
from rag_assets.storage.catalog.installation.run_storage import (
    TABLES,
    FormerTables,
    find_former_tables,
    move_run_tables,
    prepare_run_storage,
    replace_run_tables,
)
from tests.databases import create_empty_database, drop_database, roles_of
from tests.installation import Installation

MADE = (
    "CREATE TABLE public.runs (run_id text, run_body text)",
    "CREATE TABLE public.run_tags (id serial, run_id text, key text, value text)",
    "CREATE TABLE public.event_logs (id serial, run_id text, event text, partition text)",
    "CREATE TABLE public.instigators (id serial, instigator_body text)",
    "CREATE TABLE public.secondary_indexes (id serial, name text)",
)
"""The columns of Dagster's tables that tell whose they are."""
OURS = json.dumps({"module_name": "rag_assets.definitions"})
OF_A_COMMAND = json.dumps({"job_name": "sync_tenant", "remote_job_origin": None})
OF_A_TEAM = json.dumps(
    {"remote_job_origin": {"repository_location_origin": {"module_name": "warehouse"}}}
)


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    name = f"r{uuid.uuid4().hex[:12]}"
    yield create_empty_database(postgres_url, name)
    drop_database(postgres_url, name)


def rows(
    url: str, query: str, given: Sequence[Any] = (), *, search_path: str = "public"
) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, options=f"-csearch_path={search_path}") as connection:
        return connection.execute(query.encode(), given).fetchall()


def tables(url: str, schema: str) -> set[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    return {name for (name,) in rows(url, query, [schema])}


def fill(url: str, runs: Mapping[str, str], *, tags: str = "", sensor: str = "") -> None:
    """Create the tables of an earlier version in `public`."""
    with psycopg.connect(url) as connection:
        for statement in MADE:
            connection.execute(statement.encode())
        for run_id, body in runs.items():
            connection.execute("INSERT INTO runs VALUES (%s, %s)", [run_id, body])
            if tags:
                insert = "INSERT INTO run_tags (run_id, key, value) VALUES (%s, %s, %s)"
                connection.execute(insert.encode(), [run_id, tags, "true"])
        if sensor:
            connection.execute("INSERT INTO instigators (instigator_body) VALUES (%s)", [sensor])


def prepare(
    url: str, owner_url: str | None = None, *, is_embedded: bool = False
) -> FormerTables | None:
    return prepare_run_storage(
        url, owner_url or url, is_embedded=is_embedded, before_move=lambda: None
    )


def test_the_tables_of_our_instance_are_in_a_schema_of_their_own(
    installation: Installation,
) -> None:
    address = installation.environment["RAG_ASSETS_DATABASE_URL"]
    assert installation.session().instance.get_runs() == []
    assert {"runs", "event_logs", "alembic_version"} <= tables(address, "rag_dagster")
    assert tables(address, "rag_dagster") <= {*TABLES}, "a table that TABLES does not name"
    assert tables(address, "public") == set()


def test_runs_of_an_earlier_version_on_a_server_of_the_operators_are_moved_by_a_command(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = installation.environment["RAG_ASSETS_DATABASE_URL"]
    database = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    with psycopg.connect(address) as connection:
        connection.execute("DROP SCHEMA rag_dagster CASCADE")
    session = installation.session()
    session.prepare_home()
    former = strip_driver(address).replace("postgresql://", "postgresql+psycopg2://")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", former)
    monkeypatch.setenv("DAGSTER_STORAGE_DIR", str(installation.home / ".local/dagster/storage"))

    @dg.job
    def sync_tenant() -> None: ...

    tags = {**RUN_TAGS, PARTITION_TAG: "acme"}
    with dg.DagsterInstance.from_ref(
        InstanceRef.from_dir(str(session.settings.own_dagster_home))
    ) as earlier:
        run = earlier.create_run_for_job(sync_tenant, tags=tags)
        earlier.add_dynamic_partitions("tenants", ["acme"])
    made = tables(address, "public")

    assert session.instance.get_runs() == []
    session.instance.create_run_for_job(sync_tenant, tags=tags)
    assert tables(address, "public") == made, "nothing of the operator's is moved by itself"
    assert (
        f"warning: Dagster's tables in the schema public of the database {database} contain 1 run"
        " and stay as they are: our runs are in the schema rag_dagster from now on; run"
        " `rag-assets installation move-runs --yes` to move them\n"
    ) in capsys.readouterr().err
    assert installation.session().instance.get_runs() != []
    assert "move-runs" not in capsys.readouterr().err, "a message of the first use"

    refused = installation.command("installation", "move-runs")
    assert refused.code == 1
    assert (
        f"this would move 1 run from the schema public of the database {database} to the schema"
        " rag_dagster, and delete the 1 run already in rag_dagster"
    ) in refused.err
    assert tables(address, "public") == made

    moved = installation.command("installation", "move-runs", "--yes")
    assert moved.code == 0, moved.err
    assert tables(address, "public") == set()
    instance = installation.session().instance
    assert [one.run_id for one in instance.get_runs()] == [run.run_id]
    assert instance.get_dynamic_partitions("tenants") == ["acme"]
    again = installation.command("installation", "move-runs", "--yes")
    assert "nothing to move" in again.out
    assert [one.run_id for one in installation.session().instance.get_runs()] == [run.run_id]


@pytest.mark.parametrize(
    ("runs", "tags", "sensor", "is_ours"),
    [
        ({"a": OURS}, "", "", True),
        ({"a": OF_A_COMMAND}, "rag_assets/job", "", True),
        ({}, "", OURS, True),
        ({"a": OF_A_COMMAND}, "", "", False),
        ({"a": OF_A_TEAM}, "rag_assets/job", "", False),
        ({"a": OURS, "b": OF_A_TEAM}, "", "", False),
        ({"a": OURS}, "", OF_A_TEAM, False),
    ],
)
def test_tables_in_public_are_told_apart_and_moved_on_request_unless_they_are_shared(
    url: str, runs: Mapping[str, str], tags: str, sensor: str, is_ours: bool
) -> None:
    fill(url, runs, tags=tags, sensor=sensor)
    made = tables(url, "public")
    left = prepare(url)
    assert left is not None
    assert (left.runs, left.present_runs, left.is_shared) == (len(runs), 0, not is_ours)
    assert prepare(url) == left, "until our instance has its tables"
    assert tables(url, "public") == made
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE rag_dagster.runs (run_id text)")
        connection.execute("INSERT INTO rag_dagster.runs VALUES ('since'), ('then')")
    assert prepare(url) is None
    found = find_former_tables(url)
    assert found is not None
    assert found.present_runs == 2
    assert (replace_run_tables(url, url) == found) is is_ours
    assert tables(url, "public") == (set() if is_ours else made)
    kept = {run_id for (run_id,) in rows(url, "SELECT run_id FROM rag_dagster.runs")}
    assert kept == ({*runs} if is_ours else {"since", "then"})
    assert replace_run_tables(url, url) is None, "nothing is dropped where nothing is moved"
    assert {run_id for (run_id,) in rows(url, "SELECT run_id FROM rag_dagster.runs")} == kept


def test_empty_tables_in_public_and_those_of_other_programs_are_left(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE public.jobs (id serial)")
        connection.execute("CREATE TABLE public.runs (id serial)")
    assert not prepare(url)
    assert tables(url, "public") == {"jobs", "runs"}
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE public.runs")
    fill(url, {})
    assert not prepare(url)
    assert replace_run_tables(url, url) is None
    assert tables(url, "rag_dagster") == set()


def test_of_the_embedded_server_all_tables_are_moved(url: str) -> None:
    fill(url, {"a": OF_A_TEAM})
    move_run_tables(url)
    assert rows(url, "SELECT run_id FROM rag_dagster.runs") == [("a",)]
    move_run_tables(url)
    assert not prepare(url, is_embedded=True)


def test_nothing_is_moved_while_an_older_process_uses_it(url: str) -> None:
    def refuse() -> None:
        raise OlderProgramRuns("the daemon runs an older program")

    fill(url, {"a": OURS})
    with pytest.raises(OlderProgramRuns):
        prepare_run_storage(url, url, is_embedded=True, before_move=refuse)
    assert "runs" in tables(url, "public")
    assert not prepare(url, is_embedded=True)
    assert "runs" in tables(url, "rag_dagster")


def test_the_owner_creates_the_schema_where_roles_are_of_an_earlier_version(url: str) -> None:
    roles = roles_of(url)
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA rag_dagster")
    fill(url, {"a": OURS})
    with pytest.raises(ConfigurationError, match="privileges to prepare the schema rag_dagster"):
        prepare(roles["dagster"], roles["service"])
    assert prepare(roles["dagster"], roles["owner"]) is None, "tables that it may not read"
    with psycopg.connect(url) as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")
    with pytest.raises(ConfigurationError, match="must be owner of table event_logs"):
        replace_run_tables(roles["dagster"], roles["owner"])
    with psycopg.connect(url) as connection:
        for table in tables(url, "public"):
            owned = sql.SQL("ALTER TABLE public.{} OWNER TO {}")
            role = sql.Identifier(psycopg.conninfo.conninfo_to_dict(roles["dagster"])["user"])
            connection.execute(owned.format(sql.Identifier(table), role))
    moved = replace_run_tables(roles["dagster"], roles["owner"])
    assert moved is not None
    assert moved.runs == 1
    assert rows(roles["dagster"], "SELECT run_id FROM rag_dagster.runs") == [("a",)]
    assert rows(roles["writer"], "SELECT run_id FROM rag_dagster.runs") == [("a",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(roles["service"], "SELECT run_id FROM rag_dagster.runs")


def test_the_tables_of_a_teams_dagster_in_the_same_database_are_left_alone(
    installation: Installation,
) -> None:
    """Their names and credentials stay, and erasure proofs do not search them."""
    address = installation.environment["RAG_ASSETS_DATABASE_URL"]
    catalog, ref = installation.session().catalog, TenantRef("acme", 1)
    event = json.dumps({"message": "indexed files/keeper.md", "partition": "acme"})
    fill(address, {"a": OF_A_TEAM}, tags=PARTITION_TAG)
    with psycopg.connect(address) as connection:
        for schema in ("public", "rag_dagster"):
            known = "run_id, event, partition" + (", timestamp" * (schema == "rag_dagster"))
            connection.execute(
                f"INSERT INTO {schema}.event_logs ({known}) SELECT 'a', %s, 'acme'".encode()
                + (b", now()" if schema == "rag_dagster" else b""),
                [event],
            )
    assert catalog.traces.redact("acme", ["files/keeper.md"]) == 1
    assert rows(address, "SELECT event FROM public.event_logs") == [(event,)]
    assert "keeper" not in rows(address, "SELECT event FROM rag_dagster.event_logs")[0][0]
    assert catalog.traces.find_columns("acme", ["files/keeper.md"], ["files/keeper.md"]) == []

    [column] = [
        scanned_column
        for scanned_column in list_scanned_columns()
        if scanned_column.name.endswith("event_logs.event")
    ]
    [[(_, stored)]] = TextColumnStore(catalog.database).iter_batches(ref, column)
    assert "(purged)" in stored
