"""All uses of Dagster's private API, each with its reason; no other module has any.

A test fails from release `LOOK_AGAIN` on: then compare this module with the public API of that
release, and increase `LOOK_AGAIN`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

# Reading a damaged dagster.yaml raises this error, which is not a DagsterError.
from dagster._check import CheckError

# The job of runs that the UI starts for selected assets.
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME

# Returns the resources among a function's arguments, as Dagster's decorators read them.
from dagster._core.definitions.resource_annotation import get_resource_args

# A filter of `DagsterInstance.all_instigator_state`, which is public.
from dagster._core.definitions.run_request import InstigatorType

# The return type of `define_asset_job`, which is public.
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

# The only base class with which a launcher falls back to the code server. Configuring a launcher in
# dagster.yaml is public, its base class is not.
from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.launcher.default_run_launcher import DefaultRunLauncher

# The states of sensors and schedules that `DagsterInstance.all_instigator_state` returns.
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorTick,
    ScheduleInstigatorData,
    SensorInstigatorData,
)

# The tag that the daemon gives a run of a repository.
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = [
    "IMPLICIT_ASSET_JOB_NAME",
    "REPOSITORY_LABEL_TAG",
    "CheckError",
    "CheckRunHealthResult",
    "DefaultRunLauncher",
    "InstigatorState",
    "InstigatorStatus",
    "InstigatorTick",
    "InstigatorType",
    "LaunchRunContext",
    "ScheduleInstigatorData",
    "SensorInstigatorData",
    "UnresolvedAssetJobDefinition",
    "WorkerStatus",
    "get_resource_args",
]

LOOK_AGAIN: Final = "1.14"
"""The first release of Dagster with which this module was not tested."""

LAZY_MODULES: Final = (
    *("dagster._cli.api", "dagster._core.execution.execute_in_process"),
    *("dagster._core.execution.plan.active", "dagster._core.executor.in_process"),
    *("dagster._core.instance.factory", "dagster._core.instance.runs.run_domain"),
    *("dagster._core.secrets.env_file", "dagster._core.storage.local_compute_log_manager"),
    *("dagster._core.storage.noop_compute_log_manager", "dagster._core.storage.root"),
    *("dagster._core.system_config.composite_descent", "dagster._core.system_config.objects"),
)
"""Modules that Dagster imports only when a run needs them; it has no list of them.

The fork server imports them once, at its start.
"""

_STATEMENT_MILLISECONDS = 600_000
_RECYCLE_SECONDS = 3_600
_MOST_MORE_CONNECTIONS = 8
_NO_COMPUTE_LOGS: Final = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}


def open_instance(home: Path) -> dg.DagsterInstance:
    """Open the instance of a home folder, without capturing the output of steps.

    To capture output, Dagster lets child processes write to this process's descriptors; a child
    that outlives the process would block readers of its output forever. `DagsterInstance.get` opens
    only the instance of DAGSTER_HOME, and accepts no settings.
    """
    from dagster._core.instance.ref import InstanceRef

    reference = InstanceRef.from_dir(str(home), overrides=_NO_COMPUTE_LOGS)
    return dg.DagsterInstance.from_ref(reference)


@contextmanager
def pool_connections(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Keep an instance's connections to its database open, and close them at the end.

    Otherwise Dagster would open a connection for every SQL statement, and repeatedly query the
    columns of its tables, which do not change while a process lives.

    Args:
        instance: an instance that Dagster created; with SQLite, no connections are kept.
    """
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_MILLISECONDS,
        pool_recycle=_RECYCLE_SECONDS,
        max_overflow=_MOST_MORE_CONNECTIONS,
    )
    events: Any = instance.event_log_storage
    runs: Any = instance.run_storage
    schedules: Any = instance.schedule_storage
    events.has_table = cache(events.has_table)
    events.has_asset_key_col = cache(events.has_asset_key_col)
    runs.has_backfill_id_column = cache(runs.has_backfill_id_column)
    runs.has_run_stats_index_cols = cache(runs.has_run_stats_index_cols)
    events.has_dynamic_partition = _remember_presence(events.has_dynamic_partition)
    try:
        yield instance
    finally:
        # Disposing of the instance would leave the connections open.
        for storage in (runs, events, schedules):
            if (engine := getattr(storage, "_engine", None)) is not None:
                engine.dispose()


