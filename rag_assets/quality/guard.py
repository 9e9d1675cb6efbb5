"""The guard of a publish: whether a build answers judged questions as well as the serving build."""

from __future__ import annotations

from rag_assets.common.errors import BuildNotAskable
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import Manner
from rag_assets.quality.evaluation import compare
from rag_assets.quality.verdict import QualityVerdict, judge
from rag_assets.storage.catalog.builds.generations import Generation


def judge_build(ctx: TenantContext, new: Generation, serving: Generation) -> QualityVerdict:
    """Judge a build against the serving build, with the tenant's search mode.

    The new build need not be published. Hits are not reranked, because a reranker is not part of a
    build.

    Args:
        ctx: the tenant's TenantContext, for reading.
        new: the build to be judged.
        serving: the baseline.

    Raises:
        BuildNotAskable: the new build cannot be searched until a person acts.
        RequestsStopped: questions could not be embedded: a cap is reached, or the provider is
            unavailable.
        ServiceUnavailable: a server does not answer.
    """
    least = ctx.tenant.quality.least
    if not ctx.catalog.judgements.counts(ctx.ref.id).get(False):
        return QualityVerdict("pass", no_questions(ctx.ref.id), 0, least)
    try:
        comparison = compare(ctx, new, serving, Manner(ctx.tenant.retrieval.mode))
    except BuildNotAskable as error:
        if error.generation != serving.number:
            raise
        note = f"there is nothing to compare with: {error.advice}"
        return QualityVerdict("warn", note, 0, least)
    return judge(comparison, ctx.tenant.quality)


def no_questions(tenant_id: str) -> str:
    """Return the message for a tenant without judged questions."""
    return (
        "the tenant has no judged questions, so no build is held back for its answers;"
        f" add some with `rag-assets judgements import {tenant_id} PATH`"
    )
