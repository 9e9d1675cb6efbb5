"""Follows the queries of a source: rows in the order of their changes, stored batch by batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from fastapi.exceptions import RequestValidationError

from rag_assets.api.record_drafts import BlockChange, Draft, Drafting, Removal
from rag_assets.api.record_writing import BULK, URGENT, Outcome, write_drafts
from rag_assets.common.errors import ListingFailed, TenantBusy, UnknownDocument
from rag_assets.storage.catalog.records import StoredKey
from rag_assets.systems.workspace.pulling.database import ForeignDatabase
from rag_assets.systems.workspace.pulling.rows import (
    PulledRow,
    RowReader,
    SetAside,
    drafted,
    problem_of_row,
)
from rag_assets.systems.workspace.pulling.source import RecordType, SqlConfig
from rag_assets.systems.workspace.pulling.states import PullStates, row_key

if TYPE_CHECKING:
    from rag_assets.systems.workspace.pulling.pull import Puller, PullReport

_BATCH_ROWS = 500
_BATCH_BYTES = 8 << 20
_URGENT = 100
"""Changes of one pull that go before others, as a person waits for them."""
_LATELY = timedelta(hours=1)
"""So long ago is what is not lately changed, and waits with what is read for the first time."""
_TRIES = 6
_KEPT_OUT = "it is marked as secret: nothing of it is kept"


@dataclass
class _Batch:
    """Rows that are stored together.

    Attributes:
        taken: records.
        bad: rows that are none.
        mark: of the last change among them.
        size: bytes of the records.
    """

    taken: list[tuple[PulledRow, Draft]] = field(default_factory=list)
    bad: list[SetAside] = field(default_factory=list)
    mark: datetime | None = None
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is to be stored."""
        return len(self.taken) + len(self.bad) >= _BATCH_ROWS or self.size >= _BATCH_BYTES


