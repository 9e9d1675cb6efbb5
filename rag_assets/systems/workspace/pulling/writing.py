"""Stores the records of rows like pushed records, unless they are stored already."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fastapi.exceptions import RequestValidationError

from rag_assets.api.record_drafts import BlockChange, Draft, Removal
from rag_assets.api.record_writing import Outcome, write_drafts
from rag_assets.api.responses import Written
from rag_assets.common.errors import TenantBusy, UnknownDocument
from rag_assets.storage.catalog.record_plans import UNORDERED
from rag_assets.storage.catalog.records import StoredKey
from rag_assets.systems.workspace.pulling.locks import SourceLock
from rag_assets.systems.workspace.pulling.rows import PulledRow, SetAside, problem_of_row
from rag_assets.systems.workspace.pulling.source import SqlConfig

if TYPE_CHECKING:
    from rag_assets.systems.workspace.pulling.pull import Puller

KEPT_OUT: Final = "it is marked as secret: nothing of it is kept"
_TRIES: Final = 6


class RecordWriter:
    """Stores the records of one source.

    Args:
        puller: of the tenant.
        config: of the source.
        lock: of the source.
    """

    def __init__(self, puller: Puller, config: SqlConfig, lock: SourceLock) -> None:
        self._puller, self._lock = puller, lock
        self.by = f"source {config.name}"
        self._pulls_blocks = "block" in config.queries

    def write(
        self, taken: Sequence[tuple[PulledRow, Draft]], lane: int
    ) -> tuple[int, list[SetAside]]:
        """Store the records that differ from the stored records.

        Args:
            taken: rows and their drafts.
            lane: queue lane of the stored records.

        Returns:
            how many are new or changed, and rows that cannot become records after all.

        Raises:
            TenantBusy: other transactions of the tenant did not end in time.
            TenantLocked: the lock of the source was lost.
        """
        # Of rows with the same id only the last counts, or each would replace the one before.
        taken = [*{_identity(draft): (row, draft) for row, draft in taken}.values()]
        known = self._puller.catalog.records.keys(
            self._puller.ref.id, [draft.document_id for _, draft in taken]
        )
        bad = [
            SetAside(row.source_id, "metadata", KEPT_OUT)
            for row, draft in taken
            if isinstance(draft, Removal)
        ]
        changed = [(row, draft) for row, draft in taken if not self._is_stored(draft, known)]
        if not changed:
            return 0, bad
        stored = 0
        # A row shows the present state, whatever its time: pulled records are never outdated.
        drafts = [replace(draft, clock=UNORDERED) for _, draft in changed]
        outcomes = self._write_patiently(drafts, lane)
        for (row, _), outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome, RequestValidationError):
                bad.append(problem_of_row(row, outcome))
            elif isinstance(outcome, UnknownDocument):
                page = str(row.body["page_uuid"])
                bad.append(SetAside(row.source_id, "page_uuid", outcome.message, page))
            elif isinstance(outcome, Written):
                stored += outcome.outcome in {"queued", "excluded"}
        return stored, bad

    def _is_stored(self, draft: Draft, known: dict[str, StoredKey]) -> bool:
        """Return whether a row's record is stored already; False for a block: see its page."""
        if isinstance(draft, BlockChange):
            return False
        stored = known.get(draft.document_id)
        if isinstance(draft, Removal):
            return stored is None
        if stored is None or stored.key != draft.record.key:
            return False
        at = draft.record.source_metadata.modified_at
        # A later time may come from a block of the page that was changed separately.
        is_later = self._pulls_blocks and at and stored.modified_at and stored.modified_at > at
        return bool(is_later) or stored.modified_at == at

    def _write_patiently(self, drafts: Sequence[Draft], lane: int) -> list[Outcome]:
        puller = self._puller
        self._lock.check()
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
    """Return the record's identity; for a block with its id, which is unique only within a page."""
    return draft.document_id, draft.block_id if isinstance(draft, BlockChange) else ""
