"""Records that a workspace pulls from an application's database: real Postgres, and SQLite."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, text

from rag_assets.common.errors import ListingFailed, TenantLocked
from rag_assets.definitions import build_defs
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.records.states import RecordFilter
from rag_assets.systems.workspace.pulling import database, following, pull
from rag_assets.systems.workspace.pulling.pull import Puller, PullReport, get_pulled_sources
from rag_assets.systems.workspace.pulling.states import PullStates, SourceLocks, _compute_lock_key
from rag_assets.tenants.model import Tenant
from tests.databases import drop_database, get_url
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace
from tests.sensor_resources import sensor_resources

TABLES = """
CREATE TABLE pages (id int PRIMARY KEY, title text, url text, updated_at timestamptz DEFAULT now());
CREATE TABLE blocks (id text PRIMARY KEY, page int, place int, kind text, body text, meta jsonb,
    archived bool DEFAULT false);
CREATE TABLE comments (id uuid PRIMARY KEY, page int, block text, body text,
    resolved_at timestamptz, updated_at timestamp DEFAULT (now() AT TIME ZONE 'Europe/Berlin'));
CREATE TABLE files (id int PRIMARY KEY, page int, name text, meta jsonb, updated_at timestamptz);
CREATE TABLE templates (id int PRIMARY KEY, name text, about text, payload jsonb,
    updated_at timestamptz DEFAULT now());
CREATE TABLE deals (id int PRIMARY KEY, name text, stage text, amount numeric,
    updated_at timestamptz DEFAULT now());
"""
QUERIES = {
    "page": """
        SELECT p.id, p.title, p.url, p.updated_at, -- of the application
            (SELECT json_agg(json_build_object('block_id', b.id, 'type', b.kind, 'text', b.body,
                'archived', b.archived, 'metadata', coalesce(b.meta, '{}')) ORDER BY b.place)
             FROM blocks b WHERE b.page = p.id) AS blocks
        FROM pages p WHERE p.title IS NULL OR p.title NOT LIKE '%:hidden%'; """,
    "comment": "SELECT id, page AS page_uuid, block AS block_id, body AS text, resolved_at,"
    " updated_at FROM comments -- no end",
    "file": "SELECT id, page AS page_uuid, name, meta AS metadata, updated_at FROM files",
    "template": "SELECT id, name, about AS description, payload, updated_at FROM templates",
    "db_row": "SELECT id, 'crm' AS database_uuid, name, stage, amount, updated_at FROM deals",
}


@dataclass
class App:
    """The database of an application, and the workspace that pulls from it."""

    site: Site
    url: str
    variable: str

    def do(self, statement: str, *values: Any) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values)

    @property
    def tenant(self) -> Tenant:
        return Tenant.from_config(self.site.catalog.tenants.get(self.site.id).config)

    def puller(self) -> Puller:
        session = self.site.driver.session
        ref = session.catalog.tenants.get(self.site.id).ref
        masker, blobs = get_masker(session.settings.local), open_blobs(session.settings)
        return Puller(session.catalog, blobs, masker, ref, self.tenant)

    def pull(self, **options: Any) -> PullReport:
        [config] = get_pulled_sources(self.tenant)
        return self.puller().pull(config, **options)

    def configure(self, **changes: Any) -> None:
        """Change the source in tenants.yaml."""
        [config] = get_pulled_sources(self.tenant)
        source = {**config.model_dump(mode="json"), **changes}
        self.site.installation.configure(self.site.id, sources=[source])
        session = self.site.driver.session
        session.reconcile()

    @property
    def states(self) -> PullStates:
        return PullStates(self.site.catalog.database)

    @property
    def locks(self) -> SourceLocks:
        return SourceLocks(self.site.catalog.database)

    def stored(self) -> dict[str, str]:
        """Return the texts of records, by type and id."""
        query = "SELECT source_type, source_id, text FROM rag_catalog.source_records"
        with self.site.catalog.database.begin() as connection:
            rows = connection.execute(text(f"{query} WHERE tenant = :t"), {"t": self.site.id})
            return {f"{row[0]}/{row[1]}": row[2] for row in rows}

    def aside(self) -> dict[str, tuple[str, str]]:
        rows = self.states.list_set_aside_rows(self.site.id, 100)
        return {f"{row.source_type}/{row.shown}": (row.field, row.problem) for row in rows}

    def lanes(self) -> set[int]:
        with self.site.catalog.database.begin() as connection:
            query = "SELECT DISTINCT lane FROM rag_catalog.source_records WHERE tenant = :t"
            return set(connection.execute(text(query), {"t": self.site.id}).scalars())

    def everything(self) -> str:
        """Return all rows about the tenant's pulls and events, as text."""
        queries = ("pulled_sources", "pulled_queries", "pulled_rows", "events", "syncs")
        with self.site.catalog.database.begin() as connection:
            return "\n".join(
                str(row)
                for table in queries
                for row in connection.execute(
                    text(f"SELECT t::text FROM rag_catalog.{table} t WHERE tenant = :t"),  # noqa: S608
                    {"t": self.site.id},
                )
            )


