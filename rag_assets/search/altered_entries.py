"""Reports of index entries that were altered after they were written."""

from __future__ import annotations

import logging
from collections.abc import Collection

from cachetools import LRUCache

_LOG = logging.getLogger(__name__)

_MAX_REMEMBERED = 10_000


class AlteredEntries:
    """Reports each altered index entry once; searches omit them (see StoredEntry.intact)."""

    def __init__(self) -> None:
        self._reported: LRUCache[str, None] = LRUCache(_MAX_REMEMBERED)

    def report(self, tenant_id: str, ids: Collection[str]) -> None:
        """Log the entries that were not reported before, all in one line."""
        new = [id_ for id_ in ids if id_ not in self._reported]
        if not new:
            return
        self._reported.update(dict.fromkeys(new))
        _LOG.error(
            f"{tenant_id}: {len(new)} index entries were altered since they were written, the first"
            f" is {new[0]}; searches omit them. `rag-assets check {tenant_id}` lists their"
            f" documents, `rag-assets sync {tenant_id} --repair` writes them again"
        )
