"""The answer of a search: its hits with origins and page titles, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rag_assets.common.errors import InvalidRequest, RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.kinds import DescribeOrigin, SourceConfig, SourceContext
from rag_assets.ingest.sources.model import parse_path
from rag_assets.ingest.sources.record_bodies import BODIES
from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER
from rag_assets.models.prices import split_embedder_id
from rag_assets.search.model import (
    Debug,
    DegradedReason,
    Filters,
    Hit,
    Origin,
    SearchAnswer,
    SearchRequest,
    SearchStrategy,
    SkippableStep,
    UnmatchedFilter,
)
from rag_assets.search.progress import SearchProgress
from rag_assets.search.recall import add_scopes
from rag_assets.search.scoring import build_scores, lacks_query_words
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import EntryFilter, RankingRequest, is_within
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.profiles import get_profile

_MAX_SHOWN_PATHS = 50
_WALKED: Mapping[SearchMode, SearchStrategy] = {
    "knn": "walk+knn",
    "text": "walk+text",
    "hybrid": "walk+hybrid",
}
_MAX_PROBES: Final = 40
"""Maximum number of values that are looked up for one request; further values are not reported."""
_MAX_CHECKED_ENTRIES: Final = 10
"""Entries that are checked per value: the first may belong to a document that was just revoked or
replaced."""
_LISTS: Final = ("documents", "paths", "languages", "tags", "within")


def build_answer(progress: SearchProgress) -> SearchAnswer:
    """Build the answer from a finished search, with details of the search and its skipped steps."""
    hits, mode = tuple(progress.hits or ()), progress.search.mode
    fault = progress.reranking.fault if progress.reranking else None
    degraded: dict[SkippableStep, DegradedReason] = {"rerank": fault} if fault else {}
    if progress.uses_index_vectors:
        degraded["pgvector"] = "unavailable"
    if progress.reading == "unread" and mode != "knn":
        degraded["vectors"] = "script not read"
    if progress.index_fault is not None:
        degraded["index-incomplete"] = progress.index_fault
    cosines = [progress.cosines[id_] for id_ in progress.confirmed.by_id if id_ in progress.cosines]
    return SearchAnswer(
        hits=hits,
        needs_clarification=not progress.passages,
        omitted=len(progress.answered) - len(hits),
        generation=progress.serving.number,
        embedder=progress.serving.embedder_id,
        mode=mode,
        degraded=tuple(degraded),
        warnings=tuple(_iter_warnings(progress)),
        debug=Debug(
            _get_strategy(progress),
            progress.timings.milliseconds,
            # Do not count the recalled candidates: their number would disclose passages that the
            # caller may not read.
            len(progress.confirmed.by_id),
            build_scores(progress),
            threshold=progress.search.min_cosine,
            nearest=round(max(cosines), 6) if cosines else None,
            degraded=degraded,
            paths=progress.walk.paths[:_MAX_SHOWN_PATHS] if progress.walk else (),
        ),
    )


def _iter_warnings(progress: SearchProgress) -> Iterator[UnmatchedFilter]:
    """Yield a warning if vectors do not fit the question, or if only they found the hits."""
    if progress.reading == "unread" and progress.search.mode == "knn":
        provider, model = split_embedder_id(progress.serving.embedder_id)
        problem = (
            f"{provider}/{model} does not read the script of this question, so its vectors hardly"
            f" rank by meaning: search with mode text or hybrid, or use an embedder that reads this"
            f" script, such as {MULTILINGUAL_EMBEDDER}"
        )
        yield UnmatchedFilter("mode", problem)
    if progress.hits and lacks_query_words(progress):
        problem = (
            "no text that you may read has a word of this question: the hits are only the nearest"
            " by meaning"
        )
        yield UnmatchedFilter("query", problem)


def _get_strategy(progress: SearchProgress) -> SearchStrategy:
    mode, walked = progress.search.mode, progress.walk
    if walked is None:
        return mode
    return "walk" if walked.alone else _WALKED[mode]


@dataclass(frozen=True, slots=True)
class Origins:
    """The opened sources of a tenant that describe the origins of hits."""

    sources: dict[str, DescribeOrigin]

    @classmethod
    def open(cls, tenant: Tenant, settings: Settings) -> Origins:
        """Open those sources of a tenant that this process can read."""
        context = SourceContext(base=settings.home, allowed_roots=tuple(settings.allowed_roots))
        opened_sources = {
            source.name: _open_source(source, tenant, context) for source in tenant.sources
        }
        return cls({name: described for name, described in opened_sources.items() if described})

    def add_origins(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Add the origin to each hit from a source that can be read locally."""
        origins: dict[str, Origin] = {}
        for name, described in self.sources.items():
            of_source = [hit.uri for hit in hits if hit.uri.partition("/")[0] == name]
            if of_source:
                origins |= _describe_files(described, of_source)
        return tuple(
            replace(hit, origin=origins[hit.uri]) if hit.uri in origins else hit for hit in hits
        )


