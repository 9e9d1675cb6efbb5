"""Pulls of a tenant's sources, and the choice of the sources that are due."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rag_assets.common.errors import ConfigurationError, RagAssetsError, TenantLocked, UnknownSource
from rag_assets.privacy.masker import Masker
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.pulling.comparison import pull_tree, scan_keys
from rag_assets.systems.workspace.pulling.database import open_snapshot
from rag_assets.systems.workspace.pulling.following import Follower
from rag_assets.systems.workspace.pulling.source import TYPES, SqlConfig
from rag_assets.systems.workspace.pulling.states import (
    PullStates,
    SourceLock,
    SourceLocks,
    SourceState,
)
from rag_assets.tenants.model import Tenant


@dataclass
class PullReport:
    """The result of a pull.

    Attributes:
        rows: number of rows that were read.
        stored: number of new or changed records.
        set_aside: rows that cannot become records, counted by type and column.
        removed: number of removed records, which the database no longer has.
        held: number of records that the database no longer has and that are kept until a person
            allows their deletion; None if keys were not compared.
        read_again: types with unnoticed changes, which were read as a whole.
        pages: number of pages of the tree that were put or changed.
        pages_removed: number of pages that were removed from the tree.
    """

    source: str
    rows: int = 0
    stored: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    held: int | None = None
    read_again: tuple[str, ...] = ()
    pages: int = 0
    pages_removed: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        """Return the report as a line for a log."""
        parts = [f"{self.rows:,} rows read", f"{self.stored:,} records new or changed"]
        if bad := self.set_aside.total():
            parts.append(f"{bad:,} rows set aside for {', '.join(sorted(self.set_aside))}")
        if self.pages or self.pages_removed:
            parts.append(f"{self.pages:,} pages put, {self.pages_removed:,} removed")
        if self.removed:
            parts.append(f"{self.removed:,} records removed")
        if self.held:
            parts.append(f"{self.held:,} deletions held")
        if self.read_again:
            parts.append(f"read whole: {', '.join(self.read_again)}")
        return f"{self.source}: {', '.join(parts)}, in {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Puller:
    """Pulls the sources of one tenant.

    Args:
        masker: finds credentials.
    """

    catalog: Catalog
    blobs: BlobStore
    masker: Masker
    ref: TenantRef
    tenant: Tenant

    def pull(
        self,
        config: SqlConfig,
        *,
        scan: bool = False,
        allow_deletes: bool = False,
        wait_seconds: float = 0.0,
    ) -> PullReport:
        """Store all changes since the last pull.

        After a failure, stored rows are not read again, except for rows within the overlap.

        Args:
            config: configuration of the source.
            scan: whether to also compare all keys with the stored records, remove records that the
                database no longer has, and read changes that were missed.
            allow_deletes: whether any number of records may be removed.
            wait_seconds: time to wait for another process that pulls the source.

        Raises:
            TenantLocked: another process pulls the source.
            ConfigurationError: the setting does not name a usable database.
            ListingFailed: the database cannot be read. No record was removed.
            TenantGone: the tenant was removed.
        """
        states, locks = PullStates(self.catalog.database), SourceLocks(self.catalog.database)
        started = time.monotonic()
        report = PullReport(config.name)
        with locks.hold(self.ref.id, config.name, wait_seconds=wait_seconds) as lock:
            try:
                while not self._follow(
                    config, states, lock, report, scan=scan, allow_deletes=allow_deletes
                ):
                    pass
            except TenantLocked:
                # Another process pulls the source now, and will record the result.
                raise
            except RagAssetsError as error:
                states.record_failure(self.ref, config, self.masker.text(error.message))
                raise
            except Exception as error:
                states.record_failure(self.ref, config, f"unexpected {type(error).__name__}")
                raise
            report.seconds = time.monotonic() - started
            states.record_success(self.ref, config, report.seconds, held=report.held)
        return report

    def _follow(
        self,
        config: SqlConfig,
        states: PullStates,
        lock: SourceLock,
        report: PullReport,
        *,
        scan: bool,
        allow_deletes: bool,
    ) -> bool:
        """Follow a source within one snapshot; return whether the end was reached."""
        marks = states.begin(self.ref, config)
        began = self.catalog.database.time()
        with open_snapshot(config) as database:
            follower = Follower(self, config, database, states, lock, report=report)
            for source_type in TYPES:
                if source_type in config.queries and not follower.follow(
                    source_type, marks.get(source_type)
                ):
                    return False
            follower.follow_awaiting_blocks()
            if config.tree is not None:
                pull_tree(follower, began, scan=scan, allow_deletes=allow_deletes)
            if scan:
                scan_keys(follower, allow_deletes=allow_deletes)
            follower.write_event()
        return True


_SLOW_SECONDS = 5.0
_LONGEST_WAIT = timedelta(days=2)
"""A time longer than any source waits for its next pull."""


@dataclass(frozen=True, slots=True)
class DueTenants:
    """Tenants with a due source, the longest waiting first.

    Attributes:
        quick: tenants whose last pulls took only seconds and did not fail; one run pulls all of
            them.
        slow: all other due tenants; each has its own run, so that it does not delay other tenants.
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
        which = "no source of type sql" if named is None else f"no source {named!r} of type sql"
        raise UnknownSource(
            f"tenant {tenant.id!r} has {which}",
            hint="use one of its sources of type sql:"
            f" {', '.join(one.name for one in found) or 'none'}",
        )
    return chosen


def find_due_tenants(
    records: Iterable[TenantRecord],
    states: Mapping[tuple[str, str], SourceState],
    now: datetime,
    pulled: Collection[tuple[str, str]] = (),
) -> DueTenants:
    """Return the tenants with a due source, except tenants with a source that is being pulled.

    Args:
        records: tenants with pulled sources.
        states: states of their sources, by tenant and source.
        now: the present time.
        pulled: sources that are being pulled now, for which a second run would be useless.
    """
    quick: dict[str, datetime] = {}
    slow: dict[str, datetime] = {}
    for record in records:
        names = _list_source_names(record)
        if any((record.id, name) in pulled for name in names):
            continue
        found = [states.get((record.id, name)) for name in names]
        since = [_compute_due_time(one) for one in found if is_due(one, now)]
        if since:
            takes_long = any(
                one is None or one.seconds is None or one.failures or one.seconds > _SLOW_SECONDS
                for one in found
            )
            (slow if takes_long else quick)[record.id] = min(since)
    # The order is by waiting time; otherwise the first tenants, if they are always due, would
    # starve all others.
    return DueTenants(*(tuple(sorted(some, key=some.__getitem__)) for some in (quick, slow)))


def choose_worst_failure(failures: Sequence[Exception]) -> Exception:
    """Return the failure to report for several sources.

    That another process pulls the source is reported only if there is no other failure.
    """
    return next((one for one in failures if not isinstance(one, TenantLocked)), failures[0])


def is_due(state: SourceState | None, now: datetime) -> bool:
    """Return whether a source must be pulled now.

    A due time too far in the future was computed while the clock was fast, and is ignored.
    """
    return state is None or not now < state.next_at <= now + _LONGEST_WAIT


def _compute_due_time(state: SourceState | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if state is None else state.next_at


def _list_source_names(record: TenantRecord) -> list[str]:
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        # The tenant's syncs report this error.
        return []
    return [one.name for one in tenant.sources if isinstance(one, SqlConfig)]
