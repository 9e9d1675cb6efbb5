"""Slices: the bounded set of documents that one run processes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rag_assets.common.environment import environment_key
from rag_assets.ingest.sources.records import EXCLUDED
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import ActiveBuild, active_builds, found_builds
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.syncs import Slice
from rag_assets.storage.catalog.documents.model import Document, Failure
from rag_assets.storage.catalog.documents.quarantine import FormerVersion
from rag_assets.storage.catalog.documents.status import NEVER


@dataclass(frozen=True, slots=True)
class Work:
    """A slice with its documents.

    Attributes:
        context: the context for stages that work on the slice's build.
        generation: the build that the documents are written to.
        config_key: the key of the build's configuration.
        documents: the documents, most urgent first, without deleted and excluded ones.
        unlisted: why sources could not be listed when the run started.
        beside: whether the tenant's configuration asks for a different build.
    """

    context: TenantContext
    generation: Generation
    config_key: str
    documents: tuple[Document, ...]
    unlisted: tuple[str, ...] = ()
    beside: bool = False

    @property
    def answers(self) -> bool:
        """Return whether the slice's build answers searches, so that people wait for its edits."""
        return self.generation.state == "SERVING"


class StageTime:
    """The time limit of a stage: in full for urgent documents, less for others while those wait.

    Urgent documents may be in the slice, or may have changed since the run started. So a run ends
    soon if it contains an edit or an edit waits for it. Other documents still make progress in
    every run.

    Args:
        seconds: the full time.
        is_hurried: whether an urgent document is in the slice.
    """

    def __init__(self, ctx: TenantContext, seconds: float, *, is_hurried: bool = False) -> None:
        started = time.monotonic()
        self.deadline = started + seconds
        self._hurried_deadline = started + min(seconds, ctx.limits.hurried_seconds)
        self._has_changed = ctx.has_changed
        self._is_hurried = is_hurried

    def is_over(self, *, is_urgent: bool) -> bool:
        """Return whether the time for urgent documents, or that for other documents, is over."""
        now = time.monotonic()
        if is_urgent or now < self._hurried_deadline:
            return now >= self.deadline
        self._is_hurried = self._is_hurried or self._has_changed()
        return self._is_hurried or now >= self.deadline


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document of the slice whose parsed text is in the lake.

    Attributes:
        title: the title found in its content.
        media_type: the type of its content.
        parse_key, chunk_set_key: the keys of its text and its chunks in the lake.
        former: the former version that the text belongs to; None: the text is the document's
            present one.
    """

    document: Document
    title: str | None
    media_type: str
    parse_key: str
    chunk_set_key: str
    former: FormerVersion | None = None


def plan_work(ctx: TenantContext, run_id: str, unlisted: tuple[str, ...] = ()) -> Work:
    """Choose a run's slice and store it for the following stages of that run.

    A run works on one build. While the serving build is not the configured one, documents missing
    from the serving build come first, so that edits become searchable. If both builds lack
    documents, they alternate from run to run.
    """
    builds = active_builds(ctx)
    behind = [] if builds.beside is None else _pending(builds.beside)
    if builds.beside is None or not behind:
        return _store_slice(builds.wanted, _pending(builds.wanted), run_id, unlisted)
    if ctx.catalog.syncs.last_generation(ctx.ref.id) == builds.beside.generation.number:
        pending = _pending(builds.wanted)
        if pending:
            return _store_slice(builds.wanted, pending, run_id, unlisted)
    return _store_slice(builds.beside, behind, run_id, unlisted)


def work_of(ctx: TenantContext, run_id: str) -> Work:
    """Return the slice of this run; plan it again if the run started at a later stage."""
    planned = ctx.catalog.syncs.find_slice(ctx.ref.id, run_id)
    if planned is None:
        return plan_work(ctx, run_id)
    build = found_builds(ctx, ctx.catalog.generations.live(ctx.ref.id)).get(planned.generation)
    if build is not None and build.context.config_key == planned.config_key:
        return _work(build, planned)
    # The configuration changed during the run.
    return plan_work(ctx, run_id, planned.unlisted)


def pending_count(ctx: TenantContext) -> int:
    """Return the number of documents that can be processed now, in both builds kept up to date.

    A source that is only partly listed counts as one document.
    """
    builds = active_builds(ctx)
    return ctx.catalog.syncs.count_partly_listed(ctx.ref.id) + sum(
        ctx.catalog.index.pending_count(
            ctx.ref.id,
            build.generation.number,
            build.context.config_key,
            for_superseded_build=build.beside,
        )
        for build in builds.all
    )


def parsed_documents(ctx: TenantContext, documents: Iterable[Document]) -> list[ParsedDocument]:
    """Return the documents that could be parsed, with the facts that the next stages need."""
    keys = {document.document_id: ctx.parse_key(document) for document in documents}
    heads = ctx.lake.parsed_heads(set(keys.values()))
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


def waiting_for_embedder(ctx: TenantContext, work: Work) -> str | None:
    """Return why documents of the slice wait for a retry; None if no document does."""
    # A document that could not be read does not wait for the embedder.
    ids = [p.document.document_id for p in parsed_documents(ctx, work.documents)]
    if work.beside:
        return ctx.catalog.index.put_off_reason(ctx.ref.id, work.generation.number, ids)
    for document in ctx.catalog.documents.find(ctx.ref.id, ids):
        if document.status == "FAILED" and document.retry_at is not None:
            return document.error_message
    return None


def put_off(
    ctx: TenantContext, work: Work, waits: Sequence[Failure], *, deferred: bool = False
) -> None:
    """Record why documents of the slice cannot be published now.

    In a build that the configuration does not ask for, this only changes when the documents are
    retried.

    Args:
        work: the slice of the documents.
        waits: the reasons.
        deferred: whether the documents did not fail, but wait for a batch at the provider.
    """
    ctx.guard()
    waits = _with_environment(ctx, waits)
    if work.beside:
        number = work.generation.number
        ctx.catalog.index.put_off(ctx.ref, number, waits, config_key=work.config_key)
    elif deferred:
        ctx.catalog.quarantine.defer(ctx.ref, waits, config_key=work.config_key)
    else:
        ctx.catalog.quarantine.fail(ctx.ref, waits, config_key=work.config_key)


def _with_environment(ctx: TenantContext, waits: Sequence[Failure]) -> list[Failure]:
    """Add the environment's key to failures that another setting of this installation may fix."""
    if not any(map(_is_for_setting, waits)):
        return [*waits]
    key = environment_key(ctx.settings)
    return [replace(wait, environment=key) if _is_for_setting(wait) else wait for wait in waits]


