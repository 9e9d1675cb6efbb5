"""The embedded Elasticsearch: the server itself, from its published jars, in its own process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Literal

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.extras import LOCAL, require_extra
from rag_assets.common.settings import PROJECT_ROOT
from rag_assets.runtime.elasticsearch_install import (
    ELASTICSEARCH_VERSION,
    OWNER,
    Access,
    install_distribution,
    install_guard,
    write_accounts,
)
from rag_assets.runtime.net import find_free_port, get_json, is_port_free, send_get
from rag_assets.runtime.processes import (
    BackgroundProcess,
    EmbeddedServer,
    Progress,
    ignore_progress,
)

_NODE_MODULE = "rag_assets.runtime.elasticsearch_node"
_START_SECONDS = 300
_STOP_SECONDS = 30
_FAILED_SECONDS = 5.0
_ACTIVITY_FIELDS = ("initializing_shards", "number_of_in_flight_fetch", "number_of_pending_tasks")
"""Fields of cluster health that are nonzero while a server recovers indexes."""
# `GET /` needs a module that the bare server lacks; cluster health does not.
_HEALTH = "/_cluster/health?local=true"

# The server needs no secrets, and Java would read options from the environment.
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH")


class EmbeddedElasticsearch(EmbeddedServer):
    """A one-node Elasticsearch on the loopback interface, which requires a password.

    Its indexes survive restarts.

    Args:
        directory: holds the jars, the data, the passwords and the pid file.
        heap: maximum size of the Java heap, in Java's notation; the process takes about 300 MB
            more.
    """

    def __init__(self, directory: Path, *, log_file: Path | None = None, heap: str = "1g") -> None:
        self.directory = directory
        self.heap = heap
        self.process = BackgroundProcess(
            "Elasticsearch",
            pid_file=directory / "elasticsearch.pid",
            log_file=log_file or directory / "elasticsearch.log",
        )
        self._access_file = directory / "server.json"

    @property
    def url(self) -> str:
        """Return the URL of the running server, with the owner's name and password.

        Raises:
            ServiceUnavailable: the server is not running, or has no password.
        """
        return self.get_url(OWNER)

    def get_url(self, account: str) -> str:
        """Return the URL with the name and password of an account; see `url`."""
        access = self._find_access()
        if not self.is_running():
            raise ServiceUnavailable(
                f"Elasticsearch is not running (its data is in {self.directory})",
                hint="start it with `rag-assets up`",
            )
        if access is None:
            raise ServiceUnavailable(
                "Elasticsearch runs without a password: an earlier version started it",
                hint="run `rag-assets up` to restart it with a password; no data is lost",
            )
        return access.get_url(account)

    def answers(self) -> bool:
        """Return whether the server runs and has finished recovering its indexes."""
        access = self._find_access()
        return access is not None and self.is_running() and _read_recovery(access) != "under way"

    def is_unguarded(self) -> bool:
        """Return whether the running server accepts requests without a password.

        Servers that an earlier version started accept such requests.
        """
        record = self.process.find()
        if record is None:
            return False
        return (
            self._find_access() is None or send_get(record.port or 0, _HEALTH)[0] == HTTPStatus.OK
        )

    def start(self, progress: Progress = ignore_progress) -> str:
        """Start the server if it is not running, wait until it answers, and return its URL.

        A server that an earlier version started without a password is restarted. The first start
        downloads 44 MB of jars; later starts need no network.

        Raises:
            ConfigurationError: a required package is not installed.
            ServiceUnavailable: the jars are not available, or the server does not start.
        """
        require_extra(
            "local",
            LOCAL[1:],
            "the embedded Elasticsearch",
            "set RAG_ASSETS_ELASTICSEARCH_URL to a server of your own",
        )
        with self.process.lock():
            if not self._reuse_server(progress):
                self._start(progress)
        return self.url

    def _reuse_server(self, progress: Progress) -> bool:
        """Wait until a running server is ready; return whether it can be used.

        A server without a password is stopped instead.
        """
        access = self._find_access()
        is_ready = self.answers if access is None else _build_readiness_probe(access)
        runs = self.is_unguarded() or self.process.reuse(is_ready, timeout=_START_SECONDS)
        if runs and self.is_unguarded():
            progress("Elasticsearch: stopping a server without a password")
            self.process.stop_locked(timeout=_STOP_SECONDS)
            return False
        return runs

    def _start(self, progress: Progress) -> None:
        # The lock comes first, because a running server may use the passwords and the port.
        with self.process.hold():
            home = self.directory / f"elasticsearch-{ELASTICSEARCH_VERSION}"
            install_distribution(home, progress=progress)
            install_guard(home, progress=progress)
            progress("Elasticsearch: starting")
            port = self._launch(home)
        progress(f"Elasticsearch: running on port {port}")

    def _launch(self, home: Path, *, may_retry: bool = True) -> int:
        access = self._prepare_access()
        write_accounts(home, access)
        command: list[str | Path] = [sys.executable, "-m", _NODE_MODULE]
        command += ["--home", home, "--data", self.directory / "data"]
        command += ["--port", str(access.port), "--heap", self.heap]
        variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        try:
            self.process.start(
                command,
                env={**variables, "PYTHONPATH": str(PROJECT_ROOT), "PYTHONUNBUFFERED": "1"},
                healthy=_build_readiness_probe(access),
                timeout=_START_SECONDS,
                port=access.port,
            )
        except ServiceUnavailable:
            # Another process may have taken the port before the server bound it.
            if not may_retry or is_port_free(access.port):
                raise
            return self._launch(home, may_retry=False)
        return access.port

    def _prepare_access(self) -> Access:
        """Return and save the port and the passwords for the next start.

        The first start creates them. Later, only the port changes, if another program uses it.
        """
        previous = self._find_access()
        port = find_free_port(previous.port if previous else None)
        access = replace(previous, port=port) if previous else Access.new(port)
        if access != previous:
            access.save(self._access_file)
        return access

    def _find_access(self) -> Access | None:
        return Access.load(self._access_file)


def _build_readiness_probe(access: Access) -> Callable[[], bool]:
    """Return a function that returns whether the server has finished recovering its indexes.

    An index with damaged files must not make all others unavailable, so a failed recovery counts as
    finished if it lasts. Between two phases of its start, a server may briefly report a failed
    recovery.
    """
    failed_since: float | None = None

    def is_ready() -> bool:
        nonlocal failed_since
        recovery = _read_recovery(access)
        if recovery != "failed":
            failed_since = None
            return recovery == "complete"
        failed_since = failed_since or time.monotonic()
        return time.monotonic() - failed_since >= _FAILED_SECONDS

    return is_ready


def _read_recovery(access: Access) -> Literal["under way", "complete", "failed"]:
    """Return the state of index recovery; "failed" if indexes stay red without any activity."""
    health = get_json(access.port, _HEALTH, authorization=access.get_authorization_header())
    if not isinstance(health, dict):
        return "under way"
    if health.get("status") in {"yellow", "green"}:
        return "complete"
    return "under way" if any(health.get(name) for name in _ACTIVITY_FIELDS) else "failed"
