"""Pulls of a tenant's sources, and the choice of due sources.

A pull follows changed rows and the tree. A scan also compares all keys in the database with the
stored records.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from rag_assets.common.batches import batched
from rag_assets.common.errors import (
    ConfigurationError,
    DeletionsHeld,
    InvalidRequest,
    ListingFailed,
    RagAssetsError,
    TenantLocked,
    UnknownSource,
)
from rag_assets.ingest.sources.records import ROOT
from rag_assets.pipeline.uploads import drop_blobs
from rag_assets.privacy.masker import Masker
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.records.manifests import NAMED, ManifestComparison, ManifestLine
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.pulling import TYPES, RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.database import SourceKey, SourceRow, open_snapshot
from rag_assets.systems.workspace.pulling.following import Follower
from rag_assets.systems.workspace.pulling.rows import (
    format_row_id,
    parse_json_value,
    parse_row_time,
    to_boolean,
    to_text,
)
from rag_assets.systems.workspace.pulling.states import (
    PullStates,
    SourceLock,
    SourceLocks,
    SourceState,
    compute_row_key,
)
from rag_assets.systems.workspace.tree import Page, find_pages_in_loops
from rag_assets.systems.workspace.tree_service import PageDraft, TreeService
from rag_assets.tenants.model import Tenant


@dataclass
class PullReport:
    """The result of a pull.

    Attributes:
        rows: number of rows that were read.
        stored: number of new or changed records.
        set_aside: rows that cannot become records, counted by type and column.
        removed: number of records that were removed because they have no row.
        held: number of records without a row that are kept until a person allows their deletion;
            None if keys were not compared.
        read_again: types that were read completely, because changes had been missed.
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

    def format_line(self) -> str:
        """Return the report as one line."""
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
            parts.append(f"read completely: {', '.join(self.read_again)}")
        return f"{self.source}: {', '.join(parts)}, in {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Puller:
    """Pulls the sources of one tenant."""

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

        A pull after a failure reads stored rows again only within the overlap.

        Args:
            scan: whether to also compare all keys with the stored records, remove records without a
                row, and read missed changes.
            allow_deletes: whether any number of records may be removed.

        Raises:
            TenantLocked: another process pulls the source.
            ConfigurationError: the setting `url` does not name a supported database.
            ListingFailed: the database cannot be read. No record was removed.
            TenantGone: the tenant was removed.
        """
        states, locks = PullStates(self.catalog.database), SourceLocks(self.catalog.database)
        started = time.monotonic()
        report = PullReport(config.name)
        with locks.hold(self.ref.id, config.name, wait_seconds=wait_seconds) as lock:
            try:
                while not self._follow_queries(
                    config, states, lock, report, is_scan=scan, allow_deletes=allow_deletes
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

    def _follow_queries(
        self,
        config: SqlConfig,
        states: PullStates,
        lock: SourceLock,
        report: PullReport,
        *,
        is_scan: bool,
        allow_deletes: bool,
    ) -> bool:
        """Follow a source's queries in one snapshot; return whether all were read to the end."""
        watermarks = states.begin(self.ref, config)
        began = self.catalog.database.time()
        with open_snapshot(config) as database:
            follower = Follower(self, config, database, states, lock, report=report)
            for source_type in TYPES:
                if source_type in config.queries and not follower.follow(
                    source_type, watermarks.get(source_type)
                ):
                    return False
            follower.follow_awaiting_blocks()
            if config.tree is not None:
                pull_tree(follower, began, scan=is_scan, allow_deletes=allow_deletes)
            if is_scan:
                scan_keys(follower, allow_deletes=allow_deletes)
            follower.write_set_aside_event()
        return True


_SLOW_SECONDS = 5.0
_MAX_WAIT = timedelta(days=2)
"""Longer than the pause of any source between two pulls."""


