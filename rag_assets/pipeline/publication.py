"""Publication of builds: which build answers, on which conditions, and how others are deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_assets.common.errors import IndexInconsistent
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.judging import Finding, Judge
from rag_assets.storage.catalog.builds.generations import Generation, Pin


def publish(
    ctx: TenantContext,
    generation: Generation,
    *,
    findings: Sequence[Finding] | None = None,
    pin: Pin | None = None,
    notes: Mapping[str, object] | None = None,
) -> None:
    """Make a build serve: one transaction changes the catalog, then the alias is derived from it.

    Args:
        findings: findings of the checks that judged the build.
        pin: a pin that is set in the same transaction.
        notes: further fields of the event.
    """
    ctx.guard()
    checks = None if findings is None else [finding.as_row() for finding in findings]
    ctx.catalog.generations.publish(ctx.ref, generation, checks=checks, pin=pin)
    ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))
    event = {"generation": generation.number, "embedder": generation.embedder_id, **(notes or {})}
    ctx.catalog.events.write(ctx.ref, "generation_published", [event])


def publish_when_complete(
    ctx: TenantContext, generation: Generation, judge: Judge | None = None
) -> bool:
    """Publish a build that is not serving, once no document is pending and all entries exist.

    A pinned build is published without being judged, because it answered before.

    Args:
        ctx: the context of stages that work on the build.
        generation: the wanted build.
        judge: evaluates the checks that decide whether the build is published; None: no checks.

    Returns:
        Whether the build serves now.

    Raises:
        IndexInconsistent: the build holds a wrong number of entries.
    """
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is not None and serving.number == generation.number:
        _repair_alias(ctx, generation)
        return True
    if unfinished_count(ctx, generation):
        return False
    if serving is not None and _try_former_versions(ctx, serving, generation):
        return False
    require_entries(ctx, generation)
    if generation.state in {"BUILDING", "RETIRED"} and not generation.pinned:
        ctx.guard()
        generation = ctx.catalog.generations.mark_complete(ctx.ref, generation)
    if generation.pinned:
        publish(ctx, generation, notes={"pinned": True})
        return True
    if generation.state == "HELD" or ctx.tenant.publish == "manual":
        return False
    return publish_if_passed(ctx, generation, judge)


def _try_former_versions(ctx: TenantContext, serving: Generation, generation: Generation) -> bool:
    """Retry documents whose serving version is missing in a build; return whether there are any."""
    ctx.guard()
    table = ctx.catalog.former_versions
    return table.retry(ctx.ref, serving.number, generation.number) > 0


def publish_if_passed(ctx: TenantContext, generation: Generation, judge: Judge | None) -> bool:
    """Publish a complete build if it passes every check, else hold it with the reason.

    Returns:
        Whether it serves now.
    """
    findings = [] if judge is None else judge(ctx, generation)
    blocking = [finding for finding in findings if finding.blocks]
    ctx.guard()
    if not blocking:
        publish(ctx, generation, findings=findings)
        return True
    reason = "; ".join(f"{finding.check}: {finding.description}" for finding in blocking)
    checks = [finding.as_row() for finding in findings]
    ctx.catalog.generations.hold(ctx.ref, generation, reason, checks)
    event = {"generation": generation.number, "reason": reason}
    ctx.catalog.events.write(ctx.ref, "generation_held", [event])
    ctx.log(f"generation {generation.number} is held: {reason}")
    return False


def unfinished_count(ctx: TenantContext, generation: Generation) -> int:
    """Return the number of documents that a build lacks, including those to be retried later.

    A source that is only partly listed counts as one document.
    """
    left = ctx.catalog.index.unfinished_count(ctx.ref.id, generation.number, ctx.config_key)
    return left + ctx.catalog.syncs.count_partly_listed(ctx.ref.id)


def require_entries(ctx: TenantContext, generation: Generation) -> None:
    """Require that a build holds as many entries as it should.

    Raises:
        IndexInconsistent: the build holds a different number of entries.
    """
    expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
    live = ctx.store.entries.count(generation.index_name, ctx.owner(generation))
    if live != expected:
        raise IndexInconsistent(
            f"generation {generation.number} of tenant {ctx.ref.id!r} holds {live} entries,"
            f" expected {expected}: it is not published",
            hint=f"write the missing entries again: rag-assets sync {ctx.ref.id} --repair",
        )


def drop_generation(ctx: TenantContext, generation: Generation) -> None:
    """Delete a build's entries, then its row; an interrupted removal is continued later.

    An index that holds no other build is deleted as a whole, before the row that names it.
    """
    ctx.guard()
    generation = ctx.catalog.generations.begin_removal(ctx.ref, generation)
    dedicated = generation.index_name in ctx.store.indexes.dedicated(ctx.ref.id)
    ctx.guard()
    if dedicated and ctx.catalog.generations.count_in_index(generation.index_name) == 1:
        ctx.store.indexes.drop(generation.index_name)
    else:
        _delete_entries(ctx, generation)
    if generation.vectors_beside is not None and ctx.store.vectors is not None:
        ctx.store.vectors.drop(ctx.owner(generation))
    ctx.guard()
    ctx.catalog.generations.delete(ctx.ref, generation)


def _delete_entries(ctx: TenantContext, generation: Generation) -> None:
    ids = [
        entry.id
        for entry in ctx.store.entries.scan(generation.index_name, ctx.ref.id)
        if (entry.tenant, entry.incarnation, entry.generation)
        == (ctx.ref.id, ctx.ref.incarnation, generation.number)
    ]
    if ids:
        ctx.guard()
        ctx.store.entries.delete(generation.index_name, ctx.ref.id, ids)


def _repair_alias(ctx: TenantContext, generation: Generation) -> None:
    """Point the alias to the build again, in case a run was killed right after publishing it."""
    if not alias_is_right(ctx, generation):
        ctx.guard()
        ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))


def alias_is_right(ctx: TenantContext, generation: Generation) -> bool:
    """Return whether the tenant's alias shows this build only."""
    return ctx.store.indexes.is_published(generation.index_name, ctx.owner(generation))
