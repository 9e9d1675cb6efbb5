"""Rows that are pulled from a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError
from sqlalchemy import text
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from rag_assets.common.errors import ConfigurationError, ListingFailed, TenantLocked, UnknownSource
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.record_bodies import BODIES, BlockBody, PageBlock
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.pulling import SQL, TYPES, RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.database import open_snapshot
from rag_assets.systems.workspace.pulling.dialects import escape_parameters
from rag_assets.systems.workspace.pulling.pull import (
    choose_worst_failure,
    find_due_tenants,
    get_pulled_sources,
)
from rag_assets.systems.workspace.pulling.rows import COLUMNS, PulledRow, RowReader, SetAsideRow
from rag_assets.systems.workspace.pulling.states import SourceState
from rag_assets.tenants.model import Tenant

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def read(source_type: RecordType, zone: ZoneInfo = BERLIN, **row: Any) -> PulledRow | SetAsideRow:
    row = {"id": "1", "updated_at": AT, **row}
    return RowReader(source_type, [*row], zone).read([*row.values()])


def body(source_type: RecordType, **row: Any) -> dict[str, Any]:
    found = read(source_type, **row)
    assert isinstance(found, PulledRow), found
    return {name: value for name, value in found.body.items() if name != "updated_at"}


def problem(source_type: RecordType, **row: Any) -> tuple[str, str]:
    found = read(source_type, **row)
    assert isinstance(found, SetAsideRow), found
    return found.column, found.problem


def test_columns_are_the_fields_of_each_body() -> None:
    assert set(TYPES) == set(BODIES)
    for source_type in TYPES:
        # A database has one state, and no writes that could come late.
        fields = set(BODIES[source_type].model_fields) - {"version"}
        if source_type == BlockBody.TYPE:
            fields = fields - {"block"} | (set(PageBlock.model_fields) - {"block_id", "children"})
        assert set(COLUMNS[source_type]) == fields


def test_values_of_databases_become_those_of_bodies() -> None:
    uuid = UUID(int=7)
    assert body("page", id=4, title="T", blocks='[{"block_id": "b"}]', url="") == {
        "title": "T",
        "blocks": [{"block_id": "b"}],
    }
    assert body("comment", page_uuid=uuid, text=b"caf\xc3\xa9", block_id=None) == {
        "page_uuid": str(uuid),
        "text": "café",
    }
    assert body("block", page_uuid=3, type="heading", text="x", level=Decimal(2), archived=0) == {
        "page_uuid": "3",
        "block": {"block_id": "1", "type": "heading", "text": "x", "level": 2, "archived": False},
    }
    assert body("template", name="N", payload="not JSON") == {"name": "N", "payload": "not JSON"}
    assert body("template", name="N", payload='{"a": 1}') == {"name": "N", "payload": {"a": 1}}


def test_columns_of_a_row_of_a_database_are_its_values() -> None:
    row = {"name": "Ada", "since": date(2026, 1, 2), "won": True, "amount": Decimal("12.50")}
    found = body("db_row", database_uuid="crm", **row, empty=None, tags=["a", "b"])
    assert found == {
        "database_uuid": "crm",
        "values": [
            {"name": "name", "value_text": "Ada"},
            {"name": "since", "value_text": "2026-01-02"},
            {"name": "won", "value_text": "true"},
            {"name": "amount", "value_text": "12.50"},
            {"name": "tags", "value_text": '["a", "b"]'},
        ],
    }
    values = [{"name": "n", "value_text": "v"}]
    assert body("db_row", database_uuid="crm", values=values)["values"] == values


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (datetime.fromisoformat("2026-07-01T12:00:00"), datetime(2026, 7, 1, 10, tzinfo=UTC)),
        (date(2026, 1, 1), datetime(2025, 12, 31, 23, tzinfo=UTC)),
        ("2026-01-01 12:00:00", datetime(2026, 1, 1, 11, tzinfo=UTC)),
        ("2026-01-01T12:00:00Z", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        (datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5))),) * 2,
    ],
)
def test_times_without_a_zone_are_those_of_the_source(given: Any, expected: datetime) -> None:
    found = read("comment", page_uuid="p", text="t", updated_at=given)
    assert isinstance(found, PulledRow)
    assert found.updated_at == expected


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"id": None}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"id": "x" * 513}, "id"),
        ({"updated_at": None}, "updated_at"),
        ({"updated_at": "infinity"}, "updated_at"),
        ({"updated_at": 1_700_000_000}, "updated_at"),
        ({"title": b"\xff\xfe"}, "title"),
        ({"blocks": "[{"}, "blocks"),
        ({"blocks": '[{"a": NaN}]'}, "blocks"),
        ({"blocks": "[" * 100_000}, "blocks"),
    ],
)
def test_the_error_of_a_row_names_its_column_and_no_value(row: dict[str, Any], column: str) -> None:
    found, said = problem("page", **{"title": "T", **row})
    assert found == column
    assert not any(str(value) in said for value in row.values() if value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["id", "title"], "no column 'updated_at'"),
        (["updated_at", "title"], "no column 'id'"),
        (["id", "updated_at", "title", "colour"], "unknown column 'colour'"),
    ],
)
def test_a_query_with_other_columns_is_refused_once(names: list[str], said: str) -> None:
    with pytest.raises(ListingFailed, match=said) as refused:
        RowReader("page", names, BERLIN)
    assert refused.value.hint


NOW = datetime(2026, 11, 20, tzinfo=UTC)
VARIABLE = "PULLED_TEST_URL"


def config(**more: Any) -> SqlConfig:
    given = {"name": "app", "url": f"${VARIABLE}", "queries": {"page": "SELECT 1"}, **more}
    return SqlConfig.model_validate(given)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "postgresql://ann:hunter2@db/app"},
        *({"queries": {}}, {"queries": {"wiki": "SELECT 1"}}, {"queries": {"page": "  "}}),
        *({"timezone": "Mars/Olympus"}, {"timezone": "../../etc/passwd"}, {"overlap_seconds": -1}),
    ],
)
def test_invalid_settings_are_refused_without_credentials(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        config(**given)
    assert "hunter2" not in str(refused.value.errors(include_input=False))


def test_the_end_of_a_query_is_no_part_of_its_key() -> None:
    first = config(queries={"page": "SELECT 1 ;\n"})
    assert first.queries["page"] == "SELECT 1"
    assert first.compute_query_key("page") == config().compute_query_key("page")
    elsewhere = config(timezone="Europe/Berlin")
    assert first.compute_query_key("page") != elsewhere.compute_query_key("page")


def test_only_tenants_whose_records_have_types_pull_any() -> None:
    class Records:
        pass

    with pytest.raises(ConfigurationError, match="workspace"):
        SQL.build(config(), SourceContext(base=Path(), records=Records()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "is not set"),
        ("", "is not set"),
        ("hunter2", "does not contain a valid database URL"),
        ("postgresql://ann:hunter2@db:port/app", "does not contain a valid database URL"),
        ("oracle://ann:hunter2@db/app", "kind oracle, from which records cannot be pulled"),
        ("mssql+pyodbc://ann:hunter2@db/app", "kind mssql, from which records cannot be pulled"),
        ("sqlite+nothing://ann:hunter2@db/app", "does not support the kind"),
        ("mysql+pymysql://ann:hunter2@db/app", "is not installed: pymysql"),
    ],
)
def test_an_invalid_url_is_one_error_without_the_url(
    url: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if url is not None:
        monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(ConfigurationError, match=said) as refused, open_snapshot(config()):
        pass
    assert refused.value.hint
    assert VARIABLE in refused.value.message
    error: BaseException | None = refused.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = error.__cause__


SOURCE = {"type": "sql", **config().model_dump(mode="json")}


def record(tenant_id: str, *sources: dict[str, Any]) -> TenantRecord:
    given = {"id": tenant_id, "profile": "workspace", "sources": list(sources)}
    return TenantRecord(
        id=tenant_id, config=given, state="ACTIVE", incarnation=1, origin="file", scanned={}
    )


def state(**more: Any) -> SourceState:
    usual = SourceState("app", NOW, 0.5, None, NOW, 0, None, 0)
    return replace(usual, **more)


def test_tenants_are_due_by_their_sources_and_slow_ones_have_runs_of_their_own() -> None:
    ids = ("new", "quick", "slow", "later", "failed", "failing")
    records = [record(id_, SOURCE) for id_ in ids]
    states = {
        ("quick", "app"): state(),
        ("slow", "app"): state(seconds=200.0),
        ("later", "app"): state(next_at=NOW + timedelta(seconds=1)),
        ("failed", "app"): state(seconds=None, pulled_at=None, failures=3),
        ("failing", "app"): state(failures=1),
    }
    quick, slow = find_due_tenants(records, states, NOW)
    assert quick == ["quick"]
    assert slow == ["new", "slow", "failed", "failing"]
    # A tenant is not due while a source of it is pulled.
    records = [record("a", SOURCE)]
    assert find_due_tenants(records, {}, NOW, {("a", "app")}) == ([], [])
    assert find_due_tenants(records, {}, NOW, {("b", "app")}) == ([], ["a"])


@pytest.mark.parametrize("seconds", [0.5, 200.0])
def test_tenants_that_wait_longest_come_first(seconds: float) -> None:
    records = [record(id_, SOURCE) for id_ in ("a", "b", "c")]
    waits = {"a": 1, "b": 60, "c": 30}
    states = {
        (id_, "app"): state(seconds=seconds, next_at=NOW - timedelta(seconds=wait))
        for id_, wait in waits.items()
    }
    quick, slow = find_due_tenants(records, states, NOW)
    assert (quick or slow) == ["b", "c", "a"]


def test_a_failure_is_reported_before_a_lock() -> None:
    locked, failed = TenantLocked("l", hint="h"), ListingFailed("f", hint="h")
    assert choose_worst_failure([locked, failed]) is failed
    assert choose_worst_failure([locked]) is locked


def test_a_tenant_without_a_sql_source_is_reported() -> None:
    tenant = Tenant.from_config(record("acme").config)
    with pytest.raises(UnknownSource, match="no source of type sql"):
        get_pulled_sources(tenant)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ':draft:', 'a:b', x::text, a[1:2], '\\:z', '\\\\:z', ':9' FROM t",
        "SELECT * FROM t WHERE at > '10:30' AND name <> ':smile:' -- :since",
        "SELECT ':a:b', ':$x', '\\:', ':', '::', ':::', '\\::x', ':x\\:y:z'",
    ],
)
def test_a_query_is_sent_as_it_is_written(query: str) -> None:
    sent = text(escape_parameters(query))
    assert not sent._bindparams
    compiled = sent.compile(dialect=SQLiteDialect(paramstyle="qmark"))
    assert str(compiled) == query
