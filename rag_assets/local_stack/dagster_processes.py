"""Dagster's webserver and daemon as background processes over one home folder."""

from __future__ import annotations

import os
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, urlencode

from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.formatting import duration
from rag_assets.common.settings import Settings
from rag_assets.dagster_tables import LATEST_TICK
from rag_assets.runtime.net import LOOPBACK, get_json, listening_socket
from rag_assets.runtime.processes import BackgroundProcess, Progress, silent
from rag_assets.runtime.program_processes import fingerprint_program
from rag_assets.storage.catalog.installation.run_storage import IN_SCHEMA

_START_SECONDS = 180
_LONGEST_SILENCE = timedelta(minutes=5)
"""Sensors tick every few seconds; launching many runs at once delays them by a minute or two."""
_TICK_TOLERANCE = timedelta(minutes=1)
# The daemon's log line after it has read the instance, before its loops start.
_DAEMON_IS_UP = "Instance is configured with the following daemons"
# Warnings at every start about beta features that the project uses deliberately.
_BETA = (
    "Class `LocalFileCodeReference`",
    "Class `CodeReferencesMetadataValue`",
    "Function `with_source_code_references`",
    "Parameter `owners` of initializer `SensorDefinition.__init__`",
    "Specifying a partitions_def on an AssetCheckSpec",
)


class DagsterProcesses:
    """The UI and the daemon of one installation.

    Both read ``dagster.yaml`` and ``workspace.yaml`` in the folder of our own Dagster instance, and
    get the database as DAGSTER_POSTGRES_URL.

    Args:
        settings: contain the home folder, the first port to try for the UI, and external servers.
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
        """Return the UI's address, or None while it is not running."""
        record = self.webserver.find()
        return None if record is None else f"http://{LOOPBACK}:{record.port}"

    def webserver_answers(self) -> bool:
        """Return whether the UI runs and answers."""
        record = self.webserver.find()
        return record is not None and record.port is not None and _serves(record.port)

    def start(self, database_url: str, progress: Progress = silent) -> str:
        """Start both unless they run, wait until they are up, and return the UI's URL.

        Args:
            database_url: URL of the database with Dagster's storage, in any ``postgresql://`` form.
            progress: called with a line about each step, from two threads.

        Raises:
            ConfigurationError: workspace.yaml is missing in the instance's folder.
            ServiceUnavailable: one of them does not start; the message quotes its log.
        """
        workspace = self._settings.own_dagster_home / "workspace.yaml"
        if not workspace.is_file():
            raise ConfigurationError(
                f"Dagster has nothing to load: {workspace} is missing",
                hint="run `rag-assets up`, which copies the file there; in a checkout, restore the"
                " file",
            )
        # The processes get this process's variables, so that the keys of embedding providers reach
        # the assets.
        environment = {
            **os.environ,
            **self._settings.address_variables(),
            **dagster_environment(self._settings, database_url),
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": ",".join(f"ignore:{beginning}" for beginning in _BETA),
        }
        with ThreadPoolExecutor(max_workers=2) as pool:
            starts = [
                pool.submit(self._start_webserver, environment, progress),
                pool.submit(self._start_daemon, environment, progress),
            ]
        for start in starts:
            start.result()
        if (url := self.url) is None:
            raise ServiceUnavailable("the Dagster webserver ended right after it had started")
        return url

    def last_tick(self, database_url: str, default: datetime) -> datetime | None:
        """Return when a sensor last ticked; None if Dagster's storage cannot be read.

        The time is read directly from the table of ticks, since importing Dagster would take
        seconds.

        Args:
            database_url: URL of the database with Dagster's storage.
            default: returned if no sensor has ever ticked.
        """
        import psycopg

        try:
            with psycopg.connect(plain_url(database_url), connect_timeout=2) as connection:
                row = connection.execute(LATEST_TICK).fetchone()
        except psycopg.Error:
            return None
        return row[0].replace(tzinfo=UTC) if row else default

    def stop(self) -> None:
        """End both, and the code servers that they started."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(BackgroundProcess.stop, (self.daemon, self.webserver)))

    def _start_webserver(self, environment: dict[str, str], progress: Progress) -> None:
        with self.webserver.lock():
            if self.webserver.reuse(self.webserver_answers, timeout=_START_SECONDS):
                return
            progress("Dagster webserver: starting")
            with listening_socket(self._settings.dagster_port) as listener:
                port = self._serve_on(listener, environment)
            progress(f"Dagster webserver: running on port {port}")

    def _serve_on(self, listener: socket.socket, environment: dict[str, str]) -> int:
        descriptor, port = listener.fileno(), int(listener.getsockname()[1])
        self.webserver.start(
            self._command("rag_assets.web", "--host", LOOPBACK, "--descriptor", str(descriptor)),
            env=environment,
            healthy=lambda: _serves(port),
            timeout=_START_SECONDS,
            port=port,
            cwd=self._settings.home,
            descriptors=(descriptor,),
            program=fingerprint_program(self._settings),
        )
        return port

    def _start_daemon(self, environment: dict[str, str], progress: Progress) -> None:
        with self.daemon.lock():
            if self.daemon.find() is not None:
                return
            progress("Dagster daemon: starting")
            self.daemon.start(
                self._command("rag_assets.sensors.daemon"),
                env=environment,
                healthy=lambda: _DAEMON_IS_UP in self.daemon.output(),
                timeout=_START_SECONDS,
                cwd=self._settings.home,
                program=fingerprint_program(self._settings),
            )
            progress("Dagster daemon: running")

    def _command(self, module: str, *arguments: str) -> list[str]:
        workspace = str(self._settings.own_dagster_home / "workspace.yaml")
        return [sys.executable, "-m", module, *arguments, "--workspace", workspace]


def dagster_environment(settings: Settings, database_url: str) -> dict[str, str]:
    """Return the variables of our own Dagster instance; empty if a team's instance is used."""
    if settings.dagster_home is not None:
        return {}
    return {
        "DAGSTER_HOME": str(settings.own_dagster_home),
        "DAGSTER_POSTGRES_URL": dagster_storage_url(database_url),
        "DAGSTER_STORAGE_DIR": str(settings.local / "dagster" / "storage"),
    }