def _remember_presence(has_partition: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Return a function that caches which partitions exist.

    Without a cache, each step of a run would query its partition several times.
    """
    known: set[tuple[str, str]] = set()

    def has_known_partition(partitions_def_name: str, partition_key: str) -> bool:
        name = (partitions_def_name, partition_key)
        if name not in known and has_partition(*name):
            known.add(name)
        return name in known

    return has_known_partition


def storage_id(instance: dg.DagsterInstance) -> str | None:
    """Return the id of an instance's run storage; None if it is not an SQL database."""
    get_id = getattr(instance.run_storage, "get_run_storage_id", None)
    return None if get_id is None else str(get_id())


def serialize_run(run: dg.DagsterRun, instance: dg.DagsterInstance) -> str | None:
    """Return a run as an argument of `execute_run`; None if it names no code location."""
    from dagster._grpc.types import ExecuteRunArgs
    from dagster._serdes import serialize_value

    if run.job_code_origin is None:
        return None
    arguments = ExecuteRunArgs(
        job_origin=run.job_code_origin, run_id=run.run_id, instance_ref=instance.get_ref()
    )
    return serialize_value(arguments)


def execute_run(arguments: str) -> int:
    """Execute a run as `dagster api execute_run` does, but keep database connections open.

    There is no public function that executes a run which the daemon has launched.

    Args:
        arguments: see `serialize_run`.

    Returns:
        the exit code.
    """
    from dagster._cli.api import _execute_run_command_body
    from dagster._grpc.types import ExecuteRunArgs
    from dagster._serdes import deserialize_value
    from dagster._utils.interrupts import capture_interrupts

    run = deserialize_value(arguments, ExecuteRunArgs)
    if run.instance_ref is None:
        raise ValueError("the launched run has no reference to a Dagster instance")
    with (
        capture_interrupts(),
        dg.DagsterInstance.from_ref(run.instance_ref) as instance,
        pool_connections(instance),
    ):
        return _execute_run_command_body(
            run.run_id,
            instance,
            lambda _event: None,
            set_exit_code_on_failure=run.set_exit_code_on_failure or False,
        )


def log_evaluation(context: dg.OpExecutionContext, evaluation: dg.AssetCheckEvaluation) -> None:
    """Log the evaluation of an asset check, which the type of `log_event` does not allow."""
    event: Any = evaluation
    context.log_event(event)


def delete_evaluations(instance: dg.DagsterInstance, run_ids: Collection[str]) -> None:
    """Delete the evaluations of asset checks in runs, which `delete_run` keeps."""
    from dagster._core.storage.event_log import SqlEventLogStorage
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable

    storage = instance.event_log_storage
    if run_ids and isinstance(storage, SqlEventLogStorage):
        table = AssetCheckExecutionsTable
        with storage.index_connection() as connection:
            connection.execute(table.delete().where(table.c.run_id.in_(list(run_ids))))


def delete_partition_records(
    instance: dg.DagsterInstance,
    partition: str,
    asset_keys: Collection[dg.AssetKey],
    deleted_run_ids: Sequence[str],
    select_runs: Callable[[Sequence[str]], Sequence[str]],
) -> None:
    """Delete the records of one partition of these assets in runs that are kept.

    Such a run also has other partitions. Dagster can only delete all partitions of an asset, or
    whole runs.

    Args:
        deleted_run_ids: deleted runs, which an asset may still name as its last run.
        select_runs: returns which of the runs with such records may be changed, by their ids.
    """
    from dagster._core.storage.event_log import SqlEventLogStorage
    from dagster._core.storage.event_log.schema import (
        AssetCheckExecutionsTable,
        AssetKeyTable,
        SqlEventLogStorageTable,
    )
    from sqlalchemy import and_, or_, select

    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return
    events, checks, assets = SqlEventLogStorageTable, AssetCheckExecutionsTable, AssetKeyTable
    keys = [key.to_string() for key in asset_keys]
    is_event = and_(events.c.asset_key.in_(keys), events.c.partition == partition)
    is_evaluation = and_(
        events.c.dagster_event_type == "ASSET_CHECK_EVALUATION",
        events.c.event.contains(f'"partition": {json.dumps(partition)}', autoescape=True),
        or_(*(events.c.event.contains(_as_field(key), autoescape=True) for key in asset_keys)),
    )
    is_check = and_(checks.c.asset_key.in_(keys), checks.c.partition == partition)
    with storage.index_connection() as connection:
        queries = [
            select(events.c.run_id).where(is_event),
            select(checks.c.run_id).where(is_check),
        ]
        named = {run_id for query in queries for run_id in connection.scalars(query.distinct())}
    shared = select_runs(sorted(named))
    for run_id in shared:
        # With SQLite, each run has its own file of events.
        with storage.run_connection(run_id) as connection:
            is_of_run = events.c.run_id == run_id
            connection.execute(events.delete().where(is_of_run, or_(is_event, is_evaluation)))
    with storage.index_connection() as connection:
        for run_id in shared:
            connection.execute(events.delete().where(is_event, events.c.run_id == run_id))
            connection.execute(checks.delete().where(is_check, checks.c.run_id == run_id))
        connection.execute(
            assets.update()
            .where(assets.c.asset_key.in_(keys), assets.c.last_run_id.in_(deleted_run_ids))
            .values(last_materialization=None, last_run_id=None)
        )
        # This table caches the state of each partition; Dagster rebuilds it.
        connection.execute(
            assets.update().where(assets.c.asset_key.in_(keys)).values(cached_status_data=None)
        )


def _as_field(key: dg.AssetKey) -> str:
    return f'"asset_key": {{"__class__": "AssetKey", "path": {json.dumps([*key.path])}}}'


def run_daemon() -> None:
    """Run Dagster's daemon in this process, with the arguments of `dagster-daemon run`."""
    from dagster._daemon.cli import run_command

    run_command(standalone_mode=False)


@contextmanager
def web_application(
    instance: dg.DagsterInstance, workspace_file: str, **options: Any
) -> Iterator[Starlette]:
    """Build the application of Dagster's UI, to which routes can be added.

    The public command `dagster-webserver` starts its own server and takes no routes.

    Args:
        workspace_file: path of the workspace.yaml.
        options: arguments of `create_app_from_workspace_process_context`.
    """
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import WorkspaceFileTarget
    from dagster._utils.interrupts import setup_interrupt_handlers
    from dagster_webserver.app import create_app_from_workspace_process_context

    setup_interrupt_handlers()
    target = WorkspaceFileTarget(paths=[workspace_file])
    with WorkspaceProcessContext(instance, workspace_load_target=target) as workspace:
        yield create_app_from_workspace_process_context(workspace, **options)
