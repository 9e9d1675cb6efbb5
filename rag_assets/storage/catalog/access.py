"""Grants: the principals that may read each access scope.

Documents and entries carry a scope, not the names of its readers. A grant or a revocation therefore
changes one row here and takes effect with the next search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import ColumnElement, FromClause, delete, exists, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, Texts, among
from rag_assets.storage.catalog.tables import access_scopes

PUBLIC = "public"
"""The scope that needs no grant: everyone who may search the tenant reads it."""


class AccessTable:
    """Queries on `access_scopes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def grant(self, ref: TenantRef, scope: str, principals: Iterable[str]) -> None:
        """Grant a scope to these principals, in addition to its present readers."""
        rows = [
            {"tenant": ref.id, "scope": scope, "principal": principal}
            for principal in sorted(set(principals))
        ]
        if rows:
            with self._database.begin_for(ref) as connection:
                connection.execute(upsert(access_scopes).values(rows).on_conflict_do_nothing())

    def revoke(self, ref: TenantRef, scope: str, principals: Collection[str]) -> int:
        """Revoke a scope from these principals; returns how many of them had it."""
        with self._database.begin_for(ref) as connection:
            return connection.execute(
                delete(access_scopes).where(
                    access_scopes.c.tenant == ref.id,
                    access_scopes.c.scope == scope,
                    among(access_scopes.c.principal, [*principals]),
                )
            ).rowcount

    def grants(self, tenant_id: str) -> dict[str, list[str]]:
        """The principals of each granted scope, sorted."""
        query = (
            select(access_scopes.c.scope, access_scopes.c.principal)
            .where(access_scopes.c.tenant == tenant_id)
            .order_by(access_scopes.c.scope, access_scopes.c.principal)
        )
        found: dict[str, list[str]] = {}
        with self._database.begin() as connection:
            for scope, principal in connection.execute(query):
                found.setdefault(scope, []).append(principal)
        return found


def is_readable(table: FromClause, principals: Texts) -> ColumnElement[bool]:
    """The condition that one of these principals may read a row's access_scope."""
    granted = exists().where(
        access_scopes.c.tenant == table.c.tenant,
        access_scopes.c.scope == table.c.access_scope,
        among(access_scopes.c.principal, principals),
    )
    return or_(table.c.access_scope == PUBLIC, granted)
