"""Everything Dagster loads, collected from the packages that define it.

`build_defs` is the seam for tests and for systems: any resource can be replaced, any definition
added. Nothing happens at import but the declaration of what exists; servers are looked for when a
run or a tick needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition,
)

import rag_assets.assets
import rag_assets.jobs
import sensors
from checks.registry import tenant_checks
from checks.tenant_check import TenantCheck
from rag_assets.common.package_contents import collected
from resources.embedders import EmbedderResource
from resources.stores import ElasticsearchResource, LakeResource, PostgresResource
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench


@dataclass(frozen=True)
class Parts:
    """What Dagster loads beside resources.

    Attributes:
        assets, jobs, sensors, schedules: Dagster's definitions.
        checks: of tenants, which are in the daily evaluation too; and others of Dagster's kind.
    """

    assets: tuple[dg.AssetsDefinition | dg.AssetSpec, ...] = ()
    checks: tuple[TenantCheck | dg.AssetChecksDefinition, ...] = ()
    jobs: tuple[Any, ...] = ()
    sensors: tuple[dg.SensorDefinition, ...] = ()
    schedules: tuple[dg.ScheduleDefinition, ...] = ()

    def __add__(self, other: Parts) -> Parts:
        """Both together."""
        return Parts(
            self.assets + other.assets,
            self.checks + other.checks,
            self.jobs + other.jobs,
            self.sensors + other.sensors,
            self.schedules + other.schedules,
        )


def core_parts() -> Parts:
    """What the packages of assets, checks, jobs and sensors define."""
    return Parts(
        assets=collected(rag_assets.assets, dg.AssetsDefinition, dg.AssetSpec),
        checks=tenant_checks(),
        jobs=collected(rag_assets.jobs, dg.JobDefinition, UnresolvedAssetJobDefinition),
        sensors=collected(sensors, dg.SensorDefinition),
        schedules=collected(sensors, dg.ScheduleDefinition),
    )


def build_resources(**overrides: Any) -> dict[str, Any]:
    """The resources of the installation, with some replaced.

    Args:
        overrides: by name: postgres, elasticsearch, lake, embedders, and whole resources
            (workbench, tenant_lock) where a test wants one of its own.
    """
    postgres = overrides.get("postgres") or PostgresResource()
    workbench = Workbench(
        postgres=postgres,
        elasticsearch=overrides.get("elasticsearch") or ElasticsearchResource(),
        lake=overrides.get("lake") or LakeResource(),
        embedders=overrides.get("embedders") or EmbedderResource(),
    )
    return {
        "postgres": postgres,
        "workbench": overrides.get("workbench") or workbench,
        "tenant_lock": overrides.get("tenant_lock")
        or TenantLockResource(postgres=postgres, workbench=overrides.get("workbench") or workbench),
    }


def build_defs(
    overrides: Mapping[str, Any] | None = None,
    *,
    loggers: Mapping[str, Any] | None = None,
    added: Parts | None = None,
) -> dg.Definitions:
    """All definitions of the project.

    Args:
        overrides: see build_resources.
        loggers: where runs log to, besides the instance.
        added: what systems add to the core's parts.
    """
    parts = core_parts() + (added or Parts())
    evaluated = tuple(check for check in parts.checks if isinstance(check, TenantCheck))
    resources = build_resources(**dict(overrides or {}))
    resources["checks"] = dg.ResourceDefinition.hardcoded_resource(evaluated)
    return dg.Definitions(
        assets=_with_sources(parts.assets),
        asset_checks=[
            check.definition() if isinstance(check, TenantCheck) else check
            for check in parts.checks
        ],
        jobs=list(parts.jobs),
        sensors=list(parts.sensors),
        schedules=list(parts.schedules),
        resources=resources,
        # One process per run: the stages share what they opened, and the tenant's lock.
        executor=dg.in_process_executor,
        loggers=dict(loggers) if loggers else None,
    )


def _with_sources(
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
) -> list[Any]:
    """The assets, with the places of those in the code that have one."""
    executed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    specs = [asset for asset in assets if isinstance(asset, dg.AssetSpec)]
    return [*dg.with_source_code_references(executed), *specs]


defs = build_defs()
