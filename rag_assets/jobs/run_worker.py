"""Execution of a run that the daemon has launched, in a fork with everything already imported."""

from __future__ import annotations

import sys


def execute_run(arguments: str) -> None:
    """Execute a run as `dagster api execute_run` does, but keep database connections open.

    Args:
        arguments: Dagster's ExecuteRunArgs, serialized.
    """
    from dagster import DagsterInstance
    from dagster._cli.api import _execute_run_command_body
    from dagster._grpc.types import ExecuteRunArgs
    from dagster._serdes import deserialize_value
    from dagster._utils.interrupts import capture_interrupts

    from rag_assets.common.settings import Settings
    from rag_assets.jobs.pooled_instance import pooled
    from rag_assets.local_stack.liveness import mark_process
    from rag_assets.resources.tenant_lock import marks

    mark_process(marks(Settings.from_environment()))
    run = deserialize_value(arguments, ExecuteRunArgs)
    if run.instance_ref is None:
        raise ValueError("the launched run names no instance")
    with (
        capture_interrupts(),
        DagsterInstance.from_ref(run.instance_ref) as instance,
        pooled(instance),
    ):
        code = _execute_run_command_body(
            run.run_id,
            instance,
            lambda _event: None,
            set_exit_code_on_failure=run.set_exit_code_on_failure or False,
        )
    if code:
        sys.exit(code)
