"""The tables that result from a repository's migrations, replayed in dependency order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_assets.code.frameworks.django.apps import Apps
from rag_assets.code.frameworks.django.migrations import Migration, in_order, migrations_of
from rag_assets.code.frameworks.django.modules import Evidence, Unresolved
from rag_assets.code.frameworks.django.operations import Operations
from rag_assets.code.frameworks.django.program import Program
from rag_assets.code.frameworks.django.states import ModelState, State, StatedField
from rag_assets.code.model import FileFacts


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a resulting table.

    Attributes:
        name: of the column.
        type: the last name of the class of its field.
        nullable: whether it may be null.
        attributes: what else was stated as text, number or truth value.
    """

    name: str
    type: str
    nullable: bool
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Index:
    """An index.

    Attributes:
        name: stated; "" where Django makes one.
        kind: primary, unique, index or check.
        columns: in order.
    """

    name: str
    kind: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key.

    Attributes:
        name: "": Django makes one.
        columns: of this table.
        table: which it refers to; "" if that is not of the repository.
        references: columns there; none where the table is not known.
        on_delete: in lower case (`cascade`); Django itself sees to it.
        on_update: "": Django states none.
    """

    name: str
    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]
    on_delete: str
    on_update: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the migrations leave it.

    Attributes:
        name: its last name.
        model: label and name of the model that it keeps (`billing.Invoice`); "" for none.
        columns, indexes, foreign_keys: in the order in which they were made.
        evidence: every operation that touched it under any of its names, as they run.
        complete: whether nothing of it was computed.
        reasons: why it is not complete.
    """

    name: str
    model: str
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]
    evidence: tuple[Evidence, ...]
    complete: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """What the migrations of a repository result in.

    Attributes:
        tables: by name.
        unresolved: operations that the text does not state.
        order: paths of the migrations as they run.
    """

    tables: Mapping[str, Table]
    unresolved: tuple[Unresolved, ...]
    order: tuple[str, ...]


def tables_of(files: Iterable[FileFacts]) -> Tables:
    """Replay the migrations of a repository.

    Args:
        files: of it.
    """
    program = Program(files)
    migrations = in_order(migrations_of(program, Apps(program)))
    state = State(user=program.user_model)
    for one in migrations:
        _apply(program, one, state)
    found = {table.name: table for table in _tables(state)}
    order = tuple(one.module.path for one in migrations)
    return Tables(dict(sorted(found.items())), tuple(state.unresolved), order)


def _apply(program: Program, migration: Migration, state: State) -> None:
    Operations(program, migration, state).run()


def _tables(state: State) -> Iterator[Table]:
    for name in sorted(state.created):
        reasons = ("SQL made or changed it",)
        yield Table(name, "", (), (), (), tuple(state.written[name]), False, reasons)
    for model in state.models.values():
        if not model.proxy and model.managed:
            yield _table(model, state)
            yield from _between(model, state)


def _table(model: ModelState, state: State) -> Table:
    columns: list[Column] = []
    indexes: list[Index] = []
    keys: list[ForeignKey] = []
    for field in model.fields.values():
        if field.virtual:
            continue
        columns.append(Column(field.column, field.type, field.nullable, field.options))
        indexes += _indexes(field)
        if field.target:
            keys.append(_key(field, state))
    by_field = {field.name: field.column for field in model.fields.values()}
    for name, (kind, fields) in model.indexes.items():
        shown = tuple(by_field.get(one.lstrip("-"), one.lstrip("-")) for one in fields)
        indexes.append(Index(name, kind, shown))
    for fields in model.together:
        indexes.append(Index("", "unique", tuple(by_field.get(one, one) for one in fields)))
    reasons = tuple(dict.fromkeys(model.reasons))
    written = state.written.get(model.table, [])
    if written:
        reasons = (*reasons, "SQL made or changed it")
    return Table(
        model.table,
        f"{model.app}.{model.name}",
        tuple(columns),
        tuple(indexes),
        tuple(keys),
        (*model.evidence, *written),
        not reasons,
        reasons,
    )


def _indexes(field: StatedField) -> Iterator[Index]:
    if field.options.get("primary_key") is True:
        yield Index("", "primary", (field.column,))
    elif field.options.get("unique") is True or field.single:
        yield Index("", "unique", (field.column,))
    elif field.options.get("db_index") is True:
        yield Index("", "index", (field.column,))


def _key(field: StatedField, state: State) -> ForeignKey:
    other = state.find(field.target)
    key = "" if other is None else other.key
    stated = field.options.get("to_field")
    if other is not None and isinstance(stated, str) and stated in other.fields:
        key = other.fields[stated].column
    table = "" if other is None else other.table
    return ForeignKey("", (field.column,), table, (key,) if key else (), field.on_delete, "")


def _between(model: ModelState, state: State) -> Iterator[Table]:
    """The tables that Django makes for relations of many to many."""
    for field in model.fields.values():
        if not field.many or field.through:
            continue
        stated = field.options.get("db_table")
        name = stated if isinstance(stated, str) else f"{model.table}_{field.name}"
        other = state.find(field.target)
        last = field.target.rpartition(".")[2].lower()
        first = model.name.lower()
        one, two = (f"from_{last}", f"to_{last}") if last == first else (first, last)
        columns = (
            Column("id", "AutoField", False, {"primary_key": True}),
            Column(f"{one}_id", "ForeignKey", False, {}),
            Column(f"{two}_id", "ForeignKey", False, {}),
        )
        keys = (
            ForeignKey("", (f"{one}_id",), model.table, (model.key,), "cascade", ""),
            ForeignKey(
                "",
                (f"{two}_id",),
                "" if other is None else other.table,
                () if other is None else (other.key,),
                "cascade",
                "",
            ),
        )
        indexes = (
            Index("", "primary", ("id",)),
            Index("", "unique", (f"{one}_id", f"{two}_id")),
        )
        yield Table(name, "", columns, indexes, keys, (field.evidence,), True, ())
