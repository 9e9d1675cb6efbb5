"""Declarations, under plain names, of what Dagster loads: assets, jobs, sensors and schedules.

A module declares a definition under a plain name, such as `sync_tenant`. A code location builds the
definition under its own naming. So a team's project can load it, and even two installations in one
project.

The parameters of a declared function are the context, resources by their plain names (`workbench`,
`postgres`, `runs`, `tenant_lock`, `checks`, `publish_judge`), and `names`, the naming under which
the definition is built.
"""

from __future__ import annotations

import functools
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, get_type_hints

import dagster as dg

from rag_assets.common.errors import ConfigurationError
from rag_assets.dagster_compat import UnresolvedAssetJobDefinition, get_resource_args

NO_RUN_RETRIES: Final = {"dagster/retry_on_asset_or_op_failure": "false"}
RUN_TAGS: Final = {"rag_assets/job": "true", **NO_RUN_RETRIES}
"""Tags of our jobs, which distinguish their runs from runs of a team's job of the same name."""
NAMING_TAG: Final = "rag_assets/naming"
"""Tag with the naming of a run's definitions, if it is not that of our own code location."""
TENANT_TAG: Final = "rag_assets/tenant"
"""Tag with the tenant of a job, if the job is for only one tenant."""
OWNERS: Final = ["team:knowledge"]
STAGES: Final = "knowledge"
"""The group of the pipeline's assets in our own code location."""

_PROJECT_INTERVAL_SECONDS: Final = 30
"""Minimum interval of sensors in a team's project: each tick adds two lines to the daemon's log."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Naming:
    """A scheme of names for an installation's definitions in a code location.

    Attributes:
        name: name of the installation; prefix of resources and of the tenants' partitions.
        key_prefix: prefix of the keys of assets.
        group: group of the pipeline's assets; the names of other groups are appended to it.
        prefix: prefix of jobs, ops, sensors and schedules; empty in our own code location, which
            uses all names and groups unchanged.
    """

    name: str = "rag_assets"
    key_prefix: tuple[str, ...] = ()
    group: str = STAGES
    prefix: str = ""

    @classmethod
    def in_project(
        cls, name: str, key_prefix: Sequence[str] | str | None = None, group: str = STAGES
    ) -> Naming:
        """Return the naming in a team's project, where `name` is the prefix of all names.

        Raises:
            ConfigurationError: Dagster does not accept such names.
        """
        path = (key_prefix,) if isinstance(key_prefix, str) else tuple(key_prefix or ())
        for setting, value in (("name", name), ("group", group)):
            if not _NAME.fullmatch(value):
                raise ConfigurationError(
                    f"{setting} {value!r} is not valid as a prefix of names in Dagster",
                    hint="use only letters, digits and underscores, and start with a letter",
                )
        return cls(name, path, group, prefix=f"{name}_")

    @classmethod
    def from_tag(cls, tag: str) -> Naming:
        """Return the naming that a run's tag contains; the tag does not include the group."""
        name, _, prefix = tag.partition(":")
        return cls.in_project(name, [part for part in prefix.split("/") if part])

    @property
    def run_tags(self) -> dict[str, str]:
        """Return the tags that runs of our jobs have."""
        return {**RUN_TAGS, **self.naming_tag}

    @property
    def naming_tag(self) -> dict[str, str]:
        """Return the tag from which `from_tag` reads this naming; empty for plain names."""
        return {NAMING_TAG: f"{self.name}:{'/'.join(self.key_prefix)}"} if self.prefix else {}

    @property
    def shortest_interval_seconds(self) -> int:
        """Return the minimum number of seconds between evaluations of a sensor under this naming.

        It is 0 in our own code location, and longer in a team's project.
        """
        return _PROJECT_INTERVAL_SECONDS if self.prefix else 0

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """Return the definition of the partitions; each of them is a tenant, never a document."""
        return dg.DynamicPartitionsDefinition(name=self.partitions_name)

    @property
    def partitions_name(self) -> str:
        """Return the name of the partitioning by tenants."""
        return f"{self.name}_tenants"

    def own(self, name: str) -> str:
        """Return the full name of a job, an op, a sensor or a schedule from its plain name."""
        return f"{self.prefix}{name}"

    def resource(self, name: str) -> str:
        """Return the key of a resource from its plain name."""
        return f"{self.name}_{name}"

    def asset_key(self, asset: str) -> dg.AssetKey:
        """Return the key of an asset from its plain name."""
        return dg.AssetKey([*self.key_prefix, asset])

    def step_key(self, asset: str) -> str:
        """Return the key of the step that materializes an asset, which is the name of its op."""
        return self.asset_key(asset).to_python_identifier()

    def asset_group(self, group: str) -> str:
        """Return the group, under this naming, of assets that were declared in a plain group."""
        if not self.prefix:
            return group
        return self.group if group == STAGES else f"{self.group}_{group}"

    def bind(self, function: Function) -> Function:
        """Return a function with the parameters that Dagster expects.

        Resources are passed under their keys instead of their plain names, and `names` is already
        filled in.
        """
        hints = get_type_hints(function, include_extras=True)
        keys = {
            resource_arg.name: self.resource(resource_arg.name)
            for resource_arg in get_resource_args(function)
        }
        injected = {"names": self} if "names" in hints else {}

        @functools.wraps(function)
        def wrapper(*args: Any, **arguments: Any) -> Any:
            resources = {name: arguments.pop(key) for name, key in keys.items()}
            return function(*args, **arguments, **resources, **injected)

        parameters = [
            parameter.replace(
                name=keys.get(name, name), annotation=hints.get(name, parameter.empty)
            )
            for name, parameter in inspect.signature(function).parameters.items()
            if name not in injected
        ]
        # Dagster compares the annotation of a context by identity, so a string does not work. It
        # mistakes the return annotation of a generator for the annotation of an output.
        is_generator = inspect.isgeneratorfunction(function)
        returned = {"return": hints["return"]} if "return" in hints and not is_generator else {}
        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=returned.get("return", inspect.Signature.empty)
        )
        wrapper.__annotations__ = {
            keys.get(name, name): hint
            for name, hint in hints.items()
            if name not in injected and name != "return"
        } | returned
        return wrapper


