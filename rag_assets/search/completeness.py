"""Completeness of builds: whether the index holds the entries that the catalog expects.

Entries can disappear without this project's involvement: an index is rolled back, or somebody
deletes entries. Searches then still answer, but with fewer results. So the entries of a build are
counted while one of its searches runs, at most once in half a minute in each process. Other
searches send no extra request.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final, TypeAlias

from cachetools import LRUCache

from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.catalog.builds.search_state import SearchStateReader
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.protocols import EntrySearcher

_COUNT_SECONDS: Final = 30.0
"""Age at which the count of a complete build expires."""
_RECOUNT_SECONDS: Final = 2.0
"""The same for a build that lacked entries, or in which a search found only outdated versions."""
_WAIT_SECONDS: Final = 0.25
"""Maximum time that a search waits for a count that is still running when the search is done."""
_ATTEMPTS: Final = 3
_MOST_BUILDS: Final = 10_000

_Build: TypeAlias = tuple[str, Owner]


@dataclass(frozen=True, slots=True)
class _Verdict:
    at: float
    lacks_entries: bool


class BuildCompleteness:
    """Counts the entries of builds alongside searches, in one event loop.

    Args:
        reader: reads the number of entries that a build should have.
        searcher: counts the entries that the build has.
    """

    def __init__(self, reader: SearchStateReader, searcher: EntrySearcher) -> None:
        self._reader, self._searcher = reader, searcher
        self._verdicts: LRUCache[_Build, _Verdict] = LRUCache(_MOST_BUILDS)
        self._counts: dict[_Build, asyncio.Task[None]] = {}

    def begin(self, index_name: str, owner: Owner) -> None:
        """Start counting the entries of a build, unless they were counted recently."""
        self._begin((index_name, owner), _COUNT_SECONDS)

    async def lacks_entries(self, index_name: str, owner: Owner, *, is_doubtful: bool) -> bool:
        """Return whether a build is known to lack entries by now.

        Args:
            index_name, owner: the build; its count has been started.
            is_doubtful: whether a search found only outdated versions, so the last count may be
                stale.
        """
        build = index_name, owner
        if is_doubtful:
            self._begin(build, _RECOUNT_SECONDS)
        if (count := self._counts.get(build)) is not None:
            await asyncio.wait({count}, timeout=_WAIT_SECONDS)
        verdict = self._verdicts.get(build)
        return verdict is not None and verdict.lacks_entries

    async def close(self) -> None:
        """Cancel counts that are still running."""
        counts = list(self._counts.values())
        for count in counts:
            count.cancel()
        await asyncio.gather(*counts, return_exceptions=True)

    def _begin(self, build: _Build, seconds: float) -> None:
        verdict = self._verdicts.get(build)
        if verdict is not None and verdict.lacks_entries:
            seconds = min(seconds, _RECOUNT_SECONDS)
        is_fresh = verdict is not None and time.monotonic() - verdict.at < seconds
        if is_fresh or build in self._counts:
            return
        count = self._counts[build] = asyncio.create_task(self._judge(build))
        count.add_done_callback(lambda _: self._counts.pop(build, None))

    async def _judge(self, build: _Build) -> None:
        at = time.monotonic()
        try:
            lacks = await self._lacks(*build)
        except RagAssetsError:
            lacks = None  # A server that does not answer is reported by the search itself.
        if lacks is not None:
            self._verdicts[build] = _Verdict(at, lacks)

    async def _lacks(self, index_name: str, owner: Owner) -> bool | None:
        """Return whether a build lacks entries; None while it is being written to."""
        expected = await self._reader.expected_entries(owner.tenant, owner.generation)
        for _ in range(_ATTEMPTS):
            if expected is None or not expected.is_settled:
                return None
            entries, recent = await self._searcher.count(index_name, owner, expected.recent_keys)
            if entries >= expected.entries and recent >= expected.recent:
                return False
            # Entries that were deleted between the two reads were deleted from the catalog first.
            before, expected = (
                expected,
                await self._reader.expected_entries(owner.tenant, owner.generation),
            )
            if before == expected:
                return True
        return None
