"""The text that describes a table, line by line, for all frameworks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


class ColumnLike(Protocol):
    """A column."""

    @property
    def name(self) -> str:
        """Return the name."""

    @property
    def type(self) -> str:
        """Return the type, as the framework names it."""

    @property
    def nullable(self) -> bool:
        """Return whether the column may be null."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the other attributes."""


class IndexLike(Protocol):
    """An index."""

    @property
    def name(self) -> str:
        """Return the name."""

    @property
    def kind(self) -> str:
        """Return the kind: unique, primary and so on."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns, in order."""


class ForeignKeyLike(Protocol):
    """A foreign key."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns in this table."""

    @property
    def table(self) -> str:
        """Return the referenced table; "" if it is computed."""

    @property
    def references(self) -> tuple[str, ...]:
        """Return the columns in the referenced table."""

    @property
    def on_delete(self) -> str:
        """Return the action on delete in lower case; "" if none is stated."""


class TableLike(Protocol):
    """A table as it is after all migrations."""

    @property
    def name(self) -> str:
        """Return the name."""

    @property
    def columns(self) -> Sequence[ColumnLike]:
        """Return the columns, in order."""

    @property
    def indexes(self) -> Sequence[IndexLike]:
        """Return the indexes, in order."""

    @property
    def foreign_keys(self) -> Sequence[ForeignKeyLike]:
        """Return the foreign keys, in order."""

    @property
    def evidence(self) -> Sequence[Any]:
        """Return the statements that changed the table."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons why the table is incomplete."""


_ATTRIBUTES = ("length", "total", "places", "default", "unsigned", "autoIncrement", "comment")
_LONGEST = 200


def table_lines(table: TableLike, models: Sequence[str]) -> tuple[str, ...]:
    """Return the description of a table, line by line.

    Args:
        table: the table as it is after all migrations.
        models: names of the models that map to it.
    """
    return (
        f"table {table.name}",
        *([f"models: {', '.join(models)}"] if models else []),
        "columns:",
        *(f"- {_column(one)}" for one in table.columns),
        *_under("indexes:", (_index(one) for one in table.indexes)),
        *_under("foreign keys:", (_foreign_key(one) for one in table.foreign_keys)),
        *([f"incomplete: {'; '.join(table.reasons)}"] if table.reasons else []),
    )


def _under(heading: str, lines: Iterator[str]) -> tuple[str, ...]:
    found = [f"- {line}" for line in lines]
    return (heading, *found) if found else ()


def _column(one: ColumnLike) -> str:
    more = ["nullable"] if one.nullable else []
    for name in _ATTRIBUTES:
        value = one.attributes.get(name)
        if value is True:
            more.append(name)
        elif value not in (None, False):
            more.append(f"{name} {' '.join(str(value).split())[:_LONGEST]}")
    return ", ".join([f"{one.name} {one.type}", *more])


def _index(one: IndexLike) -> str:
    return f"{one.kind} ({', '.join(one.columns)}) {one.name}".rstrip()


def _foreign_key(one: ForeignKeyLike) -> str:
    there = f"{one.table or '?'} ({', '.join(one.references)})"
    ends = f" on delete {one.on_delete}" if one.on_delete else ""
    return f"({', '.join(one.columns)}) to {there}{ends}"
