"""The sources of tenants that are pulled, and which of them are due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rag_assets.common.errors import ConfigurationError, TenantLocked, UnknownSource
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.workspace.pulling.source import SqlConfig
from rag_assets.systems.workspace.pulling.states import SourceState
from rag_assets.tenants.model import Tenant

_SLOW_SECONDS = 5.0
_LONGEST_WAIT = timedelta(days=2)
"""Longer than any source waits for its turn."""


@dataclass(frozen=True, slots=True)
class DueTenants:
    """Tenants with a source that is due, those first that wait longest.

    Attributes:
        quick: those whose last pulls took seconds, and did not fail: one run pulls all of them.
        slow: all others: each has a run of its own, and holds up nobody.
    """

    quick: tuple[str, ...]
    slow: tuple[str, ...]


def pulled_sources(tenant: Tenant, named: str | None = None) -> list[SqlConfig]:
    """The sources of a tenant that are pulled, or the one of a name.

    Raises:
        UnknownSource: there is none.
    """
    found = [one for one in tenant.sources if isinstance(one, SqlConfig)]
    chosen = [one for one in found if named in {None, one.name}]
    if not chosen:
        which = "no source that is pulled" if named is None else f"no source {named!r} of that type"
        raise UnknownSource(
            f"tenant {tenant.id!r} has {which}",
            hint=f"those of the type sql are: {', '.join(one.name for one in found) or 'none'}",
        )
    return chosen


def due_tenants(
    records: Iterable[TenantRecord],
    states: Mapping[tuple[str, str], SourceState],
    now: datetime,
    pulled: Collection[tuple[str, str]] = (),
) -> DueTenants:
    """Tenants of whose sources one is due, and none is being pulled.

    Args:
        records: tenants that have any.
        states: of their sources, by tenant and source.
        now: the time.
        pulled: sources that are being pulled: a run for them would be in vain.
    """
    quick: dict[str, datetime] = {}
    slow: dict[str, datetime] = {}
    for record in records:
        names = _names(record)
        if any((record.id, name) in pulled for name in names):
            continue
        found = [states.get((record.id, name)) for name in names]
        since = [_due_since(one) for one in found if is_due(one, now)]
        if since:
            takes_long = any(
                one is None or one.seconds is None or one.failures or one.seconds > _SLOW_SECONDS
                for one in found
            )
            (slow if takes_long else quick)[record.id] = min(since)
    # Otherwise the first of those that are always due would be pulled for ever, and no other.
    return DueTenants(*(tuple(sorted(some, key=some.__getitem__)) for some in (quick, slow)))


def worst(failures: Sequence[Exception]) -> Exception:
    """Which failure of several sources is told: that one is being pulled elsewhere is none."""
    return next((one for one in failures if not isinstance(one, TenantLocked)), failures[0])


def is_due(state: SourceState | None, now: datetime) -> bool:
    """Whether a source is to be pulled now.

    A time that is too far away was computed while the clock was ahead.
    """
    return state is None or not now < state.next_at <= now + _LONGEST_WAIT


def _due_since(state: SourceState | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if state is None else state.next_at


def _names(record: TenantRecord) -> list[str]:
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        # It is told of by whoever syncs the tenant.
        return []
    return [one.name for one in tenant.sources if isinstance(one, SqlConfig)]
