"""Entries at named places, cached as the index returned them.

A step that looks up places asks for the same few documents again and again. The cache keeps the
entries of these documents while the build is in the state that the step names, except entries that
are written again. The catalog confirms every candidate, wherever it comes from. If a search finds
outdated entries here, it is repeated with entries from the index. A repaired index is noticed
within a minute.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import (
    MOST_PLACES,
    Candidate,
    Owner,
    Place,
    Places,
    RankingRequest,
)
from rag_assets.storage.index.protocols import EntrySearcher

_MOST_ENTRIES: Final = 50_000
"""Maximum number of cached entries of all tenants; about 30 MB."""
_MOST_AT_ONCE: Final = 2_000
"""Maximum entries that are read for one search. A document with more entries is not cached."""

_SECONDS: Final = 60.0
"""Lifetime of cached entries, since entries of the index may have been lost, or repaired."""

_Build: TypeAlias = tuple[str, Owner]


@dataclass(slots=True)
class _Known:
    """The cached entries of a build in one state."""

    state: Hashable
    until: float
    documents: dict[str, tuple[Candidate, ...]] = field(default_factory=dict)
    count: int = 0

    def add(self, document_id: str, entries: Sequence[Candidate]) -> None:
        """Cache the entries of a document."""
        self.drop([document_id])
        self.documents[document_id] = tuple(entries)
        self.count += len(entries) + 1

    def drop(self, documents: Iterable[str]) -> None:
        """Remove documents from the cache."""
        for one in documents:
            entries = self.documents.pop(one, None)
            self.count -= 0 if entries is None else len(entries) + 1


class KnownEntries:
    """A cache of document entries by build, for one event loop.

    Args:
        searcher: reads the index.
        most: maximum number of entries; the least recently used builds are dropped first.
    """

    def __init__(self, searcher: EntrySearcher, most: int = _MOST_ENTRIES) -> None:
        self._searcher = searcher
        self._most = most
        self._builds: OrderedDict[_Build, _Known] = OrderedDict()

    async def at(
        self,
        index_name: str,
        owner: Owner,
        state: Hashable,
        places: Sequence[Place],
        beside: Iterable[str] = (),
    ) -> list[Candidate] | None:
        """Return the entries at the given places, in the same order; None if there are too many.

        Args:
            index_name, owner: the build.
            state: a value that stays equal as long as no document changes.
            places: at most MOST_PLACES.
            beside: documents that later questions may ask for. They are read in the same
                request as documents that are not cached, since a request costs more than the
                entries it returns.
        """
        known = self._known((index_name, owner), state)
        wanted = dict.fromkeys(place.document_id for place in places)
        unknown = [one for one in wanted if one not in known.documents]
        if unknown:
            fresh = (one for one in beside if one not in known.documents and one not in wanted)
            unknown += islice(fresh, max(0, MOST_PLACES - len(unknown)))
            request = RankingRequest(
                Places(tuple(map(Place, unknown[:MOST_PLACES]))), _MOST_AT_ONCE, symbols=True
            )
            [found] = await self._searcher.rankings(index_name, owner, [request])
            if len(found) >= _MOST_AT_ONCE:
                # The entries of the last document may be incomplete, and later documents may be
                # missing.
                met = dict.fromkeys(one.document_id for one in found)
                met.popitem()
                self._keep(known, [*met], [one for one in found if one.document_id in met])
                if any(one not in known.documents for one in wanted):
                    return None
            else:
                self._keep(known, unknown, found)
        return _in_order(places, known)

    def forget_former(
        self, index_name: str, owner: Owner, versions: Mapping[str, ReadableVersion]
    ) -> frozenset[str]:
        """Remove entries of outdated versions from the cache, and return their documents' ids.

        Args:
            index_name, owner: the build.
            versions: the documents' current versions in the catalog.
        """
        known = self._builds.get((index_name, owner))
        if known is None:
            return frozenset()
        former = frozenset(
            document_id
            for document_id, version in versions.items()
            if any(
                entry.index_key != version.indexed_key
                for entry in known.documents.get(document_id, ())
            )
        )
        known.drop(former)
        return former

    def _known(self, build: _Build, state: Hashable) -> _Known:
        known, now = self._builds.get(build), time.monotonic()
        if known is None or known.state != state or known.until < now:
            known = self._builds[build] = _Known(state, now + _SECONDS)
        self._builds.move_to_end(build)
        return known

    def _keep(self, known: _Known, documents: Sequence[str], found: Sequence[Candidate]) -> None:
        by_document: dict[str, list[Candidate]] = {one: [] for one in documents}
        for candidate in found:
            by_document[candidate.document_id].append(candidate)
        for document_id, entries in by_document.items():
            known.add(document_id, sorted(entries, key=lambda one: one.id))
        while (
            len(self._builds) > 1 and sum(one.count for one in self._builds.values()) > self._most
        ):
            self._builds.popitem(last=False)
        if known.count > self._most:
            known.drop([one for one in known.documents if one not in by_document])


def _in_order(places: Sequence[Place], known: _Known) -> list[Candidate]:
    """Return the entries at places, without duplicates."""
    found: dict[str, Candidate] = {}
    for place in places:
        for entry in known.documents.get(place.document_id, ()):
            if place.symbol is None or place.symbol == entry.symbol != "":
                found.setdefault(entry.id, entry)
    return [*found.values()]
