"""Services that the steps of a search share, and interfaces that systems implement."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from cachetools import LRUCache

from rag_assets.common.errors import RagAssetsError
from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.search.access import AccessPolicy
from rag_assets.search.model import SearchAnswer
from rag_assets.search.progress import SearchProgress
from rag_assets.search.tenant_models import QuestionEmbedder, RerankerPool
from rag_assets.storage.catalog.builds.search_state import SearchStateReader
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import (
    MAX_PLACES,
    Candidate,
    Owner,
    Place,
    Places,
    RankingRequest,
)
from rag_assets.storage.index.store import EntrySearcher
from rag_assets.tenants.model import Tenant

_LOG = logging.getLogger(__name__)

_MAX_REMEMBERED = 10_000
"""Maximum number of altered entries that are remembered as reported."""

# Known entries.
_MAX_ENTRIES: Final = 50_000
"""Maximum number of cached entries of all tenants; about 30 MB."""
_MAX_ENTRIES_AT_ONCE: Final = 2_000
"""Maximum entries that are read for one search. A document with more entries is not cached."""
_CACHE_SECONDS: Final = 60.0
"""Lifetime of cached entries, since entries of the index may have been lost, or repaired."""

# Completeness of builds.
_COUNT_SECONDS: Final = 30.0
"""Age at which the count of a complete build expires."""
_RECOUNT_SECONDS: Final = 2.0
"""Age at which the count of another build expires: entries were missing or outdated."""
_WAIT_SECONDS: Final = 0.25
"""Maximum time that a search waits for a count that is still running when the search is done."""
_MAX_COUNTS: Final = 3
"""Maximum number of counts of a build whose expected entries change meanwhile."""
_MAX_BUILDS: Final = 10_000

_Build: TypeAlias = tuple[str, Owner]
ServiceT = TypeVar("ServiceT")


class AlteredEntries:
    """Reports each altered index entry once; searches omit them (see StoredEntry.intact)."""

    def __init__(self) -> None:
        self._reported: LRUCache[str, None] = LRUCache(_MAX_REMEMBERED)

    def report(self, tenant_id: str, ids: Collection[str]) -> None:
        """Log the entries that were not reported before, in one line."""
        new = [id_ for id_ in ids if id_ not in self._reported]
        if not new:
            return
        self._reported.update(dict.fromkeys(new))
        _LOG.error(
            f"{tenant_id}: {len(new)} index entries were altered since they were written, the first"
            f" is {new[0]}; searches omit them. `rag-assets check {tenant_id}` lists their"
            f" documents, `rag-assets sync {tenant_id} --repair` writes them again"
        )


@dataclass(slots=True)
class _CachedBuild:
    """The cached entries of a build.

    Attributes:
        state: the build's state when they were read; see EntryCache.
        until: when they expire, in seconds of the monotonic clock.
        count: number of entries, plus one for each document.
    """

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
        for document in documents:
            entries = self.documents.pop(document, None)
            self.count -= 0 if entries is None else len(entries) + 1


class EntryCache:
    """A cache of document entries by build, for one event loop.

    Some steps look up the same few documents again and again. Cached entries are valid while the
    build is in the state that the step names, and for at most a minute. The catalog also confirms
    cached candidates. If outdated entries are found here, the search is repeated with entries from
    the index.
    """

    def __init__(self, searcher: EntrySearcher, max_entries: int = _MAX_ENTRIES) -> None:
        self._searcher = searcher
        self._max_entries = max_entries
        self._builds: OrderedDict[_Build, _CachedBuild] = OrderedDict()

    async def find_at(
        self,
        index_name: str,
        owner: Owner,
        state: Hashable,
        places: Sequence[Place],
        prefetch: Iterable[str] = (),
    ) -> list[Candidate] | None:
        """Return the entries at these places, in the order of the places, each once.

        Args:
            state: a value that stays equal as long as no document changes.
            places: at most MAX_PLACES.
            prefetch: documents that later lookups may need. They are read together with documents
                that are not cached, since a request costs more than the entries it returns.

        Returns:
            The entries; None if the documents have too many entries to read at once.
        """
        known = self._get_build((index_name, owner), state)
        wanted = dict.fromkeys(place.document_id for place in places)
        unknown = [document_id for document_id in wanted if document_id not in known.documents]
        if unknown:
            fresh = (
                document_id
                for document_id in prefetch
                if document_id not in known.documents and document_id not in wanted
            )
            unknown += islice(fresh, max(0, MAX_PLACES - len(unknown)))
            request = RankingRequest(
                Places(tuple(map(Place, unknown[:MAX_PLACES]))), _MAX_ENTRIES_AT_ONCE, symbols=True
            )
            [candidates] = await self._searcher.rankings(index_name, owner, [request])
            if len(candidates) >= _MAX_ENTRIES_AT_ONCE:
                # The entries of the last document may be incomplete, and later documents may be
                # missing.
                document_ids = dict.fromkeys(candidate.document_id for candidate in candidates)
                document_ids.popitem()
                self._cache_entries(
                    known,
                    [*document_ids],
                    [
                        candidate
                        for candidate in candidates
                        if candidate.document_id in document_ids
                    ],
                )
                if any(document_id not in known.documents for document_id in wanted):
                    return None
            else:
                self._cache_entries(known, unknown, candidates)
        return _list_entries(places, known)

    def forget_former(
        self, index_name: str, owner: Owner, versions: Mapping[str, ReadableVersion]
    ) -> frozenset[str]:
        """Drop documents with outdated entries from the cache, and return their ids."""
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

    def _get_build(self, build: _Build, state: Hashable) -> _CachedBuild:
        known, now = self._builds.get(build), time.monotonic()
        if known is None or known.state != state or known.until < now:
            known = self._builds[build] = _CachedBuild(state, now + _CACHE_SECONDS)
        self._builds.move_to_end(build)
        return known

    def _cache_entries(
        self, known: _CachedBuild, documents: Sequence[str], candidates: Sequence[Candidate]
    ) -> None:
        by_document: dict[str, list[Candidate]] = {document: [] for document in documents}
        for candidate in candidates:
            by_document[candidate.document_id].append(candidate)
        for document_id, entries in by_document.items():
            known.add(document_id, sorted(entries, key=lambda entry: entry.id))
        while (
            len(self._builds) > 1
            and sum(build.count for build in self._builds.values()) > self._max_entries
        ):
            self._builds.popitem(last=False)
        if known.count > self._max_entries:
            known.drop([document for document in known.documents if document not in by_document])


def _list_entries(places: Sequence[Place], known: _CachedBuild) -> list[Candidate]:
    """Return the cached entries at these places, in the order of the places, each once."""
    entries: dict[str, Candidate] = {}
    for place in places:
        for entry in known.documents.get(place.document_id, ()):
            if place.symbol is None or place.symbol == entry.symbol != "":
                entries.setdefault(entry.id, entry)
    return [*entries.values()]


@dataclass(frozen=True, slots=True)
class _CountResult:
    at: float
    lacks_entries: bool


class BuildCompleteness:
    """Counts the entries of builds during searches, in one event loop.

    Entries of an index can disappear without this project's involvement: an index is rolled back,
    or somebody deletes entries. Searches then still answer, but with fewer results. A build is
    counted at most once in half a minute in each process.
    """

    def __init__(self, reader: SearchStateReader, searcher: EntrySearcher) -> None:
        self._reader, self._searcher = reader, searcher
        self._verdicts: LRUCache[_Build, _CountResult] = LRUCache(_MAX_BUILDS)
        self._counts: dict[_Build, asyncio.Task[None]] = {}

    def begin(self, index_name: str, owner: Owner) -> None:
        """Start counting the entries of a build, unless they were counted recently."""
        self._begin_count((index_name, owner), _COUNT_SECONDS)

    async def lacks_entries(self, index_name: str, owner: Owner, *, is_doubtful: bool) -> bool:
        """Return whether the last count of a build found fewer entries than expected.

        After a doubtful search, which found only outdated versions, the entries are counted again.
        """
        build = index_name, owner
        if is_doubtful:
            self._begin_count(build, _RECOUNT_SECONDS)
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

    def _begin_count(self, build: _Build, seconds: float) -> None:
        verdict = self._verdicts.get(build)
        if verdict is not None and verdict.lacks_entries:
            seconds = min(seconds, _RECOUNT_SECONDS)
        is_fresh = verdict is not None and time.monotonic() - verdict.at < seconds
        if is_fresh or build in self._counts:
            return
        count = self._counts[build] = asyncio.create_task(self._count_build(build))
        count.add_done_callback(lambda _: self._counts.pop(build, None))

    async def _count_build(self, build: _Build) -> None:
        at = time.monotonic()
        try:
            lacks = await self._compare_counts(*build)
        except RagAssetsError:
            lacks = None  # A server that does not answer is reported by the search itself.
        if lacks is not None:
            self._verdicts[build] = _CountResult(at, lacks)

    async def _compare_counts(self, index_name: str, owner: Owner) -> bool | None:
        """Return whether a build lacks entries; None while it is being written to."""
        expected = await self._reader.expected_entries(owner.tenant, owner.generation)
        for _ in range(_MAX_COUNTS):
            if expected is None or not expected.is_settled:
                return None
            entries, recent = await self._searcher.count_entries(
                index_name, owner, expected.recent_keys
            )
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


class Step(Protocol):
    """A step of a search."""

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Return the progress after this step; the same object if the step does not apply."""


