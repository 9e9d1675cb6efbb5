"""Processes of the program itself: Dagster's webserver and daemon, fork server, change watcher.

A process keeps the code and the environment of its start. `up` compares the fingerprint of both
with its own, and restarts processes that differ.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from rag_assets.common.environment import collect_variables_in_use
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.formatting import duration
from rag_assets.common.hashing import compute_key
from rag_assets.common.settings import PROJECT_ROOT, Settings
from rag_assets.dagster_tables import LATEST_TICK
from rag_assets.forkserver.client import DISABLED
from rag_assets.forkserver.protocol import SOCKET, connect, select_import_environment
from rag_assets.runtime.net import LOOPBACK, get_json, open_listening_socket
from rag_assets.runtime.processes import BackgroundProcess, Progress, ignore_progress
from rag_assets.storage.catalog.installation.run_storage import IN_SCHEMA

_PACKAGE: Final = "rag_assets"
_LOCK: Final = Path("requirements", "lock.txt")
_TERMINAL_PREFIXES: Final = ("LC_", "LANG")
"""Prefixes of variables that may differ between a terminal and a service."""


def fingerprint_program(settings: Settings, root: Path = PROJECT_ROOT) -> str:
    """Return the fingerprint of the code on disk and of this process's environment.

    It covers the settings, the variables that `tenants.yaml` names, such as keys of providers, and
    the variables that libraries read.
    """
    endpoints = settings.private_endpoints
    values = {field.name: str(getattr(settings, field.name)) for field in fields(settings)}
    values["private_endpoints"] = str(
        [
            sorted(map(str, endpoints.hosts)),
            endpoints.networks,
            sorted(endpoints.identity_hosts),
        ]
    )
    # The text of the settings omits secrets, which a process keeps as well.
    values["elasticsearch"] = str(settings.elasticsearch.variables())
    code = [sys.executable, *_iter_file_states(root)]
    environment = {
        name: value
        for name, value in select_import_environment(os.environ).items()
        if not name.startswith(_TERMINAL_PREFIXES)
    }
    environment |= collect_variables_in_use(settings, os.environ)
    return compute_key("program", values, environment, code)


def _iter_file_states(root: Path) -> Iterator[str]:
    """Yield path, modification time and size of each module and of requirements/lock.txt."""
    modules = (
        Path(folder, name)
        for folder, _, names in os.walk(root / _PACKAGE, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    for path in sorted([*modules, root / _LOCK]):
        try:
            status = path.stat()
        except OSError:
            continue
        yield f"{path} {status.st_mtime_ns} {status.st_size}"


_START_SECONDS = 180
_MAX_SILENCE = timedelta(minutes=5)
"""Longest time without a tick; launching many runs at once delays ticks by a minute or two."""
_TICK_TOLERANCE = timedelta(minutes=1)
# Log line of the daemon after it has read the instance.
_DAEMON_IS_UP = "Instance is configured with the following daemons"
# Warnings about beta features that the project uses deliberately.
_BETA_WARNINGS = (
    "Class `LocalFileCodeReference`",
    "Class `CodeReferencesMetadataValue`",
    "Function `with_source_code_references`",
    "Parameter `owners` of initializer `SensorDefinition.__init__`",
    "Specifying a partitions_def on an AssetCheckSpec",
)


class DagsterProcesses:
    """Dagster's webserver and daemon for one installation.

    Both read ``dagster.yaml`` and ``workspace.yaml`` in the folder of our Dagster instance. The
    environment variable DAGSTER_POSTGRES_URL contains the address of their database.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        state, logs = settings.local / "dagster", settings.local / "logs"
        self.webserver = BackgroundProcess(
            "Dagster webserver",
            pid_file=state / "webserver.pid",
            log_file=logs / "dagster-webserver.log",
        )
        self.daemon = BackgroundProcess(
            "Dagster daemon", pid_file=state / "daemon.pid", log_file=logs / "dagster-daemon.log"
        )

    @property
    def url(self) -> str | None:
        """Return the address of Dagster's UI; None if the webserver is not running."""
        record = self.webserver.find()
        return None if record is None else f"http://{LOOPBACK}:{record.port}"

    def webserver_answers(self) -> bool:
        """Return whether the UI runs and answers."""
        record = self.webserver.find()
        return record is not None and record.port is not None and _is_answering(record.port)

    def start(self, database_url: str, progress: Progress = ignore_progress) -> str:
        """Start the webserver and the daemon if they are not running; wait until both answer.

        Args:
            database_url: URL of the database with Dagster's storage, with or without a driver.
            progress: called with a line about each step, from two threads.

        Returns:
            The URL of the UI.

        Raises:
            ConfigurationError: workspace.yaml is missing in the folder of the instance.
        """
        workspace = self._settings.own_dagster_home / "workspace.yaml"
        if not workspace.is_file():
            raise ConfigurationError(
                f"Dagster has nothing to load: {workspace} is missing",
                hint="run `rag-assets up`, which copies the file there; in a checkout, restore the"
                " file",
            )
        # The assets need variables of this process, such as keys of providers.
        environment = {
            **_build_environment(self._settings),
            **build_dagster_environment(self._settings, database_url),
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": ",".join(f"ignore:{beginning}" for beginning in _BETA_WARNINGS),
        }
        with ThreadPoolExecutor(max_workers=2) as pool:
            starts = [
                pool.submit(self._start_webserver, environment, progress),
                pool.submit(self._start_daemon, environment, progress),
            ]
        for start in starts:
            start.result()
        if (url := self.url) is None:
            raise ServiceUnavailable(
                "the Dagster webserver ended right after its start",
                hint=f"see its log: {self.webserver.log_file}",
            )
        return url

    def read_last_tick(self, database_url: str, default: datetime) -> datetime | None:
        """Return when a sensor last ticked; None if Dagster's storage cannot be read.

        This reads the table of ticks, because importing Dagster would take seconds.

        Args:
            default: returned if no sensor has ever ticked.
        """
        import psycopg

        try:
            with psycopg.connect(strip_driver(database_url), connect_timeout=2) as connection:
                row = connection.execute(LATEST_TICK).fetchone()
        except psycopg.Error:
            return None
        return row[0].replace(tzinfo=UTC) if row else default

    def stop(self) -> None:
        """Stop the webserver, the daemon, and the code servers that they started."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(BackgroundProcess.stop, (self.daemon, self.webserver)))

    def _start_webserver(self, environment: dict[str, str], progress: Progress) -> None:
        with self.webserver.lock():
            if self.webserver.reuse(self.webserver_answers, timeout=_START_SECONDS):
                return
            progress("Dagster webserver: starting")
            with open_listening_socket(self._settings.dagster_port) as listener:
                descriptor, port = listener.fileno(), int(listener.getsockname()[1])
                options = ("--host", LOOPBACK, "--descriptor", str(descriptor))
                self.webserver.start(
                    self._build_command("rag_assets.web", *options),
                    env=environment,
                    healthy=lambda: _is_answering(port),
                    timeout=_START_SECONDS,
                    port=port,
                    cwd=self._settings.home,
                    descriptors=(descriptor,),
                    program=fingerprint_program(self._settings),
                )
            progress(f"Dagster webserver: running on port {port}")

    def _start_daemon(self, environment: dict[str, str], progress: Progress) -> None:
        with self.daemon.lock():
            if self.daemon.find() is not None:
                return
            progress("Dagster daemon: starting")
            self.daemon.start(
                self._build_command("rag_assets.sensors.daemon"),
                env=environment,
                healthy=lambda: _DAEMON_IS_UP in self.daemon.read_output(),
                timeout=_START_SECONDS,
                cwd=self._settings.home,
                program=fingerprint_program(self._settings),
            )
            progress("Dagster daemon: running")

    def _build_command(self, module: str, *arguments: str) -> list[str]:
        workspace = str(self._settings.own_dagster_home / "workspace.yaml")
        return [sys.executable, "-m", module, *arguments, "--workspace", workspace]


def build_dagster_environment(settings: Settings, database_url: str) -> dict[str, str]:
    """Return the variables of our own Dagster instance; empty if a team's instance is used."""
    if settings.dagster_home is not None:
        return {}
    return {
        "DAGSTER_HOME": str(settings.own_dagster_home),
        "DAGSTER_POSTGRES_URL": build_storage_url(database_url),
        "DAGSTER_STORAGE_DIR": str(settings.local / "dagster" / "storage"),
    }


