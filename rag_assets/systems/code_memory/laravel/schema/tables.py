"""The tables that result from a repository's migrations, applied in Laravel's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.routes.model import Evidence
from rag_assets.systems.code_memory.laravel.settings import Settings
from rag_assets.systems.code_memory.symbols.model import FileFacts

_INDEXES: Final = frozenset({"primary", "unique", "index", "fulltext", "spatialIndex"})
_UNKEPT: Final = frozenset({"length", "total", "places", "allowed", "precision", "change"})


class TableState:
    """Columns, indexes and foreign keys of a table after some of the statements.

    Attributes:
        columns, indexes, foreign: attributes, by name.
    """

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self.indexes: dict[str, dict[str, Any]] = {}
        self.foreign: dict[str, dict[str, Any]] = {}
        self.touched: list[tuple[str, Fact]] = []
        self.reasons: list[str] = []

    def touch(self, path: str, fact: Fact) -> None:
        """Record a statement of a file as evidence, and why it may be incomplete."""
        self.touched.append((path, fact))
        self.reasons += [f"{unread} is not known" for unread in fact.values["unread"]]
        if fact.values.get("conditional"):
            self.reasons.append("a statement depends on a condition whose value is unknown")

    def add_column(self, stated: Mapping[str, Any], change_keeps: bool) -> None:
        """Add a column, or change one.

        Args:
            change_keeps: whether a change keeps attributes that it does not repeat.
        """
        name = stated["name"]
        made = {key: value for key, value in stated.items() if key != "change"}
        if not stated.get("change"):
            self.columns.setdefault(name, made)
            self._add_primary_index(name, made)
            return
        old = self.columns.get(name)
        if old is None:
            self.reasons.append("a changed column is not created by any migration that was read")
        elif change_keeps:
            kept = {key: value for key, value in old.items() if key not in _UNKEPT}
            made = {**kept, **made}
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

    def _add_primary_index(self, name: str, column: Mapping[str, Any]) -> None:
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
            self.reasons.append("the name of a column is unknown")
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
        else:
            self.indexes.pop(index, None)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a resulting table.

    Attributes:
        type: Laravel's name of the type (`string`, `bigInteger`).
        attributes: all other stated attributes: default, length, unsigned, allowed, comment,
            autoIncrement, virtualAs and so on, as in facts of the kind `schema`.
    """

    name: str
    type: str
    nullable: bool
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Index:
    """An index.

    Attributes:
        name: the name as stated, or by Laravel's convention.
        kind: primary, unique, index, fulltext or spatialIndex.
    """

    name: str
    kind: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key.

    Attributes:
        name: stated, or by Laravel's convention.
        table: the referenced table; "" if it is computed.
        on_delete, on_update: the action, in lower case; "" if not stated.
    """

    name: str
    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    on_delete: str
    on_update: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is after all migrations.

    Attributes:
        columns, indexes, foreign_keys: its parts, in the order of their creation.
        evidence: all statements that changed it under any of its names, in the order in which they
            run.
    """

    name: str
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]
    evidence: tuple[Evidence, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables after a repository's migrations.

    Attributes:
        unresolved: statements on a computed table, which may change any table.
    """

    tables: Mapping[str, Table]
    unresolved: tuple[Evidence, ...]


def resolve_tables(files: Iterable[FileFacts], *, change_keeps: bool = True) -> Tables:
    """Apply the migrations by file name; only `up()` is read.

    Conditions are not evaluated: the statements of all branches are applied, except those on
    missing tables, and their tables are incomplete.

    Args:
        files: the files of one repository, in any order; settings are read from the files that
            state them.
        change_keeps: whether `change()` keeps attributes that it does not repeat, as before Laravel
            11.
    """
    given = list(files)
    settings = Settings(given)
    states: dict[str, TableState] = {}
    unresolved: list[Evidence] = []
    for statement in _iter_ordered_statements(given):
        evidence = _insert_settings(statement, settings)
        if isinstance(evidence.fact.values["table"], str):
            _apply_statement(evidence, states, change_keeps)
        else:
            unresolved.append(evidence)
    return Tables(
        {name: _build_table(name, states[name]) for name in sorted(states)}, tuple(unresolved)
    )


def _insert_settings(evidence: Evidence, settings: Settings) -> Evidence:
    """Return a statement with the values of the repository's settings in place of marks."""
    values = settings.resolve(evidence.fact.values)
    unread = list(values["unread"])
    if isinstance(values["table"], Mapping):
        unread.append("the name of the table")
    left_out = [one for one in values.get("columns", ()) if not isinstance(one["name"], str)]
    if left_out:
        values["columns"] = [one for one in values["columns"] if isinstance(one["name"], str)]
        unread.append("the name of a column")
    values["unread"] = unread
    return Evidence(evidence.path, replace(evidence.fact, values=values))


def _iter_ordered_statements(files: Sequence[FileFacts]) -> Iterator[Evidence]:
    """Yield the statements of all migrations in running order."""
    for file in sorted(files, key=lambda file: (PurePosixPath(file.path).name, file.path)):
        found = [fact for fact in file.facts if fact.kind == "schema"]
        for fact in sorted(found, key=lambda fact: fact.values["order"]):
            yield Evidence(file.path, fact)


def _apply_statement(evidence: Evidence, states: dict[str, TableState], change_keeps: bool) -> None:
    values = evidence.fact.values
    name, action = values["table"], values["action"]
    if action == "drop":
        states.pop(name, None)
        return
    if values.get("conditional") and name not in states and action != "create":
        return  # The usual condition is that the table exists.
    state = states.setdefault(name, TableState())
    if not state.touched and action != "create":
        state.reasons.append("no migration that was read creates this table")
    state.touch(evidence.path, evidence.fact)
    for column in values.get("columns", ()):
        state.add_column(column, change_keeps)
    _run_commands(values.get("commands", ()), name, states)
    target = values.get("to")
    if isinstance(target, str):
        _rename_table(states, name, target)
    elif action == "rename":
        state.reasons.append("the new name of the table is computed")


def _run_commands(
    commands: Sequence[Mapping[str, Any]], name: str, states: dict[str, TableState]
) -> None:
    """Apply the commands of a statement to a table; a command may drop the table."""
    state = states[name]
    for command in commands:
        state.run(command)
        if command["name"] == "renameColumn":
            for key in (key for one in states.values() for key in one.foreign.values()):
                if key.get("on") == name and key.get("references") == command["from"]:
                    key["references"] = command["to"]
        elif command["name"] in {"drop", "dropIfExists"}:
            states.pop(name, None)


def _rename_table(states: dict[str, TableState], name: str, target: str) -> None:
    moved = states.pop(name, None)
    if moved is None or target == name:
        return
    states[target] = moved
    for key in (key for state in states.values() for key in state.foreign.values()):
        if key.get("on") == name:
            key["on"] = target


def _build_table(name: str, state: TableState) -> Table:
    columns = tuple(
        Column(
            key,
            str(attributes.get("type", "")),
            bool(attributes.get("nullable")),
            {k: v for k, v in attributes.items() if k not in {"name", "type", "nullable"}},
        )
        for key, attributes in state.columns.items()
    )
    indexes = tuple(
        Index(key, index["name"], tuple(map(str, index["columns"])))
        for key, index in state.indexes.items()
    )
    keys = tuple(_build_foreign_key(key, stated) for key, stated in state.foreign.items())
    evidence = tuple(Evidence(path, fact) for path, fact in state.touched)
    reasons = tuple(dict.fromkeys(state.reasons))
    return Table(name, columns, indexes, keys, evidence, reasons)


def _build_foreign_key(name: str, stated: Mapping[str, Any]) -> ForeignKey:
    references = stated.get("references") or "id"
    listed = references if isinstance(references, list) else [references]
    return ForeignKey(
        name,
        tuple(map(str, stated["columns"])),
        stated["on"] if isinstance(stated.get("on"), str) else "",
        tuple(map(str, listed)),
        str(stated.get("onDelete") or "").lower(),
        str(stated.get("onUpdate") or "").lower(),
    )
