"""Converts the rows of a query to bodies of records, or to problems of the rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from rag_assets.common.errors import ListingFailed
from rag_assets.common.invalid_values import InvalidFields, allowed_value
from rag_assets.records.drafts import Draft, DraftBuilder
from rag_assets.records.text_records import SOURCE_ID
from rag_assets.systems.workspace.pulling import RecordType
from rag_assets.systems.workspace.pulling.dialects import MAX_ROW_BYTES

_ID, _CHANGED = "id", "updated_at"


@dataclass(frozen=True, slots=True)
class PulledRow:
    """A row that was read without a problem.

    Attributes:
        body: body of the record, as it would be pushed.
    """

    source_id: str
    updated_at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """A row that cannot become a record.

    Attributes:
        source_id: id of the row; empty without an id.
        problem: the problem, without the value.
        awaited_page: page of a block, if the only problem is that this page is missing.
    """

    source_id: str
    column: str
    problem: str
    awaited_page: str | None = None


def to_text(value: Any, _: ZoneInfo) -> Any:
    """Return a value as text; lists and objects stay as they are.

    Raises:
        ValueError: the value is not valid UTF-8.
    """
    if isinstance(value, (str, list, dict)):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (bytes, memoryview)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise ValueError("the value is not valid UTF-8") from None
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _to_flat_text(value: Any, zone: ZoneInfo) -> str:
    text = to_text(value, zone)
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)


def parse_json_value(value: Any, _: ZoneInfo) -> Any:
    """Return a column's value as JSON data; text is parsed.

    Raises:
        ValueError: the text is not valid JSON.
    """
    try:
        return _parse_json(value)
    except (ValueError, RecursionError):
        raise ValueError("the value is not valid JSON") from None


def _to_payload(value: Any, zone: ZoneInfo) -> Any:
    """Return the value parsed as JSON; a text that is not JSON is returned as text."""
    try:
        return _parse_json(value)
    except json.JSONDecodeError:
        return to_text(value, zone)
    except (ValueError, RecursionError):
        raise ValueError(
            "the value is JSON with numbers or nesting that cannot be stored"
        ) from None


def _parse_json(value: Any) -> Any:
    if not isinstance(value, (str, bytes, memoryview)):
        return value
    return json.loads(
        value if isinstance(value, str) else bytes(value), parse_constant=_refuse_constant
    )


def _refuse_constant(_: str) -> None:
    raise ValueError


def to_boolean(value: Any, _: ZoneInfo) -> Any:
    """Return 0 and 1 as booleans; other values stay as they are."""
    # Some databases store booleans as numbers.
    return bool(value) if isinstance(value, (int, Decimal)) and value in {0, 1} else value


def _to_integer(value: Any, _: ZoneInfo) -> Any:
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        return int(value)
    return value


def _to_time(value: Any, zone: ZoneInfo) -> datetime:
    """Convert a value to a time; a time without a zone gets the zone `zone`."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("not a valid time: expected RFC 3339") from None
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=zone)
    if isinstance(value, date):
        return datetime.combine(value, time(), zone)
    raise ValueError("the value must be a time")


Converter = Callable[[Any, ZoneInfo], Any]
_COMMON_COLUMNS: Mapping[str, Converter] = {"url": to_text, _CHANGED: _to_time}
COLUMNS: Final[Mapping[RecordType, Mapping[str, Converter]]] = MappingProxyType(
    {
        "page": {**_COMMON_COLUMNS, "title": to_text, "blocks": parse_json_value},
        "block": {
            **_COMMON_COLUMNS,
            "page_uuid": to_text,
            "after": to_text,
            "type": to_text,
            "text": to_text,
            "level": _to_integer,
            "archived": to_boolean,
            "metadata": parse_json_value,
        },
        "comment": {
            **_COMMON_COLUMNS,
            "page_uuid": to_text,
            "block_id": to_text,
            "text": to_text,
            "resolved_at": _to_time,
        },
        "file": {
            **_COMMON_COLUMNS,
            "page_uuid": to_text,
            "name": to_text,
            "metadata": parse_json_value,
        },
        "template": {
            **_COMMON_COLUMNS,
            "name": to_text,
            "description": to_text,
            "payload": _to_payload,
        },
        "db_row": {**_COMMON_COLUMNS, "database_uuid": to_text, "values": parse_json_value},
    }
)
"""Converters of all columns except `id`; further columns of a db_row are values."""
_BLOCK_FIELDS = ("type", "text", "level", "archived", "metadata")
_KNOWN_NAMES: Final = frozenset({"block_id", *_BLOCK_FIELDS, "secret", "name", "value_text"})
"""Field names of blocks and values that the text of a problem may contain."""