def build_storage_url(database_url: str) -> str:
    """Return the URL with which Dagster stores its data in our own schema of the database.

    Its driver is psycopg2, because Dagster's event notifications fail with psycopg 3.
    """
    address, _, query = strip_driver(database_url).partition("?")
    values = parse_qsl(query, keep_blank_values=True)
    options = [value for name, value in values if name == "options"]
    others = [(name, value) for name, value in values if name != "options"]
    query = urlencode([*others, ("options", " ".join([*options, IN_SCHEMA]))], quote_via=quote)
    return f"{address.replace('postgresql://', 'postgresql+psycopg2://', 1)}?{query}"


def strip_driver(database_url: str) -> str:
    """Return a Postgres URL as `postgresql://…`, without the name of a driver."""
    return re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", database_url)


def find_tick_fault(last: datetime, started: datetime, now: datetime) -> str | None:
    """Return a warning if the sensors of a running daemon do not tick; None if they do.

    Args:
        last: when a sensor last ticked.
        started: when the daemon was started.
    """
    age = now - last
    if age < -_TICK_TOLERANCE:
        return (
            f"the daemon's sensors last ticked at {last:%Y-%m-%d %H:%M} UTC, which is in the"
            " future, so no sensor ticks until then; run `rag-assets down`, then `rag-assets"
            " up` to discard these ticks"
        )
    # A daemon that has just started may not have ticked yet.
    if age > _MAX_SILENCE and not timedelta() <= now - started < _MAX_SILENCE:
        return (
            f"no sensor has ticked for {duration(age.total_seconds())} although the daemon"
            " runs: changes are not processed; run `rag-assets down`, then `rag-assets up` to"
            " restart the daemon"
        )
    return None


