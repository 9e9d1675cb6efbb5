"""The run launcher of an installation, which starts Dagster's runs as forks of the fork server.

dagster.yaml names this launcher. Without a fork server (in a cluster, or on another machine), the
code server launches the run, as with Dagster's default launcher. An event of the run reports how it
was launched.
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
from rag_assets.resources.tenant_lock import (
    PROCESS_TAG,
    WORKER_TAG,
    build_worker_tags,
    get_marks_folder,
)
from rag_assets.runtime.liveness import ProcessIdentity
from rag_assets.runtime.program_processes import revive_fork_server


class ForkingRunLauncher(DefaultRunLauncher):
    """Launches runs as forks, or by the code server if no fork server runs."""

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

        def report_start(pid: int) -> None:
            self._instance.add_run_tags(run.run_id, build_worker_tags(pid))
            self._report_event(
                run, f"The run was launched in a fork of the fork server (pid: {pid})."
            )

        home = str(Settings.from_environment().home)
        connection = start_fork(home, RUN, [arguments], os.environ, report_start)
        if connection is None:
            return False
        connection.close()
        return True

    def _report_event(self, run: dg.DagsterRun, message: str) -> None:
        self._instance.report_engine_event(message, run, cls=self.__class__)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; see the base class."""
        run = self._instance.get_run_by_id(run_id)
        tag = _find_process_tag(run)
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
        """Return whether a run's process is alive; processes of the code server count as alive."""
        if (tag := _find_process_tag(run)) is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        process = ProcessIdentity.parse(tag)
        if process.has_ended(get_marks_folder(Settings.from_environment())):
            message = f"the run's process {process.pid} on {process.host} no longer exists"
            return CheckRunHealthResult(WorkerStatus.FAILED, message)
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _find_process_tag(run: dg.DagsterRun | None) -> str | None:
    """Return the process tag of a run; None unless a fork, a command or the watcher executes it."""
    tags = run.tags if run is not None else {}
    return tags.get(WORKER_TAG) or tags.get(PROCESS_TAG)
