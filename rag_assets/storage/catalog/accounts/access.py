"""Grants: the principals that may read each access scope.

Documents and entries carry a scope, not the names of its readers. A grant or a revocation therefore
changes one row here and takes effect with the next search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.principals import GUESTS
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, Texts, matches_any
from rag_assets.storage.catalog.journal.security_changes import record_change
from rag_assets.storage.catalog.tables import access_scopes, scope_ancestors

PUBLIC = "public"
"""Scope that needs no grant: everyone who may search the tenant reads it, except guests."""
UNGRANTED = frozenset({NOBODY, EXCLUDED})
"""Scopes that nobody reads."""


class AccessTable(CatalogQueries):
    """Records, in `access_scopes`, which principals may read each access scope."""

    def grant(self, ref: TenantRef, scope: str, principals: Iterable[str]) -> None:
        """Let these principals read a scope, in addition to its current readers.

        Raises:
            ConfigurationError: the scope is one that nobody may read, or the principals include
                guests.
        """
        if scope in UNGRANTED:
            raise ConfigurationError(
                f"the scope {scope} cannot be granted: nobody may read it",
                hint="grant the page to which it belongs",
            )
        if GUESTS in (principals := {*principals}):
            raise ConfigurationError(
                "a scope cannot be granted to all guests: each guest reads only what is"
                " granted to their name or group",
                hint="grant the scope to a guest's name, or to a group in the form group:NAME",
            )
        rows = [
            {"tenant": ref.id, "scope": scope, "principal": principal}
            for principal in sorted(set(principals))
        ]
        if not rows:
            return
        new = upsert(access_scopes).values(rows).on_conflict_do_nothing()
        with self._database.begin_tenant(ref) as connection:
            granted = connection.scalars(new.returning(access_scopes.c.principal)).all()
            if granted:
                record_change(connection, ref, "scope_granted", scope, granted)

    def revoke(self, ref: TenantRef, scope: str, principals: Collection[str]) -> int:
        """Take a scope away from these principals; return how many of them had it."""
        deletion = sa.delete(access_scopes).where(
            access_scopes.c.tenant == ref.id,
            access_scopes.c.scope == scope,
            matches_any(access_scopes.c.principal, [*principals]),
        )
        with self._database.begin_tenant(ref) as connection:
            revoked = connection.scalars(deletion.returning(access_scopes.c.principal)).all()
            if revoked:
                record_change(connection, ref, "scope_revoked", scope, revoked)
        return len(revoked)

    def grants(self, tenant_id: str, scopes: Collection[str] | None = None) -> dict[str, list[str]]:
        """Return the sorted principals of each granted scope."""
        query = (
            sa.select(access_scopes.c.scope, access_scopes.c.principal)
            .where(access_scopes.c.tenant == tenant_id)
            .order_by(access_scopes.c.scope, access_scopes.c.principal)
        )
        if scopes is not None:
            query = query.where(matches_any(access_scopes.c.scope, [*scopes]))
        grants: dict[str, list[str]] = {}
        for scope, principal in self._database.fetch_rows(query):
            grants.setdefault(scope, []).append(principal)
        return grants


def is_readable(
    table: sa.FromClause, principals: Texts, *, column: str = "access_scope"
) -> sa.ColumnElement[bool]:
    """Return the SQL condition that one of these principals may read a row's access scope.

    A scope may be read by the principals to whom it is granted, and by the readers of the scopes
    from which it inherits.
    """
    scope = table.c[column]
    granted = sa.exists().where(
        access_scopes.c.tenant == table.c.tenant,
        access_scopes.c.scope == scope,
        matches_any(access_scopes.c.principal, principals),
    )
    inherited = sa.exists().where(
        scope_ancestors.c.tenant == table.c.tenant,
        scope_ancestors.c.scope == scope,
        access_scopes.c.tenant == scope_ancestors.c.tenant,
        access_scopes.c.scope == scope_ancestors.c.ancestor,
        matches_any(access_scopes.c.principal, principals),
    )
    public = sa.and_(
        scope == PUBLIC, sa.literal(GUESTS) != sa.all_(_build_principals_array(principals))
    )
    return sa.or_(public, granted, inherited)


def select_readable_scopes(
    tenant: sa.ColumnElement[str], principals: Texts, limit: sa.ColumnElement[int]
) -> sa.Select[Any]:
    """Return the query for an array of a tenant's scopes that one of these principals may read.

    The public scope is left out. A scope may occur twice.

    Args:
        limit: the maximum number of scopes; null for no maximum.
    """
    direct = sa.select(access_scopes.c.scope).where(
        access_scopes.c.tenant == tenant, matches_any(access_scopes.c.principal, principals)
    )
    inherited = (
        sa.select(scope_ancestors.c.scope)
        .select_from(access_scopes)
        .join(
            scope_ancestors,
            sa.and_(
                scope_ancestors.c.tenant == access_scopes.c.tenant,
                scope_ancestors.c.ancestor == access_scopes.c.scope,
            ),
        )
        .where(access_scopes.c.tenant == tenant, matches_any(access_scopes.c.principal, principals))
    )
    readable = direct.union_all(inherited).limit(limit).subquery()
    return sa.select(sa.func.array_agg(readable.c.scope))


def may_read_public(principals: Collection[str]) -> bool:
    """Return whether a caller with these principals may read the public scope."""
    return GUESTS not in principals


def _build_principals_array(principals: Texts) -> sa.ColumnElement[Any]:
    if isinstance(principals, sa.BindParameter):
        return sa.cast(principals, sa.ARRAY(sa.Text))
    return sa.literal(list(principals), sa.ARRAY(sa.Text))