def _is_answering(port: int) -> bool:
    return get_json(port, "/server_info") is not None


_FORK_SERVER_SECONDS = 120.0


class ProgramProcess:
    """A process that runs a module of the command line from `up` to `down`.

    Args:
        module: the module, which the process runs as its main program.
        pid_file: path of the pid file, relative to the installation's own folder.
    """

    def __init__(
        self, settings: Settings, name: str, module: str, *, pid_file: str, log_name: str
    ) -> None:
        self._settings = settings
        self._module = module
        self.process = BackgroundProcess(
            name, pid_file=settings.local / pid_file, log_file=settings.local / "logs" / log_name
        )

    def start(self, progress: Progress = ignore_progress) -> None:
        """Start the process if it is not running."""
        with self.process.lock():
            if self.process.find() is None:
                progress(f"{self.process.name}: starting")
                self._launch(["-m", self._module], {})

    def _launch(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process.launch(
            [sys.executable, *arguments],
            env=environment or _build_environment(self._settings),
            cwd=self._settings.home,
            program=fingerprint_program(self._settings),
        )


class ForkServerProcess(ProgramProcess):
    """The process of an installation's fork server: starts it, and checks its state."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            settings,
            "Fork server",
            "rag_assets.cli.fork_server",
            pid_file="forkserver/forkserver.pid",
            log_name="fork-server.log",
        )

    def answers(self) -> bool:
        """Return whether the fork server accepts connections."""
        try:
            connect(str(self._settings.home / SOCKET), 2.0).close()
        except (OSError, ValueError):
            return False
        return True

    def start(self, progress: Progress = ignore_progress) -> None:
        """Start the fork server, and wait until it answers.

        Do nothing if it is already running or is disabled.

        Raises:
            ServiceUnavailable: the fork server does not start; the message quotes its log.
        """
        if not is_fork_server_enabled():
            return
        with self.process.lock():
            if self.process.reuse(self.answers, timeout=_FORK_SERVER_SECONDS):
                return
            progress("Fork server: starting")
            self._launch_locked()
            self.process.wait_until(self.answers, timeout=_FORK_SERVER_SECONDS)
            progress("Fork server: running")

    def revive(self) -> None:
        """Start the fork server again if it died, without waiting until it answers."""
        if self._has_died():
            with self.process.lock():
                if self._has_died():
                    self._launch_locked()

    def _has_died(self) -> bool:
        return self.process.pid_file.exists() and self.process.find() is None

    def _launch_locked(self) -> None:
        # These variables are set only for Dagster's processes, one of which may run this.
        added = ("PYTHONUNBUFFERED", "PYTHONWARNINGS", DISABLED)
        environment = _build_environment(self._settings)
        with self.process.hold() as lock_descriptor:
            # The server closes this descriptor in forks; otherwise a fork that outlives the server
            # would keep the lock.
            self._launch(
                ["-W", "ignore", "-m", self._module, str(lock_descriptor)],
                {name: value for name, value in environment.items() if name not in added},
            )


def is_fork_server_enabled() -> bool:
    """Return whether this machine and the environment allow a fork server."""
    return os.environ.get(DISABLED) != "0" and sys.platform == "linux"


def revive_fork_server(settings: Settings) -> None:
    """Restart a fork server that `up` started and that died; do not wait until it answers."""
    ForkServerProcess(settings).revive()


def _build_environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **settings.address_variables()}