class RowReader:
    """Reads the rows of one query.

    Args:
        needed: required columns, in addition to the id and the time of a change.

    Raises:
        ListingFailed: a column is missing or unknown.
    """

    def __init__(
        self,
        source_type: RecordType,
        names: Sequence[str],
        zone: ZoneInfo,
        *,
        needed: Sequence[str] = (),
    ) -> None:
        self._type, self._zone = source_type, zone
        self._names = [name.lower() for name in names]
        known = COLUMNS[source_type]
        missing = [name for name in (_ID, _CHANGED, *needed) if name not in self._names]
        if missing:
            raise ListingFailed(
                f"the query of {source_type} has no column {missing[0]!r}",
                hint="add this column to the query, with exactly this name",
            )
        others = [name for name in self._names if name != _ID and name not in known]
        self._values_by_name = source_type == "db_row" and "values" not in self._names
        if others and not self._values_by_name:
            raise ListingFailed(
                f"the query of {source_type} has the unknown column {others[0]!r}",
                hint=f"remove the column, or rename it to one of {', '.join([_ID, *known])}",
            )

    def read(self, row: Sequence[Any]) -> PulledRow | SetAsideRow:
        """Convert a row to the id and body of a record, or return its first problem."""
        columns = dict(zip(self._names, row, strict=True))
        source_id = format_row_id(columns.pop(_ID))
        if SOURCE_ID.fullmatch(source_id) is None:
            problem = "the id must be text of 1 to 512 characters, without control characters"
            return SetAsideRow(source_id, _ID, problem)
        body: dict[str, Any] = {}
        values: list[dict[str, str]] = []
        for column, value in columns.items():
            if value is None:
                continue
            try:
                if convert := COLUMNS[self._type].get(column):
                    body[column] = convert(value, self._zone)
                else:
                    values.append({"name": column, "value_text": _to_flat_text(value, self._zone)})
            except ValueError as error:
                return SetAsideRow(source_id, column, str(error))
        if body.get("url") == "":
            del body["url"]
        if _CHANGED not in body:
            return SetAsideRow(source_id, _CHANGED, "the value is required to detect changes")
        if self._values_by_name:
            body["values"] = values
        at: datetime = body[_CHANGED]
        return PulledRow(source_id, at, self._nest_block_fields(source_id, body))

    def describe_oversized_row(self, row: Sequence[Any], largest: int) -> SetAsideRow:
        """Return an oversized row with its problem; only the id of the row was read.

        Args:
            row: values of the row; all except the id are None.
        """
        source_id = format_row_id(dict(zip(self._names, row, strict=True))[_ID])
        problem = f"the row has more than {MAX_ROW_BYTES >> 20} MiB; this column is the largest"
        return SetAsideRow(source_id, self._names[largest], problem)

    def _nest_block_fields(self, source_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the fields of a block moved into `block`."""
        if self._type != "block":
            return body
        block = {name: body.pop(name) for name in _BLOCK_FIELDS if name in body}
        return {**body, "block": {"block_id": source_id, **block}}


def format_row_id(value: Any) -> str:
    """Return the id of a row as text; empty without an id."""
    if value is None:
        return ""
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)


def parse_row_time(value: Any, zone: ZoneInfo) -> datetime | None:
    """Return when a row was changed; None if its time is not valid."""
    try:
        return None if value is None else _to_time(value, zone)
    except ValueError:
        return None


def draft_row(
    drafting: DraftBuilder, source_type: RecordType, row: PulledRow
) -> Draft | SetAsideRow:
    """Return the draft of a row's record, validated like a pushed record.

    An invalid row is returned with its first problem instead.
    """
    try:
        return drafting.put(source_type, row.source_id, row.body)
    except InvalidFields as error:
        return describe_row_problem(row, error)


def describe_row_problem(row: PulledRow, error: InvalidFields) -> SetAsideRow:
    """Return an invalid row with its first problem and the column that causes it."""
    first = error.errors[0]
    path = [*first["loc"][1:]]
    if path[:1] == ["block"]:
        path = path[1:]
    field = path[0] if path else _ID
    column = {"source_id": _ID, "source_type": _ID}.get(str(field), str(field))
    within = ".".join(map(_format_step, path[1:]))
    problem = allowed_value(first)
    return SetAsideRow(row.source_id, column, f"{within}: {problem}" if within else problem)


def _format_step(step: Any) -> str:
    """Return one step of a field's path as text.

    An unknown name is hidden, because it may be a value with a secret.
    """
    return str(step) if isinstance(step, int) or step in _KNOWN_NAMES else "…"
