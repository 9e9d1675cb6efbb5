"""hold list, set, lift: documents that stay in every store until a person lifts the hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_assets.cli.commands.operator import operator
from rag_assets.cli.commands.output import print_json, print_table, progress, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_assets.storage.catalog.erasure.holds import HoldScope
    from rag_assets.storage.catalog.tenants.table import TenantRecord

_LOCK_SECONDS = 60.0


@with_reading_session
def list_holds(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print the holds of a tenant."""
    session.catalog.tenants.get(tenant_id)
    holds = session.catalog.holds.all(tenant_id)
    if as_json:
        print_json({"tenant": tenant_id, "holds": holds})
        return
    print_table(
        ["held", "since", "by", "reason"],
        [(h.scope, f"{h.at:%Y-%m-%d %H:%M} UTC", h.by, h.reason) for h in holds],
    )


@with_session
def set_hold(
    session: Session,
    tenant_id: str,
    *,
    source: str | None,
    document: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Set a hold, while no run of the tenant deletes anything."""
    scope = _scope(source, document)
    with _lock_tenant(session, tenant_id) as record:
        if session.catalog.erasures.list_open(tenant_id):
            raise ConfigurationError(
                f"documents of tenant {tenant_id!r} are being deleted permanently",
                hint=(
                    f"finish the deletion with `rag-assets prune {tenant_id}`, then set the "
                    "hold again"
                ),
            )
        session.catalog.holds.set(
            record.ref, scope, reason=_mask_reason(session, reason), by=operator()
        )
    if as_json:
        print_json({"tenant": tenant_id, "held": scope})
        return
    say(f"{tenant_id}: {scope} of it: held. `rag-assets hold lift` ends that.")


@with_session
def lift_hold(
    session: Session,
    tenant_id: str,
    *,
    source: str | None,
    document: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Lift a hold."""
    scope = _scope(source, document)
    with _lock_tenant(session, tenant_id) as record:
        lifted = session.catalog.holds.lift(
            record.ref, scope, reason=_mask_reason(session, reason), by=operator()
        )
    if not lifted:
        raise ConfigurationError(
            f"there is no hold on {scope} of tenant {tenant_id!r}",
            hint=f"run `rag-assets hold list {tenant_id}` to see its holds",
        )
    if as_json:
        print_json({"tenant": tenant_id, "lifted": scope})
        return
    say(
        f"{tenant_id}: {scope} of it: no longer held. What was deleted meanwhile leaves the lake"
        " with the next compaction."
    )


def _scope(source: str | None, document: str | None) -> HoldScope:
    from rag_assets.storage.catalog.erasure.holds import HoldScope

    if source is not None and document is not None:
        raise ConfigurationError(
            "--source and --document cannot be combined", hint="use only one of them"
        )
    return HoldScope(source, document)


@contextmanager
def _lock_tenant(session: Session, tenant_id: str) -> Iterator[TenantRecord]:
    from rag_assets.storage.catalog.lock import Holder

    record = session.catalog.tenants.get(tenant_id)
    with session.catalog.lock.hold(
        tenant_id,
        Holder.here("a hold"),
        wait_seconds=_LOCK_SECONDS,
        on_wait=lambda holder: progress(f"waiting for {holder}"),
    ):
        yield record


def _mask_reason(session: Session, reason: str) -> str:
    from rag_assets.privacy.masker import masker_of

    return masker_of(session.settings.local).text(reason)
