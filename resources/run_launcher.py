"""The run launcher of an installation, which starts Dagster's runs as forks of the fork server.

dagster.yaml names this launcher. If no fork server runs (in a cluster, or on another machine), a
run is launched in Dagster's usual way, in a process of the code server. An event of the run reports
which way was used. If dagster.yaml does not name this class, all runs are launched in the usual
way.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import dagster as dg

from rag_assets.common.settings import Settings
from rag_assets.dagster_compat import (
    CheckRunHealthResult,
    DefaultRunLauncher,
    LaunchRunContext,
    WorkerStatus,
    serialize_run,
)
from rag_assets.forkserver.client import start_fork
from rag_assets.forkserver.protocol import RUN
from rag_assets.resources.tenant_lock import PROCESS_TAG, WORKER_TAG, marks, worker_tags
from rag_assets.runtime.liveness import ProcessIdentity
from rag_assets.runtime.program_processes import revive_fork_server


class ForkingRunLauncher(DefaultRunLauncher):
    """Launches runs as forks, or in Dagster's usual way if that is not possible."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch a run; see the base class."""
        run = context.dagster_run
        if not self._fork(run):
            revive_fork_server(Settings.from_environment())
            self._report_event(
                run, "No fork server answered: the run was launched through the code server."
            )
            super().launch_run(context)

    def _fork(self, run: dg.DagsterRun) -> bool:
        arguments = serialize_run(run, self._instance)
        if arguments is None:
            return False

        def started(pid: int) -> None:
            self._instance.add_run_tags(run.run_id, worker_tags(pid))
            self._report_event(
                run, f"The run was launched in a fork of the fork server (pid: {pid})."
            )

        home = str(Settings.from_environment().home)
        connection = start_fork(home, RUN, [arguments], os.environ, started)
        if connection is None:
            return False
        connection.close()
        return True

    def _report_event(self, run: dg.DagsterRun, message: str) -> None:
        self._instance.report_engine_event(message, run, cls=self.__class__)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; see the base class."""
        run = self._instance.get_run_by_id(run_id)
        tag = _process_tag(run)
        if run is None or run.is_finished or tag is None:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        process = ProcessIdentity.parse(tag)
        if not process.is_alive():
            return False  # In another container, the run may still be alive.
        self._instance.report_run_canceling(run)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
            return True
        return False

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Return True, so that Dagster's run monitor finds forks that died."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return whether the process of a run is alive; for the code server's processes, True."""
        if (tag := _process_tag(run)) is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        process = ProcessIdentity.parse(tag)
        if process.has_ended(marks(Settings.from_environment())):
            gone = f"the run's process {process.pid} on {process.host} no longer exists"
            return CheckRunHealthResult(WorkerStatus.FAILED, gone)
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _process_tag(run: dg.DagsterRun | None) -> str | None:
    """Return the process tag of a run by a fork, a command or the watcher; otherwise None."""
    tags = run.tags if run is not None else {}
    return tags.get(WORKER_TAG) or tags.get(PROCESS_TAG)
