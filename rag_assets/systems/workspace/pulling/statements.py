"""Statements that read an operator's query, so that no value is sent before its size is checked.

A query is any SELECT, and its values may have any size. It is read as a derived table, for which
the database adds up the sizes. For an oversized row, the database sends only the id and the index
of the largest column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.sql.compiler import IdentifierPreparer

from rag_assets.ingest.sources.records import MAX_RECORD_BYTES
from rag_assets.systems.workspace.pulling.dialects import Dialect

MOST_ROW_BYTES: Final = 4 * MAX_RECORD_BYTES
"""Limit of a row as its database sends it: JSON may be longer there than when it is stored."""
MOST_KEY_BYTES: Final = 4_096
"""Limit of an id, which has 512 characters at most."""
# Matches parameters, and backslashes that SQLAlchemy removes: a query contains neither.
_ESCAPE = re.compile(r"\\(?=:[\w$]*(?![:\w$]))")
_PARAMETER = re.compile(r"(?<![:\w\\]):(?=[\w$]+(?![:\w$]))")
_ID, _CHANGED = "id", "updated_at"
_SIZE, _LARGEST = "rag_assets_size", "rag_assets_largest"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a query.

    Attributes:
        name: its name in the query.
        type_code: the driver's code of its type.
    """

    name: str
    type_code: Any = None


def escaped(query: str) -> str:
    """Return a query in a form that SQLAlchemy's text() sends as it was written."""
    return _PARAMETER.sub(r"\\:", _ESCAPE.sub(r"\\\\", query))


class Statements:
    """Statements that read one query.

    Args:
        dialect: of the database.
        preparer: quotes its names.
        query: the operator's query.
    """

    def __init__(self, dialect: Dialect, preparer: IdentifierPreparer, query: str) -> None:
        self._dialect, self._preparer = dialect, preparer
        # A comment may end the query.
        self._pulled = f"(\n{escaped(query)}\n) pulled"

    def nothing(self) -> str:
        """Return the statement for all columns, but without any row."""
        return f"SELECT * FROM {self._pulled} WHERE 1 = 0"  # noqa: S608 - the operator's

    def rows(self, columns: Sequence[Column], *, since: bool, of_pages: bool) -> str:
        """Return the statement for rows in the order of their changes.

        Its last column is the place of the largest column in an oversized row, for which only the
        id is sent; 0 for other rows.

        Args:
            columns: of the query.
            since: whether to select only rows that changed since `:since`.
            of_pages: whether to select only blocks of `:pages`.
        """
        conditions = [f"{_CHANGED} >= :since"] if since else []
        if of_pages:
            conditions.append(f"CAST(page_uuid AS {self._dialect.text}) IN :pages")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        inner = f"SELECT * FROM {self._pulled}{where} ORDER BY {_CHANGED}"  # noqa: S608
        return f"{self._judged(columns, inner, MOST_ROW_BYTES)} ORDER BY {_CHANGED}"

    def keys(self, columns: Sequence[Column], names: Sequence[str]) -> str:
        """Return the statement for some columns of all rows, in any order; see rows()."""
        wanted = [one for name in names for one in columns if one.name.lower() == name]
        inner = f"SELECT {', '.join(map(self._quoted, wanted))} FROM {self._pulled}"  # noqa: S608
        return self._judged(wanted, inner, MOST_KEY_BYTES)

    def all_rows(self, columns: Sequence[Column]) -> str:
        """Return the statement for all rows of a query without times; see rows()."""
        return self._judged(columns, f"SELECT * FROM {self._pulled}", MOST_ROW_BYTES)  # noqa: S608

    def _judged(self, columns: Sequence[Column], inner: str, most: int) -> str:
        """Return the statement for the values of rows within the size limit."""
        sizes = {one.name: size for one in columns if (size := self._size(one))}
        if not sizes:
            names = ", ".join(map(self._quoted, columns))
            return f"SELECT {names}, 0 FROM ({inner}) judged"  # noqa: S608
        fence, total = self._dialect.fence, " + ".join(sizes.values())
        fenced = f"({inner}{fence}) fenced"
        sized = f"(SELECT fenced.*, {total} AS {_SIZE} FROM {fenced}{fence}) judged"  # noqa: S608
        values = ", ".join(self._value(one, sizes.get(one.name), most) for one in columns)
        # The largest of n columns has at least an nth of the bytes.
        places = " ".join(
            f"WHEN {sizes[one.name]} * {len(sizes)} >= {_SIZE} THEN {place}"
            for place, one in enumerate(columns, start=1)
            if one.name in sizes
        )
        largest = f"CASE WHEN {_SIZE} <= {most} THEN 0 {places} END"
        return f"SELECT {values}, {largest} AS {_LARGEST} FROM {sized}"  # noqa: S608

    def _value(self, column: Column, size: str | None, most: int) -> str:
        name = self._quoted(column)
        if size is None:
            return name
        if column.name.lower() == _ID:
            return f"CASE WHEN {size} <= {MOST_KEY_BYTES} THEN {name} END AS {name}"
        return f"CASE WHEN {_SIZE} <= {most} THEN {name} END AS {name}"

    def _size(self, column: Column) -> str | None:
        size = self._dialect.size(self._quoted(column), column.type_code)
        return None if size is None else f"coalesce({size}, 0)"

    def _quoted(self, column: Column) -> str:
        # Not with the preparer's own method: it doubles percent signs, and text() does so again.
        of = self._preparer
        inner = column.name.replace(of.escape_quote, of.escape_to_quote)
        return escaped(f"{of.initial_quote}{inner}{of.final_quote}")