@contextmanager
def application(
    installation: Installation, postgres_url: str, tenant: str, **source: Any
) -> Iterator[App]:
    name, variable = f"app_{uuid.uuid4().hex[:12]}", f"{tenant.upper().replace('-', '_')}_URL"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = get_url(postgres_url, name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES)
    os.environ[variable] = url
    given = {"name": "app", "type": "sql", "url": f"${variable}", "queries": QUERIES}
    given |= {"timezone": "Europe/Berlin", **source}
    try:
        with workspace(installation, tenant, sources=[given]) as site:
            yield App(site, url, variable)
    finally:
        del os.environ[variable]
        drop_database(postgres_url, name)


Make = Callable[..., App]


@pytest.fixture
def make(
    shared_installation: Installation, postgres_url: str, request: pytest.FixtureRequest
) -> Iterator[Make]:
    """Return a function that creates the application of a test."""
    with ExitStack() as stack:

        def made(**source: Any) -> App:
            tenant = f"a{uuid.uuid4().hex[:8]}"
            return stack.enter_context(
                application(shared_installation, postgres_url, tenant, **source)
            )

        yield made


def test_all_types_are_pulled_and_found_as_pushed_ones_are(make: Make) -> None:
    app = make()
    app.site.grant("1", "crm")
    app.do("INSERT INTO pages VALUES (1, 'Rollbacks', 'https://app.example/1')")
    app.do("INSERT INTO pages VALUES (2, 'Now :hidden', NULL)")
    app.do("INSERT INTO blocks VALUES ('b1', 1, 1, 'paragraph', 'A duty manager approves.')")
    app.do("INSERT INTO blocks VALUES ('b2', 1, 2, 'code', 'quokka', '{\"secret\": true}')")
    comment = str(uuid.uuid4())
    app.do("INSERT INTO comments VALUES (%s, 1, 'b1', 'Armadillos object.')", comment)
    app.do("INSERT INTO files VALUES (7, 1, 'guide.md', NULL, now())")
    app.do("INSERT INTO files VALUES (8, 1, 'keys.md', '{\"is_secret\": true}', now())")
    app.do("INSERT INTO templates VALUES (1, 'Minutes', 'Of meetings', '{\"who\": \"scribe\"}')")
    app.do("INSERT INTO deals VALUES (5, 'Zeppelin works', 'won', 12.50)")
    report = app.pull()
    assert (report.rows, report.stored) == (6, 5)
    assert set(app.stored()) == {"page/1", f"comment/{comment}", "file/7", "template/1", "db_row/5"}
    assert "quokka" not in str(app.stored())
    assert app.aside() == {"file/8": ("metadata", following.WITHHELD_PROBLEM)}
    path = "/rag/records/file/7/content"
    answer = app.site.client.put(path, content=b"# Guide\n\nMarmosets.", headers=app.site.headers())
    assert answer.status_code == 202, answer.text
    app.site.sync()
    [hit] = app.site.hits("who approves: duty manager")
    assert (hit["url"], hit["block_id"]) == ("https://app.example/1#b1", "b1")
    assert app.site.hits("armadillos")[0]["source_type"] == "comment"
    assert app.site.hits("marmosets")[0]["source_type"] == "file"
    assert app.site.hits("scribe")[0]["source_type"] == "template"
    [row] = app.site.hits("zeppelin works")
    assert "12.50" in row["text"]
    state = app.site.send("GET", "/rag/records/page/1").json()
    assert state["status"] == "indexed"
    pushed = app.site.send("PUT", "/rag/records/page/1", {"title": "Mine"})
    assert pushed.status_code == 409, "what is pulled is changed in its database"
    again = app.pull()
    assert again.stored == 0
    assert again.set_aside == {}
    app.do("UPDATE blocks SET body = 'Nobody approves.' WHERE id = 'b1'")
    app.do("UPDATE pages SET updated_at = now() WHERE id = 1")
    assert app.pull().stored == 1
    assert "Nobody approves" in app.stored()["page/1"]