PLAIN: Final = Naming()
"""The naming in our own code location."""


class Declaration(ABC):
    """A definition that Dagster can load, declared under a plain name."""

    name: str

    @abstractmethod
    def build(self, names: Naming) -> Any:
        """Return Dagster's definition under this naming."""


@dataclass(frozen=True)
class Asset(Declaration):
    """An asset that a run materializes.

    Attributes:
        name: plain name.
        function: materializes a tenant's partition.
        deps: plain names of the assets that it reads.
        kinds, description, metadata: passed to Dagster unchanged.
        group: plain group.
    """

    name: str
    function: Function
    deps: Sequence[str]
    kinds: frozenset[str]
    description: str
    metadata: Mapping[str, Any]
    group: str = STAGES

    def build(self, names: Naming, upstream: Sequence[dg.AssetDep] = ()) -> dg.AssetsDefinition:
        """Return Dagster's definition of the asset.

        Args:
            names: naming for the asset's key, op and resources.
            upstream: assets outside this project that the asset depends on.
        """
        return dg.asset(
            key=names.asset_key(self.name),
            deps=[*map(names.asset_key, self.deps), *upstream],
            partitions_def=names.partitions,
            group_name=names.asset_group(self.group),
            owners=OWNERS,
            kinds=set(self.kinds),
            description=self.description,
            metadata=self.metadata,
        )(names.bind(self.function))


def asset(
    *,
    deps: Sequence[str] = (),
    kinds: set[str],
    description: str,
    metadata: Mapping[str, Any] | None = None,
    group: str = STAGES,
) -> Callable[[Function], Asset]:
    """Declare the decorated function as an asset with the function's name; see Asset."""

    def declare(function: Function) -> Asset:
        return Asset(
            function.__name__,
            function,
            deps,
            frozenset(kinds),
            description,
            metadata or {},
            group,
        )

    return declare


@dataclass(frozen=True)
class Report(Declaration):
    """An asset whose materializations other runs report; it cannot be materialized on its own.

    Attributes:
        name, group: plain name and group.
        dep: plain name of the asset that the report is about.
        kind, description: passed to Dagster unchanged.
    """

    name: str
    dep: str
    group: str
    kind: str
    description: str

    def build(self, names: Naming) -> dg.AssetSpec:
        """Return Dagster's specification of the asset."""
        return dg.AssetSpec(
            names.asset_key(self.name),
            deps=[names.asset_key(self.dep)],
            partitions_def=names.partitions,
            group_name=names.asset_group(self.group),
            owners=OWNERS,
            kinds={self.kind},
            description=self.description,
        )

    def materialization(
        self,
        names: Naming,
        tenant_id: str,
        metadata: Mapping[str, dg.RawMetadataValue],
        description: str | None = None,
    ) -> dg.AssetMaterialization:
        """Return a materialization of the asset for a tenant.

        Args:
            metadata: values that Dagster plots over time, if they are numbers.
        """
        return dg.AssetMaterialization(
            names.asset_key(self.name),
            partition=tenant_id,
            description=description,
            metadata=metadata,
        )


