"""Tenants' provider keys, encrypted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.storage.catalog.account_tables import provider_keys
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import tenants

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
        ref: the tenant that owns the key.
        last_four: its last four characters; empty for a short key.
        worked: whether the provider accepted it at its last use; None if it was never used.
    """

    ref: TenantRef
    provider: str
    sealed: SealedKey
    last_four: str
    created_at: datetime
    last_used_at: datetime | None
    worked: bool | None


class ProviderKeyTable:
    """Queries on `provider_keys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, ref: TenantRef, provider: str, seal: Callable[[], SealedKey], *, last_four: str
    ) -> None:
        """Store a key in place of the tenant's former key for that provider.

        Args:
            ref: the tenant that owns the key.
            provider: that accepts the key.
            seal: encrypts the key; called while no rotation can begin.
            last_four: the characters that may be shown.
        """
        with self._database.begin_for(ref) as connection:
            connection.execute(
                text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _ROTATION_LOCK}
            )
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
            connection.execute(
                upsert(provider_keys)
                .values(tenant=ref.id, provider=provider, **values)
                .on_conflict_do_update(index_elements=["tenant", "provider"], set_=values)
            )

    def find(self, ref: TenantRef, provider: str) -> StoredKey | None:
        """A tenant's key for a provider; None if it has none."""
        query = _stored().where(
            provider_keys.c.tenant == ref.id,
            provider_keys.c.provider == provider,
            tenants.c.incarnation == ref.incarnation,
        )
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        return _key(row) if row else None

    def all(self, tenant_id: str | None = None) -> list[StoredKey]:
        """All keys, or those of one tenant, by tenant and provider."""
        query = _stored().order_by(provider_keys.c.tenant, provider_keys.c.provider)
        if tenant_id is not None:
            query = query.where(provider_keys.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return [_key(row) for row in connection.execute(query)]

    def remove(self, ref: TenantRef, provider: str) -> bool:
        """Delete a key; returns whether it existed."""
        with self._database.begin_for(ref) as connection:
            deleted = connection.execute(
                delete(provider_keys).where(
                    provider_keys.c.tenant == ref.id, provider_keys.c.provider == provider
                )
            )
        return bool(deleted.rowcount)

    def record_use(self, key: StoredKey, *, worked: bool) -> None:
        """Record a use of a key, and whether the provider accepted the key.

        Nothing is recorded if the key was replaced in the meantime.
        """
        with self._database.begin() as connection:
            connection.execute(
                update(provider_keys)
                .where(
                    provider_keys.c.tenant == key.ref.id,
                    provider_keys.c.provider == key.provider,
                    provider_keys.c.created_at == key.created_at,
                )
                .values(last_used_at=func.now(), last_worked=worked)
            )

    @contextmanager
    def rotation_lock(self) -> Iterator[None]:
        """Hold the lock that keeps other processes from rotating and storing keys."""
        key = {"key": _ROTATION_LOCK}
        with self._database.session() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), key)
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)

    def reseal_all(self, reseal: Callable[[StoredKey], SealedKey]) -> int:
        """Encrypt all keys again in one transaction; returns their number."""
        with self._database.begin() as connection:
            rows = connection.execute(_stored().with_for_update(of=provider_keys)).all()
            for stored in map(_key, rows):
                sealed = reseal(stored)
                connection.execute(
                    update(provider_keys)
                    .where(
                        provider_keys.c.tenant == stored.ref.id,
                        provider_keys.c.provider == stored.provider,
                    )
                    .values(
                        nonce=sealed.nonce,
                        ciphertext=sealed.ciphertext,
                        master_key_id=sealed.master_key_id,
                    )
                )
        return len(rows)


def _stored() -> Select[Any]:
    return select(provider_keys, tenants.c.incarnation).join(
        tenants, tenants.c.id == provider_keys.c.tenant
    )


def _key(row: Row[Any]) -> StoredKey:
    return StoredKey(
        ref=TenantRef(row.tenant, row.incarnation),
        provider=row.provider,
        sealed=SealedKey(row.nonce, row.ciphertext, row.master_key_id),
        last_four=row.last_four,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        worked=row.last_worked,
    )