def test_a_row_that_is_no_record_is_set_aside_and_blocks_nothing(make: Make) -> None:
    app = make(queries={"page": QUERIES["page"]})
    app.do("INSERT INTO pages SELECT n, 'Page ' || n FROM generate_series(1, 700) n")
    app.do("UPDATE pages SET url = 'javascript:alert(1)' WHERE id = 3")
    app.do("UPDATE pages SET title = NULL WHERE id = 4")
    app.do("UPDATE pages SET updated_at = 'infinity' WHERE id = 5")
    app.do("INSERT INTO blocks VALUES ('x', 6, 1, 'no kind', 'T'), ('y', 7, 1, 'p', 'a')")
    app.do("INSERT INTO pages VALUES (999, repeat('x', 1001), NULL)")
    report = app.pull()
    assert report.stored == 696
    problems = app.aside()
    assert {row: column for row, (column, _) in problems.items()} == {
        "page/3": "url",
        "page/4": "title",
        "page/5": "updated_at",
        "page/6": "blocks",
        "page/999": "title",
    }
    assert "0.type" in problems["page/6"][1]
    assert "javascript" not in app.everything()
    [event] = app.site.catalog.events.latest(app.site.id, kind="rows_set_aside", limit=5)
    assert event.payload == {
        "source": "app",
        "rows": {"page.url": 1, "page.title": 2, "page.updated_at": 1, "page.blocks": 1},
    }
    app.pull()
    assert len(app.site.catalog.events.latest(app.site.id, kind="rows_set_aside", limit=5)) == 1
    app.do("UPDATE pages SET url = NULL, updated_at = now() WHERE id = 3")
    app.do("UPDATE pages SET title = NULL, updated_at = now() WHERE id = 8")
    app.do("DELETE FROM pages WHERE id = 4")
    former = app.stored()["page/8"]
    app.pull(scan=True)
    assert set(app.aside()) == {"page/5", "page/6", "page/8", "page/999"}
    assert app.stored()["page/8"] == former, "what was good of it stays"
    assert "page/3" in app.stored()


def test_a_change_that_is_committed_late_is_not_missed(make: Make) -> None:
    app = make(queries={"db_row": QUERIES["db_row"]})
    with psycopg.connect(app.url) as late:
        late.execute("INSERT INTO deals VALUES (1, 'Late', 'open', 1)")
        time.sleep(0.05)
        app.do("INSERT INTO deals VALUES (2, 'Early', 'open', 1)")
        assert app.pull().stored == 1
        late.commit()
    assert app.pull().stored == 1
    app.do("INSERT INTO deals VALUES (3, 'Future', 'open', 1, now() + interval '3 years')")
    app.pull()
    app.do("INSERT INTO deals VALUES (4, 'Now', 'open', 1)")
    app.pull()
    assert set(app.stored()) == {"db_row/1", "db_row/2", "db_row/3", "db_row/4"}
    app.do("INSERT INTO deals VALUES (5, 'Restored', 'open', 1, now() - interval '2 days')")
    assert app.pull().stored == 0
    report = app.pull(scan=True)
    assert report.read_again == ("db_row",)
    assert "db_row/5" in app.stored()
    assert app.pull(scan=True).read_again == ()


def test_equal_times_at_the_end_of_a_batch_lose_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make(queries={"db_row": QUERIES["db_row"]}, overlap_seconds=0)
    app.do(
        "INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1, date '2026-01-01' + n / 400"
        " FROM generate_series(1, 1300) n"
    )
    write, calls = following.RecordWriter._write_with_retries, []

    def dying(self: Any, *given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return write(self, *given, **more)

    monkeypatch.setattr(following.RecordWriter, "_write_with_retries", dying)
    with pytest.raises(KeyboardInterrupt):
        app.pull()
    assert 0 < len(app.stored()) < 1300
    monkeypatch.undo()
    os.environ[app.variable] = app.url
    report = app.pull()
    assert report.rows < 1300, "what was stored before is not read again"
    assert len(app.stored()) == 1300
    assert app.lanes() == {1}
    app.do("UPDATE deals SET name = 'Changed', updated_at = now() WHERE id = 1")
    app.pull()
    assert app.lanes() == {0, 1}


def test_a_query_that_fails_takes_nothing_and_tells_no_value_and_no_url(make: Make) -> None:
    app = make()
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 30) n")
    app.do("INSERT INTO templates VALUES (1, 'Minutes')")
    app.pull()
    secret = "sk-aVerySecretToken1234567890"
    app.do("INSERT INTO deals VALUES (99, %s, 'open', 1)", secret)
    bad = {
        "missing": "SELECT id, nme AS name, updated_at FROM templates",
        "value": "SELECT id, CASE WHEN id = 99 THEN name::int::text ELSE name END AS name,"
        " 'x' AS database_uuid, updated_at FROM deals",
        "writes": "SELECT nextval('s') AS id, name, updated_at FROM templates",
        "slow": "SELECT id, name, pg_sleep(3)::text AS description, updated_at FROM templates",
    }
    app.do("CREATE SEQUENCE s")
    said = {}
    for name, query in bad.items():
        source_type = "db_row" if name == "value" else "template"
        app.configure(queries={**QUERIES, source_type: query}, timeout_seconds=1)
        with pytest.raises(ListingFailed) as failed:
            app.pull(scan=True, allow_deletes=True)
        said[name] = f"{failed.value} {failed.value.hint}"
    assert 'column "nme" does not exist' in said["missing"]
    assert "(22P02)" in said["value"]
    assert "(25006)" in said["writes"]
    assert "(57014)" in said["slow"]
    assert len(app.stored()) == 31
    kept = "\n".join([*said.values(), app.everything()])
    assert secret not in kept
    password = psycopg.conninfo.conninfo_to_dict(app.url)["password"]
    assert str(password) not in kept
    state = app.states.read_for_tenant(app.site.id)["app"]
    assert state.failures == 4
    assert "57014" in (state.error or "")
    app.configure(queries=QUERIES, timeout_seconds=60)
    app.pull(scan=True)
    assert app.states.read_for_tenant(app.site.id)["app"].failures == 0


