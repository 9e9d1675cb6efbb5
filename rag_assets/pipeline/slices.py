"""Slices: the bounded set of documents that one run processes, and the limits of its stages.

While a person has to act, or a spending cap is reached, parsing further slices is useless. So all
waiting documents that lack a vector are quarantined immediately. The following runs process only
documents that need no embedding: renames, copies, and edits back to a known text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from rag_assets.common.batches import batched
from rag_assets.common.environment import compute_environment_key
from rag_assets.common.errors import (
    CapReached,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    WrongShape,
)
from rag_assets.common.failure_kinds import FailureKind, failure_kind
from rag_assets.ingest.sources.records import EXCLUDED
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import ActiveBuild, find_active_builds, open_active_builds
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.syncs import Slice
from rag_assets.storage.catalog.documents.model import Document, Failure
from rag_assets.storage.catalog.documents.status import NEVER
from rag_assets.storage.catalog.documents.table import FormerVersion

_T = TypeVar("_T")
_FIRST_RETRY = timedelta(minutes=1)
_LAST_RETRY = timedelta(hours=1)
_MAX_WAIT = timedelta(days=1)
_NEEDS_A_PERSON = (ProviderRefused, WrongShape)
_BATCH_DOCUMENTS = 2_000
_FIRST_REPORT_SECONDS = 2.0
_REPORT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """Why a document failed, or which parts were omitted: one line without the document's text."""

    document_id: str
    uri: str
    text: str


def find_remedy(document: Document) -> str:
    """Return the remedy for a quarantined document; empty for any other document."""
    if document.status != "FAILED":
        return ""
    if document.retry_at == NEVER:
        return (
            "remove the cause that the reason states; the document is tried again by the next"
            " `rag-assets sync`, and after `rag-assets up` with changed settings"
        )
    if document.retry_at is not None:
        return f"retried automatically after {document.retry_at:%Y-%m-%d %H:%M} UTC, or by a sync"
    if document.content_sha256 is None:
        return "make the file readable, or raise max_bytes; every listing checks it again"
    return (
        "repair, replace or exclude the file, or change the tenant's settings; "
        "the document is tried again as soon as the file or a setting changes"
    )


def prefetch_items(items: Iterable[_T]) -> Iterator[_T]:
    """Yield items while a thread makes the next one, so that two exist at a time.

    If making an item fails, the error is raised when that item would be yielded. A consumer that
    stops early waits for the item in progress; no further item is made.
    """
    iterator = iter(items)

    def next_item() -> list[_T]:
        return list(islice(iterator, 1))

    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as executor:
        future = executor.submit(next_item)
        while item := future.result():
            future = executor.submit(next_item)
            yield item[0]


@dataclass(frozen=True, slots=True)
class SliceWork:
    """A slice with its documents.

    Attributes:
        documents: the documents, most urgent first, without deleted and excluded ones.
        unlisted: why sources could not be listed when the run started.
        is_superseded: whether the tenant's configuration asks for a different build.
    """

    context: TenantContext
    generation: Generation
    config_key: str
    documents: tuple[Document, ...]
    unlisted: tuple[str, ...] = ()
    is_superseded: bool = False

    @property
    def is_serving(self) -> bool:
        """Return whether the slice's build answers searches, so that people wait for its edits."""
        return self.generation.state == "SERVING"


