"""Pulls a source: stores what has changed in its database, and removes what is gone from it."""

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
    """What a pull did.

    Attributes:
        rows: that were read.
        stored: records that are new or changed.
        set_aside: rows that are no records, by type and column.
        removed: records that the database has no more.
        held: of these, those that are kept until a person lets them go; None: it was not compared.
        read_again: types of which rows had changed unseen, and that were read whole.
        pages: of the tree that were put or changed.
        pages_removed: of the tree.
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
        """For a log."""
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
        catalog, blobs: of the installation.
        masker: finds credentials.
        ref: the tenant.
        tenant: its configuration.
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
        """Store what has changed since the last pull.

        What is stored is not read again after a failure, but for what lies within the overlap.

        Args:
            config: of the source.
            scan: also compare all keys with what is stored, remove what is gone, and read again
                what has changed unseen.
            allow_deletes: whether any number of records may be removed.
            wait_seconds: time to wait for another process that pulls it.

        Raises:
            TenantLocked: another process pulls it.
            ConfigurationError: its database cannot be named.
            ListingFailed: it cannot be read; nothing was removed.
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
                # Another process pulls it now, and says how that goes.
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
        """Follow a source within one snapshot; returns whether it was followed to its end."""
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