def test_a_database_that_is_away_takes_nothing(make: Make) -> None:
    app = make()
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 5) n")
    app.pull()
    os.environ[app.variable] = "postgresql://ann:hunter2@127.0.0.1:9/none"
    with pytest.raises(ListingFailed, match="no server listens at this address") as failed:
        app.pull(scan=True)
    assert "hunter2" not in f"{failed.value} {app.everything()}"
    os.environ[app.variable] = app.url
    assert len(app.stored()) == 5


def test_what_is_gone_leaves_by_its_key_and_many_are_held(make: Make) -> None:
    app = make()
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 100) n")
    app.pull()
    app.do("DELETE FROM deals WHERE id <= 10")
    assert app.pull().removed == 0
    report = app.pull(scan=True)
    assert (report.removed, report.held) == (10, 0)
    app.do("DELETE FROM deals WHERE id <= 60")
    report = app.pull(scan=True)
    assert (report.removed, report.held) == (0, 50)
    assert len(app.stored()) == 90
    assert app.states.read_for_tenant(app.site.id)["app"].held_deletions == 50
    [event] = app.site.catalog.events.latest(app.site.id, kind="deletions_held", limit=5)
    assert event.payload["vanished"] == 50
    [held] = app.site.catalog.departures.list_held(app.site.id)
    assert (held.source, held.documents) == ("app", 50)
    assert app.pull(scan=True, allow_deletes=True).removed == 50
    assert len(app.stored()) == 40
    assert app.site.catalog.departures.list_held(app.site.id) == []


def test_the_records_of_a_database_that_is_empty_are_held(make: Make) -> None:
    """The database may have been restored without rows, or the URL may be wrong."""
    app = make()
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 3) n")
    app.pull()
    app.do("DELETE FROM deals")
    for _ in range(2):
        report = app.pull(scan=True)
        assert (report.removed, report.held) == (0, 3)
        assert len(app.stored()) == 3
    assert app.states.read_for_tenant(app.site.id)["app"].held_deletions == 3
    assert app.pull(scan=True, allow_deletes=True).removed == 3
    assert app.stored() == {}
    assert app.pull(scan=True).held == 0


def test_a_page_whose_key_is_gone_takes_its_comments_and_files(make: Make) -> None:
    """Their rows are still in the database."""
    app = make()
    app.do("INSERT INTO pages (id, title) VALUES (1, 'Pumps'), (2, 'Valves')")
    mine, yours = (str(uuid.UUID(int=number)) for number in (1, 2))
    app.do(
        "INSERT INTO comments (id, page, body) VALUES (%s, 1, 'Mine.'), (%s, 2, 'Yours.')",
        *(mine, yours),
    )
    app.do("INSERT INTO files (id, page, name, updated_at) VALUES (1, 1, 'notes.md', now())")
    app.pull()
    assert {"page/1", f"comment/{mine}", "file/1"} <= {*app.stored()}
    app.do("DELETE FROM pages WHERE id = 1")
    assert app.pull(scan=True).removed == 3
    assert {*app.stored()} == {"page/2", f"comment/{yours}"}


def test_blocks_are_changed_alone_and_one_of_an_unknown_page_is_set_aside(make: Make) -> None:
    blocks = (
        "SELECT id, page AS page_uuid, kind AS type, body AS text, archived, meta AS metadata,"
        " now() AS updated_at FROM blocks"
    )
    app = make(queries={"page": QUERIES["page"], "block": blocks})
    app.do("INSERT INTO pages VALUES (1, 'One')")
    app.do("INSERT INTO blocks VALUES ('b1', 1, 1, 'paragraph', 'First.')")
    app.pull()
    app.do("UPDATE blocks SET body = 'Second.' WHERE id = 'b1'")
    app.do("INSERT INTO blocks VALUES ('b2', 77, 1, 'paragraph', 'Lost.')")
    app.pull(scan=True)
    assert "Second." in app.stored()["page/1"]
    assert app.aside()["block/b2"][0] == "page_uuid"


BLOCKS = (
    "SELECT id, page AS page_uuid, kind AS type, body AS text, archived, meta AS metadata,"
    " updated_at FROM blocks"
)


def with_blocks(make: Make) -> App:
    """Create an application whose blocks have old times of their own."""
    app = make(queries={"page": QUERIES["page"], "block": BLOCKS})
    app.do("ALTER TABLE blocks ADD updated_at timestamptz DEFAULT now() - interval '2 days'")
    app.do("INSERT INTO pages VALUES (1, 'One', NULL, now() - interval '3 days')")
    app.do("INSERT INTO blocks VALUES ('b1', 1, 1, 'paragraph', 'First.')")
    return app


