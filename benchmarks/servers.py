"""Servers for a benchmark, and separate installations on them."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from elasticsearch import Elasticsearch

from benchmarks.measure import PROJECT
from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.runtime.program_processes import ForkServerProcess

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
        [sys.executable, "-m", "rag_assets.cli", "down"],
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