def describes_origins(tenant: Tenant) -> bool:
    """Return whether a tenant of source code has a source that can describe origins of files."""
    return tenant.reads_facts and any(
        tenant.source_kind(source).describe is not None for source in tenant.sources
    )


def _open_source(
    config: SourceConfig, tenant: Tenant, context: SourceContext
) -> DescribeOrigin | None:
    describe = tenant.source_kind(config).describe
    try:
        return None if describe is None else describe(config, context)
    except (RagAssetsError, OSError):
        # The source may exist only on the indexing machine. Hits are found without it.
        return None


def _describe_files(described: DescribeOrigin, uris: Sequence[str]) -> dict[str, Origin]:
    paths = {uri: parse_path(uri) for uri in uris}
    try:
        origins = described(set(paths.values()))
    except (RagAssetsError, OSError):
        return {}
    differing = origins.differing
    return {
        uri: Origin(
            origins.repository, origins.commit, None if differing is None else path in differing
        )
        for uri, path in paths.items()
    }


@dataclass(frozen=True, slots=True)
class _Probe:
    """A filter value of a request that no hit matches, to be looked up in the index.

    Attributes:
        problem: the warning to give if no document matches.
        criteria: the filter to look up; empty if it is already known that no document matches.
    """

    place: str
    problem: str
    criteria: Mapping[str, Any] = field(default_factory=dict)


def require_known_source_types(tenant: Tenant, request: SearchRequest) -> None:
    """Refuse a source type that no document of the tenant can have."""
    allowed = find_source_types(tenant) if request.source_types else None
    if allowed is None:
        return
    for number, name in enumerate(request.source_types or ()):
        if name not in allowed:
            raise InvalidRequest(
                f"source_types.{number}: no source of this tenant has documents of this type",
                hint=f"it must be one of: {', '.join(sorted(allowed))}",
            )


def find_source_types(tenant: Tenant) -> frozenset[str] | None:
    """Return the source types of a tenant's documents; None if applications choose any type."""
    types: set[str] = {*tenant.chunk_types}
    for source in tenant.sources:
        kind = tenant.source_kind(source)
        is_typed = kind.pushed and get_profile(tenant.profile).typed_records
        known = tuple(BODIES) if is_typed else kind.source_types
        if known is None:
            return None
        types.update(known)
    return frozenset(types) or None


async def find_unmatched_filters(
    services: SearchServices, progress: SearchProgress
) -> tuple[UnmatchedFilter, ...]:
    """Return the filter values of a request that no readable document matches.

    Such a value makes a search look as if the knowledge base were empty. Each value that no hit has
    is looked up in the index, with the caller's scopes as the only other filter. The catalog
    confirms the results, so that a report never discloses a document that the caller may not read.

    The result is empty if the index cannot be queried, so that this does not fail a search that was
    answered. It is also empty for a search with a `use`, which sets its own filters.
    """
    if progress.search.request.use is not None:
        return ()
    probes = [*_list_probes(progress)]
    asked_probes = [probe for probe in probes if probe.criteria][:_MAX_PROBES]
    try:
        matched = (
            await _find_matched_fields(services, progress, asked_probes) if asked_probes else ()
        )
    except RagAssetsError:
        return ()
    return tuple(
        UnmatchedFilter(probe.place, probe.problem)
        for probe in probes
        if not probe.criteria or (probe in asked_probes and probe.place not in matched)
    )