def test_pages_whose_blocks_are_pulled_too_are_read_whole_only_for_what_changed_unseen(
    make: Make,
) -> None:
    app = with_blocks(make)
    app.pull()
    app.do("UPDATE blocks SET body = 'Second.', updated_at = now() - interval '1 day'")
    assert app.pull().stored == 1
    assert app.pull(scan=True).read_again == (), "a page is as new as its latest block"
    assert "Second." in app.stored()["page/1"]
    app.do("UPDATE pages SET title = 'Restored', updated_at = now() - interval '1 hour'")
    app.do("UPDATE blocks SET body = 'Third.', updated_at = now()")
    app.pull()
    app.do("UPDATE pages SET title = 'Older', updated_at = now() - interval '2 hours'")
    app.do("UPDATE blocks SET updated_at = now() - interval '3 hours'")
    assert app.pull(scan=True).read_again == ("page", "block")
    assert "Older" in app.stored()["page/1"]
    assert "Third." in app.stored()["page/1"]
    assert app.pull(scan=True).read_again == ()


def test_a_block_comes_when_its_page_does(make: Make) -> None:
    app = with_blocks(make)
    app.do("INSERT INTO blocks VALUES ('b2', 77, 1, 'paragraph', 'Lost.')")
    app.do("INSERT INTO blocks VALUES ('b3', 78, 1, 'paragraph', 'Orphan.')")
    app.pull()
    assert app.aside().keys() == {"block/b2", "block/b3"}
    app.do("UPDATE blocks SET updated_at = now() WHERE id = 'b1'")
    app.pull()
    app.do("INSERT INTO pages VALUES (77, 'Late')")
    assert app.pull().stored == 1
    assert "Lost." in app.stored()["page/77"]
    assert app.aside().keys() == {"block/b3"}
    app.do("DELETE FROM blocks WHERE id = 'b3'")
    app.do("INSERT INTO pages VALUES (78, 'Later')")
    app.pull()
    assert app.aside().keys() == {"block/b3"}
    app.pull(scan=True)
    assert app.aside() == {}


def test_a_value_that_is_too_large_is_not_read(make: Make) -> None:
    app = make()
    app.do("INSERT INTO templates VALUES (1, 'Letter', repeat('x', 30000000), '1')")
    app.do("INSERT INTO templates VALUES (2, 'Minutes', 'Of meetings', '{}')")
    app.do("INSERT INTO templates VALUES (3, 'Data', '', to_jsonb(repeat('y', 5000000)))")
    [config] = get_pulled_sources(app.tenant)
    with database.open_snapshot(config) as opened, opened.open_rows("template") as (names, rows):
        found = {row.values[0]: row for row in rows}
    assert [names[found[id_].largest or 0] for id_ in (1, 3)] == ["description", "payload"]
    assert found[2].largest is None
    assert all(len(str(row.values)) < 1_000 for row in found.values())
    assert app.pull().stored == 1
    assert {row: column for row, (column, _) in app.aside().items()} == {
        "template/1": "description",
        "template/3": "payload",
    }
    assert "4 MiB" in app.aside()["template/1"][1]
    app.pull(scan=True)
    assert len(app.aside()) == 2
    app.do("UPDATE templates SET about = 'Short', updated_at = now() WHERE id = 1")
    app.pull()
    assert app.aside().keys() == {"template/3"}


def test_columns_of_odd_names_and_types_are_read_and_those_of_one_name_refused(make: Make) -> None:
    query = (
        """SELECT id, 'crm' AS database_uuid, name AS "50% :of `it""s", amount, updated_at,"""
        """ ARRAY[1, 2] AS "Parts", NULL AS nothing, 12::bigint AS size FROM deals"""
    )
    app = make(queries={"db_row": query})
    app.do("INSERT INTO deals VALUES (1, 'Zeppelin', 'won', 12.50)")
    assert app.pull(scan=True).stored == 1
    stored = app.stored()["db_row/1"]
    assert all(part in stored for part in ("Zeppelin", "[1, 2]", "12.50", '50% :of `it\\"s'))
    app.configure(queries={"db_row": query.replace('"Parts"', "amount")})
    with pytest.raises(ListingFailed, match="two columns 'amount'"):
        app.pull()


