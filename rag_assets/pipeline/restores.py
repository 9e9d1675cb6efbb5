"""Acceptance of a restored catalog: show the security changes that it lacks, and repeat them.

Changes that withdraw or protect something are repeated: revocations, removals of keys, purges and
holds. Permissions that were granted after the dump are only listed; a person decides about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

from rag_assets.common.errors import OnHold, UnknownDocument, UnknownSource
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper, SecurityStanding
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.removals import parse_hash
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.storage.catalog.journal.security_changes import SecurityChange
from rag_assets.storage.catalog.lock import Holder
from rag_assets.storage.catalog.tenants.settings import OrganizationRef

_LOCK_SECONDS = 60.0

RepeatChange: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class LostChange:
    """A security change that a restored catalog lacks; it can be repeated if that is useful."""

    change: SecurityChange
    sentence: str
    repeat: RepeatChange | None = None


def describe_lost_changes(
    catalog: Catalog, security: SecurityStanding, *, by: str
) -> list[LostChange]:
    """Return the changes that a restored catalog lacks, oldest first, each with a description.

    If several changes concern the same subject, only the last one is returned.
    """
    last: dict[tuple[str | None, str, str, str], SecurityChange] = {}
    for change in security.lost:
        for single_change in _iter_single_changes(change):
            subject = single_change.kind.partition("_")[0]
            about = "" if subject == "token" else "\n".join(single_change.about)
            key = (single_change.tenant, subject, single_change.name, about)
            last.pop(key, None)
            last[key] = single_change
    describe = _Describer(catalog, by)
    described = (describe(change) for change in last.values())
    return [lost for lost in described if lost is not None]


def accept_restore(
    catalog: Catalog,
    keeper: CatalogMarkKeeper,
    lost: Iterable[LostChange],
    security: SecurityStanding,
) -> None:
    """Accept a restored catalog: repeat changes, end the panel's sessions, raise the epoch."""
    for lost_change in lost:
        if lost_change.repeat is not None:
            lost_change.repeat()
    catalog.panel_sessions.end_all()
    keeper.accept_security(security.lost)


def _iter_single_changes(change: SecurityChange) -> Iterator[SecurityChange]:
    """Split a change that concerns several principals into one change per principal."""
    if not change.kind.startswith("scope_"):
        yield change
        return
    yield from (replace(change, about=(principal,)) for principal in change.about)


