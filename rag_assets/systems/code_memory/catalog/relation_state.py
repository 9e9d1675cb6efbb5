"""The state of a tenant's relations: two states are equal only if no relation has changed.

Triggers count changes of everything that determines relations: versions, documents, kinds, rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Numeric,
    Text,
    bindparam,
    cast,
    func,
    literal,
    select,
)

from rag_assets.storage.catalog.accounts.access import readable_scopes
from rag_assets.storage.catalog.database import TenantRef, texts_parameter
from rag_assets.storage.catalog.statements import Statement
from rag_assets.systems.code_memory.catalog.tables import relation_change_totals, relation_changes


@dataclass(frozen=True, slots=True)
class RelationState:
    """A state of the relations of one tenant.

    Attributes:
        changes: sum over all changes.
        rows: sum over changes in which existing rows of a text were recorded again.
    """

    changes: str
    rows: str


def state_columns(tenant: ColumnElement[str]) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return two columns to add to an SQL query: `changes` and `row_changes`."""
    totals, added = relation_change_totals.c, relation_changes.c

    def total(column: ColumnElement[Any], *wanted: ColumnElement[bool]) -> ColumnElement[Any]:
        former = select(column).where(totals.tenant == tenant).scalar_subquery()
        since = (
            select(func.sum(added.nonce))
            .where(added.tenant == tenant, *wanted)
            .correlate_except(relation_changes)
            .scalar_subquery()
        )
        none = literal(0, Numeric)
        return cast(func.coalesce(former, none) + func.coalesce(since, none), Text)

    return (
        total(totals.nonce).label("changes"),
        total(totals.rows_nonce, added.of_rows).label("row_changes"),
    )


@dataclass(frozen=True, slots=True)
class RelationMoment:
    """A tenant's relations at one moment, as far as a caller may read them.

    Attributes:
        state: the state of the relations.
        scopes: the scopes that the caller's principals may read, including the public scope.
    """

    state: RelationState
    scopes: frozenset[str]


_TENANT = bindparam("tenant", type_=Text)

STATE = select(*state_columns(_TENANT))
"""SQL query that returns only the state."""

MOMENT = Statement.compile(
    select(
        *state_columns(_TENANT),
        readable_scopes(
            _TENANT, texts_parameter("principals"), literal(None, Integer)
        ).scalar_subquery(),
    )
)
"""SQL query that returns the state, and the scopes that principals may read."""


def mark_rows_replaced(connection: Connection, ref: TenantRef) -> None:
    """Record that rows were replaced although their texts did not change."""
    counted = func.rag_catalog.count_relation_change(ref.id, literal(True, Boolean))
    connection.execute(select(counted))