@dataclass(frozen=True, slots=True)
class SearchServices:
    """The services that steps use, in one event loop.

    Attributes:
        catalog: the catalog's tables, for blocking statements: call them in a thread.
        reader: the catalog's statements for searches.
        entry_cache: the cached entries at places that steps have requested.
    """

    catalog: Catalog
    reader: SearchStateReader
    searcher: EntrySearcher
    vectors: QuestionEmbedder
    rerankers: RerankerPool
    policy: AccessPolicy
    altered_entries: AlteredEntries = field(default_factory=AlteredEntries)
    entry_cache: EntryCache = field(init=False)
    _system_services: dict[object, Any] = field(default_factory=dict)
    completeness: BuildCompleteness = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entry_cache", EntryCache(self.searcher))
        completeness = BuildCompleteness(self.reader, self.searcher)
        object.__setattr__(self, "completeness", completeness)

    def get_system_service(self, make: Callable[[], ServiceT]) -> ServiceT:
        """Return a service of a system, created once and shared by all steps."""
        if make not in self._system_services:
            self._system_services[make] = make()
        service: ServiceT = self._system_services[make]
        return service


class TrustedStep:
    """A step that belongs to one of this project's systems.

    The plan keeps all changes that such a step makes, as for a built-in step (see SearchPlan). The
    candidates that it adds are verified like all others.

    Attributes:
        after, before: steps that must run before and after this one, if they are in the same
            list.
    """

    after: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()


StepFactory: TypeAlias = Callable[[SearchServices], Step]


class QuestionReader(Protocol):
    """Interprets questions to tenants whose chunker reads facts.

    A system names its question readers in `System.question_readers`, by the name of the chunker.
    """

    def topic(self, query: str) -> str:
        """Return a question without the words that only name the wanted kind of definition."""

    def consists_of_names(self, query: str) -> bool:
        """Return whether a question consists only of names, which a relevant text contains."""

    async def complete(
        self, services: SearchServices, progress: SearchProgress, answer: SearchAnswer
    ) -> SearchAnswer:
        """Return the answer, completed from the facts: for example with a warning or a question."""


def find_question_reader(tenant: Tenant) -> QuestionReader | None:
    """Return the reader of questions to a tenant; None if its questions need no interpretation."""
    readers = _load_readers(installed_systems()) if tenant.reads_facts else {}
    return next((readers[name] for name in tenant.fact_readers if name in readers), None)


@lru_cache(maxsize=4)
def _load_readers(systems: Systems) -> Mapping[str, QuestionReader]:
    return systems.load("question_readers")