def test_a_long_pull_holds_no_snapshot_for_long(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make(queries={"db_row": QUERIES["db_row"]}, overlap_seconds=0)
    monkeypatch.setattr(database, "_OLD_SNAPSHOT_SECONDS", 0.0)
    opened: list[Any] = []
    opening = pull.open_snapshot

    @contextmanager
    def counted(config: Any) -> Iterator[Any]:
        opened.append(config)
        with opening(config) as found:
            yield found

    monkeypatch.setattr(pull, "open_snapshot", counted)
    app.do(
        "INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1, date '2026-01-01' + n / 700"
        " FROM generate_series(1, 2800) n"
    )
    report = app.pull(scan=True)
    assert report.stored == len(app.stored()) == 2800
    assert len(opened) > 2
    opened.clear()
    app.do("UPDATE deals SET updated_at = '2026-02-01', name = 'X'")
    assert app.pull().stored == 2800
    assert len(opened) <= 2, "rows of one time are followed to their end"


def test_a_pull_whose_lock_is_lost_writes_no_more(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make(queries={"db_row": QUERIES["db_row"]})
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 1200) n")
    write = following.RecordWriter.write

    def losing(self: Any, *given: Any) -> Any:
        if app.stored():
            with app.site.catalog.database.begin() as connection:
                ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE objid = :id"
                low = _compute_lock_key(app.site.id, "app") & 0xFFFFFFFF
                assert connection.scalars(text(ended), {"id": low}).all() == [True]
        return write(self, *given)

    monkeypatch.setattr(following.RecordWriter, "write", losing)
    with pytest.raises(TenantLocked, match="no longer locked"):
        app.pull()
    monkeypatch.undo()
    assert len(app.stored()) == 500
    assert app.states.read_for_tenant(app.site.id)["app"].failures == 0
    os.environ[app.variable] = app.url
    app.pull()
    assert len(app.stored()) == 1200


def test_blocks_of_two_pages_may_have_one_id(make: Make) -> None:
    blocks = (
        "SELECT body AS id, page AS page_uuid, kind AS type, id AS text, archived,"
        " now() AS updated_at FROM blocks"
    )
    pages = "SELECT id, title, '[]'::json AS blocks, updated_at FROM pages"
    app = make(queries={"page": pages, "block": blocks})
    app.do("INSERT INTO pages VALUES (1, 'One'), (2, 'Two')")
    app.do(
        "INSERT INTO blocks VALUES ('Of one.', 1, 1, 'paragraph', 'intro'),"
        " ('Of two.', 2, 1, 'paragraph', 'intro')"
    )
    app.pull()
    assert "Of one." in app.stored()["page/1"]
    assert "Of two." in app.stored()["page/2"]


def test_pages_without_blocks_would_take_away_those_that_are_pulled(make: Make) -> None:
    blocks = "SELECT id, page AS page_uuid, kind AS type, now() AS updated_at FROM blocks"
    pages = "SELECT id, title, updated_at FROM pages"
    app = make(queries={"page": pages, "block": blocks})
    with pytest.raises(ListingFailed, match="no column 'blocks'"):
        app.pull()


def test_names_in_a_row_that_are_none_of_ours_are_not_told(make: Make) -> None:
    poisoned = r"""SELECT id, title, '[{"a\u0000AKIAIOSFODNN7EXAMPLE": 1}]'::json AS blocks,
        updated_at FROM pages WHERE id = 1 UNION ALL
        SELECT id, title, '[]'::json, updated_at FROM pages WHERE id > 1"""
    poisoned = poisoned.replace("\\\\u", "\\u")
    app = make(queries={"page": poisoned})
    app.do("INSERT INTO pages VALUES (1, 'One'), (2, 'Two')")
    assert app.pull().stored == 1
    column, problem = app.aside()["page/1"]
    assert column == "blocks"
    assert problem.startswith("0.")
    assert "AKIA" not in app.everything()


def test_the_panel_shows_pulled_records_of_the_scope_of_their_source(make: Make) -> None:
    app = make()
    app.do("INSERT INTO templates VALUES (1, 'Letter', NULL, '1')")
    app.pull()

    def listed(**scopes: str) -> list[tuple[str, str]]:
        states, principals = app.site.catalog.record_states, ["public", "members"]
        found = states.page(app.site.id, principals, RecordFilter(), scopes=scopes, limit=10)
        return [(one.source, one.source_id) for one in found]

    assert listed(app=app.tenant.access.scope) == [("app", "1")]
    assert listed(app="secret") == []
    assert listed(other=app.tenant.access.scope) == []


@pytest.mark.long
def test_a_pull_that_is_killed_loses_nothing(make: Make) -> None:
    app = make(queries={"db_row": QUERIES["db_row"]})
    app.do(
        "INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1, now() - interval '9 days'"
        " + n * interval '1 s' FROM generate_series(1, 20000) n"
    )
    process = app.site.installation.start("workspace", "pull", app.site.id)
    deadline = time.monotonic() + 120
    while len(app.stored()) < 1_000 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    stored = len(app.stored())
    assert 1_000 <= stored < 20_000
    report = app.pull()
    assert report.stored == 20_000 - stored
    assert report.rows < 20_000
    assert len(app.stored()) == 20_000


def test_json_that_cannot_be_read_is_the_fault_of_one_row(make: Make) -> None:
    app = make()
    app.do("INSERT INTO templates SELECT n, 'T' || n, NULL, '1' FROM generate_series(1, 5) n")
    app.do("ALTER TABLE templates ALTER payload TYPE json")
    for number, payload in enumerate(
        ["[" * 3_000 + "]" * 3_000, "9" * 5_000, r'{"a": "\ud800"}', '"said"'], start=1
    ):
        app.do("UPDATE templates SET payload = %s WHERE id = %s", payload, number)
    assert app.pull().stored == 2
    assert {row: column for row, (column, _) in app.aside().items()} == dict.fromkeys(
        ("template/1", "template/2", "template/3"), "payload"
    )
    assert '"payload":"said"' in app.stored()["template/4"]


def test_rows_with_one_id_are_one_record_that_does_not_change(make: Make) -> None:
    app = make(queries={"db_row": QUERIES["db_row"].replace("SELECT id", "SELECT id % 2 AS id")})
    app.do("INSERT INTO deals SELECT n, 'Deal ' || n, 'open', 1 FROM generate_series(1, 9) n")
    assert app.pull().stored == 2
    before = app.stored()
    assert app.pull().stored == 0
    assert app.pull(scan=True).read_again == ()
    assert app.stored() == before


def test_a_credential_in_a_pulled_record_is_told_with_its_source(make: Make) -> None:
    app = make()
    secret = "ghp_" + "a1B2" * 9
    app.do("INSERT INTO templates VALUES (1, 'Letter', %s, '1')", f"Use {secret} for it.")
    app.pull()
    app.site.sync()
    events = app.site.catalog.events.latest(app.site.id, kind="secret_dropped", limit=5)
    told = {(e.payload["source"], e.payload["type"], e.payload["id"]) for e in events}
    assert told == {("app", "template", "1")}


def test_two_pulls_of_one_source_do_not_meet(make: Make) -> None:
    app = make()
    with app.locks.hold(app.site.id, "app"), pytest.raises(TenantLocked, match="being pulled"):
        app.pull()
    with ThreadPoolExecutor() as pool:
        with app.locks.hold(app.site.id, "app"):
            waiting = pool.submit(app.pull, wait_seconds=30.0)
            time.sleep(0.5)
            assert app.states.read_for_tenant(app.site.id) == {}, "it waits"
        assert waiting.result().rows == 0
    assert app.states.read_for_tenant(app.site.id)["app"].pulled_at is not None


def test_another_kind_of_database_is_read_as_well(make: Make, tmp_path: Path) -> None:
    app = make(timezone="UTC")
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE pages (id INTEGER, title TEXT, blocks TEXT, updated_at TEXT);"
            "INSERT INTO pages VALUES (1, 'One', '[]', '2026-01-02 10:00:00');"
            "INSERT INTO pages VALUES (2, 'Two', '{', '2026-01-02T11:00:00Z');"
            "INSERT INTO pages VALUES (4, 'Four', '[]', '0001-01-01 00:00:00');"
            "INSERT INTO pages VALUES ('a' || char(0), 'Nul', '[]', '2026-01-02 10:00:00');"
        )
    os.environ[app.variable] = f"sqlite:///file:{path}?mode=ro&uri=true"
    app.configure(queries={"page": "SELECT id, title, blocks, updated_at FROM pages"})
    assert app.pull().stored == 1
    aside = app.aside()
    assert {row: column for row, (column, _) in aside.items()} == {
        "page/2": "blocks",
        "page/4": "updated_at",
        "page/a\N{REPLACEMENT CHARACTER}": "id",
    }
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO pages VALUES (3, 'Three', '[]', '2026-01-02 12:00:00')")
        connection.execute("DELETE FROM pages WHERE id = 1")
    report = app.pull(scan=True)
    assert (report.stored, report.removed) == (1, 1)


