"""The journal of searches: written in the background, so that it cannot make a search fail."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from rag_assets.common.batches import BackgroundBatcher
from rag_assets.common.errors import RagAssetsError, TenantGone
from rag_assets.search.model import Clarification, SearchAnswer, SearchRequest
from rag_assets.search.progress import SearchProgress
from rag_assets.search.scoring import CALIBRATION_QUESTIONS, compute_threshold
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.events import EventKind
from rag_assets.tenants.modes import SearchMode

_LOG = logging.getLogger(__name__)

_MAX_WAITING = 20_000
_GATHER_SECONDS = 0.25
_MAX_QUERY_CHARACTERS = 2_000


_Event: TypeAlias = tuple[EventKind, datetime, Mapping[str, Any]]
_JournalEntry: TypeAlias = SearchProgress | tuple[TenantRef, _Event]
"""A question that calibrates the threshold, or an event of a tenant."""


class SearchJournal:
    """Writes the events rag_search_started, rag_search_completed and paused_for_input.

    Credentials in questions are masked, and long questions are cut. Passages are recorded only by
    their ids and scores. If searches arrive faster than events can be written, some events are
    dropped and counted.
    """

    def __init__(self, catalog: Catalog, *, is_recorded: bool = True) -> None:
        self._catalog = catalog
        self._recorded = is_recorded
        self._batcher: BackgroundBatcher[_JournalEntry] = BackgroundBatcher(
            self._write,
            name="events of searches",
            gather_seconds=_GATHER_SECONDS,
            max_waiting=_MAX_WAITING,
        )

    def start_search(
        self, ref: TenantRef, request: SearchRequest, mode: SearchMode, top_k: int
    ) -> JournaledSearch:
        """Record the start of a masked search, and return an object that records its end."""
        search = JournaledSearch(
            self, ref, secrets.token_hex(8), request.caller.name, request.query
        )
        search.record("rag_search_started", {"mode": mode, "top_k": top_k})
        return search

    def record(self, ref: TenantRef, kind: EventKind, payload: Mapping[str, Any]) -> None:
        """Write an event in the background."""
        if self._recorded:
            self._batcher.put((ref, (kind, datetime.now(UTC), payload)))

    def record_floor(self, progress: SearchProgress) -> None:
        """Record the floor of a question (see scoring) in the background.

        The last floor that the calibration needs also sets the threshold.
        """
        if self._recorded:
            self._batcher.put(progress)

    def close(self) -> None:
        """Wait until all events are written."""
        self._batcher.close()

    def _write(self, entries: Sequence[_JournalEntry]) -> None:
        by_tenant: dict[TenantRef, list[_Event]] = {}
        for entry in entries:
            if isinstance(entry, SearchProgress):
                self._add_floor(entry)
            else:
                ref, (kind, at, payload) = entry
                by_tenant.setdefault(ref, []).append((kind, at, _clean_payload(payload)))
        for ref, new in by_tenant.items():
            try:
                self._catalog.events.append(ref, new)
            except TenantGone:
                continue
            except RagAssetsError as error:
                _LOG.warning(
                    f"{ref.id}: {len(new)} events of searches could not be written: {error.message}"
                )

    def _add_floor(self, progress: SearchProgress) -> None:
        search, ref = progress.search, progress.ref
        use, embedder_id = search.request.use or "", progress.serving.embedder_id
        thresholds = self._catalog.thresholds
        try:
            floors = thresholds.add_floor(
                ref, progress.serving.number, use, search.request.query, progress.floor or 0.0
            )
            if len(floors) < CALIBRATION_QUESTIONS:
                return
            described = search.tenant.min_score(embedder_id, use or None)
            value = compute_threshold([*floors.values()])
            value = value if described is None else min(value, described)
            reason = f"the first {CALIBRATION_QUESTIONS} questions, compared with random passages"
            thresholds.set_value(
                ref,
                embedder_id,
                use,
                value,
                reason=reason,
                by="calibration",
                questions=CALIBRATION_QUESTIONS,
            )
        except RagAssetsError as error:
            _LOG.warning(f"{ref.id}: a question did not calibrate the threshold: {error.message}")


@dataclass(frozen=True, slots=True)
class JournaledSearch:
    """A search that was recorded in the journal; records its further events."""

    journal: SearchJournal
    ref: TenantRef
    search_id: str
    caller: str | None
    query: str

    def record_result(self, answer: SearchAnswer, progress: SearchProgress) -> None:
        """Record the end of a search: its passages, and which of them became hits."""
        debug = answer.debug
        passages = [part for passage in progress.answered for part in passage.parts or (passage,)]
        cosines = [progress.cosines.get(passage.id) for passage in passages]
        self.record(
            "rag_search_completed",
            {
                "ids": [passage.fields["chunk_id"] for passage in passages],
                "scores": [None if c is None else round(c, 6) for c in cosines],
                # The nearest of all candidates: shows whether a threshold excluded everything.
                "nearest": round(max(progress.cosines.values()), 6) if progress.cosines else None,
                "chosen": [
                    passage_range.chunk_id for hit in answer.hits for passage_range in hit.ranges
                ],
                "latency_ms": dict(debug.latency_ms) if debug else {},
                **({"altered": len(progress.altered_ids)} if progress.altered_ids else {}),
                **({"degraded": dict(debug.degraded)} if debug and debug.degraded else {}),
            },
        )

    def record_clarification(self, clarification: Clarification) -> None:
        """Record that the user must be asked before the work can continue."""
        payload = {"question": clarification.question, "names": list(clarification.names)}
        self.record("paused_for_input", payload)

    def record_failure(self, error: BaseException) -> None:
        """Record that the search failed."""
        self.record("rag_search_completed", {"error": type(error).__name__})

    def record(self, kind: EventKind, payload: Mapping[str, Any]) -> None:
        """Write an event of this search in the background."""
        common = {"search_id": self.search_id, "caller": self.caller, "query": self.query}
        self.journal.record(self.ref, kind, {**common, **payload})


def _clean_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    if "query" not in payload:
        return dict(payload)
    # Postgres accepts neither a zero byte nor half of a surrogate pair.
    query = payload["query"].replace("\0", " ").encode("utf-8", "replace").decode()
    return {**payload, "query": query[:_MAX_QUERY_CHARACTERS]}
