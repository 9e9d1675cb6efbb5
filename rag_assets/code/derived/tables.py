"""The lines of a table, whatever framework made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


class ColumnLike(Protocol):
    """A column."""

    @property
    def name(self) -> str:
        """Of the column."""

    @property
    def type(self) -> str:
        """As its framework calls it."""

    @property
    def nullable(self) -> bool:
        """Whether it may be null."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What else was stated."""


class IndexLike(Protocol):
    """An index."""

    @property
    def name(self) -> str:
        """Of the index."""

    @property
    def kind(self) -> str:
        """Unique, primary and so on."""

    @property
    def columns(self) -> tuple[str, ...]:
        """In order."""


class ForeignKeyLike(Protocol):
    """A foreign key."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Of this table."""

    @property
    def table(self) -> str:
        """That it refers to; "" if that is computed."""

    @property
    def references(self) -> tuple[str, ...]:
        """Columns there."""

    @property
    def on_delete(self) -> str:
        """In lower case; "" if nothing is stated."""


class TableLike(Protocol):
    """A table as migrations leave it."""

    @property
    def name(self) -> str:
        """Of the table."""

    @property
    def columns(self) -> Sequence[ColumnLike]:
        """In order."""

    @property
    def indexes(self) -> Sequence[IndexLike]:
        """In order."""

    @property
    def foreign_keys(self) -> Sequence[ForeignKeyLike]:
        """In order."""

    @property
    def evidence(self) -> Sequence[Any]:
        """Statements that touched it."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not complete."""


_ATTRIBUTES = ("length", "total", "places", "default", "unsigned", "autoIncrement", "comment")
_LONGEST = 200


def table_lines(table: TableLike, models: Sequence[str]) -> tuple[str, ...]:
    """What a table is, line by line.

    Args:
        table: as migrations leave it.
        models: names of its models.
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
