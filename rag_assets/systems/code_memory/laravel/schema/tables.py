"""The tables of a repository after all its migrations, applied in Laravel's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.routes.model import LocatedFact
from rag_assets.systems.code_memory.laravel.settings import RepositorySettings
from rag_assets.systems.code_memory.symbols.model import FileFacts

_INDEXES: Final = frozenset({"primary", "unique", "index", "fulltext", "spatialIndex"})
_DROPPED_ATTRIBUTES: Final = frozenset(
    {"length", "total", "places", "allowed", "precision", "change"}
)


@dataclass(slots=True)
class ForeignKey:
    """A foreign key.

    Attributes:
        on_delete: the action, in lower case; "" if not stated.
    """

    columns: list[str]
    table: str
    references: list[str]
    on_delete: str

    @classmethod
    def from_command(cls, command: Mapping[str, Any]) -> ForeignKey:
        """Return the foreign key that a command creates; it refers to a column `id` by default."""
        references = command.get("references") or "id"
        table = command.get("on")
        return cls(
            [*map(str, command["columns"])],
            table if isinstance(table, str) else "",
            [*map(str, references if isinstance(references, list) else [references])],
            str(command.get("onDelete") or "").lower(),
        )


class MigratedTable:
    """A table after some or all of the migrations.

    Attributes:
        columns: Laravel's attributes of each column (`type`, `nullable`, `default` …) by its name,
            as in facts of the kind `schema`.
        indexes: kind (primary, unique, index, fulltext or spatialIndex) and columns of each index,
            by its name.
        evidence: all statements that changed it under any of its names, as they run.
    """

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self.indexes: dict[str, tuple[str, list[str]]] = {}
        self.foreign_keys: dict[str, ForeignKey] = {}
        self.evidence: list[LocatedFact] = []
        self.reasons: dict[str, None] = {}

    def add_evidence(self, evidence: LocatedFact) -> None:
        """Add a statement that changes the table, with reasons why the table may be incomplete."""
        self.evidence.append(evidence)
        values = evidence.fact.values
        self.reasons |= dict.fromkeys(f"{unread} is not known" for unread in values["unread"])
        if values.get("conditional"):
            self.reasons["a statement depends on a condition whose value is unknown"] = None

    def add_column(self, column: Mapping[str, Any], *, change_keeps: bool) -> None:
        """Add or change a column.

        Args:
            change_keeps: whether a change keeps the attributes that it does not repeat.
        """
        name = column["name"]
        attributes = {key: value for key, value in column.items() if key not in {"change", "name"}}
        if not column.get("change"):
            self.columns.setdefault(name, attributes)
            has_primary = any(kind == "primary" for kind, _ in self.indexes.values())
            if column.get("autoIncrement") is True and not has_primary:
                self.indexes["primary"] = "primary", [name]
            return
        former = self.columns.get(name)
        if former is None:
            self.reasons["a changed column is not created by any migration that was read"] = None
        elif change_keeps:
            kept_attributes = {
                key: value for key, value in former.items() if key not in _DROPPED_ATTRIBUTES
            }
            attributes = {**kept_attributes, **attributes}
        self.columns[name] = attributes

    def run(self, command: Mapping[str, Any]) -> None:
        """Apply a command to the table: add an index or a foreign key, drop or rename."""
        kind = command["name"]
        if kind in _INDEXES:
            columns = [*map(str, command["columns"])]
            self.indexes[str(command["index"])] = kind, columns
        elif kind == "foreign":
            self.foreign_keys[str(command["index"])] = ForeignKey.from_command(command)
        elif kind == "dropColumn":
            for column in command["columns"]:
                self._drop_column(column)
        elif kind == "renameColumn":
            self._rename_column(command["from"], command["to"])
        elif kind == "renameIndex":
            self.indexes = {
                (command["to"] if name == command["from"] else name): index
                for name, index in self.indexes.items()
            }
        elif kind == "dropPrimary":
            self.indexes = {n: index for n, index in self.indexes.items() if index[0] != "primary"}
        elif kind == "dropForeign":
            self.foreign_keys.pop(str(command.get("index")), None)
        elif kind.startswith("drop"):
            self.indexes.pop(str(command.get("index")), None)

    def _drop_column(self, column: Any) -> None:
        if not isinstance(column, str):
            return
        self.columns.pop(column, None)
        self.indexes = {n: index for n, index in self.indexes.items() if column not in index[1]}
        keys = self.foreign_keys.items()
        self.foreign_keys = {name: key for name, key in keys if column not in key.columns}

    def _rename_column(self, old: Any, new: Any) -> None:
        if not isinstance(old, str) or not isinstance(new, str):
            self.reasons["the name of a column is unknown"] = None
            return
        former = self.columns.items()
        self.columns = {(new if name == old else name): values for name, values in former}
        for _, columns in self.indexes.values():
            _rename(columns, old, new)
        for key in self.foreign_keys.values():
            _rename(key.columns, old, new)


def _rename(columns: list[str], old: Any, new: Any) -> None:
    """Replace a name in a list of columns; computed names are ignored."""
    if isinstance(new, str):
        columns[:] = [new if name == old else name for name in columns]


@dataclass(frozen=True, slots=True)
class MigratedTables:
    """The tables after a repository's migrations.

    Attributes:
        unresolved: statements on a table whose name is computed; they may change any table.
    """

    tables: Mapping[str, MigratedTable]
    unresolved: tuple[LocatedFact, ...]


def resolve_tables(files: Iterable[FileFacts], *, change_keeps: bool = True) -> MigratedTables:
    """Return the tables after all migrations, applied by file name; only `up()` is read.

    Conditions are not evaluated: the statements of all branches are applied, unless their table
    does not exist, and the tables they change are marked as incomplete.

    Args:
        files: the files of one repository, in any order; settings are read from the files that
            state them.
        change_keeps: whether `change()` keeps attributes that it does not repeat, as before Laravel
            11.
    """
    files = list(files)
    settings = RepositorySettings(files)
    tables: dict[str, MigratedTable] = {}
    unresolved: list[LocatedFact] = []
    for statement in _iter_ordered_statements(files):
        evidence = _insert_settings(statement, settings)
        if isinstance(evidence.fact.values["table"], str):
            _apply_statement(evidence, tables, change_keeps=change_keeps)
        else:
            unresolved.append(evidence)
    return MigratedTables({name: tables[name] for name in sorted(tables)}, tuple(unresolved))


def _insert_settings(evidence: LocatedFact, settings: RepositorySettings) -> LocatedFact:
    """Return a statement with marks of settings replaced by the repository's values."""
    values = settings.resolve(evidence.fact.values)
    unread = list(values["unread"])
    if isinstance(values["table"], Mapping):
        unread.append("the name of the table")
    columns = values.get("columns", ())
    named_columns = [column for column in columns if isinstance(column["name"], str)]
    if len(named_columns) < len(columns):
        values["columns"] = named_columns
        unread.append("the name of a column")
    values["unread"] = unread
    return LocatedFact(evidence.path, replace(evidence.fact, values=values))


