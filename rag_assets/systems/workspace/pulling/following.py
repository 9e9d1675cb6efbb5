"""Follows the queries of one source, and stores their rows like pushed records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from rag_assets.common.errors import ListingFailed, TenantBusy, UnknownDocument
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.records.drafts import BlockChange, Draft, DraftBuilder, Removal
from rag_assets.records.writing import BULK, URGENT, Outcome, RecordWrite, write_drafts
from rag_assets.storage.catalog.records.model import UNORDERED
from rag_assets.storage.catalog.records.table import RecordVersion
from rag_assets.systems.workspace.pulling import RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.database import SourceDatabase, SourceRow
from rag_assets.systems.workspace.pulling.rows import (
    PulledRow,
    RowReader,
    SetAsideRow,
    describe_row_problem,
    draft_row,
)
from rag_assets.systems.workspace.pulling.states import (
    PullStates,
    SetAsideRows,
    SourceLock,
    compute_row_key,
)

if TYPE_CHECKING:
    from rag_assets.systems.workspace.pulling.pull import Puller, PullReport


_BATCH_ROWS = 500
_BATCH_BYTES = 8 << 20
_MAX_URGENT_CHANGES = 100
"""Maximum number of changes per pull that are stored as urgent, like changes by a person."""
_MAX_URGENT_AGE = timedelta(hours=1)
"""Maximum age of an urgent change; older changes are queued like the rows of a first pull."""
_MAX_AWAITED_PAGES = 500
"""Maximum number of pages whose waiting blocks are read at once."""
_BLOCK: RecordType = "block"


@dataclass
class _Batch:
    """Rows that are stored together.

    Attributes:
        bad: rows that cannot become records.
        watermark: time of the last change among the rows.
        advances_watermark: whether storing these rows advances the watermark.
    """

    taken: list[tuple[PulledRow, Draft]] = field(default_factory=list)
    bad: list[SetAsideRow] = field(default_factory=list)
    watermark: datetime | None = None
    size: int = 0
    advances_watermark: bool = True

    @property
    def is_full(self) -> bool:
        """Return whether the batch must be stored now."""
        return len(self.taken) + len(self.bad) >= _BATCH_ROWS or self.size >= _BATCH_BYTES


class Follower:
    """Follows the queries of one source within one snapshot of its database."""

    def __init__(
        self,
        puller: Puller,
        config: SqlConfig,
        database: SourceDatabase,
        states: PullStates,
        lock: SourceLock,
        *,
        report: PullReport,
    ) -> None:
        self.puller, self.config, self.database = puller, config, database
        self.states, self.lock, self.report = states, lock, report
        self.set_aside_rows = SetAsideRows(puller.catalog.database)
        self.zone = ZoneInfo(config.timezone)
        self._pulls_blocks = "block" in config.queries
        self._drafting = DraftBuilder(puller.tenant, config, puller.masker)
        self._writer = RecordWriter(puller, config, lock)
        self.by = self._writer.by
        # A watermark in the future would hide all changes up to that time.
        self._latest = datetime.now(UTC)

    def follow(self, source_type: RecordType, watermark: datetime | None) -> bool:
        """Store the changed rows of a query.

        Args:
            watermark: time of the last change that was stored before; None reads all rows.

        Returns:
            whether the end of the query was reached; if not, the snapshot is old, and a new
            snapshot continues from the stored watermark.

        Raises:
            ListingFailed: the query failed. Earlier rows are stored.
        """
        overlap = timedelta(seconds=self.config.overlap_seconds)
        since = None if watermark is None else watermark - overlap
        with self.database.open_rows(source_type, since) as (names, rows):
            reader = self._create_reader(source_type, names)
            batch = _Batch(watermark=watermark)
            for row in rows:
                self._add_row(batch, source_type, reader, row)
                if batch.is_full:
                    batch = self._store_batch(batch, source_type, watermark, is_last=False)
                    if self._may_pause(since, batch.watermark):
                        return False
            self._store_batch(batch, source_type, watermark, is_last=True)
        return True

    def read_again(self, source_type: RecordType) -> None:
        """Store all rows of a query in this snapshot that differ from the stored records."""
        with self.database.open_rows(source_type) as (names, rows):
            self._store_all(source_type, names, rows)

    def follow_awaiting_blocks(self) -> None:
        """Store blocks that were set aside because their pages were missing, but exist now."""
        ref, name = self.puller.ref, self.config.name
        while self._pulls_blocks and (
            pages := self.set_aside_rows.list_awaited_pages(ref, name, limit=_MAX_AWAITED_PAGES)
        ):
            with self.database.open_rows(_BLOCK, of_pages=pages) as (names, rows):
                self._store_all(_BLOCK, names, rows)
            # Blocks that are no longer in the database stop waiting.
            self.set_aside_rows.stop_awaiting(ref, name, pages)

    def _store_all(
        self, source_type: RecordType, names: Sequence[str], rows: Iterable[SourceRow]
    ) -> None:
        """Store rows without advancing the watermark."""
        reader, batch = self._create_reader(source_type, names), _Batch(advances_watermark=False)
        for row in rows:
            self._add_row(batch, source_type, reader, row)
            if batch.is_full:
                batch = self._store_batch(batch, source_type, None, is_last=False)
        self._store_batch(batch, source_type, None, is_last=True)

    def _may_pause(self, since: datetime | None, watermark: datetime | None) -> bool:
        """Return whether pulling may stop here and continue in a new snapshot.

        It may if this snapshot is old, and a new snapshot would start at a later change than this
        one, whose rows start at `since`. Otherwise it would read the same rows again.
        """
        if not (self.database.is_old and self.database.is_ordered_by_time) or watermark is None:
            return False
        if watermark >= self._latest:
            # Rows with times in the future are read again from every new snapshot.
            return False
        following = watermark - timedelta(seconds=self.config.overlap_seconds)
        return since is None or following > since

    def write_set_aside_event(self) -> None:
        """Write an event with the counts of rows that were set aside, without their ids."""
        counts = self.report.set_aside
        if counts:
            payload = {"source": self.config.name, "rows": dict(counts)}
            self.puller.catalog.events.write(self.puller.ref, "rows_set_aside", [payload])

    def _create_reader(self, source_type: RecordType, names: Sequence[str]) -> RowReader:
        try:
            return RowReader(
                source_type,
                names,
                self.zone,
                # Storing a page without its blocks would delete separately pulled blocks.
                needed=("blocks",) if source_type == "page" and self._pulls_blocks else (),
            )
        except ListingFailed as error:
            message = f"source {self.config.name!r}: {error.message}"
            raise ListingFailed(message, hint=error.hint) from None

    def _add_row(
        self, batch: _Batch, source_type: RecordType, reader: RowReader, source_row: SourceRow
    ) -> None:
        self.report.rows += 1
        row = (
            reader.read(source_row.values)
            if source_row.largest is None
            else reader.describe_oversized_row(source_row.values, source_row.largest)
        )
        if isinstance(row, SetAsideRow):
            batch.bad.append(row)
            return
        draft = draft_row(self._drafting, source_type, row)
        if batch.advances_watermark:
            batch.watermark = self._choose_later_time(batch.watermark, row.updated_at)
        if isinstance(draft, SetAsideRow):
            batch.bad.append(draft)
            return
        batch.taken.append((row, draft))
        batch.size += _measure_size(draft)

    def _choose_later_time(self, watermark: datetime | None, at: datetime) -> datetime | None:
        """Return the later of the watermark and `at`; times in the future count as now."""
        try:
            reached = min(at.astimezone(UTC), self._latest)
        except OverflowError:
            return watermark
        return reached if watermark is None else max(watermark, reached)

    def _store_batch(
        self, batch: _Batch, source_type: RecordType, former: datetime | None, *, is_last: bool
    ) -> _Batch:
        """Store a batch and the watermark; return the next, empty batch."""
        stored, refused = self._writer.write(batch.taken, self._choose_lane(batch, former))
        self.report.stored += stored
        bad = [*batch.bad, *refused]
        failed = {compute_row_key(source_type, row.source_id): row for row in bad}
        good = {
            compute_row_key(source_type, row.source_id) for row, _ in batch.taken
        } - failed.keys()
        aside = self.set_aside_rows.find(self.puller.ref, self.config.name, [*failed, *good])
        resolved = good & aside
        for key, set_aside in failed.items():
            if key not in aside:
                self.report.set_aside[f"{source_type}.{set_aside.column}"] += 1
        # If times are ordered as texts, a row with an earlier time may still follow.
        watermark = batch.watermark if is_last or self.database.is_ordered_by_time else None
        watermark = None if watermark == former else watermark
        if bad or resolved or watermark is not None:
            self.states.record_batch(
                self.puller.ref,
                self.config,
                source_type,
                bad=bad,
                resolved=resolved,
                watermark=watermark,
                masker=self.puller.masker,
            )
        return _Batch(watermark=batch.watermark, advances_watermark=batch.advances_watermark)

    def _choose_lane(self, batch: _Batch, former: datetime | None) -> int:
        """Return the queue lane of a batch: URGENT for recent changes, otherwise BULK.

        First pulls, and pulls that have already stored many records, also use BULK.
        """
        is_recent = batch.watermark is not None and batch.watermark > self._latest - _MAX_URGENT_AGE
        return URGENT if former and is_recent and self.report.stored < _MAX_URGENT_CHANGES else BULK


def _measure_size(draft: Draft) -> int:
    record = getattr(draft, "record", None)
    return len(record.text) if record is not None else 0


WITHHELD_PROBLEM: Final = "it is marked as secret: no part of it is stored"
_MAX_TRIES: Final = 6


class RecordWriter:
    """Stores the records of one source."""

    def __init__(self, puller: Puller, config: SqlConfig, lock: SourceLock) -> None:
        self._puller, self._lock = puller, lock
        self.by = f"source {config.name}"
        self._pulls_blocks = "block" in config.queries

    def write(
        self, taken: Sequence[tuple[PulledRow, Draft]], lane: int
    ) -> tuple[int, list[SetAsideRow]]:
        """Store the records that are new or changed.

        Returns:
            the number of new or changed records, and the rows that must be set aside.

        Raises:
            TenantBusy: other transactions of the tenant did not end in time.
            TenantLocked: the lock of the source was lost.
        """
        # Of several rows with the same id, only the last is stored; otherwise each would replace
        # the previous one.
        taken = [*{_identify_record(draft): (row, draft) for row, draft in taken}.values()]
        known = self._puller.catalog.records.keys(
            self._puller.ref.id, [draft.document_id for _, draft in taken]
        )
        bad = [
            SetAsideRow(row.source_id, "metadata", WITHHELD_PROBLEM)
            for row, draft in taken
            if isinstance(draft, Removal)
        ]
        changed = [(row, draft) for row, draft in taken if not self._is_stored(draft, known)]
        if not changed:
            return 0, bad
        stored = 0
        # A row always has the current state, so pulled records are never outdated.
        drafts = [replace(draft, clock=UNORDERED) for _, draft in changed]
        outcomes = self._write_with_retries(drafts, lane)
        for (row, _), outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome, InvalidFields):
                bad.append(describe_row_problem(row, outcome))
            elif isinstance(outcome, UnknownDocument):
                page = str(row.body["page_uuid"])
                bad.append(SetAsideRow(row.source_id, "page_uuid", outcome.message, page))
            elif isinstance(outcome, RecordWrite):
                stored += outcome.outcome in {"queued", "excluded"}
        return stored, bad

    def _is_stored(self, draft: Draft, known: dict[str, RecordVersion]) -> bool:
        """Return whether a row's record is already stored unchanged; always False for a block."""
        if isinstance(draft, BlockChange):
            return False
        stored = known.get(draft.document_id)
        if isinstance(draft, Removal):
            return stored is None
        if stored is None or stored.key != draft.record.key:
            return False
        at = draft.record.source_metadata.modified_at
        # The stored page may have a later time, from a block that was changed separately.
        is_later = self._pulls_blocks and at and stored.modified_at and stored.modified_at > at
        return bool(is_later) or stored.modified_at == at

    def _write_with_retries(self, drafts: Sequence[Draft], lane: int) -> list[Outcome]:
        puller = self._puller
        self._lock.check()
        for attempt in range(_MAX_TRIES):
            try:
                return write_drafts(
                    puller.catalog, puller.blobs, puller.ref, drafts, by=self.by, lane=lane
                )
            except TenantBusy:
                if attempt == _MAX_TRIES - 1:
                    raise
                time.sleep(0.5 * 2**attempt)
        raise AssertionError


def _identify_record(draft: Draft) -> tuple[str, str]:
    """Return the document id of a draft, and the id of its block ("" if it is not for a block).

    Both are needed, because the id of a block is unique only within its page.
    """
    return draft.document_id, draft.block_id if isinstance(draft, BlockChange) else ""
