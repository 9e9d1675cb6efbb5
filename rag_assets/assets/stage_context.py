"""The context in which the five assets run their stages."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from rag_assets.pipeline.context import TenantContext
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench, clear_failures

GROUP = "knowledge"
OWNERS = ["team:knowledge"]


@contextmanager
def tenant_stage(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> Iterator[TenantContext]:
    """The context of the run's tenant; errors become step failures with a hint."""
    with clear_failures():
        tenant_lock.guard()  # First: the id may belong to another tenant by now.
        yield workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )
