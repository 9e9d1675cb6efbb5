"""Credentials of tenants and organizations: encrypted provider keys, and hashed service tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.accounts.tables import provider_keys, service_tokens
from rag_assets.storage.catalog.database import CatalogQueries, Database, TenantRef, read_row
from rag_assets.storage.catalog.journal.security_changes import record_change
from rag_assets.storage.catalog.statements import Statement, StatementRunner
from rag_assets.storage.catalog.tables import tenants
from rag_assets.storage.catalog.tenants.settings import OrganizationRef, add_organizations

KeyOwner: TypeAlias = TenantRef | OrganizationRef
"""The owner of a key: a tenant, or an organization for all of its tenants."""

_ROTATION_LOCK = 0x7261675F6B657973


@dataclass(frozen=True, slots=True)
class SealedKey:
    """An encrypted key with the id of its master key."""

    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)
    master_key_id: str


@dataclass(frozen=True, slots=True)
class StoredKey:
    """One row of `provider_keys`.

    Attributes:
        last_four: the key's last four characters; empty for a short key.
        worked: whether the provider accepted the key at its last use; None if it was never used.
    """

    id: int
    owner: KeyOwner
    provider: str
    sealed: SealedKey
    last_four: str
    created_at: datetime
    last_used_at: datetime | None
    worked: bool | None


def _begin_transaction(
    database: Database, owner: KeyOwner
) -> AbstractContextManager[sa.Connection]:
    if isinstance(owner, TenantRef):
        return database.begin_tenant(owner)
    return database.begin()


def _add_owner(connection: sa.Connection, owner: KeyOwner) -> None:
    if isinstance(owner, OrganizationRef):
        add_organizations(connection, [owner.id])


def _get_owner_column(owner: KeyOwner) -> str:
    return "tenant" if isinstance(owner, TenantRef) else "organization"


def _record_change(
    connection: sa.Connection,
    owner: KeyOwner,
    kind: Literal["key_removed", "token_created", "token_revoked"],
    name: str,
    about: Sequence[str] = (),
) -> None:
    if isinstance(owner, TenantRef):
        record_change(connection, owner, kind, name, about)
    else:
        record_change(connection, None, kind, name, [owner.id, *about])


class ProviderKeyTable(CatalogQueries):
    """Stores, finds and re-encrypts provider keys, in `provider_keys`."""

    def put(
        self, owner: KeyOwner, provider: str, seal: Callable[[], SealedKey], *, last_four: str
    ) -> None:
        """Store a key in place of the owner's former key for that provider.

        Args:
            seal: encrypts the key; called while no other process can encrypt keys again.
        """
        with _begin_transaction(self._database, owner) as connection:
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _ROTATION_LOCK}
            )
            _add_owner(connection, owner)
            sealed = seal()
            values = {
                "nonce": sealed.nonce,
                "ciphertext": sealed.ciphertext,
                "master_key_id": sealed.master_key_id,
                "last_four": last_four,
                "created_at": sa.func.now(),
                "last_used_at": None,
                "last_worked": None,
            }
            column = _get_owner_column(owner)
            connection.execute(
                upsert(provider_keys)
                .values(**{column: owner.id}, provider=provider, **values)
                .on_conflict_do_update(index_elements=[column, "provider"], set_=values)
            )

    def find(self, owner: KeyOwner, provider: str) -> StoredKey | None:
        """Return the key that an organization or a tenant uses for a provider; None without a key.

        A tenant uses its own key, or else its organization's.
        """
        query = (
            _select_usable_keys(owner)
            if isinstance(owner, TenantRef)
            else _select_keys().where(provider_keys.c.organization == owner.id)
        )
        query = query.where(provider_keys.c.provider == provider).limit(1)
        row = self._database.fetch_row(query)
        return _read_key(row) if row else None

    def list_usable(self, ref: TenantRef) -> list[StoredKey]:
        """Return the keys that a tenant may use, by provider; its own before its organization's."""
        query = _select_usable_keys(ref, provider_keys.c.provider)
        return [_read_key(row) for row in self._database.fetch_rows(query)]

    def all(self) -> list[StoredKey]:
        """Return all keys, sorted by owner and provider, tenants' keys first."""
        columns = provider_keys.c
        query = _select_keys().order_by(columns.tenant, columns.organization, columns.provider)
        return [_read_key(row) for row in self._database.fetch_rows(query)]

    def list_of_organization(self, organization_id: str) -> list[StoredKey]:
        """Return an organization's own keys, sorted by provider."""
        query = _select_keys().where(provider_keys.c.organization == organization_id)
        rows = self._database.fetch_rows(query.order_by(provider_keys.c.provider))
        return [_read_key(row) for row in rows]

    def remove(self, owner: KeyOwner, provider: str) -> bool:
        """Delete an owner's key; return whether it existed."""
        is_owners = provider_keys.c[_get_owner_column(owner)] == owner.id
        with _begin_transaction(self._database, owner) as connection:
            deleted = connection.execute(
                sa.delete(provider_keys).where(is_owners, provider_keys.c.provider == provider)
            ).rowcount
            if deleted:
                _record_change(connection, owner, "key_removed", provider)
        return bool(deleted)

    def record_use(self, key: StoredKey, *, worked: bool) -> None:
        """Record a use of a key, and whether the provider accepted it."""
        with self._database.begin() as connection:
            connection.execute(
                sa.update(provider_keys)
                .where(provider_keys.c.id == key.id, provider_keys.c.created_at == key.created_at)
                .values(last_used_at=sa.func.now(), last_worked=worked)
            )

    @contextmanager
    def rotation_lock(self) -> Iterator[None]:
        """Hold the lock that prevents other processes from storing or rotating keys."""
        key = {"key": _ROTATION_LOCK}
        with self._database.session() as connection:
            connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), key)
            try:
                yield
            finally:
                connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), key)

    def reseal_all(self, reseal: Callable[[StoredKey], SealedKey]) -> int:
        """Encrypt all keys again with `reseal`, in one transaction; return their number."""
        with self._database.begin() as connection:
            rows = connection.execute(_select_keys().with_for_update(of=provider_keys)).all()
            for stored in map(_read_key, rows):
                sealed = reseal(stored)
                connection.execute(
                    sa.update(provider_keys)
                    .where(provider_keys.c.id == stored.id)
                    .values(
                        nonce=sealed.nonce,
                        ciphertext=sealed.ciphertext,
                        master_key_id=sealed.master_key_id,
                    )
                )
        return len(rows)