class _Describer:
    """Describes lost changes, and provides the functions that repeat them."""

    def __init__(self, catalog: Catalog, by: str) -> None:
        self._catalog = catalog
        self._by = by

    def __call__(self, change: SecurityChange) -> LostChange | None:
        """Return the description of a change; None if the change no longer has an effect."""
        if change.kind == "restore_accepted" or not (change.tenant or change.about):
            return None  # Or the change belongs to a tenant that has been removed since.
        on = f"on {change.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        if change.tenant is None:
            owner = OrganizationRef(change.about[0])
            if change.kind in {"token_created", "token_revoked"}:
                return self._describe_token_change(change, owner, on)
            return self._describe_removed_key(change, owner, on)
        record = self._catalog.tenants.find(change.tenant)
        if record is None:
            return _describe_unknown_tenant(change, on)
        describe = {
            "token_created": self._describe_token_change,
            "token_revoked": self._describe_token_change,
            "scope_granted": self._describe_granted_scope,
            "scope_revoked": self._describe_revoked_scope,
            "page_changed": self._describe_changed_page,
            "hold_set": self._describe_set_hold,
            "hold_lifted": self._describe_lifted_hold,
            "key_removed": self._describe_removed_key,
            "purged": self._describe_purge,
            "tenant_removed": self._describe_removed_tenant,
        }[change.kind]
        return describe(change, record.ref, on)

    def _describe_token_change(
        self, change: SecurityChange, owner: TenantRef | OrganizationRef, on: str
    ) -> LostChange:
        is_tenant = isinstance(owner, TenantRef)
        # The first fact about a token of an organization is the organization.
        named = change if is_tenant else replace(change, about=change.about[1:])
        action = "created" if change.kind == "token_created" else "revoked"
        change_text = f"{_describe_token(named)} of {_name_owner(owner)} was {action} {on}"
        if action == "created":
            return LostChange(
                change, f"{change_text}, and is unknown to this catalog: create another one"
            )
        tokens = self._catalog.service_tokens
        if change.name not in {
            t.token_id for t in tokens.all(owner.id, of_organization=not is_tenant)
        }:
            return LostChange(change, f"{change_text}, and is unknown to this catalog as well")
        revoke = partial(tokens.revoke, owner, change.name)
        return LostChange(change, f"{change_text}, and is valid again in this catalog", revoke)

    def _describe_granted_scope(
        self, change: SecurityChange, ref: TenantRef, on: str
    ) -> LostChange:
        change_text = (
            f"scope {change.name!r} of tenant {ref.id} was granted to {change.about[0]} {on}"
        )
        return LostChange(
            change, f"{change_text}, and is not granted in this catalog: grant it again"
        )

    def _describe_revoked_scope(
        self, change: SecurityChange, ref: TenantRef, on: str
    ) -> LostChange:
        (principal,) = change.about
        change_text = f"scope {change.name!r} of tenant {ref.id} was revoked from {principal} {on}"
        granted = self._catalog.access.grants(ref.id, [change.name]).get(change.name, [])
        if principal not in granted:
            return LostChange(change, f"{change_text}, and is not granted in this catalog either")
        revoke = partial(self._catalog.access.revoke, ref, change.name, [principal])
        return LostChange(change, f"{change_text}, and is granted again in this catalog", revoke)

    def _describe_changed_page(self, change: SecurityChange, ref: TenantRef, on: str) -> LostChange:
        change_text = (
            f"page {change.name} of tenant {ref.id} was moved, removed or given other readers"
        )
        return LostChange(change, f"{change_text} {on}: have its application push the tree again")

    def _describe_set_hold(self, change: SecurityChange, ref: TenantRef, on: str) -> LostChange:
        source, *hashes = change.about
        change_text = (
            f"a hold on {_describe_held_documents(change)} of tenant {ref.id} was set {on}"
        )
        ids = self._list_documents(ref, hashes)
        if hashes and not ids:
            return LostChange(change, f"{change_text}, and this catalog does not know the document")
        scope = HoldScope(source or None, ids[0] if ids else None)
        if scope in {hold.scope for hold in self._catalog.holds.all(ref.id)}:
            return LostChange(change, f"{change_text}, and is set in this catalog as well")
        reset = partial(self._set_hold, ref, scope, f"set again after a restore; first set {on}")
        return LostChange(change, f"{change_text}, and is missing in this catalog", reset)

    def _describe_lifted_hold(self, change: SecurityChange, ref: TenantRef, on: str) -> LostChange:
        change_text = (
            f"a hold on {_describe_held_documents(change)} of tenant {ref.id} was lifted {on}"
        )
        return LostChange(change, f"{change_text}, and is set again in this catalog: lift it again")

    def _describe_removed_key(
        self, change: SecurityChange, owner: TenantRef | OrganizationRef, on: str
    ) -> LostChange:
        change_text = f"the key of {_name_owner(owner)} for {change.name} was removed {on}"
        stored_key = self._catalog.provider_keys.find(owner, change.name)
        if stored_key is None or stored_key.owner != owner:
            return LostChange(change, f"{change_text}, and is not in this catalog either")
        remove = partial(self._catalog.provider_keys.remove, owner, change.name)
        return LostChange(change, f"{change_text}, and is used again by this catalog", remove)

    def _describe_purge(self, change: SecurityChange, ref: TenantRef, on: str) -> LostChange:
        change_text = f"{len(change.about)} documents of tenant {ref.id} were purged {on}"
        ids = self._list_documents(ref, [parse_hash(sealed) for sealed in change.about])
        purge = partial(self._purge, ref, ids, change.about)
        if not ids:
            kept_out = "unknown to this catalog as well: their sources are not to bring them back"
            return LostChange(change, f"{change_text}, and are {kept_out}", purge)
        return LostChange(
            change, f"{change_text}, and {len(ids)} of them are in this catalog", purge
        )

    def _describe_removed_tenant(
        self, change: SecurityChange, ref: TenantRef, on: str
    ) -> LostChange | None:
        if change.name != str(ref.incarnation):
            return None
        change_text = f"tenant {ref.id} was removed {on}, and is in this catalog again"
        return LostChange(change, f"{change_text}: rag-assets tenants remove {ref.id} --yes")

    def _list_documents(self, ref: TenantRef, hashes: Sequence[str]) -> list[str]:
        """Return the ids of the tenant's documents that have these keyed hashes."""
        if not hashes:
            return []
        ids = [document.document_id for document in self._catalog.documents.all(ref.id)]
        by_hash = self._catalog.receipts.map_ids_by_hash(ids)
        return [by_hash[hash_] for hash_ in hashes if hash_ in by_hash]

    def _set_hold(self, ref: TenantRef, scope: HoldScope, reason: str) -> None:
        with self._hold_lock(ref):
            try:
                self._catalog.holds.set(ref, scope, reason=reason, by=self._by)
            except (UnknownDocument, UnknownSource):
                return  # The catalog has no data of the tenant that could be deleted.

    def _purge(self, ref: TenantRef, ids: Sequence[str], sealed: Sequence[str]) -> None:
        """Withhold documents until the next run erases them.

        Tombstones keep out documents that the catalog does not know.
        """
        now = datetime.now(UTC)
        with self._hold_lock(ref):
            self._catalog.erasures.restore_tombstones(ref, sealed)
            if not ids:
                return
            try:
                self._catalog.erasures.begin_purge(ref, ids, by=self._by, at=now)
            except OnHold:
                return  # The hold was set before the dump, and lifted after it.

    @contextmanager
    def _hold_lock(self, ref: TenantRef) -> Iterator[None]:
        holder = Holder.here("accepting a restored catalog")
        with self._catalog.lock.hold(ref.id, holder, wait_seconds=_LOCK_SECONDS):
            yield


def _describe_unknown_tenant(change: SecurityChange, on: str) -> LostChange | None:
    if change.kind == "tenant_removed":
        return None
    action = change.kind.replace("_", " ")
    return LostChange(
        change, f"tenant {change.tenant}, which this catalog does not know: {action} {on}"
    )


def _name_owner(owner: TenantRef | OrganizationRef) -> str:
    return f"{'tenant' if isinstance(owner, TenantRef) else 'organization'} {owner.id}"


def _describe_token(change: SecurityChange) -> str:
    role, *principals = change.about or ("",)
    about = ", ".join([role, *principals])
    return f"token {change.name} ({about})" if about else f"token {change.name}"


def _describe_held_documents(change: SecurityChange) -> str:
    source, *hashes = change.about
    if hashes:
        return "a document"
    return f"source {source!r}" if source else "all documents"
