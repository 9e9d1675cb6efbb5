"""Reads as text the Postgres values that the driver cannot always convert.

The driver fails at a time outside Python's range, and at JSON that is nested too deeply or has a
number that is too long. All rows that were fetched together would then be lost.
"""

from __future__ import annotations

from typing import Any

from psycopg import DataError
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from psycopg.types.string import TextLoader

_AS_TEXT = ("json", "jsonb", "interval", "time", "timetz")


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
    """Make a connection of psycopg read such values as texts."""
    for name, loader in (("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _Timestamptz)):
        connection.adapters.register_loader(name, loader)
    for name in _AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)
