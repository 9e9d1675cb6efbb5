"""The tables in queries that belong to no model: by the query builder, or in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rag_assets.systems.code_memory.languages.php.calls import CLOSURES, Call
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.queries import tables_in_sql

_PAIR: Final = 2
_SQL: Final = frozenset({"select", "insert", "update", "delete", "statement", "unprepared", "raw"})
_RAW: Final = frozenset(
    {"selectraw", "whereraw", "orwhereraw", "havingraw", "orderbyraw", "groupbyraw", "fromraw"}
)
_JOINS: Final = frozenset(
    {"join", "leftjoin", "rightjoin", "crossjoin", "joinwhere", "leftjoinwhere"}
)
_JOINED: Final = re.compile(r"[A-Za-z_][\w.]{0,63}(?=\s|$)")
_Values = Mapping[str, Any]


def of_database(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the tables in a call on the database facade."""
    stated = source.value(call.argument(0))
    if not isinstance(stated, str):
        return
    if call.name.lower() == "table":
        yield "queries_table", {"table": stated.split(" ")[0]}
    elif call.name.lower() in _SQL:
        yield from _in_sql(stated)


def of_query(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the tables that a query joins, and the tables in its SQL parts."""
    name = call.name.lower()
    if name not in _RAW | _JOINS:
        return
    stated = source.value(call.argument(0))
    if not isinstance(stated, str):
        return
    if name in _RAW:
        yield from _in_sql(stated)
        return
    on = call.argument(1)
    # `join` with one or two arguments may join strings.
    is_query = name != "join" or len(call.arguments) > _PAIR or (on and on.type in CLOSURES)
    if is_query and (found := _JOINED.match(stated)):
        yield "queries_table", {"table": found.group()}


def _in_sql(stated: str) -> Iterator[tuple[str, _Values]]:
    for table in tables_in_sql(stated):
        yield "queries_table", {"table": table}
