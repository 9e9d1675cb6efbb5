"""Servers for a benchmark, and separate installations on them."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

import psycopg
from elasticsearch import Elasticsearch

from benchmarks.measure import CLI, PROJECT
from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.runtime.program_processes import ForkServerProcess

_START_SECONDS = 120
_START_FORK_SERVER = """
from rag_assets.common.settings import Settings
from rag_assets.runtime.program_processes import ForkServerProcess
ForkServerProcess(Settings.from_environment()).start()
"""


@dataclass(frozen=True, slots=True)
class Servers:
    """Postgres and Elasticsearch for one benchmark alone.

    Attributes:
        pids: ids of the two processes, by name.
    """

    postgres_url: str
    elasticsearch_url: str
    pids: dict[str, int]

    def create_database(self, name: str) -> str:
        """Create an empty database; return its URL."""
        with psycopg.connect(self.postgres_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.get_database_url(name)

    def get_database_url(self, name: str) -> str:
        """Return the URL of a database."""
        return urlunsplit(urlsplit(self.postgres_url)._replace(path=f"/{name}"))

    def build_environment(self, home: Path, database_url: str) -> dict[str, str]:
        """Return the variables of an installation with this home folder and database."""
        return {
            "RAG_ASSETS_HOME": str(home),
            "RAG_ASSETS_DATABASE_URL": database_url,
            "RAG_ASSETS_ELASTICSEARCH_URL": self.elasticsearch_url,
        }

    def use_home(self, home: Path, database: str, **others: str) -> None:
        """Let this process and its commands work in an installation with an empty database."""
        os.environ |= self.build_environment(home, self.create_database(database)) | others

    def drop_indexes(self, pattern: str) -> None:
        """Delete indexes without the project's knowledge."""
        with Elasticsearch(self.elasticsearch_url, request_timeout=60) as client:
            names = list(client.indices.get(index=pattern, expand_wildcards="all"))
            for name in names:
                client.indices.delete(index=name)

    def count_entries(self, pattern: str) -> int:
        """Count the entries of all indexes that match."""
        with Elasticsearch(self.elasticsearch_url, request_timeout=60) as client:
            client.indices.refresh(index=pattern)
            return int(client.count(index=pattern)["count"])


def make_home(home: Path, tenants: Sequence[Mapping[str, Any]] = (), **others: Any) -> None:
    """Make an empty home folder whose tenants.yaml has these tenants and other keys."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    write_tenants_file(home, tenants, **others)


def write_tenants_file(home: Path, tenants: Sequence[Mapping[str, Any]], **others: Any) -> None:
    """Write tenants.yaml."""
    (home / "tenants.yaml").write_text(json.dumps({"tenants": tenants, **others}))  # JSON is YAML


@contextmanager
def run_service(log: Path, *options: str, **variables: str) -> Iterator[tuple[int, int]]:
    """Run `rag-assets serve` for the installation of the environment until the block ends.

    Args:
        log: file for the service's output.
        options: options of the command.
        variables: environment variables, added to this process's own.

    Yields:
        its port and its pid.
    """
    port = find_free_port()
    command = [*CLI, "serve", "--port", str(port), *options]
    with (
        log.open("a") as lines,
        run_until_ready(
            command, f"http://127.0.0.1:{port}/health/ready", lines, **variables
        ) as pid,
    ):
        yield port, pid


@contextmanager
def run_until_ready(
    command: Sequence[str], url: str, log: IO[str] | int, **variables: str
) -> Iterator[int]:
    """Run a server until the block ends; yield its pid once the URL answers."""
    with subprocess.Popen(
        command, cwd=PROJECT, env={**os.environ, **variables}, stdout=log, stderr=log
    ) as process:
        try:
            _wait_until_ready(url, process)
            yield process.pid
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(url):  # noqa: S310 - of this machine
                return
        except (URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"no server started at {url}")


def start_fork_server(environment: Mapping[str, str]) -> int:
    """Start an installation's fork server, as `rag-assets up` does; return its pid.

    It ends with `rag-assets down`, or with this process.
    """
    settings = Settings.from_environment(environment)
    subprocess.run(
        [sys.executable, "-c", _START_FORK_SERVER], env=environment, cwd=PROJECT, check=True
    )
    atexit.register(stop_fork_server, environment)
    record = ForkServerProcess(settings).process.find()
    if record is None:
        sys.exit("the fork server did not start")
    return record.pid


def stop_fork_server(environment: Mapping[str, str]) -> None:
    """Stop an installation's fork server if it runs."""
    subprocess.run(
        [*CLI, "down"],
        env=environment,
        cwd=PROJECT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def benchmark_servers(work: Path, *, fresh: bool = True) -> Iterator[Servers]:
    """Start both servers, and stop them when the block ends; downloaded jars are kept.

    Args:
        work: folder of the servers.
        fresh: whether to delete existing data first.
    """
    home = work / "elasticsearch"
    if fresh:
        shutil.rmtree(home / "data", ignore_errors=True)
        shutil.rmtree(work / "postgres", ignore_errors=True)
    postgres, elasticsearch = EmbeddedPostgres(work / "postgres"), EmbeddedElasticsearch(home)
    if elasticsearch.is_running():
        sys.exit(f"another benchmark runs in {work}: set another folder with --work")
    try:
        postgres.start()
        urls = postgres.superuser_url, elasticsearch.start()
        records = {
            "postgres": postgres.process.find(),
            "elasticsearch": elasticsearch.process.find(),
        }
        yield Servers(*urls, {name: record.pid for name, record in records.items() if record})
    finally:
        elasticsearch.stop()
        postgres.stop()
