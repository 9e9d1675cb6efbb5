"""Resulting tables in SQLite's form, for comparison with Laravel's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_assets.systems.code_memory.laravel.schema.tables import MigratedTable

SQLITE_TYPES = {
    **dict.fromkeys(
        ["integer", "tinyInteger", "smallInteger", "mediumInteger", "bigInteger", "year"], "integer"
    ),
    **dict.fromkeys(["char", "string", "enum", "set", "uuid", "ipAddress"], "varchar"),
    **dict.fromkeys(["text", "tinyText", "mediumText", "longText", "json", "jsonb"], "text"),
    **dict.fromkeys(["dateTime", "dateTimeTz", "timestamp", "timestampTz"], "datetime"),
    **dict.fromkeys(["time", "timeTz"], "time"),
    **dict.fromkeys(["float", "double"], "float"),
    "macAddress": "varchar",
    "decimal": "numeric",
    "boolean": "tinyint(1)",
    "binary": "blob",
}


def ours(table: MigratedTable) -> dict[str, Any]:
    primary = next((columns for kind, columns in table.indexes.values() if kind == "primary"), ())
    return {
        "columns": {name: _column(attributes) for name, attributes in table.columns.items()},
        "primary": tuple(primary),
        "indexes": {
            name: (kind == "unique", tuple(columns))
            for name, (kind, columns) in table.indexes.items()
            if kind in {"unique", "index"}
        },
        "foreign": sorted(
            (tuple(key.columns), key.table, tuple(key.references), key.on_delete)
            for key in table.foreign_keys.values()
        ),
    }


def laravels(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return Laravel's description of a table, without names that SQLite does not report."""
    keys: dict[int, list[Mapping[str, Any]]] = {}
    for row in table["foreign"]:
        keys.setdefault(row["id"], []).append(row)
    columns = sorted((c for c in table["columns"] if c["pk"]), key=lambda c: c["pk"])
    return {
        "columns": {
            c["name"]: (
                c["type"].lower().split(" generated")[0],
                not c["notnull"],
                _default_of(c["dflt_value"]),
                c["hidden"] in {2, 3},
            )
            for c in table["columns"]
        },
        "primary": tuple(c["name"] for c in columns),
        "indexes": {
            (
                index["name"]
                if index["origin"] == "c"
                else "_".join([name, *index["columns"], "unique"])
            ): (index["unique"], tuple(index["columns"]))
            for index in table["indexes"]
            if index["origin"] in {"c", "u"}
        },
        "foreign": sorted(
            (
                tuple(row["from"] for row in rows),
                rows[0]["table"],
                tuple(row["to"] for row in rows),
                _action(rows[0]["on_delete"]),
            )
            for rows in keys.values()
        ),
    }


def _column(stated: Mapping[str, Any]) -> tuple[str, bool, str | None, bool]:
    generated = "virtualAs" in stated or "storedAs" in stated
    default = _default(stated)
    if stated["type"].startswith(("timestamp", "dateTime")) and stated.get("useCurrent"):
        default = "current_timestamp"
    kind = SQLITE_TYPES.get(stated["type"], stated["type"])
    # A generated column is nullable in SQLite unless it says otherwise, which Laravel never does.
    return (kind, bool(stated.get("nullable")) or generated, default, generated)


def _default(stated: Mapping[str, Any]) -> str | None:
    value = stated.get("default")
    if value is None:
        return None
    if isinstance(value, dict):
        return str(value["raw"]).strip("()'").lower()
    return str(int(value)) if isinstance(value, bool) else str(value).lower()


def _default_of(value: str | None) -> str | None:
    return None if value is None else re.sub(r"^'|'$", "", value).strip("()").lower()


def _action(stated: str) -> str:
    return "" if stated == "NO ACTION" else stated.lower()