def _is_for_setting(wait: Failure) -> bool:
    if wait.kind in {"installation", "wrong-vectors"}:
        return True
    # A spending cap is not a setting of the environment, and a retry would spend the money again.
    return wait.retry_at == NEVER and wait.kind != "cap-reached"


def _pending(build: ActiveBuild) -> list[str]:
    ctx = build.context
    return ctx.catalog.index.pending(
        ctx.ref.id,
        build.generation.number,
        ctx.config_key,
        for_superseded_build=build.beside,
        documents_limit=ctx.limits.documents,
        bytes_limit=ctx.limits.megabytes * 1024 * 1024,
        answers=build.generation.state == "SERVING",
    )


def _store_slice(
    build: ActiveBuild, document_ids: Sequence[str], run_id: str, unlisted: tuple[str, ...]
) -> Work:
    ctx, number = build.context, build.generation.number
    planned = Slice(run_id, number, ctx.config_key, tuple(document_ids), unlisted)
    ctx.catalog.syncs.put_slice(ctx.ref, planned)
    return _work(build, planned)


def _work(build: ActiveBuild, planned: Slice) -> Work:
    ctx = build.context
    documents = ctx.catalog.documents.find(ctx.ref.id, planned.document_ids)
    living = tuple(
        document
        for document in documents
        if document.status != "DELETED" and document.access_scope != EXCLUDED
    )
    return Work(ctx, build.generation, planned.config_key, living, planned.unlisted, build.beside)