def dagster_storage_url(database_url: str) -> str:
    """Return the URL by which Dagster's storage uses our schema.

    The URL names the driver psycopg2, because Dagster's event notifications fail with psycopg 3.
    """
    address, _, query = plain_url(database_url).partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    options = [value for name, value in given if name == "options"]
    kept = [(name, value) for name, value in given if name != "options"]
    query = urlencode([*kept, ("options", " ".join([*options, IN_SCHEMA]))], quote_via=quote)
    return f"{address.replace('postgresql://', 'postgresql+psycopg2://', 1)}?{query}"


def plain_url(database_url: str) -> str:
    """Return the URL without a driver name."""
    return re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", database_url)


def tick_fault(last: datetime, started: datetime, now: datetime) -> str | None:
    """Return a warning if the sensors of a running daemon do not tick; None if they do.

    Args:
        last: the time of their last tick.
        started: when the daemon was started.
        now: this machine's time.
    """
    age = now - last
    if age < -_TICK_TOLERANCE:
        return (
            f"the daemon's sensors last ticked at {last:%Y-%m-%d %H:%M} UTC, which is in the"
            " future, so no sensor ticks until then; run `rag-assets down`, then `rag-assets"
            " up` to discard these ticks"
        )
    # A daemon that has just started may not have ticked yet. A start time in the future does not
    # count as just started.
    if age > _LONGEST_SILENCE and not timedelta() <= now - started < _LONGEST_SILENCE:
        return (
            f"no sensor has ticked for {duration(age.total_seconds())} although the daemon"
            " runs: changes are not processed; run `rag-assets down`, then `rag-assets up` to"
            " restart the daemon"
        )
    return None


def _serves(port: int) -> bool:
    return get_json(port, "/server_info") is not None
