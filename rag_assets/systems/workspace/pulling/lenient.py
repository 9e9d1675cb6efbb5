"""Times of Postgres that Python has none for, as the text that they are.

The driver would fail at such a row, and with it at all rows that were fetched together.
"""

from __future__ import annotations

from typing import Any

from psycopg import DataError
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader


class _Date(DateLoader):
    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except DataError:
            return bytes(data).decode()


class _Timestamp(TimestampLoader):
    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except DataError:
            return bytes(data).decode()


class _Timestamptz(TimestamptzLoader):
    def load(self, data: Any) -> Any:
        try:
            return super().load(data)
        except DataError:
            return bytes(data).decode()


def read_leniently(connection: Any) -> None:
    """Have a connection of psycopg read such times as texts."""
    for name, loader in (("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _Timestamptz)):
        connection.adapters.register_loader(name, loader)
