"""Provider keys of tenants and of organizations, encrypted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.accounts.tables import provider_keys
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, read_row
from rag_assets.storage.catalog.journal.security_changes import record_change
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


class ProviderKeyTable(CatalogQueries):
    """Stores, finds and re-encrypts provider keys, in `provider_keys`."""

    def put(
        self, owner: KeyOwner, provider: str, seal: Callable[[], SealedKey], *, last_four: str
    ) -> None:
        """Store a key in place of the owner's former key for that provider.

        Args:
            seal: encrypts the key; called while rotation is locked out.
        """
        with self._begin_transaction(owner) as connection:
            connection.execute(
                text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _ROTATION_LOCK}
            )
            if isinstance(owner, OrganizationRef):
                add_organizations(connection, [owner.id])
            sealed = seal()
            values = {
                "nonce": sealed.nonce,
                "ciphertext": sealed.ciphertext,
                "master_key_id": sealed.master_key_id,
                "last_four": last_four,
                "created_at": func.now(),
                "last_used_at": None,
                "last_worked": None,
            }
            column = _column(owner)
            connection.execute(
                upsert(provider_keys)
                .values(**{column: owner.id}, provider=provider, **values)
                .on_conflict_do_update(index_elements=[column, "provider"], set_=values)
            )

    def find(self, owner: KeyOwner, provider: str) -> StoredKey | None:
        """Return the key for a provider that an organization or a tenant uses; None without a key.

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
        """Return a tenant's usable keys, sorted by provider; its own before its organization's."""
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
        its = provider_keys.c[_column(owner)] == owner.id
        with self._begin_transaction(owner) as connection:
            deleted = connection.execute(
                delete(provider_keys).where(its, provider_keys.c.provider == provider)
            ).rowcount
            if deleted and isinstance(owner, TenantRef):
                record_change(connection, owner, "key_removed", provider)
            elif deleted:
                record_change(connection, None, "key_removed", provider, [owner.id])
        return bool(deleted)

    def record_use(self, key: StoredKey, *, worked: bool) -> None:
        """Record a use of a key, and whether the provider accepted it.

        The call has no effect if the key was replaced in the meantime.
        """
        with self._database.begin() as connection:
            connection.execute(
                update(provider_keys)
                .where(provider_keys.c.id == key.id, provider_keys.c.created_at == key.created_at)
                .values(last_used_at=func.now(), last_worked=worked)
            )

    @contextmanager
    def rotation_lock(self) -> Iterator[None]:
        """Hold the lock that prevents other processes from storing or rotating keys."""
        key = {"key": _ROTATION_LOCK}
        with self._database.session() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), key)
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)

    def reseal_all(self, reseal: Callable[[StoredKey], SealedKey]) -> int:
        """Encrypt all keys again with `reseal`, in one transaction; return their number."""
        with self._database.begin() as connection:
            rows = connection.execute(_select_keys().with_for_update(of=provider_keys)).all()
            for stored in map(_read_key, rows):
                sealed = reseal(stored)
                connection.execute(
                    update(provider_keys)
                    .where(provider_keys.c.id == stored.id)
                    .values(
                        nonce=sealed.nonce,
                        ciphertext=sealed.ciphertext,
                        master_key_id=sealed.master_key_id,
                    )
                )
        return len(rows)

    @contextmanager
    def _begin_transaction(self, owner: KeyOwner) -> Iterator[Connection]:
        if isinstance(owner, TenantRef):
            with self._database.begin_tenant(owner) as connection:
                yield connection
        else:
            with self._database.begin() as connection:
                yield connection


def _column(owner: KeyOwner) -> str:
    return "tenant" if isinstance(owner, TenantRef) else "organization"


def _select_keys() -> Select[Any]:
    return select(provider_keys, tenants.c.incarnation).outerjoin(
        tenants, tenants.c.id == provider_keys.c.tenant
    )


def _select_usable_keys(ref: TenantRef, *order: ColumnElement[Any]) -> Select[Any]:
    """Return the query of keys that a tenant may use, its own before its organization's."""
    keys = provider_keys.c
    its = or_(keys.tenant == tenants.c.id, keys.organization == tenants.c.organization)
    return (
        select(provider_keys, tenants.c.incarnation)
        .join(tenants, its)
        .where(and_(tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation))
        .order_by(*order, keys.tenant.is_(None))
    )


def _read_key(row: Row[Any]) -> StoredKey:
    owner: KeyOwner
    if row.tenant is None:
        owner = OrganizationRef(row.organization)
    else:
        owner = TenantRef(row.tenant, row.incarnation)
    return read_row(
        StoredKey, row, owner=owner, sealed=read_row(SealedKey, row), worked=row.last_worked
    )
