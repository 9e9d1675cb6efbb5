"""The context in which the five assets run their stages."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeAlias

import dagster as dg

from rag_assets.common.errors import LakeDamaged
from rag_assets.declarations import TENANT_TAG
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.repair import heal_lake
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import (
    SKIPPED,
    SkippedTenant,
    Workbench,
    convert_to_failures,
)

_MAX_REPAIRS = 2
"""Maximum repairs of the lake in one step; if a disk damages more files, a person must act."""

_P = ParamSpec("_P")
_Result: TypeAlias = dg.MaterializeResult[None]
_Stage: TypeAlias = Callable[Concatenate[dg.AssetExecutionContext, _P], _Result]


def skip_inactive_tenant(stage: _Stage[_P]) -> _Stage[_P]:
    """Let the decorated asset succeed without work if the run's tenant is disabled or removed.

    Otherwise such a tenant would fail a backfill over all partitions.
    """

    @functools.wraps(stage)
    def run(
        context: dg.AssetExecutionContext, /, *args: _P.args, **arguments: _P.kwargs
    ) -> _Result:
        try:
            return stage(context, *args, **arguments)
        except SkippedTenant as skipped:
            context.log.info(f"skipped: {skipped.description}")
            return dg.MaterializeResult(metadata={SKIPPED: skipped.reason})

    return run


@contextmanager
def tenant_stage(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> Iterator[TenantContext]:
    """Yield the context of the run's tenant; errors become step failures with a hint.

    If files of the lake are damaged, they are repaired, and the step is run again.
    """
    only = context.run.tags.get(TENANT_TAG, context.partition_key)
    if only != context.partition_key:
        raise dg.Failure(
            f"this job is only for tenant {only!r}: choose the partition {only!r} instead of"
            f" {context.partition_key!r}",
            allow_retries=False,
        )
    with convert_to_failures(workbench.installation):
        tenant_lock.guard()  # first: the id may belong to another tenant
        ctx = workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )
        try:
            yield ctx
        except LakeDamaged as error:
            if context.retry_number >= _MAX_REPAIRS:
                raise
            heal_lake(ctx, error)
            raise dg.RetryRequested(max_retries=_MAX_REPAIRS) from None