def test_a_source_is_free_before_postgres_notices_that_its_connection_is_gone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make()
    session = Database.session
    with ExitStack() as until_noticed:

        @contextmanager
        def noticed_later(database: Database) -> Iterator[Connection]:
            yield until_noticed.enter_context(session(database))

        monkeypatch.setattr(Database, "session", noticed_later)
        with app.locks.hold(app.site.id, "app"):
            assert app.locks.find_held([(app.site.id, "app")])
        assert not app.locks.find_held([(app.site.id, "app")])


def test_the_sensor_and_the_schedule_pull_what_is_due(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in ("_MAX_TENANTS_PER_RUN", "_MAX_SLOW_RUNS"):  # tenants of other tests are due too
        monkeypatch.setattr(f"rag_assets.systems.workspace.definitions.{most}", 1_000)
    app, other = make(every_seconds=3_600), make()
    del os.environ[other.variable]
    app.do("INSERT INTO deals VALUES (1, 'Deal', 'open', 1), (2, 'Deal', 'open', 1)")
    repository = build_defs().get_repository_def()
    session = app.site.driver.session

    def tick(name: str) -> list[Any]:
        sensor = repository.get_sensor_def(name)
        with dg.build_sensor_context(
            instance=session.instance,
            repository_def=repository,
            resources=sensor_resources(),
        ) as context:
            return list(sensor.evaluate_tick(context).run_requests or [])

    def run(config: Any) -> bool:
        job = repository.get_job("pull_sources")
        return job.execute_in_process(
            instance=session.instance, run_config=config, raise_on_error=False
        ).success

    def asked_for(requests: list[Any]) -> set[str]:
        configs = [request.run_config["ops"]["pull_tenants"]["config"] for request in requests]
        return {id_ for config in configs for id_ in config["tenants"]}

    assert asked_for(tick("sql_sources")) >= {app.site.id, other.site.id}
    config = {"tenants": [other.site.id, app.site.id]}
    assert not run({"ops": {"pull_tenants": {"config": config}}}), "one of them fails"
    assert set(app.stored()) == {"db_row/1", "db_row/2"}, "and holds up no other"
    assert app.site.id not in asked_for(tick("sql_sources")), "it is not due yet"
    with app.site.catalog.database.begin() as connection:
        due = "UPDATE rag_catalog.pulled_sources SET next_at = now() WHERE tenant = :t"
        connection.execute(text(due), {"t": app.site.id})
    with app.locks.hold(app.site.id, "app"):
        assert app.site.id not in asked_for(tick("sql_sources")), "a run would be in vain"
    assert app.site.id in asked_for(tick("sql_sources"))
    app.do("DELETE FROM deals WHERE id = 1")
    os.environ[other.variable] = other.url
    run({"ops": {"pull_tenants": {"config": {"keys": True}}}})
    assert set(app.stored()) == {"db_row/2"}
    shown = app.site.installation.cli("workspace", "pulls", app.site.id, "--json")
    [state] = shown.json["sources"]
    assert (state["source"], state["error"]) == ("app", None)
    assert state["scanned_at"] is not None


TREE = """
    SELECT id, parent, kind, inherit, to_json(readers) AS read, archived FROM places
"""
PLACES = """
CREATE TABLE places (id text PRIMARY KEY, parent text, kind text, inherit bool, readers text[],
    archived bool);
INSERT INTO places VALUES ('1', NULL, 'page', false, '{ann}', NULL),
    ('2', '1', NULL, NULL, NULL, false),
    ('crm', '2', 'database', NULL, NULL, NULL);
"""


def test_the_tree_is_pulled_and_says_who_reads_what_is_pulled(make: Make) -> None:
    app = make(tree=TREE)
    app.do(PLACES)
    app.do("INSERT INTO pages (id, title) VALUES (1, 'A heron'), (2, 'A second heron')")
    app.do("INSERT INTO deals (id, name) VALUES (1, 'Heron deal')")
    assert app.pull().pages == 3
    app.site.sync()
    assert {hit["source_id"] for hit in app.site.hits("heron")} == {"1", "2"}
    assert app.site.send("GET", "/rag/access?page_uuid=crm&principal=ann").json()["readable"]
    assert app.pull().pages == 0

    # A move, other readers, and rows that are not pages.
    app.do("UPDATE places SET readers = '{bob}' WHERE id = '1'")
    app.do("UPDATE places SET parent = NULL WHERE id = 'crm'")
    app.do("INSERT INTO places (id, kind) VALUES ('odd', 'folder'), ('no id', 'page')")
    app.do("INSERT INTO places (id, parent) VALUES ('a', 'b'), ('b', 'a')")
    report = app.pull()
    assert (report.pages, dict(report.set_aside)) == (
        2,
        {"tree.kind": 1, "tree.id": 1, "tree.parent": 2},
    )
    assert {hit["source_type"] for hit in app.site.hits("heron")} == {"db_row"}
    assert app.site.send("GET", "/rag/access?page_uuid=2&principal=bob").json()["readable"]
    assert app.site.send("GET", "/rag/access?page_uuid=crm&principal=members").json()["readable"]


def test_pages_that_are_gone_from_the_database_go_by_a_scan_and_many_are_held(make: Make) -> None:
    app = make(tree=TREE)
    app.do(PLACES)
    app.do("INSERT INTO places (id, parent) SELECT 'p' || n, '1' FROM generate_series(1, 60) AS n")
    app.pull()
    app.do("DELETE FROM places WHERE id IN ('crm', 'p1')")
    assert app.pull().pages_removed == 0
    assert app.pull(scan=True).pages_removed == 2
    assert app.site.send("GET", "/rag/tree/p1").status_code == 404
    app.do("DELETE FROM places WHERE starts_with(id, 'p')")
    assert app.pull(scan=True).pages_removed == 0
    [event] = app.site.catalog.events.latest(app.site.id, kind="deletions_held", limit=1)
    assert event.payload == {"source": "app (tree)", "vanished": 59}
    assert app.pull(scan=True, allow_deletes=True).pages_removed == 59
    # A page that another one still names as its parent stays in the tree.
    app.do("DELETE FROM places WHERE id = '1'")
    assert app.pull(scan=True).pages_removed == 0
    assert app.site.send("GET", "/rag/tree/1").status_code == 200
    app.configure(tree="SELECT id, colour FROM places")
    with pytest.raises(ListingFailed, match="tree"):
        app.pull(scan=True)