def get_pulled_sources(tenant: Tenant, source_name: str | None = None) -> list[SqlConfig]:
    """Return the sources of a tenant with the type sql, or only the source with this name.

    Raises:
        UnknownSource: no source matches.
    """
    sql_sources = [source for source in tenant.sources if isinstance(source, SqlConfig)]
    chosen_sources = [source for source in sql_sources if source_name in {None, source.name}]
    if not chosen_sources:
        which = (
            "no source of type sql"
            if source_name is None
            else f"no source {source_name!r} of type sql"
        )
        raise UnknownSource(
            f"tenant {tenant.id!r} has {which}",
            hint="use one of its sources of type sql:"
            f" {', '.join(source.name for source in sql_sources) or 'none'}",
        )
    return chosen_sources


def find_due_tenants(
    records: Iterable[TenantRecord],
    states: Mapping[tuple[str, str], SourceState],
    now: datetime,
    pulled: Collection[tuple[str, str]] = (),
) -> tuple[list[str], list[str]]:
    """Return the quick and the slow tenants with a due source, the longest waiting first.

    The last pulls of a quick tenant succeeded within 5 seconds each. Quick tenants share one run;
    each slow tenant has its own run, so that it does not delay the others. Tenants with a source
    that is being pulled are left out.

    Args:
        records: tenants with sources of the type sql.
    """
    quick: dict[str, datetime] = {}
    slow: dict[str, datetime] = {}
    for record in records:
        names = _list_source_names(record)
        if any((record.id, name) in pulled for name in names):
            continue
        source_states = [states.get((record.id, name)) for name in names]
        since = [_compute_due_time(state) for state in source_states if is_due(state, now)]
        if since:
            takes_long = any(
                state is None
                or state.seconds is None
                or state.failures
                or state.seconds > _SLOW_SECONDS
                for state in source_states
            )
            (slow if takes_long else quick)[record.id] = min(since)
    # Ordered by waiting time, so that tenants that are always due do not starve the others.
    return sorted(quick, key=quick.__getitem__), sorted(slow, key=slow.__getitem__)


def choose_worst_failure(failures: Sequence[Exception]) -> Exception:
    """Return the failure to report for several sources.

    TenantLocked is reported only if all failures are of this type.
    """
    return next(
        (failure for failure in failures if not isinstance(failure, TenantLocked)), failures[0]
    )


def is_due(state: SourceState | None, now: datetime) -> bool:
    """Return whether a source must be pulled now.

    A due time that is too far in the future was computed with a wrong clock, and is ignored.
    """
    return state is None or not now < state.next_at <= now + _MAX_WAIT


