"""Security changes, and marks (counts of changes), which reveal a catalog restored from a dump.

The journal has changes of tokens, grants, holds and erasures. Each change raises the installation's
epoch. The mark of a tenant counts its changes, and never decreases: published versions, uploads,
purges, tokens, grants and holds raise it. The stores keep the journal and the marks as well, so
that a catalog that lacks a change was restored from an earlier dump; see
rag_assets/pipeline/mark_keeper.py.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, note_raised, read_row
from rag_assets.storage.catalog.installation.identity import installation, raise_epoch
from rag_assets.storage.catalog.tables import (
    catalog_marks,
    json_column,
    metadata,
    now_column,
    tenants,
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark: the number of changes of a tenant that the catalog has recorded."""

    number: int
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogMark:
    """A tenant's mark, as the catalog stores it.

    Attributes:
        was_kept: whether a store has kept a mark of the tenant at any time.
    """

    mark: Mark
    was_kept: bool


class MarkTable(CatalogQueries):
    """Reads and raises the marks of tenants, in `catalog_marks`."""

    def read(self, ref: TenantRef) -> CatalogMark | None:
        """Return a tenant's mark; None if this incarnation is removed or is being removed."""
        columns = catalog_marks.c
        query = (
            sa.select(columns.mark, columns.tag, columns.kept)
            .select_from(tenants)
            .outerjoin(catalog_marks, columns.tenant == tenants.c.id)
            .where(
                tenants.c.id == ref.id,
                tenants.c.incarnation == ref.incarnation,
                tenants.c.state != "REMOVING",
            )
        )
        row = self._database.fetch_row(query)
        if row is None:
            return None
        return CatalogMark(Mark(row.mark or 0, row.tag), bool(row.kept))

    def record_stored_mark(self, ref: TenantRef) -> None:
        """Record that a store has kept a tenant's mark."""
        self._database.update(ref, catalog_marks, kept=True)

    def advance_mark(self, ref: TenantRef, number: int) -> None:
        """Raise a tenant's mark above this number, which a store has kept."""
        with self._database.begin_tenant(ref) as connection:
            raise_mark(connection, ref)
            of_tenant = catalog_marks.c.tenant == ref.id
            above = sa.func.greatest(catalog_marks.c.mark, number + 1)
            connection.execute(sa.update(catalog_marks).where(of_tenant).values(mark=above))


def raise_mark(connection: sa.Connection, ref: TenantRef) -> datetime:
    """Raise a tenant's mark in the transaction of a change; return Postgres's time.

    After the commit, the stores keep the mark, too. Concurrent changes of one tenant wait for each
    other here.
    """
    tag = uuid4().hex[:16]
    raised = {"mark": catalog_marks.c.mark + 1, "tag": tag}
    statement = (
        upsert(catalog_marks)
        .values(tenant=ref.id, mark=1, tag=tag)
        .on_conflict_do_update(index_elements=["tenant"], set_=raised)
        .returning(sa.func.clock_timestamp())
    )
    note_raised(connection, ref)
    at: datetime = connection.execute(statement).scalar_one()
    return at


ChangeKind: TypeAlias = Literal[
    "token_created",
    "token_revoked",
    "scope_granted",
    "scope_revoked",
    "page_changed",
    "hold_set",
    "hold_lifted",
    "key_removed",
    "purged",
    "tenant_removed",
    "restore_accepted",
]
MAX_STORED_CHANGES: Final = 200
"""Number of newest changes that each store keeps."""
_MAX_CATALOG_CHANGES: Final = 5_000

