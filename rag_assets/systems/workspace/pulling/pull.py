"""Pulls a source: stores new and changed records, and removes those that its database lost."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from rag_assets.common.errors import RagAssetsError, TenantLocked
from rag_assets.privacy.masker import Masker
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.workspace.pulling.database import open_snapshot
from rag_assets.systems.workspace.pulling.following import Follower
from rag_assets.systems.workspace.pulling.key_scan import scan_keys
from rag_assets.systems.workspace.pulling.locks import SourceLock, SourceLocks
from rag_assets.systems.workspace.pulling.source import TYPES, SqlConfig
from rag_assets.systems.workspace.pulling.states import PullStates
from rag_assets.systems.workspace.pulling.tree_rows import pull_tree
from rag_assets.tenants.model import Tenant


@dataclass
class PullReport:
    """The result of a pull.

    Attributes:
        rows: rows that were read.
        stored: new or changed records.
        set_aside: rows that cannot become records, counted by type and column.
        removed: records that the database no longer has.
        held: records that the database no longer has, kept until a person allows their deletion;
            None: keys were not compared.
        read_again: types with unnoticed changes, which were read as a whole.
        pages: pages of the tree that were put or changed.
        pages_removed: pages that were removed from the tree.
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
            config: of the source.
            scan: also compare all keys with the stored records, remove records that the database
                no longer has, and read unnoticed changes.
            allow_deletes: whether any number of records may be removed.
            wait_seconds: time to wait for another process that pulls the source.

        Raises:
            TenantLocked: another process pulls the source.
            ConfigurationError: its database cannot be named.
            ListingFailed: the database cannot be read. No record was removed.
            TenantGone: the tenant was removed.
        """
        states, locks = PullStates(self.catalog.database), SourceLocks(self.catalog.database)
        started = time.monotonic()
        report = PullReport(config.name)
        with locks.held(self.ref.id, config.name, wait_seconds=wait_seconds) as lock:
            try:
                while not self._followed(
                    config, states, lock, report, scan=scan, allow_deletes=allow_deletes
                ):
                    pass
            except TenantLocked:
                # Another process pulls the source now, and records the result.
                raise
            except RagAssetsError as error:
                states.fail(self.ref, config, self.masker.text(error.message))
                raise
            except Exception as error:
                states.fail(self.ref, config, f"unexpected {type(error).__name__}")
                raise
            report.seconds = time.monotonic() - started
            states.end(self.ref, config, report.seconds, held=report.held)
        return report

    def _followed(
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
            follower.follow_awaiting()
            if config.tree is not None:
                pull_tree(follower, began, scan=scan, allow_deletes=allow_deletes)
            if scan:
                scan_keys(follower, allow_deletes=allow_deletes)
            follower.tell()
        return True