def _compute_due_time(state: SourceState | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if state is None else state.next_at


def _list_source_names(record: TenantRecord) -> list[str]:
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        # The tenant's syncs report this error.
        return []
    return [source.name for source in tenant.sources if isinstance(source, SqlConfig)]


_BATCH_KEYS = 2_000
_WHOLE_TYPE: RecordType = "page"
_PART_TYPE: RecordType = "block"


def scan_keys(follower: Follower, *, allow_deletes: bool) -> None:
    """Remove records without a row, and read missed changes.

    All keys are read before any is compared, so that a failed query removes no record.

    Args:
        follower: follower of the source, after it has followed the queries in the same snapshot.

    Raises:
        ListingFailed: a query failed. No record was removed.
    """
    puller, report, name = follower.puller, follower.report, follower.config.name
    began = puller.catalog.database.time()
    # Writers of the tenant wait while keys are compared. To keep this short, all keys are first
    # written to a local file.
    with tempfile.TemporaryFile() as spool:
        for source_type in follower.config.queries:
            _write_keys(follower, source_type, spool)
        # An empty database is more likely a wrong database than one without any row left.
        may_remove = allow_deletes or spool.tell() > 0
        report.read_again = _find_differing_types(follower, _compare_with_records(follower, spool))
        for source_type in report.read_again:
            follower.read_again(source_type)
        follower.lock.check()
        report.held, is_refused = 0, False
        try:
            done = _compare_with_records(
                follower, spool, may_remove=may_remove, allow_deletes=allow_deletes
            )
        except DeletionsHeld:
            is_refused, may_remove, done = True, False, _compare_with_records(follower, spool)
        if may_remove:
            report.removed = done.removed
        elif done.going:
            report.held = done.going
            if not is_refused:
                payload = {"source": name, "vanished": report.held, "manifest": True}
                puller.catalog.events.write(puller.ref, "deletions_held", [payload])
        if done.blobs:
            drop_blobs(puller.catalog, puller.blobs, puller.ref, done.blobs)
    follower.set_aside_rows.forget_unseen(puller.ref, name, began)


def _write_keys(follower: Follower, source_type: RecordType, spool: IO[bytes]) -> None:
    """Write a line for each key of a query to the manifest `spool`, for the comparison."""
    keys = follower.database.read_keys(source_type, with_page=source_type == _PART_TYPE)
    for batch in batched(keys, _BATCH_KEYS):
        rows = [(compute_row_key(source_type, format_row_id(key.id)), key) for key in batch]
        aside = follower.set_aside_rows.mark_seen(
            follower.puller.ref, follower.config.name, [name for name, _ in rows]
        )
        for name, key in rows:
            # The former record of a row that was set aside stays stored, so times are not compared.
            at = None if name in aside else parse_row_time(key.changed_at, follower.zone)
            if line := _build_manifest_line(source_type, key, at):
                spool.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")


def _build_manifest_line(
    source_type: RecordType, key: SourceKey, at: datetime | None
) -> list[Any] | None:
    """Return a row's line in the manifest; a block counts as a part of its page.

    The result is None for a block without a page or time, and for an id with a NUL character.

    Args:
        at: time of the row's last change; None if it must not be compared.
    """
    is_part = source_type == _PART_TYPE
    if is_part and (key.page is None or at is None):
        return None
    record_type = _WHOLE_TYPE if is_part else source_type
    source_id = format_row_id(key.page if is_part else key.id)
    if "\x00" in source_id:
        return None
    return [record_type, source_id, None if at is None else at.isoformat(), is_part]


def _compare_with_records(
    follower: Follower, spool: IO[bytes], *, may_remove: bool = False, allow_deletes: bool = False
) -> ManifestComparison:
    spool.seek(0)
    return follower.puller.catalog.record_manifests.compare(
        follower.puller.ref,
        follower.config.name,
        _read_manifest_lines(spool),
        remove_extra=may_remove,
        allow_deletes=allow_deletes,
        window_hours=follower.config.deletion_window_hours,
        by=follower.by,
    )


def _read_manifest_lines(spool: IO[bytes]) -> Iterator[ManifestLine]:
    for line in spool:
        source_type, source_id, time_text, is_part = json.loads(line)
        at = None if time_text is None else datetime.fromisoformat(time_text)
        yield ManifestLine(source_type, source_id, at, is_part=is_part)


def _find_differing_types(
    follower: Follower, comparison: ManifestComparison
) -> tuple[RecordType, ...]:
    """Return the types with a row that differs from its record and was not set aside.

    The rows of these types must be read again.
    """
    pulled = [type_ for type_ in TYPES if type_ in follower.config.queries]
    if max(comparison.counts["missing"], comparison.counts["stale"]) > NAMED:
        return tuple(pulled)
    differing = {
        compute_row_key(source_type, source_id): source_type
        for source_type, source_id, difference in comparison.named
        if difference != "extra"
    }
    aside = follower.set_aside_rows.find(follower.puller.ref, follower.config.name, [*differing])
    unseen = {source_type for key, source_type in differing.items() if key not in aside}
    if _WHOLE_TYPE in unseen:
        # A page that is stored again loses its separately pulled blocks, so they are read again.
        unseen.add(_PART_TYPE)
    return tuple(type_ for type_ in pulled if type_ in unseen)


_ID: Final = "id"
_COLUMNS: Final[Mapping[str, Callable[[Any, ZoneInfo], Any]]] = MappingProxyType(
    {
        "parent": to_text,
        "kind": to_text,
        "inherit": to_boolean,
        "read": parse_json_value,
        "archived": to_boolean,
        "ai": to_text,
    }
)


def pull_tree(follower: Follower, began: datetime, *, scan: bool, allow_deletes: bool) -> None:
    """Put the pages of the database into the tree; a scan also removes all other pages.

    Args:
        began: when the snapshot was opened; pages that were put later are not removed.
        scan: whether to remove pages that the database does not have.
        allow_deletes: whether any number of pages may be removed.

    Raises:
        ListingFailed: the query failed, or has a column that is not a field of a page.
    """
    puller, report, config = follower.puller, follower.report, follower.config
    service = TreeService(puller.catalog, puller.blobs, puller.masker)
    names, rows = follower.database.read_tree()
    unknown = [name for name in names if name not in {_ID, *_COLUMNS}]
    if unknown:
        raise ListingFailed(
            f"source {config.name!r}: the query of tree has the column {unknown[0]!r}, which is"
            " not a field of a page",
            hint="remove the column, or rename it to a field of a page:"
            f" {', '.join([_ID, *_COLUMNS])}",
        )
    pages, aside = _read_pages(service, follower.zone, names, rows)
    report.set_aside += Counter(f"tree.{column}" for column in aside.values())
    # The application may have put a page that occurs only as the parent in a row, so it stays.
    kept_ids = aside.keys() | {page.parent or ROOT for page in pages.values()} - pages.keys()
    may_remove = scan and (bool(rows) or allow_deletes)

    def reconcile(*, remove: bool) -> int:
        done = service.reconcile(
            puller.ref.id,
            pages,
            as_of=began,
            by=follower.by,
            apply=True,
            remove_extra=remove,
            allow_deletes=allow_deletes,
            keep=kept_ids,
        )
        report.pages += done.missing + done.stale
        report.pages_removed += done.removed
        return done.extra

    follower.lock.check()
    try:
        reconcile(remove=may_remove)
    except DeletionsHeld:
        extra = reconcile(remove=False)
        # A separate name, because deletions of the source's records are counted separately.
        payload = {"source": f"{config.name} (tree)", "vanished": extra}
        puller.catalog.events.write(puller.ref, "deletions_held", [payload])


def _read_pages(
    service: TreeService, zone: ZoneInfo, names: Sequence[str], rows: Sequence[SourceRow]
) -> tuple[dict[str, Page], dict[str, str]]:
    """Convert the rows of the tree's query to pages.

    Returns:
        the pages by uuid, and the invalid column of each other row by its id.
    """
    pages: dict[str, Page] = {}
    aside: dict[str, str] = {}
    for row in rows:
        uuid = format_row_id(row.values[names.index(_ID)])
        try:
            page = _parse_page(names, row, zone, uuid)
            service.require_no_credential(page)
        except _InvalidColumnError as problem:
            aside[uuid] = problem.column
        except InvalidRequest:
            aside[uuid] = _ID
        else:
            pages[uuid] = page
    for uuid in find_pages_in_loops(pages):
        del pages[uuid]
        aside[uuid] = "parent"
    return pages, aside


class _InvalidColumnError(Exception):
    """A pulled row cannot be converted to a page because of one of its columns."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _parse_page(names: Sequence[str], row: SourceRow, zone: ZoneInfo, uuid: str) -> Page:
    """Convert a row of the tree's query to a page.

    Raises:
        InvalidRequest: its id is not valid for a page.
    """
    if row.largest is not None:
        raise _InvalidColumnError(names[row.largest])
    fields: dict[str, Any] = {}
    for name, value in zip(names, row.values, strict=True):
        if name == _ID or value is None:
            continue
        try:
            fields[name] = _COLUMNS[name](value, zone)
        except ValueError:
            raise _InvalidColumnError(name) from None
    try:
        return PageDraft.model_validate(fields).build_page(uuid)
    except ValidationError as error:
        raise _InvalidColumnError(str(error.errors()[0]["loc"][0])) from None
