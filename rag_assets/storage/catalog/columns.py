"""The Postgres schema `rag_catalog` and the kinds of column that the catalog's tables share."""

from __future__ import annotations

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


def now_column(name: str) -> Column[object]:
    """A required time, by default that of the row's insertion."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def time_column(name: str) -> Column[object]:
    """An optional time."""
    return Column(name, DateTime(timezone=True))


def json_column(name: str, default: str = "{}") -> Column[object]:
    """A JSON value, by default an empty object."""
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))