class StageTime:
    """The time limit of a stage: the full time for urgent documents, such as edits.

    Other documents get less time while an urgent document waits, in this slice or since the run
    started, so that the run ends soon. They still make progress in every run.
    """

    def __init__(self, ctx: TenantContext, seconds: float, *, is_hurried: bool = False) -> None:
        started = time.monotonic()
        self.deadline = started + seconds
        self._hurried_deadline = started + min(seconds, ctx.limits.hurried_seconds)
        self._has_changed = ctx.has_changed
        self._is_hurried = is_hurried

    def is_over(self, *, is_urgent: bool) -> bool:
        """Return whether the stage must not start another document of this urgency."""
        now = time.monotonic()
        if is_urgent or now < self._hurried_deadline:
            return now >= self.deadline
        self._is_hurried = self._is_hurried or self._has_changed()
        return self._is_hurried or now >= self.deadline


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document of the slice whose parsed text is in the lake.

    Attributes:
        parse_key, chunk_set_key: the keys of its text and its chunks in the lake.
        former: the former version that the text belongs to; None for the document's present text.
    """

    document: Document
    title: str | None
    media_type: str
    parse_key: str
    chunk_set_key: str
    former: FormerVersion | None = None


def plan_work(ctx: TenantContext, run_id: str, unlisted: tuple[str, ...] = ()) -> SliceWork:
    """Choose a run's slice and store it for the following stages of that run.

    A run works on one build. While the serving build is not the configured build, documents missing
    from the serving build come first, so that edits become searchable. If both builds lack
    documents, they alternate from run to run.
    """
    builds = open_active_builds(ctx)
    behind = [] if builds.superseded is None else _list_pending_ids(builds.superseded)
    if builds.superseded is None or not behind:
        return _store_slice(builds.wanted, _list_pending_ids(builds.wanted), run_id, unlisted)
    if ctx.catalog.syncs.find_last_generation(ctx.ref.id) == builds.superseded.generation.number:
        pending = _list_pending_ids(builds.wanted)
        if pending:
            return _store_slice(builds.wanted, pending, run_id, unlisted)
    return _store_slice(builds.superseded, behind, run_id, unlisted)


def load_work(ctx: TenantContext, run_id: str) -> SliceWork:
    """Return the slice of this run; plan it again if the run started at a later stage."""
    planned = ctx.catalog.syncs.find_slice(ctx.ref.id, run_id)
    if planned is None:
        return plan_work(ctx, run_id)
    build = find_active_builds(ctx, ctx.catalog.generations.live(ctx.ref.id)).get(
        planned.generation
    )
    if build is not None and build.context.config_key == planned.config_key:
        return _load_slice(build, planned)
    # The configuration changed during the run.
    return plan_work(ctx, run_id, planned.unlisted)


def count_pending(ctx: TenantContext) -> int:
    """Return the number of documents that can be processed now, in all builds kept up to date.

    A source that is only partly listed counts as one document.
    """
    builds = open_active_builds(ctx)
    return ctx.catalog.syncs.count_partly_listed(ctx.ref.id) + sum(
        ctx.catalog.index.count_pending(
            ctx.ref.id,
            build.generation.number,
            build.context.config_key,
            for_superseded_build=build.is_superseded,
        )
        for build in builds.all
    )


def is_any_document_pending(ctx: TenantContext) -> bool:
    """Return whether a document can be processed now, in a build that is already open."""
    builds = find_active_builds(ctx, ctx.catalog.generations.live(ctx.ref.id))
    return any(
        ctx.catalog.index.count_pending(
            ctx.ref.id,
            number,
            build.context.config_key,
            for_superseded_build=build.is_superseded,
        )
        for number, build in builds.items()
    )


def find_parsed_documents(
    ctx: TenantContext, documents: Iterable[Document]
) -> list[ParsedDocument]:
    """Return the documents whose parsed text is in the lake, with the keys of their rows."""
    keys = {document.document_id: ctx.parse_key(document) for document in documents}
    heads = ctx.lake.read_parsed_heads(set(keys.values()))
    return [
        ParsedDocument(
            document,
            head.title,
            head.media_type,
            keys[document.document_id],
            ctx.chunk_set_key(document, head.digest, head.media_type),
        )
        for document in documents
        if (head := heads.get(keys[document.document_id])) is not None
    ]


def find_wait_reason(ctx: TenantContext, work: SliceWork) -> str | None:
    """Return why documents of the slice wait for a retry; None if no document does."""
    # A document that could not be read does not wait for the embedder.
    ids = [p.document.document_id for p in find_parsed_documents(ctx, work.documents)]
    if work.is_superseded:
        return ctx.catalog.index.put_off_reason(ctx.ref.id, work.generation.number, ids)
    for document in ctx.catalog.documents.find(ctx.ref.id, ids):
        if document.status == "FAILED" and document.retry_at is not None:
            return document.error_message
    return None


def postpone_documents(
    ctx: TenantContext, work: SliceWork, waits: Sequence[Failure], *, is_deferred: bool = False
) -> None:
    """Record why documents of the slice cannot be published now.

    In a build that the configuration does not ask for, this only changes when the documents are
    retried.

    Args:
        is_deferred: whether the documents did not fail, but wait for a batch at the provider.
    """
    ctx.guard()
    waits = _add_environment_keys(ctx, waits)
    if work.is_superseded:
        number = work.generation.number
        ctx.catalog.index.put_off(ctx.ref, number, waits, config_key=work.config_key)
    elif is_deferred:
        ctx.catalog.quarantine.defer(ctx.ref, waits, config_key=work.config_key)
    else:
        ctx.catalog.quarantine.fail(ctx.ref, waits, config_key=work.config_key)


def _add_environment_keys(ctx: TenantContext, waits: Sequence[Failure]) -> list[Failure]:
    """Add the key of the environment to failures that a changed setting may fix.

    A document with such a failure is tried once in each environment.
    """
    if not any(map(_may_be_fixed_by_setting, waits)):
        return [*waits]
    key = compute_environment_key(ctx.settings)
    return [
        replace(wait, environment=key) if _may_be_fixed_by_setting(wait) else wait for wait in waits
    ]


def _may_be_fixed_by_setting(wait: Failure) -> bool:
    if wait.kind in {"installation", "wrong-vectors"}:
        return True
    # A spending cap is not a setting of the environment, and a retry would spend the money again.
    return wait.retry_at == NEVER and wait.kind != "cap-reached"


def _list_pending_ids(build: ActiveBuild) -> list[str]:
    ctx = build.context
    return ctx.catalog.index.pending(
        ctx.ref.id,
        build.generation.number,
        ctx.config_key,
        for_superseded_build=build.is_superseded,
        documents_limit=ctx.limits.documents,
        bytes_limit=ctx.limits.megabytes * 1024 * 1024,
        answers=build.generation.state == "SERVING",
    )


def _store_slice(
    build: ActiveBuild, document_ids: Sequence[str], run_id: str, unlisted: tuple[str, ...]
) -> SliceWork:
    ctx, number = build.context, build.generation.number
    planned = Slice(run_id, number, ctx.config_key, tuple(document_ids), unlisted)
    ctx.catalog.syncs.put_slice(ctx.ref, planned)
    return _load_slice(build, planned)


def _load_slice(build: ActiveBuild, planned: Slice) -> SliceWork:
    ctx = build.context
    documents = ctx.catalog.documents.find(ctx.ref.id, planned.document_ids)
    living = tuple(
        document
        for document in documents
        if document.status != "DELETED" and document.access_scope != EXCLUDED
    )
    return SliceWork(
        ctx, build.generation, planned.config_key, living, planned.unlisted, build.is_superseded
    )


def is_permanent(outage: RagAssetsError) -> bool:
    """Return whether retrying is useless until a person acts or the spending cap is renewed."""
    return isinstance(outage, (*_NEEDS_A_PERSON, CapReached))


def compute_retry_time(document: Document, outage: RagAssetsError) -> datetime:
    """Return when a document is retried automatically."""
    now = datetime.now(UTC)
    if isinstance(outage, _NEEDS_A_PERSON):
        return NEVER
    if isinstance(outage, CapReached):
        return outage.until or NEVER
    wait = min(_LAST_RETRY, _FIRST_RETRY * (1 << min(document.attempts, 10)))
    if isinstance(outage, ProviderUnavailable) and outage.retry_after is not None:
        # Bounded before the conversion, because a timedelta can overflow.
        seconds = min(outage.retry_after, _MAX_WAIT.total_seconds())
        wait = max(wait, timedelta(seconds=seconds))
    return now + wait


def build_failure(
    document: Document, reason: str, kind: FailureKind, retry_at: datetime | None = None
) -> Failure:
    """Return why a document cannot be published now, and when it is tried again, if ever."""
    return Failure(document.document_id, document.document_key, reason, kind, retry_at)


def quarantine_waiting(ctx: TenantContext, work: SliceWork, outage: RagAssetsError) -> int:
    """Quarantine all waiting documents that lack a vector, in any slice; return how many."""
    waiting = ctx.catalog.index.pending(
        ctx.ref.id, work.generation.number, work.config_key, for_superseded_build=work.is_superseded
    )
    quarantined = 0
    for document_ids in batched(waiting, _BATCH_DOCUMENTS):
        documents = ctx.catalog.documents.find(ctx.ref.id, document_ids)
        complete = _find_complete_documents(ctx, documents)
        kind = failure_kind(outage)
        failures = [
            build_failure(d, outage.advice, kind, compute_retry_time(d, outage))
            for d in documents
            if d.document_id not in complete
        ]
        postpone_documents(ctx, work, failures)
        quarantined += len(failures)
    return quarantined


def _find_complete_documents(ctx: TenantContext, documents: Iterable[Document]) -> set[str]:
    """Return the ids of the documents that have all their chunks and vectors in the lake."""
    parsed = find_parsed_documents(ctx, documents)
    hashes = ctx.lake.read_chunk_hashes({item.chunk_set_key for item in parsed})
    texts = {text for of_set in hashes.values() for text in of_set}
    without = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, texts)
    return {
        item.document.document_id
        for item in parsed
        if item.chunk_set_key in hashes and without.isdisjoint(hashes[item.chunk_set_key])
    }


class StageProgress:
    """Counts items of one stage and reports the count, total, rate and time left."""

    def __init__(self, noun: str, total: int, log: Callable[[str], None]) -> None:
        self._noun = noun
        self._total = total
        self._log = log
        self._count = 0
        self._started = time.monotonic()
        self._next = self._started + _FIRST_REPORT_SECONDS
        self._reported: int | None = None

    def advance(self, count: int) -> None:
        """Count further finished items."""
        self.set_count(self._count + count)

    def set_count(self, count: int) -> None:
        """Set the number of finished items."""
        self._count = count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _REPORT_SECONDS
            self._report(now)

    def finish(self) -> None:
        """End the stage; report once more if the last reported line is out of date."""
        if self._reported is not None and self._reported != self._count:
            self._report(time.monotonic())

    def _report(self, now: float) -> None:
        self._reported = self._count
        self._log(self._format_progress_line(now))

    def _format_progress_line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-6)
        rate = self._count / seconds
        seconds_left = (self._total - self._count) / rate if rate else 0.0
        eta = f", about {seconds_left:.0f} s left" if self._count < self._total and rate else ""
        return f"{self._noun}: {self._count:,} of {self._total:,} ({rate:,.0f}/s{eta})"
