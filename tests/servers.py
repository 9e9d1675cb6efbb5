"""Real servers for tests: servers that the environment names, or embedded servers.

    with postgres_server() as url: ...

If TEST_DATABASE_URL or TEST_ELASTICSEARCH_URL is set, that server is used and stays running. An
embedded server stops when the test process ends, even if that is killed. The workers of a session
share one server of each kind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.postgres import SETTINGS, EmbeddedPostgres

_GUARD = """
import shutil, sys
from pathlib import Path
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.postgres import EmbeddedPostgres
sys.stdin.read()
directory = Path(sys.argv[1])
EmbeddedPostgres(directory).stop()
EmbeddedElasticsearch(directory).stop()
shutil.rmtree(directory, ignore_errors=True)
"""


SHARED_POSTGRES = "RAG_ASSETS_TEST_POSTGRES"
SHARED_ELASTICSEARCH = "RAG_ASSETS_TEST_ELASTICSEARCH"
"""Environment variables: the folder of the server of a session with several processes."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of a Postgres server."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        yield given
        return
    with _session_directory(SHARED_POSTGRES) as directory:
        postgres = EmbeddedPostgres(directory)
        with pytest.MonkeyPatch.context() as patched:
            # The sessions that the tests of three workers open stay open until their module ends.
            patched.setitem(SETTINGS, "max_connections", "600")
            postgres.start()
        url = postgres.superuser_url
        _trust_the_machine(url)
        yield url


def _trust_the_machine(url: str) -> None:
    """Disable the durability of Postgres: its data need not survive a crash of the machine."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def elasticsearch_server(*, heap: str = "2g") -> Iterator[str]:
    """Yield the URL of an Elasticsearch server."""
    given = os.environ.get("TEST_ELASTICSEARCH_URL")
    if given:
        yield given
        return
    with _session_directory(SHARED_ELASTICSEARCH) as directory:
        yield EmbeddedElasticsearch(directory, heap=heap).start()


@contextmanager
def _session_directory(variable: str) -> Iterator[Path]:
    """Yield the folder of the session's shared server, or a temporary folder if there is none."""
    shared = os.environ.get(variable)
    if shared:
        yield Path(shared)
        return
    with server_directory() as directory:
        yield directory


@contextmanager
def server_directory() -> Iterator[Path]:
    """Yield a folder for an embedded server, which is stopped and removed even if we are killed.

    pytest's temporary folders cannot be used: they are closed to other accounts, and as root the
    server runs under another account.
    """
    directory = Path(tempfile.mkdtemp(prefix="rag-assets-test-"))
    guard = subprocess.Popen(
        [sys.executable, "-c", _GUARD, str(directory)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield directory
    finally:
        guard.communicate()  # closes its input, as our death would
        shutil.rmtree(directory, ignore_errors=True)
