"""Executes a run that the daemon has launched, in a fork that has imported everything."""

from __future__ import annotations


def execute_run(arguments: str) -> None:
    """Execute a run as `dagster api execute_run` does.

    Args:
        arguments: Dagster's ExecuteRunArgs, serialized.
    """
    from dagster._cli.api import execute_run_command

    if execute_run_command.callback is not None:
        execute_run_command.callback(arguments, None)
