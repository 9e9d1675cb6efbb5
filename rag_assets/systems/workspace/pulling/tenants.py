"""The sources of tenants that are pulled, and the selection of due sources."""

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
"""More than any source waits for its next pull."""


@dataclass(frozen=True, slots=True)
class DueTenants:
    """Tenants with a due source, the longest waiting first.

    Attributes:
        quick: tenants whose last pulls took seconds and did not fail: one run pulls all of them.
        slow: all other tenants: each has a run of its own, so that it delays no other tenant.
    """

    quick: tuple[str, ...]
    slow: tuple[str, ...]


def pulled_sources(tenant: Tenant, named: str | None = None) -> list[SqlConfig]:
    """Return the pulled sources of a tenant, or only the source with this name.

    Raises:
        UnknownSource: no source matches.
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
    """Return the tenants with a due source, except tenants with a source that is being pulled.

    Args:
        records: tenants with pulled sources.
        states: of their sources, by tenant and source.
        now: the time.
        pulled: sources that are being pulled: a second run for them would be useless.
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
    # By waiting time: otherwise the first tenants that are always due would starve all others.
    return DueTenants(*(tuple(sorted(some, key=some.__getitem__)) for some in (quick, slow)))


def worst(failures: Sequence[Exception]) -> Exception:
    """Return the failure to report for several sources; a pull elsewhere is the last choice."""
    return next((one for one in failures if not isinstance(one, TenantLocked)), failures[0])


def is_due(state: SourceState | None, now: datetime) -> bool:
    """Return whether a source must be pulled now.

    A due time too far in the future was computed while the clock was fast, and does not count.
    """
    return state is None or not now < state.next_at <= now + _LONGEST_WAIT


def _due_since(state: SourceState | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if state is None else state.next_at


def _names(record: TenantRecord) -> list[str]:
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        # The tenant's syncs report this error.
        return []
    return [one.name for one in tenant.sources if isinstance(one, SqlConfig)]