def _select_keys() -> sa.Select[Any]:
    return sa.select(provider_keys, tenants.c.incarnation).outerjoin(
        tenants, tenants.c.id == provider_keys.c.tenant
    )


def _select_usable_keys(ref: TenantRef, *order: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return the query of keys that a tenant may use, its own before its organization's."""
    keys = provider_keys.c
    is_usable = sa.or_(keys.tenant == tenants.c.id, keys.organization == tenants.c.organization)
    return (
        sa.select(provider_keys, tenants.c.incarnation)
        .join(tenants, is_usable)
        .where(tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation)
        .order_by(*order, keys.tenant.is_(None))
    )


def _read_key(row: sa.Row[Any]) -> StoredKey:
    owner: KeyOwner
    if row.tenant is None:
        owner = OrganizationRef(row.organization)
    else:
        owner = TenantRef(row.tenant, row.incarnation)
    return read_row(
        StoredKey, row, owner=owner, sealed=read_row(SealedKey, row), worked=row.last_worked
    )


_USE_INTERVAL = timedelta(minutes=1)
_MAX_CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """The stored data of a token; the token cannot be derived from it.

    Attributes:
        token_id: the token's name for people; not secret.
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
            _get_owner_column(owner): owner.id,
            "token_sha256": sha256,
            "role": role,
            "principals": list(principals),
            "expires_at": None if lifetime is None else sa.func.now() + lifetime,
        }
        query = sa.insert(service_tokens).values(values).returning(service_tokens)
        with _begin_transaction(self._database, owner) as connection:
            _add_owner(connection, owner)
            _record_change(connection, owner, "token_created", token_id, (role, *principals))
            return _read_token(connection.execute(query).one())

    def all(self, owner_id: str, *, of_organization: bool = False) -> list[ServiceToken]:
        """Return the tokens of a tenant or organization, oldest first, including expired tokens."""
        column = service_tokens.c.organization if of_organization else service_tokens.c.tenant
        query = (
            sa.select(service_tokens)
            .where(column == owner_id)
            .order_by(service_tokens.c.created_at, service_tokens.c.token_id)
        )
        return [_read_token(row) for row in self._database.fetch_rows(query)]

    def any(self) -> bool:
        """Return whether any valid token exists."""
        columns = service_tokens.c
        valid = sa.or_(columns.expires_at.is_(None), columns.expires_at > sa.func.now())
        row = self._database.fetch_row(sa.select(columns.token_id).where(valid).limit(1))
        return row is not None

    def revoke(self, owner: KeyOwner, token_id: str) -> bool:
        """Delete a token, which becomes invalid immediately. Return whether it existed."""
        columns = service_tokens.c
        the_token = (columns[_get_owner_column(owner)] == owner.id, columns.token_id == token_id)
        revoked = sa.delete(service_tokens).where(*the_token)
        with _begin_transaction(self._database, owner) as connection:
            row = connection.execute(revoked.returning(columns.role, columns.principals)).first()
            if row is None:
                return False
            _record_change(
                connection, owner, "token_revoked", token_id, (row.role, *row.principals)
            )
        return True


class TokenReader:
    """Finds valid tokens and the projects of organizations, from an event loop.

    Methods raise ServiceUnavailable if Postgres does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._statements = StatementRunner(database, _MAX_CONNECTIONS)
        columns = service_tokens.c
        is_valid = sa.or_(columns.expires_at.is_(None), columns.expires_at > sa.func.now())
        self._find = Statement(
            sa.select(service_tokens, _is_last_use_old().label("use_is_due")).where(
                columns.token_sha256 == sa.bindparam("sha256", type_=sa.LargeBinary), is_valid
            )
        )
        token_id = sa.bindparam("token_id", type_=sa.Text)
        self._record_use = Statement(
            sa.update(service_tokens)
            .where(columns.token_id == token_id, _is_last_use_old())
            .values(last_used_at=sa.func.now())
            .returning(columns.token_id)
        )
        self._projects = Statement(
            sa.select(tenants.c.id).where(
                tenants.c.of_project,
                tenants.c.organization == sa.bindparam("organization", type_=sa.Text),
                tenants.c.state != "REMOVING",
            )
        )

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


def _is_last_use_old() -> sa.ColumnElement[bool]:
    """Return the SQL condition that the recorded last use is older than a minute."""
    used = service_tokens.c.last_used_at
    return sa.or_(used.is_(None), used < sa.func.now() - _USE_INTERVAL)


def _read_token(row: sa.Row[Any]) -> ServiceToken:
    return read_row(ServiceToken, row, principals=tuple(row.principals))
