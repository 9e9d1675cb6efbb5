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
    """Return the column for a row's tenant; deleting the tenant deletes the row."""
    return Column(
        "tenant",
        Text,
        ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


TimeKind: TypeAlias = Literal["event", "retry"]
"""How a future time is corrected that was recorded while the clock was fast.

An event's time is replaced by the present time, from which ages and pauses then count. A retry
becomes due at once. Times without a kind stay as they are.
"""


def now_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """Return a column for a required time; the default is the time of the row's insertion."""
    when = DateTime(timezone=True)
    return Column(name, when, nullable=False, server_default=func.now(), info={"time": kind})


def time_column(name: str, kind: TimeKind | None = None) -> Column[object]:
    """Return a column for an optional time."""
    return Column(name, DateTime(timezone=True), info={"time": kind})


def json_column(name: str, default: str = "{}") -> Column[object]:
    """Return a column for a required JSON value; the default is an empty object."""
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))
