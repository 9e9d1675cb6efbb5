"""The state of a table while migrations are applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact

_INDEXES: Final = frozenset({"primary", "unique", "index", "fulltext", "spatialIndex"})
_UNKEPT: Final = frozenset(
    {"length", "total", "places", "allowed", "precision", "change", "guards"}
)


class TableState:
    """Columns, indexes and foreign keys of a table after some of the statements.

    Attributes:
        columns, indexes, foreign: attributes, by name.
        touched: the statements so far, each with the path of its file.
        reasons: why something may be missing.
    """

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self.indexes: dict[str, dict[str, Any]] = {}
        self.foreign: dict[str, dict[str, Any]] = {}
        self.touched: list[tuple[str, Fact]] = []
        self.reasons: list[str] = []

    def touch(self, path: str, fact: Fact, *, known: bool) -> None:
        """Record a statement as evidence, and the reasons why it may be incomplete.

        Args:
            path: the path of its file.
            fact: the statement.
            known: whether its conditions are known to hold.
        """
        self.touched.append((path, fact))
        self.reasons += [f"{unread} is not known" for unread in fact.values["unread"]]
        if not known:
            self.reasons.append("a statement runs under a condition that is not known")

    def add_column(self, stated: Mapping[str, Any], change_keeps: bool) -> None:
        """Add a column, or change one.

        Args:
            stated: its attributes.
            change_keeps: whether a change keeps attributes that it does not repeat.
        """
        name = stated["name"]
        made = {key: value for key, value in stated.items() if key not in {"change", "guards"}}
        if not stated.get("change"):
            self.columns.setdefault(name, made)
            self._auto_increment(name, made)
            return
        old = self.columns.get(name)
        if old is None:
            self.reasons.append("a column is changed here but made elsewhere")
        elif change_keeps or stated.get("partial"):
            kept = {key: value for key, value in old.items() if key not in _UNKEPT}
            made = {**(old if stated.get("partial") else kept), **made}
            made.pop("partial", None)
        self.columns[name] = made

    def run(self, command: Mapping[str, Any]) -> None:
        """Apply a command: an index, a foreign key, a drop or a rename."""
        name = command["name"]
        if name in _INDEXES:
            self.indexes[str(command["index"])] = dict(command)
        elif name == "foreign":
            self.foreign[str(command["index"])] = dict(command)
        elif name == "dropColumn":
            for column in command["columns"]:
                self._drop_column(column)
        elif name == "renameColumn":
            self._rename_column(command["from"], command["to"])
        elif name == "renameIndex":
            self.indexes = {
                (command["to"] if key == command["from"] else key): value
                for key, value in self.indexes.items()
            }
        elif name.startswith("drop"):
            self._drop_index(command)

    def _auto_increment(self, name: str, column: Mapping[str, Any]) -> None:
        primary = any(index["name"] == "primary" for index in self.indexes.values())
        if column.get("autoIncrement") is True and not primary:
            self.indexes["primary"] = {"name": "primary", "index": "primary", "columns": [name]}

    def _drop_column(self, column: Any) -> None:
        if not isinstance(column, str):
            return
        self.columns.pop(column, None)
        for held in (self.indexes, self.foreign):
            for key in [key for key, value in held.items() if column in value["columns"]]:
                del held[key]

    def _rename_column(self, old: Any, new: Any) -> None:
        if not isinstance(old, str) or not isinstance(new, str):
            self.reasons.append("the name of a column is not known")
            return
        self.columns = {
            (new if key == old else key): ({**value, "name": new} if key == old else value)
            for key, value in self.columns.items()
        }
        for held in (self.indexes, self.foreign):
            for value in held.values():
                value["columns"] = [new if name == old else name for name in value["columns"]]

    def _drop_index(self, command: Mapping[str, Any]) -> None:
        kind, index = command["name"], str(command.get("index"))
        if kind == "dropPrimary":
            primary = [key for key, value in self.indexes.items() if value["name"] == "primary"]
            for key in primary:
                del self.indexes[key]
        elif kind == "dropForeign":
            self.foreign.pop(index, None)
        elif kind == "dropConstraint":
            self.foreign.pop(index, None)
            self.indexes.pop(index, None)
        else:
            self.indexes.pop(index, None)
