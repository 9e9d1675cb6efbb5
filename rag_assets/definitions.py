"""Everything that Dagster loads, collected from the packages that declare it.

`build_defs` is the entry point for tests: they can replace any resource and load other systems than
the installed ones. Importing this module only declares definitions; servers are looked up when a
run or a tick needs them.
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
from rag_assets.checks.publish_judge import ChecksOfBuilds
from rag_assets.checks.registry import tenant_checks
from rag_assets.checks.tenant_check import LoadedCheck, TenantCheck, build_checks
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
"""Assets outside this project that write a tenant's sources; the key None is for all tenants."""
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
        """Return the parts of both operands together."""
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
        checks=tenant_checks(),
        jobs=collect_values(rag_assets.jobs, Job, AssetJob),
        sensors=collect_values(sensors, Sensor),
        schedules=collect_values(sensors, Schedule),
    )


def all_parts(systems: Systems | None = None) -> Parts:
    """Return the core's parts and the parts of systems.

    Args:
        systems: systems to use instead of the installed ones.

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
    taken = {name for part in core for name in _names(part)}
    found: dict[int, Any] = {}
    for name, part in systems.parts(kind, reserved=taken).items():
        loaded = part.load()
        if name not in (names := _names(loaded)):
            raise ConfigurationError(
                f"system {part.owner.name!r} of {part.owner.distribution}: {kind}: the name"
                f" {name!r}"
                f" differs from the name of the object at {part.reference}",
                hint=f"use the name {' or '.join(names) or 'that Dagster uses'} in the system",
            )
        found[id(loaded)] = loaded
    return tuple(found.values())


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
    """Build the resources of the installation, some of them replaced by `overrides`.

    The names of the resources start with the name of the naming, because a team's own resources may
    also be called `postgres`.

    Args:
        parts: all loaded parts; by default, the core and the installed systems.
        installation: installation that the resources work for; by default, from the environment.
        names: naming of the resources, and of the definitions by which our own runs are identified.
        overrides: replacements by name: postgres, elasticsearch, lake, embedders, and whole
            resources (workbench, tenant_lock) if a test needs its own.
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
    return {names.resource(name): resource for name, resource in found.items()}


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
    """Build all definitions of the project, for a code location that may also contain others.

    A team's project uses `rag_assets.dagster.build_defs`, which uses the project's own names.

    Args:
        overrides: see build_resources.
        names: naming of the definitions.
        loggers: further destinations of run logs, besides the instance.
        systems: systems to use instead of the installed ones.
        installation: installation that the definitions work for; by default, from the environment.
        upstream: see Upstream.
        automation: which sensors and schedules start runs.

    Raises:
        ConfigurationError: the systems cannot be loaded.
    """
    with warnings.catch_warnings():
        # These warnings are about beta features that are used on purpose; the user cannot change
        # that.
        warnings.filterwarnings("ignore", message=".* is currently in (beta|preview)")
        parts = _select_automated(all_parts(systems), automation)
        resources = build_resources(parts, installation, names, **dict(overrides or {}))
        all_deps = {dep.asset_key: dep for deps in upstream.values() for dep in deps}

        def built(part: Any) -> Any:
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
            assets=_with_sources([built(asset) for asset in parts.assets]),
            asset_checks=[*build_checks(checks, names), *foreign_checks],
            jobs=[
                *(built(job) for job in parts.jobs),
                *(
                    refresh_job(tenant, its).build(names, parts.checks)
                    for tenant, its in upstream.items()
                ),
            ],
            sensors=[built(sensor) for sensor in parts.sensors],
            schedules=[built(schedule) for schedule in parts.schedules],
            resources=resources,
            loggers=dict(loggers) if loggers else None,
        )


def _select_automated(parts: Parts, automation: Automation) -> Parts:
    """Keep the sensors and schedules that a kind of automation needs."""
    if automation == "all":
        return parts
    names = _SYNCING if automation == "sync" else ()
    sensors = tuple(sensor for sensor in parts.sensors if sensor.name in names)
    return replace(parts, sensors=sensors, schedules=())


def _with_sources(
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
) -> list[Any]:
    """Return the assets, each with its source code reference if it has code."""
    executed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    specs = [asset for asset in assets if isinstance(asset, dg.AssetSpec)]
    return [*dg.with_source_code_references(executed), *specs]


# The definitions of our own code location. Its jobs name this executor themselves. Set here, it
# also applies to runs that the UI starts with "Materialize". With it, the stages of a run share
# open connections and tables.
defs = dg.Definitions.merge(build_defs(), dg.Definitions(executor=dg.in_process_executor))