async def _find_matched_fields(
    services: SearchServices, progress: SearchProgress, probes: Sequence[_Probe]
) -> set[str]:
    """Return the request fields of the probes that match a document that the caller may read."""
    if progress.scopes is None:
        progress = await add_scopes(progress, services)
    readable = EntryFilter(scopes=progress.scopes, moved=progress.moved)
    rankings = await services.searcher.rankings(
        progress.serving.index_name,
        progress.owner,
        [
            RankingRequest(None, _MAX_CHECKED_ENTRIES, replace(readable, **probe.criteria))
            for probe in probes
        ],
    )
    documents = {candidate.document_id for ranking in rankings for candidate in ranking}
    versions = await services.reader.readable(
        progress.ref.id, progress.serving.number, [*documents], progress.principals
    )
    confirmed = {
        id_
        for id_, version in versions.items()
        if services.policy.permits(progress.caller, version)
    }
    return {
        probe.place
        for probe, ranking in zip(probes, rankings, strict=True)
        if any(candidate.document_id in confirmed for candidate in ranking)
    }


def _list_probes(progress: SearchProgress) -> Iterator[_Probe]:
    """Yield a probe for each filter value that is not matched by any hit."""
    request, hits = progress.search.request, progress.hits or ()
    filters = request.filters
    if request.source_types == ():
        yield _Probe("source_types", "the list is empty, so nothing matches")
    for name in _LISTS:
        if getattr(filters, name) == ():
            yield _Probe(f"filters.{name}", "the list is empty, so nothing matches")
    if filters.within and progress.pages == ():
        yield _Probe("filters.within", "the caller may read no page with such an id")
    yield from _probe_lists(request, hits)
    if not hits:
        for number, tag in enumerate(filters.tags or ()):
            problem = "no document that the caller may read has this tag"
            yield _Probe(f"filters.tags.{number}", problem, {"tags": (tag,)})
        yield from _probe_dates(filters)
    yield from _probe_metadata(filters, has_hits=bool(hits))


def _probe_lists(request: SearchRequest, hits: Sequence[Hit]) -> Iterator[_Probe]:
    filters = request.filters
    lists = (
        ("filters.documents", "documents", filters.documents, {hit.document_id for hit in hits}),
        ("filters.languages", "languages", filters.languages, {hit.language for hit in hits}),
        ("source_types", "source_types", request.source_types, {hit.source_type for hit in hits}),
    )
    problem = "no document that the caller may read matches this value"
    for place, name, values, shown in lists:
        for number, value in enumerate(values or ()):
            if value not in shown:
                yield _Probe(f"{place}.{number}", problem, {name: (value,)})
    problem = "no document that the caller may read has such a path"
    paths = (("filters.paths", filters.paths), ("must_include_paths", request.must_include_paths))
    for place, values in paths:
        for number, path in enumerate(values or ()):
            if not any(is_within(hit.uri, path) for hit in hits):
                yield _Probe(f"{place}.{number}", problem, {"paths": (path,)})


def _probe_dates(filters: Filters) -> Iterator[_Probe]:
    for name in ("modified_after", "modified_before"):
        if (bound := getattr(filters, name)) is not None:
            problem = "no document that the caller may read was modified in this period"
            yield _Probe(f"filters.{name}", problem, {name: bound})


def _probe_metadata(filters: Filters, *, has_hits: bool) -> Iterator[_Probe]:
    for key, filter_value in filters.metadata.items():
        values = filter_value if isinstance(filter_value, tuple) else (filter_value,)
        if not values:
            yield _Probe(f"filters.metadata.{key}", "the list is empty, so nothing matches")
        if has_hits and len(values) == 1:
            continue
        for number, value in enumerate(values):
            if value is not None:
                place = f"filters.metadata.{key}" + f".{number}" * isinstance(filter_value, tuple)
                wanted = Filters(metadata={key: value}).wanted_metadata
                problem = "no document that the caller may read has this value"
                yield _Probe(place, problem, {"metadata": wanted})
