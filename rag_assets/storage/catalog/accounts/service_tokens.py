"""Service tokens of applications, each for a tenant or an organization, stored as hashes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    Select,
    Text,
    Update,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.accounts.tables import service_tokens
from rag_assets.storage.catalog.database import CatalogQueries, Database, TenantRef, read_row
from rag_assets.storage.catalog.journal.security_changes import record_change
from rag_assets.storage.catalog.statements import Statement, StatementRunner
from rag_assets.storage.catalog.tables import tenants
from rag_assets.storage.catalog.tenants.settings import OrganizationRef, add_organizations

_USE_INTERVAL = timedelta(minutes=1)
_CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """The stored data of a token; the token cannot be derived from it.

    Attributes:
        token_id: the token's name for people; not secret.
        tenant, organization: the owner; one of them is None.
        last_used_at: time of the last use, to the minute.
    """

    token_id: str
    tenant: str | None
    organization: str | None
    role: Literal["admin", "member", "guest", "orchestrator", "writer"]
    principals: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class ServiceTokenTable(CatalogQueries):
    """Adds, lists and revokes service tokens, in `service_tokens`."""

    def add(
        self,
        owner: KeyOwner,
        token_id: str,
        sha256: bytes,
        *,
        role: str,
        principals: Sequence[str],
        lifetime: timedelta | None,
    ) -> ServiceToken:
        """Store the hash of a new token."""
        values = {
            "token_id": token_id,
            _column(owner): owner.id,
            "token_sha256": sha256,
            "role": role,
            "principals": list(principals),
            "expires_at": None if lifetime is None else func.now() + lifetime,
        }
        query = insert(service_tokens).values(values).returning(service_tokens)
        with self._begin_transaction(owner) as connection:
            if isinstance(owner, OrganizationRef):
                add_organizations(connection, [owner.id])
            _record_token_change(connection, owner, "token_created", token_id, (role, *principals))
            return _read_token(connection.execute(query).one())

    def _begin_transaction(self, owner: KeyOwner) -> AbstractContextManager[Connection]:
        if isinstance(owner, TenantRef):
            return self._database.begin_tenant(owner)
        return self._database.begin()

    def all(self, owner_id: str, *, of_organization: bool = False) -> list[ServiceToken]:
        """Return the tokens of a tenant or organization, oldest first, including expired tokens."""
        column = service_tokens.c.organization if of_organization else service_tokens.c.tenant
        query = (
            select(service_tokens)
            .where(column == owner_id)
            .order_by(service_tokens.c.created_at, service_tokens.c.token_id)
        )
        return [_read_token(row) for row in self._database.fetch_rows(query)]

    def any(self) -> bool:
        """Return whether any valid token exists."""
        columns = service_tokens.c
        valid = or_(columns.expires_at.is_(None), columns.expires_at > func.now())
        row = self._database.fetch_row(select(columns.token_id).where(valid).limit(1))
        return row is not None

    def revoke(self, owner: KeyOwner, token_id: str) -> bool:
        """Delete a token, which becomes invalid immediately. Return whether it existed."""
        columns = service_tokens.c
        the_token = (columns[_column(owner)] == owner.id, columns.token_id == token_id)
        revoked = delete(service_tokens).where(*the_token)
        with self._begin_transaction(owner) as connection:
            row = connection.execute(revoked.returning(columns.role, columns.principals)).first()
            if row is None:
                return False
            _record_token_change(
                connection, owner, "token_revoked", token_id, (row.role, *row.principals)
            )
        return True


class TokenReader:
    """Finds valid tokens and the projects of organizations, from an event loop.

    Methods raise ServiceUnavailable if Postgres does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._statements = StatementRunner(database, _CONNECTIONS)
        self._find = Statement.compile(_find_statement())
        self._record_use = Statement.compile(_record_use_statement())
        self._projects = Statement.compile(_projects_statement())

    async def find(self, sha256: bytes) -> ServiceToken | None:
        """Return the token with that hash, if it is valid, and record its use."""
        rows = await self._statements.rows(self._find, {"sha256": sha256})
        if not rows:
            return None
        if rows[0].use_is_due:
            await self._statements.rows(self._record_use, {"token_id": rows[0].token_id})
        return _read_token(rows[0])

    async def projects(self, organization: str) -> frozenset[str]:
        """Return the ids of the tenants that belong to an organization's projects."""
        rows = await self._statements.rows(self._projects, {"organization": organization})
        return frozenset(row.id for row in rows)

    async def close(self) -> None:
        """Close the connections, in the event loop that opened them."""
        await self._statements.close()


def _column(owner: KeyOwner) -> str:
    return "tenant" if isinstance(owner, TenantRef) else "organization"


def _record_token_change(
    connection: Connection,
    owner: KeyOwner,
    kind: Literal["token_created", "token_revoked"],
    token_id: str,
    about: Sequence[str],
) -> None:
    if isinstance(owner, TenantRef):
        record_change(connection, owner, kind, token_id, about)
    else:
        record_change(connection, None, kind, token_id, [owner.id, *about])


def _find_statement() -> Select[Any]:
    columns = service_tokens.c
    return select(service_tokens, _use_is_due().label("use_is_due")).where(
        columns.token_sha256 == bindparam("sha256", type_=LargeBinary),
        or_(columns.expires_at.is_(None), columns.expires_at > func.now()),
    )


def _projects_statement() -> Select[Any]:
    columns = tenants.c
    return select(columns.id).where(
        columns.of_project,
        columns.organization == bindparam("organization", type_=Text),
        columns.state != "REMOVING",
    )


def _record_use_statement() -> Update:
    token_id = bindparam("token_id", type_=Text)
    return (
        update(service_tokens)
        .where(service_tokens.c.token_id == token_id, _use_is_due())
        .values(last_used_at=func.now())
        .returning(service_tokens.c.token_id)
    )


def _use_is_due() -> ColumnElement[bool]:
    """Return the SQL condition that the recorded last use is older than a minute."""
    used = service_tokens.c.last_used_at
    return or_(used.is_(None), used < func.now() - _USE_INTERVAL)


def _read_token(row: Row[Any]) -> ServiceToken:
    return read_row(ServiceToken, row, principals=tuple(row.principals))