def _iter_ordered_statements(files: Sequence[FileFacts]) -> Iterator[LocatedFact]:
    """Yield the statements of all migrations in the order in which Laravel runs them."""
    for file in sorted(files, key=lambda file: (PurePosixPath(file.path).name, file.path)):
        statements = [fact for fact in file.facts if fact.kind == "schema"]
        for fact in sorted(statements, key=lambda fact: fact.values["order"]):
            yield LocatedFact(file.path, fact)


def _apply_statement(
    evidence: LocatedFact, tables: dict[str, MigratedTable], *, change_keeps: bool
) -> None:
    values = evidence.fact.values
    name, action = values["table"], values["action"]
    if action == "drop":
        tables.pop(name, None)
        return
    if values.get("conditional") and name not in tables and action != "create":
        return  # The usual condition is that the table exists.
    table = tables.setdefault(name, MigratedTable())
    if not table.evidence and action != "create":
        table.reasons["no migration that was read creates this table"] = None
    table.add_evidence(evidence)
    for column in values.get("columns", ()):
        table.add_column(column, change_keeps=change_keeps)
    _run_commands(values.get("commands", ()), tables, name)
    target = values.get("to")
    if isinstance(target, str):
        _rename_table(tables, name, target)
    elif action == "rename":
        table.reasons["the new name of the table is computed"] = None


def _run_commands(
    commands: Sequence[Mapping[str, Any]], tables: dict[str, MigratedTable], name: str
) -> None:
    """Apply commands to a table, and apply column renames to foreign keys that refer to it."""
    table = tables[name]
    for command in commands:
        table.run(command)
        if command["name"] == "renameColumn":
            for key in _iter_references(tables, name):
                _rename(key.references, command["from"], command["to"])
        elif command["name"] in {"drop", "dropIfExists"}:
            tables.pop(name, None)


def _iter_references(tables: Mapping[str, MigratedTable], name: str) -> Iterator[ForeignKey]:
    keys = (key for table in tables.values() for key in table.foreign_keys.values())
    return (key for key in keys if key.table == name)


def _rename_table(tables: dict[str, MigratedTable], name: str, target: str) -> None:
    table = tables.pop(name, None)
    if table is None:
        return
    tables[target] = table
    for key in _iter_references(tables, name):
        key.table = target