security_changes = sa.Table(
    "security_changes",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    # The epoch is not unique: accepting a restored catalog adds the changes that it lacked.
    sa.Column("epoch", sa.BigInteger, nullable=False),
    now_column("at"),
    # No foreign key: the removal of a tenant is a security change, too.
    sa.Column("tenant", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    json_column("about", "[]"),
    sa.Index(None, "epoch"),
)
"""Changes of access and erasures that a restored catalog must repeat."""


@dataclass(frozen=True, slots=True)
class SecurityChange:
    """A change of permissions, or of what must not be deleted or added again.

    Attributes:
        epoch: the epoch of the installation from this change on.
        name: id of a token, name of an access scope, uuid of a page, incarnation of a tenant,
            provider of a key.
        about: for a token, its role and principals; for a scope, its principals; for a hold, its
            source ("" for any) and the keyed hash of its document; for a purge, the keyed hashes of
            its documents; for an organization's key, the organization. For an organization's token,
            the organization comes before role and principals.
    """

    id: UUID
    epoch: int
    at: datetime
    tenant: str | None
    kind: ChangeKind
    name: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecurityState:
    """The catalog's epoch, and its newest security change.

    Attributes:
        was_kept: whether a store has kept a copy of the journal at any time.
    """

    epoch: int
    newest: UUID | None
    was_kept: bool


class SecurityChangeTable(CatalogQueries):
    """Lists security changes, restores lost changes, and reads the installation's epoch."""

    def state(self) -> SecurityState:
        """Return the current epoch, with the id of the newest change."""
        newest = (
            sa.select(security_changes.c.id)
            .order_by(security_changes.c.epoch.desc(), security_changes.c.id)
            .limit(1)
            .scalar_subquery()
        )
        query = sa.select(installation.c.epoch, newest, installation.c.epoch_kept)
        row = self._database.fetch_row(query)
        return SecurityState(*row) if row else SecurityState(0, None, was_kept=False)

    def newest(self, limit: int = MAX_STORED_CHANGES) -> list[SecurityChange]:
        """Return the newest changes, oldest first."""
        order = security_changes.c.epoch.desc(), security_changes.c.id
        query = sa.select(security_changes).order_by(*order).limit(limit)
        rows = self._database.fetch_rows(query)
        return [read_row(SecurityChange, row, about=tuple(row.about)) for row in reversed(rows)]

    def find_missing(self, changes: Collection[SecurityChange]) -> list[SecurityChange]:
        """Return which of these changes the catalog does not have, oldest first.

        Changes older than all of the catalog's changes are left out, because the catalog keeps only
        the newest ones.
        """
        columns = security_changes.c
        ids = [change.id for change in changes]
        with self._database.begin() as connection:
            known = set(connection.scalars(sa.select(columns.id).where(columns.id.in_(ids))))
            oldest = connection.scalar(sa.select(sa.func.min(columns.epoch))) or 0
        missing = {c.id: c for c in changes if c.id not in known and c.epoch >= oldest}
        return sorted(missing.values(), key=lambda change: (change.epoch, change.id))

    def record_stored_journal(self) -> None:
        """Record that a store has kept a copy of the journal."""
        with self._database.begin() as connection:
            connection.execute(sa.update(installation).values(epoch_kept=True))

    def accept(self, lost: Sequence[SecurityChange]) -> None:
        """Add changes missing from a restored catalog, and raise the epoch above all of them."""
        rows = [asdict(change) for change in lost]
        with self._database.begin() as connection:
            if rows:
                added = upsert(security_changes).values(rows).on_conflict_do_nothing()
                connection.execute(added)
            highest = max((change.epoch for change in lost), default=0)
            _insert_change(connection, None, "restore_accepted", "", (), at_least=highest + 1)


def record_change(
    connection: sa.Connection,
    ref: TenantRef | None,
    kind: ChangeKind,
    name: str,
    about: Collection[str] = (),
) -> None:
    """Record a security change in its transaction, and raise the epoch and the tenant's mark.

    Security changes of all tenants wait for each other here until the transaction ends.
    """
    if ref is not None:
        raise_mark(connection, ref)
    _insert_change(connection, None if ref is None else ref.id, kind, name, about)


def record_removal(connection: sa.Connection, ref: TenantRef) -> None:
    """Record the removal of a tenant, and erase the details of its former changes."""
    columns = security_changes.c
    of_tenant = (columns.tenant == ref.id, columns.kind != "tenant_removed")
    forgotten: dict[str, Any] = {"tenant": None, "name": "", "about": []}
    connection.execute(sa.update(security_changes).where(*of_tenant).values(forgotten))
    _insert_change(connection, ref.id, "tenant_removed", str(ref.incarnation), ())


def format_changes(changes: Sequence[SecurityChange]) -> str:
    """Return changes as the JSON text that a store keeps."""
    rows = [{**asdict(c), "id": str(c.id), "at": c.at.isoformat()} for c in changes]
    return json.dumps({"changes": rows})


def parse_changes(text: str) -> list[SecurityChange]:
    """Return the changes in a text that a store has kept; empty if the text is damaged."""
    try:
        rows = json.loads(text)["changes"]
        return [_parse_change(row) for row in rows if row["kind"] in get_args(ChangeKind)]
    except (ValueError, KeyError, TypeError):
        return []


def _parse_change(row: dict[str, Any]) -> SecurityChange:
    return SecurityChange(
        id=UUID(row["id"]),
        epoch=int(row["epoch"]),
        at=datetime.fromisoformat(row["at"]),
        tenant=row["tenant"],
        kind=row["kind"],
        name=str(row["name"]),
        about=tuple(map(str, row["about"])),
    )


def _insert_change(
    connection: sa.Connection,
    tenant: str | None,
    kind: ChangeKind,
    name: str,
    about: Collection[str],
    *,
    at_least: int = 0,
) -> None:
    note_raised(connection, None)
    epoch = raise_epoch(connection, at_least)
    values = {"id": uuid4(), "epoch": epoch, "tenant": tenant, "kind": kind}
    row = {**values, "name": name, "about": [*about], "at": sa.func.clock_timestamp()}
    connection.execute(sa.insert(security_changes).values(row))
    old = security_changes.c.epoch <= epoch - _MAX_CATALOG_CHANGES
    connection.execute(sa.delete(security_changes).where(old))
