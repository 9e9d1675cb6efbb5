"""The local stack: start, stop, status and endpoints of an installation's servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from rag_assets.common.errors import ConfigurationError, OlderProgramRuns, ServiceUnavailable
from rag_assets.common.formatting import format_count
from rag_assets.common.settings import Settings
from rag_assets.dagster_tables import DAGSTER_SCHEMA
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_access import find_external_connection
from rag_assets.runtime.net import accepts_connections, mask_url
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.runtime.private_files import keep_private, list_exposed
from rag_assets.runtime.processes import (
    BackgroundProcess,
    EmbeddedServer,
    Progress,
    ignore_progress,
)
from rag_assets.runtime.program_processes import (
    DagsterProcesses,
    ForkServerProcess,
    ProgramProcess,
    find_tick_fault,
    fingerprint_program,
    is_fork_server_enabled,
)
from rag_assets.runtime.supervisor import RestartFile, Restarts
from rag_assets.storage.catalog.installation.roles import Role
from rag_assets.storage.catalog.installation.run_storage import (
    FormerTables,
    find_former_tables,
    prepare_run_storage,
    replace_run_tables,
)
from rag_assets.storage.index.connection import ElasticsearchConnection

ServiceState: TypeAlias = Literal[
    "running", "stopped", "elsewhere", "external", "unreachable", "unguarded"
]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of Postgres and Elasticsearch; never print them, because of their passwords.

    Attributes:
        owner_url, service_url, dagster_url: URLs of the same database for its other roles.
        connect: returns the connection to Elasticsearch; see `elasticsearch`.
    """

    database_url: str = field(repr=False)
    owner_url: str = field(repr=False)
    service_url: str = field(repr=False)
    dagster_url: str = field(repr=False)
    connect: Callable[[], ElasticsearchConnection] = field(repr=False)

    @property
    def elasticsearch(self) -> ElasticsearchConnection:
        """Return the connection to Elasticsearch."""
        return self.connect()


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The current state of one server.

    Attributes:
        state: such as "running". Less obvious values are "external": set in the settings and
            listening, or part of the team's Dagster instance in DAGSTER_HOME; "unreachable":
            running or set in the settings, but not answering; "unguarded": started by an earlier
            version without a password; "elsewhere": running in this home folder in another
            container or on another machine.
        url: URL of the server without passwords; None if it has no URL.
        last_tick: when a sensor of the running daemon last ticked; None if unknown.
        fault: problem of a running server, with its remedy.
        restarts: how often and when the supervisor restarted an embedded server; None if the
            supervisor has not reported on the server.
    """

    name: str
    state: ServiceState
    url: str | None = None
    pid: int | None = None
    log: Path | None = None
    last_tick: datetime | None = None
    fault: str | None = None
    restarts: Restarts | None = None


class LocalStack:
    """Postgres, Elasticsearch, Dagster's two processes, the fork server, watcher and supervisor.

    A server with a URL in the settings is external, and never started or stopped.
    """

    def __init__(self, settings: Settings) -> None:
        logs = settings.local / "logs"
        self._settings = settings
        self.postgres = EmbeddedPostgres(
            settings.local / "postgres", log_file=logs / "postgres.log"
        )
        self.elasticsearch = EmbeddedElasticsearch(
            settings.local / "elasticsearch",
            log_file=logs / "elasticsearch.log",
            heap=settings.elasticsearch_heap,
        )
        self.dagster = DagsterProcesses(settings)
        self.fork_server = ForkServerProcess(settings)
        self.watcher = ProgramProcess(
            settings,
            "Change watcher",
            "rag_assets.cli.change_watcher",
            pid_file="forkserver/watcher.pid",
            log_name="change-watcher.log",
        )
        self.supervisor = ProgramProcess(
            settings,
            "Supervisor",
            "rag_assets.cli.supervisor",
            pid_file="supervisor/supervisor.pid",
            log_name="supervisor.log",
        )

    def embedded_servers(self) -> list[EmbeddedServer]:
        """Return the embedded Postgres and Elasticsearch, except a server that is external."""
        servers: list[EmbeddedServer] = []
        if self._settings.database_url is None:
            servers.append(self.postgres)
        if self._settings.has_own_elasticsearch:
            servers.append(self.elasticsearch)
        return servers

    def supervise(self, progress: Progress = ignore_progress) -> None:
        """Start the supervisor, which restarts embedded servers that die."""
        if self.embedded_servers():
            self.supervisor.start(progress)

    def start_servers(
        self, *, for_dagster: bool, progress: Progress = ignore_progress
    ) -> Endpoints:
        """Start the servers that commands need, if not running, and wait until all answer.

        Processes with a different code or environment than this command are stopped first, so that
        none of them uses a catalog that this command migrates.

        Args:
            for_dagster: also start the processes that Dagster needs if all servers are external.

        Raises:
            ServiceUnavailable: a server does not start; the others keep running.
            ConfigurationError: the home folder belongs to another user, or the settings of
                Elasticsearch are not valid.
        """
        find_external_connection(self._settings)
        has_processes = for_dagster or not self._all_external()
        if has_processes:
            keep_private(self._settings.local)
        stopped = self._stop_outdated(progress, is_for_dagster=for_dagster)
        if self._settings.has_own_elasticsearch and self.elasticsearch.is_unguarded():
            # Dagster processes of an earlier version would connect without a password.
            progress("Dagster: stopping processes of an earlier version")
            self.dagster.stop()
        pending_starts: list[Callable[[Progress], object]] = [
            server.start for server in self.embedded_servers()
        ]
        if has_processes or self.fork_server.process in stopped:
            pending_starts.append(self.fork_server.start)
        with ThreadPoolExecutor(max_workers=3) as pool:
            started = [pool.submit(start, progress) for start in pending_starts]
        for server in started:
            server.result()
        return self.endpoints()

    def start_dagster(self, progress: Progress = ignore_progress) -> None:
        """Start Dagster's webserver and daemon, and the change watcher.

        Call this only after the servers have started and the catalog has been opened, which
        migrates and checks it.
        """
        if self._settings.dagster_home is None:
            self.prepare_run_storage(progress)
            self.dagster.start(self.endpoints().dagster_url, progress)
        else:
            progress(
                "Dagster: not started, because DAGSTER_HOME is the folder of your own instance"
            )
        if is_fork_server_enabled():  # The watcher syncs in its forks.
            self.watcher.start(progress)

    def prepare_run_storage(self, progress: Progress) -> None:
        """Prepare the schema of our Dagster instance; see run_storage.

        Raises:
            ConfigurationError: the Postgres accounts are not permitted to create the schema.
            OlderProgramRuns: a process of this home folder still uses the tables of an earlier
                version.
        """
        endpoints = self.endpoints()
        former = prepare_run_storage(
            endpoints.dagster_url,
            endpoints.owner_url,
            is_embedded=self._settings.database_url is None,
            before_move=self.require_no_older_process,
        )
        if former is not None:
            choice = (
                "some or all of the runs are of other code, so they cannot be moved"
                if former.is_shared
                else "run `rag-assets installation move-runs --yes` to move them"
            )
            progress(
                f"Dagster's tables in the schema public of the database {former.database} contain"
                f" {format_count(former.runs, 'run')} and stay as they are: our runs are in"
                " the schema"
                f" {DAGSTER_SCHEMA} from now on; {choice}"
            )

    def find_former_runs(self) -> FormerTables | None:
        """Return Dagster's tables in the schema `public`; None if they have no runs or sensors."""
        return find_former_tables(self.endpoints().dagster_url)

    def move_runs(self) -> FormerTables | None:
        """Move Dagster's tables from `public` to our schema, where they replace other tables.

        Returns:
            The moved tables; None without tables.

        Raises:
            ConfigurationError: the Postgres accounts are not permitted to move the tables, or a
                process of this home folder uses them.
        """
        endpoints = self.endpoints()
        processes = (self.dagster.daemon, self.dagster.webserver)
        if running := [process.name for process in processes if process.find() is not None]:
            raise ConfigurationError(
                f"{' and '.join(running)} of this installation use Dagster's tables",
                hint="run `rag-assets down` to stop them",
            )
        return replace_run_tables(endpoints.dagster_url, endpoints.owner_url)

    def _stop_outdated(
        self, progress: Progress, *, is_for_dagster: bool
    ) -> list[BackgroundProcess]:
        """Stop our processes that run with a different code or environment than this process.

        Returns:
            The stopped processes.
        """
        program, stopped = fingerprint_program(self._settings), []
        dagster = (self.watcher.process, self.dagster.daemon, self.dagster.webserver)
        own = (self.supervisor.process, self.fork_server.process)
        for process in (*(dagster if is_for_dagster else ()), *own):
            if process.is_outdated(program):
                progress(f"{process.name}: stopping because its code or environment has changed")
                process.stop()
                stopped.append(process)
        return stopped

    def require_no_older_process(self, _others: Sequence[str] = ()) -> None:
        """Require that all processes of this home folder run the same program as this process.

        Call this before upgrading the catalog. The fork server is ignored, because it compares its
        code with the files before each fork.

        Raises:
            OlderProgramRuns: a process runs a different program.
        """
        program = fingerprint_program(self._settings)
        processes = (self.dagster.daemon, self.dagster.webserver, self.watcher.process)
        older = [process.name for process in processes if process.is_outdated(program)]
        if older:
            raise OlderProgramRuns(
                f"this program would upgrade the catalog's schema, but {' and '.join(older)}"
                " of this installation run an older program, which would stop processing"
                " changes",
                hint="`rag-assets up` replaces them and upgrades the catalog; `rag-assets down`"
                " stops them",
            )

    def down(self) -> None:
        """Stop all servers of the installation; each stops before the servers that it uses."""
        self.supervisor.process.stop()
        RestartFile(self._settings).remove()
        self.watcher.process.stop()
        self.dagster.stop()
        self.fork_server.process.stop()
        with ThreadPoolExecutor(max_workers=2) as pool:
            stops = [pool.submit(self.postgres.stop), pool.submit(self.elasticsearch.stop)]
        for stop in stops:
            stop.result()

    def keep_private(self) -> None:
        """Close the files of the installation to other users, before the installation is opened.

        Raises:
            ConfigurationError: the files belong to another user, or the home folder is not
                writable.
        """
        # If all servers are external, the home folder may be read-only and empty.
        if not self._all_external() or os.access(self._settings.home, os.W_OK):
            keep_private(self._settings.local)

    def list_exposed(self) -> list[Path]:
        """Return the files and folders of the installation that other users can access."""
        exposed = list_exposed(self._settings.local)
        lake = Path(self._settings.lake_url)
        if lake.is_absolute() and not lake.is_relative_to(self._settings.local):
            exposed += list_exposed(lake)[:1]
        return exposed

    def endpoints(self) -> Endpoints:
        """Return the addresses of Postgres and Elasticsearch without connecting to them.

        Raises:
            ServiceUnavailable: Postgres is neither external nor running.
        """
        settings = self._settings
        return Endpoints(
            database_url=self._get_postgres_url("writer"),
            owner_url=settings.owner_database_url or self._get_postgres_url("owner"),
            service_url=settings.service_database_url or self._get_postgres_url("service"),
            dagster_url=settings.dagster_database_url or self._get_postgres_url("dagster"),
            connect=self.elasticsearch_connection,
        )

    def _get_postgres_url(self, role: Role) -> str:
        return self._settings.database_url or self.postgres.get_url(role)

    def elasticsearch_connection(self) -> ElasticsearchConnection:
        """Return the connection to Elasticsearch for all clients.

        Raises:
            ConfigurationError: the settings name a file or a secret that cannot be used.
            ServiceUnavailable: Elasticsearch is neither external nor running.
        """
        external = find_external_connection(self._settings)
        if external is not None:
            return external
        return ElasticsearchConnection.from_url(self.elasticsearch.url)

    def status(self) -> list[ServiceStatus]:
        """Return the current state of every server, within a few seconds."""
        checks: list[Callable[[], ServiceStatus]] = [
            self._get_postgres_status,
            self._get_elasticsearch_status,
            lambda: _get_own_status(
                self.dagster.webserver, self.dagster.webserver_answers, lambda: self.dagster.url
            ),
            self.daemon_status,
            lambda: _get_own_status(self.fork_server.process, self.fork_server.answers),
            lambda: _get_own_status(self.watcher.process),
            lambda: _get_own_status(self.supervisor.process),
        ]
        with ThreadPoolExecutor(max_workers=len(checks)) as pool:
            statuses = [status.result() for status in [pool.submit(check) for check in checks]]
        if self._settings.dagster_home is not None:
            dagster = {self.dagster.webserver.name, self.dagster.daemon.name}
            statuses = [
                replace(s, state="external", log=None)
                if s.name in dagster and s.state == "stopped"
                else s
                for s in statuses
            ]
        restarts = RestartFile(self._settings).read()
        return [replace(s, restarts=restarts.get(s.name)) for s in statuses]

    def daemon_status(self) -> ServiceStatus:
        """Return the current state of Dagster's daemon, and when its sensors last ticked."""
        status = _get_own_status(self.dagster.daemon)
        record = self.dagster.daemon.find()
        if record is None:
            return status
        started = datetime.fromisoformat(record.started_at)
        try:
            url = self._settings.dagster_database_url or self._get_postgres_url("dagster")
        except ServiceUnavailable:
            return status
        last = self.dagster.read_last_tick(url, default=started)
        if last is None:
            return status
        return replace(
            status, last_tick=last, fault=find_tick_fault(last, started, datetime.now(UTC))
        )

    def _all_external(self) -> bool:
        is_external = not self._settings.has_own_elasticsearch
        return self._settings.database_url is not None and is_external

    def _get_postgres_status(self) -> ServiceStatus:
        if (url := self._settings.database_url) is not None:
            state: ServiceState = "external" if accepts_connections(url) else "unreachable"
            return ServiceStatus("Postgres", state, mask_url(url))
        return _get_own_status(
            self.postgres.process,
            lambda: accepts_connections(self.postgres.url),
            lambda: self.postgres.url,
        )

    def _get_elasticsearch_status(self) -> ServiceStatus:
        if not self._settings.has_own_elasticsearch:
            return self._get_external_elasticsearch_status()
        server = self.elasticsearch
        record = server.process.find()
        if record is not None and server.is_unguarded():
            name, log = server.process.name, server.process.log_file
            return ServiceStatus(name, "unguarded", pid=record.pid, log=log)
        return _get_own_status(server.process, server.answers, lambda: server.url)

    def _get_external_elasticsearch_status(self) -> ServiceStatus:
        name = "Elasticsearch"
        try:
            connection = self.elasticsearch_connection()
        except ConfigurationError as error:
            return ServiceStatus(name, "unreachable", fault=error.advice)
        answers = any(map(accepts_connections, connection.nodes))
        return ServiceStatus(name, "external" if answers else "unreachable", connection.shown)


def _get_own_status(
    process: BackgroundProcess,
    answers: Callable[[], bool] = lambda: True,
    url: Callable[[], str | None] = lambda: None,
) -> ServiceStatus:
    record = process.find()
    if record is None:
        is_elsewhere = process.find_elsewhere() is not None
        state: ServiceState = "elsewhere" if is_elsewhere else "stopped"
        return ServiceStatus(process.name, state, log=process.log_file)
    address = url()
    return ServiceStatus(
        process.name,
        "running" if answers() else "unreachable",
        mask_url(address) if address else None,
        record.pid,
        process.log_file,
    )