@dataclass(frozen=True)
class Job(Declaration):
    """A job of one op.

    Attributes:
        name: plain name.
        function: function of the op.
        description: text for the job's page.
        per_tenant: whether a run is for one tenant's partition.
        kind: the store that the job mostly works on, shown with the op.
    """

    name: str
    function: Function
    description: str
    per_tenant: bool = False
    kind: str | None = None

    def build(self, names: Naming) -> dg.JobDefinition:
        """Return Dagster's definition of the job."""
        op = dg.op(
            name=names.own(self.function.__name__),
            tags={"kind": self.kind} if self.kind else None,
        )(names.bind(self.function))
        graph = dg.GraphDefinition(names.own(self.name), node_defs=[op])
        return graph.to_job(
            tags=names.run_tags,
            executor_def=dg.in_process_executor,
            partitions_def=names.partitions if self.per_tenant else None,
            description=self.description,
        )

    def run_config(self, names: Naming, **config: Any) -> dict[str, Any]:
        """Return the run configuration in which the job's op has this configuration."""
        return {"ops": {names.own(self.function.__name__): {"config": config}}}


def job(
    name: str, description: str, *, per_tenant: bool = False, kind: str | None = None
) -> Callable[[Function], Job]:
    """Declare the decorated function as the op of a job; see Job."""

    def declare(function: Function) -> Job:
        return Job(name, function, description, per_tenant, kind)

    return declare


@dataclass(frozen=True)
class AssetJob(Declaration):
    """A job that materializes or checks assets of a tenant.

    Attributes:
        name: plain name.
        description: text for the job's page.
        select: function that returns the job's selection, given the loaded checks.
        checks_alone: whether the job selects only checks, so that Dagster cannot infer its
            partitions.
        tags: tags of the job's runs, in addition to the tags of all our jobs.
        is_shared: whether the job also contains assets of a team, so that its runs are not only
            ours.
    """

    name: str
    description: str
    select: Callable[[Naming, Sequence[Any]], dg.AssetSelection]
    checks_alone: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    is_shared: bool = False

    def build(self, names: Naming, checks: Sequence[Any] = ()) -> UnresolvedAssetJobDefinition:
        """Return Dagster's definition of the job.

        Args:
            names: naming of the job and of its selection.
            checks: the loaded checks; see `rag_assets.definitions.Parts`.
        """
        per_tenant: dg.PartitionedConfig[Any] = dg.PartitionedConfig(
            names.partitions, run_config_for_partition_key_fn=lambda _tenant_id: {}
        )
        return dg.define_asset_job(
            names.own(self.name),
            selection=self.select(names, checks),
            config=per_tenant if self.checks_alone else None,
            tags={**(names.naming_tag if self.is_shared else names.run_tags), **self.tags},
            executor_def=dg.in_process_executor,
            description=self.description,
        )


@dataclass(frozen=True)
class Sensor(Declaration):
    """A sensor, which runs unless it is stopped.

    Attributes:
        name: plain name.
        function: function that does one evaluation.
        description: text for the sensor's page.
        seconds: minimum time between evaluations; longer in a team's project if its minimum is
            longer.
        job: plain name of the job whose runs the sensor requests.
        failures_of: plain name of a job; the sensor is evaluated when a run of this job fails. None
            evaluates it periodically.
    """

    name: str
    function: Function
    description: str
    seconds: int
    job: str | None = None
    failures_of: str | None = None

    def build(self, names: Naming) -> dg.SensorDefinition:
        """Return Dagster's definition of the sensor."""
        function = names.bind(self.function)
        options: dict[str, Any] = {
            "name": names.own(self.name),
            "minimum_interval_seconds": max(self.seconds, names.shortest_interval_seconds),
            "default_status": dg.DefaultSensorStatus.RUNNING,
            "description": self.description,
        }
        if self.failures_of is not None:
            # Dagster compares only the names of jobs.
            monitored = dg.define_asset_job(names.own(self.failures_of))
            return dg.run_failure_sensor(**options, monitored_jobs=[monitored])(function)
        return dg.sensor(**options, job_name=names.own(self.job) if self.job else None)(function)


def sensor(
    name: str,
    description: str,
    *,
    seconds: int,
    job: str | None = None,
    failures_of: str | None = None,
) -> Callable[[Function], Sensor]:
    """Declare the decorated function as a sensor; see Sensor."""

    def declare(function: Function) -> Sensor:
        return Sensor(name, function, description, seconds, job, failures_of)

    return declare


@dataclass(frozen=True)
class Schedule(Declaration):
    """A schedule, which runs unless it is stopped.

    Attributes:
        name: plain name.
        job: plain name of the job that the schedule starts.
        cron: times of the starts as a cron expression, in UTC.
        description: text for the schedule's page.
        config: configuration of the job's op.
    """

    name: str
    job: Job
    cron: str
    description: str
    config: Mapping[str, Any] = field(default_factory=dict)

    def build(self, names: Naming) -> dg.ScheduleDefinition:
        """Return Dagster's definition of the schedule."""
        return dg.ScheduleDefinition(
            name=names.own(self.name),
            job_name=names.own(self.job.name),
            cron_schedule=self.cron,
            execution_timezone="UTC",
            run_config=self.job.run_config(names, **self.config) if self.config else None,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=self.description,
        )
