"""Killed servers of an installation start again automatically; after `down` they stay down."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.settings import Settings
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.processes import BackgroundProcess
from rag_assets.runtime.stack import LocalStack
from rag_assets.runtime.supervisor import RestartFile
from tests.servers import server_directory

_PATIENCE = 120
_EXTERNAL = ("RAG_ASSETS_DATABASE_URL", "RAG_ASSETS_ELASTICSEARCH_URL", "RAG_ASSETS_HOME")


class Home:
    """An installation with its own servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Settings(home=folder)
        self.stack = LocalStack(self.settings)
        self._environment = {k: v for k, v in os.environ.items() if k not in _EXTERNAL}
        self._environment |= {
            "RAG_ASSETS_HOME": str(folder),
            "RAG_ASSETS_ELASTICSEARCH_HEAP": "512m",
            "RAG_ASSETS_DAGSTER_PORT": str(find_free_port()),
        }

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "rag_assets.cli", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json"))
        return found

    def finds(self, text: str) -> bool:
        return text in self.run("search", "acme", text, "--mode", "text")


@pytest.fixture
def home() -> Iterator[Home]:
    with server_directory() as folder:
        home = Home(folder / "home")
        (home.folder / "files").mkdir(parents=True)
        (home.folder / "files" / "a.md").write_text("# A\n\nThe lantern is lit.\n")
        (home.folder / "tenants.yaml").write_text(
            "tenants: [{id: acme, embedder: {provider: deterministic},"
            " sources: [{name: files, type: files, root: files}]}]\n"
        )
        try:
            yield home
        finally:
            home.run("down")


def kill(process: BackgroundProcess) -> int:
    record = process.find()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    assert wait_until(lambda: process.find() is None, 10)
    return record.pid


def test_killed_servers_start_again_and_stopped_ones_do_not(home: Home) -> None:
    home.run("up")
    home.run("sync", "acme")
    copy = Home(home.folder.with_name("copy"))
    servers = (home.stack.postgres, home.stack.elasticsearch)
    for number, server in enumerate(servers):
        copied = copy.stack.embedded_servers()[number].process
        copied.pid_file.parent.mkdir(parents=True)
        shutil.copy(server.process.pid_file, copied.pid_file)
        pid = kill(server.process)
        # The record in a copied home folder names a dead server of the original.
        assert copied.find() is None
        assert not copied.has_died()
        assert wait_until(lambda server=server: server.process.find() is not None, _PATIENCE)
        record = server.process.find()
        assert record is not None
        assert record.pid != pid
        name = server.process.name
        reported = RestartFile(home.settings)
        assert wait_until(lambda n=name, r=reported: r.read()[n].count == 1, _PATIENCE)
        # Daemon and watcher are running again: an edit is indexed without a command.
        text = f"Beacon {number} burns."
        (home.folder / "files" / "a.md").write_text(f"# A\n\n{text}\n")
        assert wait_until(lambda t=text: home.finds(t), _PATIENCE), name
    warnings = " ".join(home.status()["warnings"])
    assert "Postgres died and was started again once since `up`" in warnings
    assert "Elasticsearch died and was started again once since `up`" in warnings

    home.run("down")
    assert not any(server.process.has_died() for server in home.stack.embedded_servers())
    assert {service["state"] for service in home.status()["services"]} == {"stopped"}
    time.sleep(3)
    assert {service["state"] for service in home.status()["services"]} == {"stopped"}
    assert RestartFile(home.settings).read() == {}
