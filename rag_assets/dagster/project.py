"""`build_defs`, which builds all definitions of an installation for a team's Dagster project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import dagster as dg

import rag_assets.definitions
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.installation import Installation
from rag_assets.declarations import STAGES, Naming
from rag_assets.definitions import Automation, Upstream
from rag_assets.jobs.sync import refresh_job
from rag_assets.plugins.registry import Systems, installed_systems

UpstreamAsset: TypeAlias = (
    str | Sequence[str] | dg.AssetKey | dg.AssetSpec | dg.AssetDep | dg.AssetsDefinition
)


def build_defs(
    *,
    name: str = "rag_assets",
    key_prefix: str | Sequence[str] | None = None,
    group: str = STAGES,
    upstream: Sequence[UpstreamAsset] | Mapping[str, Sequence[UpstreamAsset]] = (),
    automation: Automation = "all",
    installation: Installation | None = None,
    resources: Mapping[str, Any] | None = None,
    systems: Sequence[str] | None = None,
) -> dg.Definitions:
    """Build the definitions of an installation, to be merged with a team's own.

    The definitions contain no executor: each job names an executor itself, and assets materialized
    from the UI use the executor of the team's project. No connection is opened before a run or a
    tick needs it.

    Args:
        name: prefix of jobs, sensors, schedules, resources and the tenants' partitions; runs of
            jobs have it in the tag `rag_assets/naming`.
        key_prefix: prefix of the keys of assets.
        group: group of the pipeline's assets, and prefix of the groups of reports.
        upstream: assets that write the data that the sources read. They become dependencies of
            `raw_documents`, and the job `NAME_refresh` materializes them and then the pipeline. A
            mapping lists them by tenant, each with a job `NAME_refresh_TENANT`. An asset must be
            unpartitioned or have the tenants' partitions, `NAME_tenants`, because the pipeline
            cannot share a run with other partitions.
        automation: "all" sensors and schedules; "sync" for only the sensors that keep indexes
            equal to their sources (`tenants`, `source_files`, `run_failures`); or "none".
        installation: home folder and addresses of the installation; by default, from the
            environment.
        resources: replacements of the project's resources, by plain name: postgres, elasticsearch,
            lake, embedders, workbench, tenant_lock.
        systems: names of the installed systems with definitions to load; all by default.

    Raises:
        ConfigurationError: an argument is not valid, or a system cannot be loaded.

    Example:
        >>> build_defs(name="kb", key_prefix="kb", upstream={"eu": ["wiki_eu"], "us": ["wiki_us"]})
    """
    if automation not in get_args(Automation):
        raise ConfigurationError(
            f"unknown automation {automation!r}", hint='use "all", "sync" or "none"'
        )
    return rag_assets.definitions.build_defs(
        resources,
        names=Naming.in_project(name, key_prefix, group),
        systems=None if systems is None else _select_systems(systems),
        installation=installation,
        upstream=_map_upstream(upstream),
        automation=automation,
    )


def _select_systems(names: Sequence[str]) -> Systems:
    installed = installed_systems()
    if unknown := sorted(set(names) - set(installed.names)):
        raise ConfigurationError(
            f"systems are not installed: {', '.join(unknown)}",
            hint=f"install them, or use only installed systems: {', '.join(installed.names)}",
        )
    return Systems(found for found in installed if found.name in names)


def _map_upstream(
    upstream: Sequence[UpstreamAsset] | Mapping[str, Sequence[UpstreamAsset]],
) -> Upstream:
    """Return the upstream assets by tenant; the key None stands for all tenants."""
    if isinstance(upstream, Mapping):
        _require_distinct_job_names(upstream)
        return {tenant: tuple(_list_dependencies(assets)) for tenant, assets in upstream.items()}
    return {None: tuple(_list_dependencies(upstream))} if upstream else {}


def _require_distinct_job_names(tenants: Iterable[str]) -> None:
    """Require that no two tenants would get a job with the same name."""
    known: dict[str, str] = {}
    for tenant in tenants:
        first = known.setdefault(refresh_job(tenant, ()).name, tenant)
        if first != tenant:
            raise ConfigurationError(
                f"upstream: the jobs of tenants {first!r} and {tenant!r} would have the same name",
                hint="rename one of the tenants, or load it in a second build_defs with a"
                " different name",
            )


def _list_dependencies(assets: Sequence[UpstreamAsset]) -> Iterator[dg.AssetDep]:
    if isinstance(assets, str):
        raise ConfigurationError(
            f"upstream is the string {assets!r} instead of a list", hint=f"write [{assets!r}]"
        )
    for asset in assets:
        match asset:
            case dg.AssetDep():
                yield asset
            case str():
                yield dg.AssetDep(dg.AssetKey.from_user_string(asset))
            case dg.AssetsDefinition():
                yield from (dg.AssetDep(key) for key in asset.keys)
            case dg.AssetSpec():
                yield dg.AssetDep(asset.key)
            case dg.AssetKey():
                yield dg.AssetDep(asset)
            case _:
                yield dg.AssetDep(dg.AssetKey(asset))
