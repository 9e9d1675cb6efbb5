"""Everything that Dagster loads, collected from the packages that declare it.

With `build_defs`, tests can replace any resource and the installed systems. Importing this module
only declares definitions; runs and ticks connect to servers when they need them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import dagster as dg

import rag_assets.assets
import rag_assets.jobs
from rag_assets import sensors
from rag_assets.checks.registry import collect_tenant_checks
from rag_assets.checks.tenant_check import BuildJudgeFactory, LoadedCheck, TenantCheck, build_checks
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.installation import Installation
from rag_assets.common.package_contents import collect_values
from rag_assets.declarations import (
    PLAIN,
    Asset,
    AssetJob,
    Declaration,
    Job,
    Naming,
    Report,
    Schedule,
    Sensor,
)
from rag_assets.jobs.sync import refresh_job
from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import (
    ElasticsearchResource,
    EmbedderResource,
    LakeResource,
    PostgresResource,
)
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench

Automation: TypeAlias = Literal["all", "sync", "none"]
Upstream: TypeAlias = Mapping[str | None, Sequence[dg.AssetDep]]
"""Assets outside this project that write a tenant's sources; None stands for all tenants."""
_SYNCING: Final = ("tenants", "source_files", "run_failures")

LoadedAsset: TypeAlias = Asset | Report | dg.AssetsDefinition | dg.AssetSpec


@dataclass(frozen=True)
class Parts:
    """The definitions that Dagster loads: our declarations, and definitions of systems.

    Attributes:
        assets, jobs, sensors, schedules: as in Dagster.
        checks: checks of tenants, which the daily evaluation includes, and other Dagster checks.
    """

    assets: tuple[LoadedAsset, ...] = ()
    checks: tuple[LoadedCheck, ...] = ()
    jobs: tuple[Any, ...] = ()
    sensors: tuple[Sensor | dg.SensorDefinition, ...] = ()
    schedules: tuple[Schedule | dg.ScheduleDefinition, ...] = ()

    def __add__(self, other: Parts) -> Parts:
        """Return the parts of both operands."""
        return Parts(
            self.assets + other.assets,
            self.checks + other.checks,
            self.jobs + other.jobs,
            self.sensors + other.sensors,
            self.schedules + other.schedules,
        )


def core_parts() -> Parts:
    """Return the declarations in the packages `assets`, `checks`, `jobs` and `sensors`."""
    return Parts(
        assets=collect_values(rag_assets.assets, Asset, Report),
        checks=collect_tenant_checks(),
        jobs=collect_values(rag_assets.jobs, Job, AssetJob),
        sensors=collect_values(sensors, Sensor),
        schedules=collect_values(sensors, Schedule),
    )


def all_parts(systems: Systems | None = None) -> Parts:
    """Return the core's parts and the parts of systems.

    Args:
        systems: systems to use instead of the installed systems.

    Raises:
        ConfigurationError: the systems cannot be loaded.
    """
    core = core_parts()
    return core + system_parts(systems or installed_systems(), core)


def system_parts(systems: Systems, core: Parts) -> Parts:
    """Return the parts that systems add to the core's parts.

    Raises:
        ConfigurationError: a part cannot be loaded, its name is already used, or its name differs
            from the name that the system declares.
    """
    return Parts(
        **{
            field.name: _load_parts(systems, field.name, getattr(core, field.name))
            for field in fields(Parts)
        }
    )


def _load_parts(systems: Systems, kind: str, core: Sequence[Any]) -> tuple[Any, ...]:
    taken_names = {name for part in core for name in _names(part)}
    parts_by_id: dict[int, Any] = {}
    for name, part in systems.parts(kind, reserved=taken_names).items():
        loaded = part.load()
        if name not in (names := _names(loaded)):
            raise ConfigurationError(
                f"system {part.owner.name!r} of {part.owner.distribution}: {kind}: the name"
                f" {name!r} differs from the name of the object at {part.reference}",
                hint=f"use the name {' or '.join(names) or 'that Dagster uses'} in the system",
            )
        parts_by_id[id(loaded)] = loaded
    return tuple(parts_by_id.values())


def _names(part: Any) -> tuple[str, ...]:
    """Return the names of a part, as the system that adds it declares them."""
    match part:
        case TenantCheck():
            return (part.full_name,)
        case Declaration():
            return (part.name,)
        case dg.AssetSpec():
            return (part.key.to_user_string(),)
        # This case comes first, because these are also instances of AssetsDefinition.
        case dg.AssetChecksDefinition():
            return tuple(f"{key.asset_key.to_user_string()}.{key.name}" for key in part.check_keys)
        case dg.AssetsDefinition():
            return tuple(key.to_user_string() for key in part.keys)
    return (part.name,) if hasattr(part, "name") else ()


