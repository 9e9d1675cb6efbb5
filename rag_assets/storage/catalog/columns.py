"""The Postgres schema `rag_catalog` and the kinds of column that the catalog's tables share."""

from __future__ import annotations

from typing import Literal, TypeAlias

from sqlalchemy import Column, DateTime, ForeignKey, MetaData, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB

# It must not be the name of a database user: Postgres would then search it before the schema of
# Dagster's tables, and both have a table `alembic_version`.
SCHEMA = "rag_catalog"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    },
)


def tenant_column(*, primary_key: bool = True) -> Column[str]:
    """The tenant that a row belongs to; deleting the tenant deletes the row."""
    return Column(
        "tenant",
        Text,
        ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


TimeKind: TypeAlias = Literal["event", "retry"]
"""What becomes of a time that lies in the future because the clock was ahead when it was recorded.

An event's is replaced by the present time, so that ages and pauses count from then. A retry is due
at once. Times of no kind stay as they are.
"""


def now_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """A required time, by default that of the row's insertion."""
    when = DateTime(timezone=True)
    return Column(name, when, nullable=False, server_default=func.now(), info={"time": kind})


def time_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """An optional time."""
    return Column(name, DateTime(timezone=True), info={"time": kind})


def json_column(name: str, default: str = "{}") -> Column[object]:
    """A JSON value, by default an empty object."""
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))
