"""The chain without Dagster: the five stages in order, under the tenant's lock, until drained.

A Dagster run in process costs about a second. Tests of the stages themselves save this time.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial

import pytest
from anyio.to_thread import run_sync

from rag_assets.cli.session import Session
from rag_assets.pipeline.chunking import chunk_documents
from rag_assets.pipeline.context import SliceLimits, TenantContext
from rag_assets.pipeline.embedding import embed_chunks
from rag_assets.pipeline.fact_stores import run_follow_up
from rag_assets.pipeline.generations import Judge
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.parsing import parse_documents
from rag_assets.pipeline.publishing import publish_slice
from rag_assets.pipeline.slices import plan_work
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.search.progress import Ranking, SearchProgress, VerifiedCandidates
from rag_assets.search.recall import VerifyStep
from rag_assets.storage.catalog.lock import Holder
from rag_assets.systems.code_memory.pipeline.fact_store import FACTS
from rag_assets.systems.workspace.settings import FOLLOW_UP
from rag_assets.tenants.model import WorkspaceConfig
from tests.installation import Installation

_MOST_RUNS = 50
_LOCK_SECONDS = 30.0


def tenant_named_after(request: pytest.FixtureRequest) -> str:
    """Return a tenant id that is derived from the name of a test."""
    return (
        re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
        .strip("-")[:60]
        .strip("-")
    )


class Driver:
    """Syncs tenants of one installation over the same connections.

    Args:
        limits: of the slice of each run.
        has_changed: reports changed paths, as the change watcher does.
    """

    def __init__(
        self,
        installation: Installation,
        limits: SliceLimits | None = None,
        has_changed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._installation = installation
        self._has_changed = has_changed
        self._limits = limits or SliceLimits()

    @cached_property
    def session(self) -> Session:
        """Return the session of all work."""
        return self._installation.session()

    @cached_property
    def scanner(self) -> SecretScanner:
        """Return a scanner for credentials with compiled rules."""
        return SecretScanner(self.session.settings.local / "cache")

    @contextmanager
    def locked(self, tenant_id: str) -> Iterator[TenantContext]:
        """Read tenants.yaml again and yield the context of a tenant's stages, under its lock."""
        catalog = self.session.catalog
        self.session.reconcile()
        record = catalog.tenants.get(tenant_id)
        tenant = self.session.embedders.tenant(record)
        holder = Holder.here("a test")
        # A killed process keeps its lock until Postgres notices.
        with catalog.lock.hold(tenant_id, holder, wait_seconds=_LOCK_SECONDS) as held:
            yield TenantContext(
                tenant=tenant,
                ref=record.ref,
                scanned=record.scanned,
                settings=self.session.settings,
                catalog=catalog,
                lake=self.session.lake.tenant(record.id, record.incarnation, guard=held.check),
                store=self.session.store,
                embedder=self.session.embedders.get_document_embedder(record, tenant.embedder),
                guard=held.check,
                log=lambda line: None,
                limits=self._limits,
                batch_api=partial(self.session.embedders.batch_api, record.ref),
                embedder_of=partial(self.session.embedders.get_document_embedder, record),
                has_changed=self._has_changed,
            )

    def sync(self, tenant_id: str, *, allow_deletes: bool = False) -> Counter[str]:
        """Sync a tenant until nothing is pending; return the counts over all runs."""
        with self.locked(tenant_id) as ctx:
            done = drain(ctx, self.scanner, allow_deletes=allow_deletes)
            if self._installation.back_end == "pgvector":
                _have_vectors_answer(ctx)
            return done

    def run_once(self, tenant_id: str) -> Counter[str]:
        """Run one slice; return its counts, with the number of `pending` documents."""
        with self.locked(tenant_id) as ctx:
            return run_slice(ctx, self.scanner)


def _have_vectors_answer(ctx: TenantContext) -> None:
    """Copy vectors to Postgres, as the end of a workspace's sync does."""
    settings = WorkspaceConfig(vector_backend="pgvector")
    ctx = replace(ctx, tenant=ctx.tenant.model_copy(update={"workspace": settings}))
    table = ctx.catalog.generations
    if serving := table.serving(ctx.ref.id):
        FOLLOW_UP.finish(ctx, serving)
        moved = table.serving(ctx.ref.id)
        assert moved is not None
        assert moved.vectors_beside == "answering"


def drain(
    ctx: TenantContext, scanner: SecretScanner, *, allow_deletes: bool = False
) -> Counter[str]:
    """Run slices until nothing is pending; only the first lists files, as in a sync."""
    done: Counter[str] = Counter()
    for number in range(_MOST_RUNS):
        run = run_slice(ctx, scanner, allow_deletes=allow_deletes, reuse_listings=number > 0)
        pending = run.pop("pending", 0)
        done += run
        if not pending:
            return done
    raise AssertionError(f"{pending} documents make no progress")


def run_slice(
    ctx: TenantContext,
    scanner: SecretScanner,
    *,
    allow_deletes: bool = False,
    reuse_listings: bool = False,
    judge: Judge | None = None,
) -> Counter[str]:
    """Run one slice: list, plan, parse, chunk, embed, publish."""
    done: Counter[str] = Counter()
    stages = stages_of(
        ctx, scanner, allow_deletes=allow_deletes, reuse_listings=reuse_listings, judge=judge
    )
    for counts in stages:
        done.update(counts)
    return done


def stages_of(
    ctx: TenantContext,
    scanner: SecretScanner,
    *,
    allow_deletes: bool = False,
    reuse_listings: bool = False,
    judge: Judge | None = None,
) -> Iterator[dict[str, int]]:
    """Run one slice and yield the counts of each stage."""
    ctx = replace(ctx)
    listed = list_documents(
        ctx, scanner, allow_deletes=allow_deletes, reuse_listings=reuse_listings
    )
    work = plan_work(ctx, str(uuid.uuid4()))
    yield {
        "added": listed.added,
        "changed": listed.changed,
        "removed": listed.removed,
        "held": listed.held,
    }
    parsed = parse_documents(work.context, work)
    yield {"parsed": parsed.parsed, "failed": parsed.failed}
    yield {"chunks": chunk_documents(work.context, work).chunks}
    yield {"embedded": embed_chunks(work.context, work).embedded}
    published = publish_slice(ctx, work, judge)
    run_follow_up(ctx)
    derived = FACTS.finish(ctx)
    yield {
        "upserted": published.upserted,
        "deleted": published.deleted,
        "derived": derived.changed,
        "pending": published.pending + derived.changed,
    }


def sync_before_verification(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, tenant: str
) -> list[str]:
    """Sync a tenant after the next search has queried the index; return the tenants synced."""
    synced: list[str] = []
    confirm = VerifyStep.confirm

    async def sync_and_confirm(
        self: VerifyStep, progress: SearchProgress, rankings: Sequence[Ranking]
    ) -> VerifiedCandidates:
        if not synced:
            synced.append(tenant)
            await run_sync(driver.sync, tenant)
        return await confirm(self, progress, rankings)

    monkeypatch.setattr(VerifyStep, "confirm", sync_and_confirm)
    return synced