class Follower:
    """Follows the queries of one source within one snapshot of its database.

    Args:
        puller: of the tenant.
        config: of the source.
        database: the snapshot.
        states: keep how far each query was followed.
        report: counts.
    """

    def __init__(
        self,
        puller: Puller,
        config: SqlConfig,
        database: ForeignDatabase,
        states: PullStates,
        report: PullReport,
    ) -> None:
        self.puller, self.config, self.database = puller, config, database
        self.states, self.report = states, report
        self.by = f"source {config.name}"
        self.zone = ZoneInfo(config.timezone)
        self.aside = states.set_aside(puller.ref, config.name)
        self._pulls_blocks = "block" in config.queries
        self._drafting = Drafting(puller.tenant, config, puller.masker)
        # A time in the future would hide all changes until then.
        self._latest = datetime.now(UTC)

    def follow(self, source_type: RecordType, mark: datetime | None) -> None:
        """Store the rows of a query that have changed.

        Args:
            source_type: of the query.
            mark: the last change that was stored before; None: all rows are read.

        Raises:
            ListingFailed: the query failed; what came before it did is stored.
        """
        overlap = timedelta(seconds=self.config.overlap_seconds)
        since = None if mark is None else mark - overlap
        with self.database.rows(source_type, since) as (names, rows):
            reader = self._reader(source_type, names)
            batch = _Batch(mark=mark)
            for row in rows:
                self._add(batch, source_type, reader.read(row))
                if batch.is_full:
                    batch = self._store(batch, source_type, mark, is_last=False)
            self._store(batch, source_type, mark, is_last=True)

    def tell(self) -> None:
        """Tell of rows that were set aside in an event, which names none of them."""
        counts = self.report.set_aside
        if counts:
            payload = {"source": self.config.name, "rows": dict(counts)}
            self.puller.catalog.events.write(self.puller.ref, "rows_set_aside", [payload])

    def _reader(self, source_type: RecordType, names: Sequence[str]) -> RowReader:
        try:
            return RowReader(
                source_type,
                names,
                self.zone,
                # A page without its blocks would take away those that were pulled by themselves.
                needed=("blocks",) if source_type == "page" and self._pulls_blocks else (),
            )
        except ListingFailed as error:
            message = f"source {self.config.name!r}: {error.message}"
            raise ListingFailed(message, hint=error.hint) from None

    def _add(self, batch: _Batch, source_type: RecordType, row: PulledRow | SetAside) -> None:
        self.report.rows += 1
        if isinstance(row, SetAside):
            batch.bad.append(row)
            return
        draft = drafted(self._drafting, source_type, row)
        batch.mark = self._later(batch.mark, row.updated_at)
        if isinstance(draft, SetAside):
            batch.bad.append(draft)
            return
        batch.taken.append((row, draft))
        batch.size += _size(draft)

    def _later(self, mark: datetime | None, at: datetime) -> datetime | None:
        """The later of two times, neither in the future."""
        try:
            reached = min(at.astimezone(UTC), self._latest)
        except OverflowError:
            return mark
        return reached if mark is None else max(mark, reached)

    def _store(
        self, batch: _Batch, source_type: RecordType, former: datetime | None, *, is_last: bool
    ) -> _Batch:
        """Store a batch, and record that it was followed; returns the next one, which is empty."""
        bad = [*batch.bad, *self._write(batch.taken, self._lane(batch, former))]
        failed = {row_key(source_type, one.source_id) for one in bad}
        good = {row_key(source_type, row.source_id) for row, _ in batch.taken} - failed
        mended = good & self.aside.keys()
        for one in bad:
            if row_key(source_type, one.source_id) not in self.aside:
                self.report.set_aside[f"{source_type}.{one.column}"] += 1
        self.aside |= dict.fromkeys(failed, source_type)
        for key in mended:
            del self.aside[key]
        # Where times are ordered as texts, an earlier one may still come.
        mark = batch.mark if is_last or self.database.is_ordered_by_time else None
        mark = None if mark == former else mark
        if bad or mended or mark is not None:
            self.states.settle(
                self.puller.ref,
                self.config,
                source_type,
                bad=bad,
                mended=mended,
                watermark=mark,
                masker=self.puller.masker,
            )
        return _Batch(mark=batch.mark)

    def _lane(self, batch: _Batch, former: datetime | None) -> int:
        """Whether somebody waits for a batch: the first reading of all rows goes after changes."""
        lately = batch.mark is not None and batch.mark > self._latest - _LATELY
        return URGENT if former and lately and self.report.stored < _URGENT else BULK

    def _write(self, taken: Sequence[tuple[PulledRow, Draft]], lane: int) -> list[SetAside]:
        """Store records that are not stored so; returns rows that are none after all."""
        # Of rows with one id the last counts: each in turn would be another record.
        taken = [*{_identity(draft): (row, draft) for row, draft in taken}.values()]
        known = self.puller.catalog.records.keys(
            self.puller.ref.id, [draft.document_id for _, draft in taken]
        )
        bad = [
            SetAside(row.source_id, "metadata", _KEPT_OUT)
            for row, draft in taken
            if isinstance(draft, Removal)
        ]
        changed = [(row, draft) for row, draft in taken if not _is_stored(draft, known)]
        if not changed:
            return bad
        outcomes = self._write_patiently([draft for _, draft in changed], lane)
        for (row, _), outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome, RequestValidationError):
                bad.append(problem_of_row(row, outcome))
            elif isinstance(outcome, UnknownDocument):
                bad.append(SetAside(row.source_id, "page_uuid", outcome.message))
            else:
                self.report.stored += outcome.outcome in {"queued", "excluded"}
        return bad

    def _write_patiently(self, drafts: Sequence[Draft], lane: int) -> list[Outcome]:
        puller = self.puller
        for attempt in range(_TRIES):
            try:
                return write_drafts(
                    puller.catalog, puller.blobs, puller.ref, drafts, by=self.by, lane=lane
                )
            except TenantBusy:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(0.5 * 2**attempt)
        raise AssertionError


def _identity(draft: Draft) -> tuple[str, str]:
    """The record of a draft; of a block, whose id only its page has once, its page too."""
    return draft.document_id, draft.block_id if isinstance(draft, BlockChange) else ""


def _size(draft: Draft) -> int:
    record = getattr(draft, "record", None)
    return len(record.text) if record is not None else 0


def _is_stored(draft: Draft, known: dict[str, StoredKey]) -> bool:
    """Whether a record is stored as its row has it; of the block of a page that is not known."""
    if isinstance(draft, BlockChange):
        return False
    stored = known.get(draft.document_id)
    if isinstance(draft, Removal):
        return stored is None
    record = draft.record
    at = record.source_metadata.modified_at
    return stored is not None and stored.key == record.key and stored.modified_at == at
