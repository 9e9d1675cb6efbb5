"""Rows of queries as records, and errors about invalid rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.record_bodies import BODIES, BlockBody, PageBlock
from rag_assets.systems.workspace.pulling import TYPES, RecordType
from rag_assets.systems.workspace.pulling.rows import COLUMNS, PulledRow, RowReader, SetAsideRow

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
    found = body(
        "db_row",
        database_uuid="crm",
        name="Ada",
        since=date(2026, 1, 2),
        won=True,
        amount=Decimal("12.50"),
        empty=None,
        tags=["a", "b"],
    )
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
def test_a_row_that_is_no_record_names_the_column_and_no_value(
    row: dict[str, Any], column: str
) -> None:
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
def test_a_query_with_other_columns_is_refused_once_and_not_row_by_row(
    names: list[str], said: str
) -> None:
    with pytest.raises(ListingFailed, match=said) as refused:
        RowReader("page", names, BERLIN)
    assert refused.value.hint