def build_resources(
    parts: Parts | None = None,
    installation: Installation | None = None,
    names: Naming = PLAIN,
    **overrides: Any,
) -> dict[str, Any]:
    """Build the resources of an installation.

    Names of resources start with the name of the naming, because a team's own resources may also be
    called `postgres`.

    Args:
        parts: all loaded parts; by default, the core and the installed systems.
        installation: installation that the resources work for; by default, from the environment.
        names: naming of the resources, and of the definitions by which our own runs are identified.
        overrides: replacements by name: postgres, elasticsearch, lake, embedders, workbench,
            tenant_lock.
    """
    parts = parts or all_parts()
    carried = InstallationResource.from_installation(installation)
    postgres = overrides.get("postgres") or PostgresResource(installation=carried)
    own_runs = OwnRuns(
        postgres=postgres,
        jobs=sorted(_own_name(job, names) for job in parts.jobs),
        assets=sorted(key for asset in parts.assets for key in _asset_keys(asset, names)),
        name=names.name,
        key_prefix=[*names.key_prefix],
        prefix=names.prefix,
    )
    workbench = overrides.get("workbench") or Workbench(
        postgres=postgres,
        own_runs=own_runs,
        elasticsearch=overrides.get("elasticsearch") or ElasticsearchResource(installation=carried),
        lake=overrides.get("lake") or LakeResource(installation=carried),
        embedders=overrides.get("embedders") or EmbedderResource(installation=carried),
    )
    tenant_lock = overrides.get("tenant_lock") or TenantLockResource(
        postgres=postgres, workbench=workbench
    )
    checks = tuple(check for check in parts.checks if isinstance(check, TenantCheck))
    constants = {"checks": checks, "publish_judge": BuildJudgeFactory(checks)}
    resources = {
        "postgres": postgres,
        "workbench": workbench,
        "runs": own_runs,
        "tenant_lock": tenant_lock,
        **{
            name: dg.ResourceDefinition.hardcoded_resource(value)
            for name, value in constants.items()
        },
    }
    return {names.resource(name): resource for name, resource in resources.items()}


def _own_name(part: Any, names: Naming) -> str:
    name: str = part.name
    return names.own(name) if isinstance(part, Declaration) else name


def _asset_keys(asset: LoadedAsset, names: Naming) -> tuple[str, ...]:
    if isinstance(asset, Declaration):
        return (names.asset_key(asset.name).to_user_string(),)
    return _names(asset)


def build_defs(
    overrides: Mapping[str, Any] | None = None,
    *,
    names: Naming = PLAIN,
    loggers: Mapping[str, Any] | None = None,
    systems: Systems | None = None,
    installation: Installation | None = None,
    upstream: Upstream = MappingProxyType({}),
    automation: Automation = "all",
) -> dg.Definitions:
    """Build all definitions of an installation.

    A team's project uses `rag_assets.dagster.build_defs`, which calls this function.

    Args:
        overrides: see build_resources.
        names: naming of the definitions.
        loggers: further destinations of run logs, besides the instance.
        systems: systems to use instead of the installed systems.
        installation: installation that the definitions work for; by default, from the environment.
        upstream: see Upstream.
        automation: which sensors and schedules start runs.

    Raises:
        ConfigurationError: the systems cannot be loaded.
    """
    with warnings.catch_warnings():
        # Beta features of Dagster are used on purpose, so their warnings do not help the user.
        warnings.filterwarnings("ignore", message=".* is currently in (beta|preview)")
        parts = _select_automated(all_parts(systems), automation)
        resources = build_resources(parts, installation, names, **dict(overrides or {}))
        all_deps = {dep.asset_key: dep for deps in upstream.values() for dep in deps}

        def build(part: Any) -> Any:
            match part:
                case Asset() if not part.deps:
                    return part.build(names, [*all_deps.values()])
                case AssetJob():
                    return part.build(names, parts.checks)
                case Declaration():
                    return part.build(names)
            return part

        checks = [check for check in parts.checks if isinstance(check, TenantCheck)]
        foreign_checks = [check for check in parts.checks if not isinstance(check, TenantCheck)]
        return dg.Definitions(
            assets=_with_source_references([build(asset) for asset in parts.assets]),
            asset_checks=[*build_checks(checks, names), *foreign_checks],
            jobs=[
                *(build(job) for job in parts.jobs),
                *(
                    refresh_job(tenant, deps).build(names, parts.checks)
                    for tenant, deps in upstream.items()
                ),
            ],
            sensors=[build(sensor) for sensor in parts.sensors],
            schedules=[build(schedule) for schedule in parts.schedules],
            resources=resources,
            loggers=dict(loggers) if loggers else None,
        )


def _select_automated(parts: Parts, automation: Automation) -> Parts:
    """Return the parts with only the sensors and schedules of a kind of automation."""
    if automation == "all":
        return parts
    names = _SYNCING if automation == "sync" else ()
    sensors = tuple(sensor for sensor in parts.sensors if sensor.name in names)
    return replace(parts, sensors=sensors, schedules=())


def _with_source_references(
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
) -> list[Any]:
    """Return the assets, each with its source code reference if it has code."""
    executed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    specs = [asset for asset in assets if isinstance(asset, dg.AssetSpec)]
    return [*dg.with_source_code_references(executed), *specs]


# The definitions of our own code location. Our jobs name this executor themselves; here it also
# applies to runs that the UI starts with "Materialize". The stages of a run then share open
# connections and tables.
defs = dg.Definitions.merge(build_defs(), dg.Definitions(executor=dg.in_process_executor))
