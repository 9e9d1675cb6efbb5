"""What the catalog's tables have in common: the Postgres schema `rag_catalog`, kinds of column."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, MetaData, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB

# Not the name of a database user: Postgres would then find these tables before Dagster's own,
# whose migrations are kept in a table of the same name as ours.
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
    """Whose a row is; it goes with the tenant."""
    return Column(
        "tenant",
        Text,
        ForeignKey("tenants.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def now_column(name: str) -> Column[object]:
    """A time that every row has, by default that of its insertion."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def time_column(name: str) -> Column[object]:
    """A time that a row may have."""
    return Column(name, DateTime(timezone=True))


def json_column(name: str, default: str = "{}") -> Column[object]:
    """A JSON value, by default an empty one."""
    return Column(name, JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))
