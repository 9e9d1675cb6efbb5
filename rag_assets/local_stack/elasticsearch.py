"""The embedded Elasticsearch: the server itself, from its published jars, in its own process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rag_assets.errors import ServiceUnavailable
from rag_assets.local_stack.elasticsearch_jars import ELASTICSEARCH_VERSION, install_distribution
from rag_assets.local_stack.net import LOOPBACK, free_port, get_json, port_is_free
from rag_assets.local_stack.processes import (
    BackgroundProcess,
    Progress,
    silent,
    write_atomically,
)
from rag_assets.settings import PROJECT_ROOT

_NODE_MODULE = "rag_assets.local_stack.elasticsearch_node"
_START_SECONDS = 300

# The server needs no secrets, and Java reads options from the environment that we don't want.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH")


class EmbeddedElasticsearch:
    """A one-node Elasticsearch on the loopback interface; its indices survive restarts.

    There is no log-in: whoever can open a loopback port of this machine can read it.

    Args:
        directory: takes the jars, the data and the pid file.
        log_file: takes the server's output; by default inside ``directory``.
        heap: largest Java heap, in Java's notation; the process takes about 300 MB more.
    """

    def __init__(self, directory: Path, *, log_file: Path | None = None, heap: str = "1g") -> None:
        self.directory = directory
        self.heap = heap
        self.process = BackgroundProcess(
            "Elasticsearch",
            pid_file=directory / "elasticsearch.pid",
            log_file=log_file or directory / "elasticsearch.log",
        )

    @property
    def url(self) -> str:
        """Where the running server answers.

        Raises:
            ServiceUnavailable: it is not running.
        """
        record = self.process.find()
        if record is None:
            raise ServiceUnavailable(
                f"Elasticsearch is not running (its data is in {self.directory})",
                hint="start it with `rag-assets up`",
            )
        return f"http://{LOOPBACK}:{record.port}"

    def running(self) -> bool:
        """Whether the server's process is there."""
        return self.process.find() is not None

    def answers(self) -> bool:
        """Whether the server runs and all its indices can be read."""
        record = self.process.find()
        return record is not None and record.port is not None and _is_healthy(record.port)

    def start(self, progress: Progress = silent) -> str:
        """Start the server unless it runs, wait until it answers, and return its URL.

        The first start fetches 44 MB of jars; later ones need no network.

        Raises:
            ServiceUnavailable: the jars can't be had, or the server does not come up.
        """
        with self.process.lock():
            if not self.process.reuse(self.answers, timeout=_START_SECONDS):
                self._start(progress)
        return self.url

    def stop(self) -> bool:
        """Close the node; False when it was not running."""
        return self.process.stop()

    def _start(self, progress: Progress) -> None:
        home = self.directory / f"elasticsearch-{ELASTICSEARCH_VERSION}"
        install_distribution(home, progress=progress)
        progress("Elasticsearch: starting")
        port = self._launch(home, self._choose_port())
        progress(f"Elasticsearch: running on port {port}")

    def _launch(self, home: Path, port: int, *, again: bool = True) -> int:
        command: list[str | Path] = [sys.executable, "-m", _NODE_MODULE]
        command += ["--home", home, "--data", self.directory / "data"]
        command += ["--port", str(port), "--heap", self.heap]
        try:
            self.process.start(
                command,
                env=_environment(),
                healthy=lambda: _is_healthy(port),
                timeout=_START_SECONDS,
                port=port,
            )
        except ServiceUnavailable:
            # Between choosing a port and listening on it lie seconds: somebody may have come first.
            if not again or port_is_free(port):
                raise
            return self._launch(home, self._choose_port(), again=False)
        return port

    def _choose_port(self) -> int:
        """The port of the last time while it is free, so that URLs stay what they were."""
        memory = self.directory / "port.json"
        try:
            last = int(json.loads(memory.read_text())["port"])
        except (OSError, ValueError, KeyError, TypeError):
            last = None
        port = free_port(last)
        if port != last:
            write_atomically(memory, json.dumps({"port": port}))
        return port


def _is_healthy(port: int) -> bool:
    # `GET /` needs a module that the bare server lacks; cluster health does not.
    health = get_json(port, "/_cluster/health?local=true")
    return isinstance(health, dict) and health.get("status") in {"yellow", "green"}


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "PYTHONPATH": str(PROJECT_ROOT), "PYTHONUNBUFFERED": "1"}
