"""What was searched, written beside the searches, which neither wait for it nor fail by it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rag_assets.common.background_batcher import BackgroundBatcher
from rag_assets.common.errors import RagAssetsError, TenantGone
from rag_assets.retrieval.model import SearchAnswer, SearchRequest
from rag_assets.retrieval.ranking import Ranked
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.events import EventKind, NewEvent
from rag_assets.tenants.modes import SearchMode

_LOG = logging.getLogger(__name__)

_MOST_WAITING = 20_000
_GATHER_SECONDS = 0.25
_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class _Noted:
    ref: TenantRef
    kind: EventKind
    at: datetime
    payload: Mapping[str, Any]


class SearchJournal:
    """Writes rag_search_started and rag_search_completed.

    A question comes with its credentials masked, and is cut where it is long. Of passages ids and
    scores are kept, no text. Where more searches are made than can be written, the events of some
    are left out and counted.

    Args:
        catalog: where events are kept.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._batcher: BackgroundBatcher[_Noted] = BackgroundBatcher(
            self._write,
            name="events of searches",
            gather_seconds=_GATHER_SECONDS,
            max_waiting=_MOST_WAITING,
        )

    def started(
        self, ref: TenantRef, request: SearchRequest, mode: SearchMode, top_k: int
    ) -> JournaledSearch:
        """Note that a search begins; what comes of it is told to what this returns.

        Args:
            ref: who is asked.
            request: its question's credentials masked.
            mode, top_k: what it comes to.
        """
        search = JournaledSearch(self, ref, secrets.token_hex(8), request.caller.name)
        asked = {"query": request.query, "mode": mode, "top_k": top_k}
        search.note("rag_search_started", asked)
        return search

    def note(self, ref: TenantRef, kind: EventKind, payload: Mapping[str, Any]) -> None:
        """Have an event written soon."""
        self._batcher.put(_Noted(ref, kind, datetime.now(UTC), payload))

    def close(self) -> None:
        """Wait until everything is written."""
        self._batcher.close()

    def _write(self, lot: Sequence[_Noted]) -> None:
        by_tenant: dict[TenantRef, list[NewEvent]] = {}
        for noted in lot:
            event = NewEvent(noted.kind, noted.at, _storable(noted.payload))
            by_tenant.setdefault(noted.ref, []).append(event)
        for ref, new in by_tenant.items():
            try:
                self._catalog.events.append(ref, new)
            except TenantGone:
                continue
            except RagAssetsError as error:
                _LOG.warning(f"{ref.id}: {len(new)} events of searches were lost: {error.message}")


@dataclass(frozen=True, slots=True)
class JournaledSearch:
    """One search that is under way.

    Attributes:
        search_id: in both of its events.
    """

    journal: SearchJournal
    ref: TenantRef
    search_id: str
    caller: str | None

    def completed(self, answer: SearchAnswer, found: Ranked) -> None:
        """Note what came of it: the passages found, and which of them the budget left."""
        debug = answer.debug
        cosines = [found.cosines.get(passage.id) for passage in found.order]
        self.note(
            "rag_search_completed",
            {
                "ids": [passage.fields["chunk_id"] for passage in found.order],
                "scores": [None if c is None else round(c, 6) for c in cosines],
                # Of all candidates: it tells whether a threshold kept everything back.
                "nearest": round(max(found.cosines.values()), 6) if found.cosines else None,
                "chosen": [hit.chunk_id for hit in answer.hits],
                "latency_ms": dict(debug.latency_ms) if debug else {},
                **({"altered": len(found.altered)} if found.altered else {}),
                **({"degraded": dict(debug.degraded)} if debug and debug.degraded else {}),
            },
        )

    def failed(self, error: BaseException) -> None:
        """Note that there is no answer."""
        self.note("rag_search_completed", {"error": type(error).__name__})

    def note(self, kind: EventKind, payload: Mapping[str, Any]) -> None:
        """Have one of its events written."""
        common = {"search_id": self.search_id, "caller": self.caller}
        self.journal.note(self.ref, kind, {**common, **payload})


def _storable(payload: Mapping[str, Any]) -> dict[str, Any]:
    if "query" not in payload:
        return dict(payload)
    # Postgres takes no zero byte, nor half of a character that takes two.
    query = payload["query"].replace("\0", " ").encode("utf-8", "replace").decode()
    return {**payload, "query": query[:_QUERY]}
