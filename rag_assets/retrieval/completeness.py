"""Completeness of builds: whether the index holds the entries that the catalog expects.

Entries can vanish behind the project's back: an index is rolled back, or somebody deletes from it.
Searches then still answer, with less. A build is counted beside one of its searches, at most once
in half a minute in each process, so that other searches cost no request more.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final, TypeAlias

from cachetools import LRUCache

from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.catalog.search_state import SearchStateReader
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.protocols import EntrySearcher

_COUNT_SECONDS: Final = 30.0
"""Age at which a build that was complete is counted again."""
_RECOUNT_SECONDS: Final = 2.0
"""The same, for a build that lacked entries, or of which a search found only former versions."""
_WAIT_SECONDS: Final = 0.25
"""How long a search waits for a count that takes longer than the search itself."""
_ATTEMPTS: Final = 3
_MOST_BUILDS: Final = 10_000

_Build: TypeAlias = tuple[str, Owner]


@dataclass(frozen=True, slots=True)
class _Verdict:
    at: float
    lacks_entries: bool


class BuildCompleteness:
    """Counts the entries of builds beside searches, in one event loop.

    Args:
        reader: reads how many entries a build should have.
        searcher: counts how many it has.
    """

    def __init__(self, reader: SearchStateReader, searcher: EntrySearcher) -> None:
        self._reader, self._searcher = reader, searcher
        self._verdicts: LRUCache[_Build, _Verdict] = LRUCache(_MOST_BUILDS)
        self._counts: dict[_Build, asyncio.Task[None]] = {}

    def begin(self, index_name: str, owner: Owner) -> None:
        """Begin to count a build if that was not done lately."""
        self._begin((index_name, owner), _COUNT_SECONDS)

    async def lacks_entries(self, index_name: str, owner: Owner, *, is_doubtful: bool) -> bool:
        """Return whether a build lacks entries, as far as that is known by now.

        Args:
            index_name, owner: the build, whose count has begun.
            is_doubtful: whether a search found former versions alone, so that the last count may
                be out of date.
        """
        build = index_name, owner
        if is_doubtful:
            self._begin(build, _RECOUNT_SECONDS)
        if (count := self._counts.get(build)) is not None:
            await asyncio.wait({count}, timeout=_WAIT_SECONDS)
        verdict = self._verdicts.get(build)
        return verdict is not None and verdict.lacks_entries

    async def close(self) -> None:
        """End counts under way."""
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
            lacks = None  # the search itself reports a server that does not answer
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
            # Entries that were deleted in between were deleted from the catalog first.
            before, expected = (
                expected,
                await self._reader.expected_entries(owner.tenant, owner.generation),
            )
            if before == expected:
                return True
        return None
