"""publish_generation: publishes the build of a tenant's configuration after checking it."""

import dagster as dg
from pydantic import Field

from rag_assets.assets.reports import build_generations_report
from rag_assets.declarations import Naming, job
from rag_assets.pipeline.generation_moves import BuildOrder, publish_build
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import PublishJudge, Workbench, convert_to_failures


class PublicationConfig(dg.Config):
    """The build to publish, and who requested it."""

    generation: int | None = Field(
        default=None, description="Number of the build; by default, the build of the configuration."
    )
    force: bool = Field(
        default=False, description="Publish the build without evaluating its checks."
    )
    by: str = Field(default="a run", description="Name of the person who publishes the build.")
    reason: str = Field(default="", description="Reason for the publication.")


@job(
    "publish_generation",
    "Publishes the complete build of a tenant's configuration if it passes its checks.",
    per_tenant=True,
)
def publish_configured_build(
    context: dg.OpExecutionContext,
    config: PublicationConfig,
    *,
    names: Naming,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
    publish_judge: dg.ResourceParam[PublishJudge],
) -> None:
    """Publish the build of the tenant's configuration if it passes its checks or if forced."""
    judge = publish_judge(workbench, context.run.run_id, context.log)
    with convert_to_failures(workbench.installation):
        tenant_lock.guard()
        ctx = workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )
        order = BuildOrder.create(ctx, config.by, config.reason)
        build = publish_build(ctx, order, judge, number=config.generation, force=config.force)
        report = build_generations_report(names, ctx)
    if report is not None:
        context.log_event(report)
    if build.state == "HELD":
        raise dg.Failure(
            f"generation {build.number} is held: {build.reason}\n"
            f"`rag-assets generations show {context.partition_key} {build.number}` shows its"
            f" checks; `rag-assets generations publish {context.partition_key} --force --reason"
            " ...` publishes it nevertheless",
            allow_retries=False,
        )
    context.log.info(f"generation {build.number} answers searches now")
