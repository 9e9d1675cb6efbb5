"""Everything Dagster loads, collected from the packages that define it.

`build_defs` is the seam for tests: any resource can be replaced, and other systems be loaded than
the installed ones. Nothing happens at import but the declaration of what exists; servers are looked
for when a run or a tick needs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition,
)

import rag_assets.assets
import rag_assets.jobs
from rag_assets import sensors
from rag_assets.checks.publish_judge import ChecksOfBuilds
from rag_assets.checks.registry import tenant_checks
from rag_assets.checks.tenant_check import TenantCheck
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.package_contents import collected
from rag_assets.jobs.checks import build_check_job, check_job
from rag_assets.resources.embedders import EmbedderResource
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import ElasticsearchResource, LakeResource, PostgresResource
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench
from rag_assets.systems.registry import Systems, installed_systems


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


def all_parts(systems: Systems | None = None) -> Parts:
    """Return the core's parts and those of systems.

    Args:
        systems: instead of the installed ones.

    Raises:
        ConfigurationError: the systems cannot be loaded.
    """
    core = core_parts()
    parts = core + system_parts(systems or installed_systems(), core)
    job = build_check_job(key for check in parts.checks for key in _check_keys(check))
    return replace(parts, jobs=tuple(job if one is check_job else one for one in parts.jobs))


def system_parts(systems: Systems, core: Parts) -> Parts:
    """What systems add to the core's parts.

    Raises:
        ConfigurationError: a part cannot be loaded, or has a name that is taken or not its own.
    """
    return Parts(
        **{
            field.name: _loaded(systems, field.name, getattr(core, field.name))
            for field in fields(Parts)
        }
    )


def _loaded(systems: Systems, kind: str, core: Sequence[Any]) -> tuple[Any, ...]:
    taken = {name for part in core for name in _names(part)}
    found: dict[int, Any] = {}
    for name, part in systems.parts(kind, reserved=taken).items():
        loaded = part.load()
        if name not in (names := _names(loaded)):
            raise ConfigurationError(
                f"system {part.owner.name!r} of {part.owner.distribution}: {kind}: what"
                f" {part.reference} defines is not named {name!r}",
                hint=f"name it {' or '.join(names) or 'as Dagster does'} in the system",
            )
        found[id(loaded)] = loaded
    return tuple(found.values())


def _names(part: Any) -> tuple[str, ...]:
    """What one of Dagster's definitions is called in the system that adds it."""
    match part:
        case TenantCheck():
            return (part.full_name,)
        case dg.AssetSpec():
            return (part.key.to_user_string(),)
        # First: these are assets definitions, too.
        case dg.AssetChecksDefinition():
            return tuple(f"{key.asset_key.to_user_string()}.{key.name}" for key in part.check_keys)
        case dg.AssetsDefinition():
            return tuple(key.to_user_string() for key in part.keys)
    return (part.name,) if hasattr(part, "name") else ()


def _check_keys(check: TenantCheck | dg.AssetChecksDefinition) -> tuple[dg.AssetCheckKey, ...]:
    return (check.key,) if isinstance(check, TenantCheck) else tuple(check.check_keys)


def build_resources(parts: Parts | None = None, **overrides: Any) -> dict[str, Any]:
    """Build the resources of the installation, with some replaced.

    Their names begin with `rag_assets_`: a team's own resources may be called `postgres`.

    Args:
        parts: everything that is loaded; all parts of the core and of installed systems by default.
        overrides: by name: postgres, elasticsearch, lake, embedders, and whole resources
            (workbench, tenant_lock) where a test wants one of its own.
    """
    parts = parts or all_parts()
    postgres = overrides.get("postgres") or PostgresResource()
    own_runs = OwnRuns(
        postgres=postgres,
        jobs=sorted(job.name for job in parts.jobs),
        assets=sorted(key for asset in parts.assets for key in _names(asset)),
    )
    workbench = overrides.get("workbench") or Workbench(
        postgres=postgres,
        own_runs=own_runs,
        elasticsearch=overrides.get("elasticsearch") or ElasticsearchResource(),
        lake=overrides.get("lake") or LakeResource(),
        embedders=overrides.get("embedders") or EmbedderResource(),
    )
    tenant_lock = overrides.get("tenant_lock") or TenantLockResource(
        postgres=postgres, workbench=workbench
    )
    checks = tuple(check for check in parts.checks if isinstance(check, TenantCheck))
    constants = {"checks": checks, "publish_judge": ChecksOfBuilds(checks)}
    found = {
        "postgres": postgres,
        "workbench": workbench,
        "runs": own_runs,
        "tenant_lock": tenant_lock,
        **{
            name: dg.ResourceDefinition.hardcoded_resource(value)
            for name, value in constants.items()
        },
    }
    return {f"rag_assets_{name}": resource for name, resource in found.items()}


def build_defs(
    overrides: Mapping[str, Any] | None = None,
    *,
    loggers: Mapping[str, Any] | None = None,
    systems: Systems | None = None,
) -> dg.Definitions:
    """Build all definitions of the project, for a code location that may hold others as well.

    Args:
        overrides: see build_resources.
        loggers: where runs log to, besides the instance.
        systems: instead of the installed ones.

    Raises:
        ConfigurationError: the systems cannot be loaded.
    """
    with warnings.catch_warnings():
        # Beta features that are used on purpose; whoever loads us cannot change them.
        warnings.filterwarnings("ignore", message=".* is currently in (beta|preview)")
        return _definitions(all_parts(systems), overrides, loggers)


def _definitions(
    parts: Parts, overrides: Mapping[str, Any] | None, loggers: Mapping[str, Any] | None
) -> dg.Definitions:
    return dg.Definitions(
        assets=_with_sources(parts.assets),
        asset_checks=[
            check.definition() if isinstance(check, TenantCheck) else check
            for check in parts.checks
        ],
        jobs=list(parts.jobs),
        sensors=list(parts.sensors),
        schedules=list(parts.schedules),
        resources=build_resources(parts, **dict(overrides or {})),
        loggers=dict(loggers) if loggers else None,
    )


def _with_sources(
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
) -> list[Any]:
    """The assets, with the places of those in the code that have one."""
    executed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    specs = [asset for asset in assets if isinstance(asset, dg.AssetSpec)]
    return [*dg.with_source_code_references(executed), *specs]


# Our own code location. Its jobs name this executor themselves; here it is that of runs which the
# UI starts with "Materialize", too: the stages of a run share what they opened.
defs = dg.Definitions.merge(build_defs(), dg.Definitions(executor=dg.in_process_executor))
