"""Postgres behind PgBouncer: session pooling is used, other modes are refused at the start.

`make pooler` installs PgBouncer; without it these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from rag_assets.common.errors import SessionsNotKept
from rag_assets.runtime.net import find_free_port
from rag_assets.storage.catalog import lock
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.lock import Holder, require_sessions
from tests.installation import FAST, Installation

PROGRAM = "pgbouncer"

pytestmark = pytest.mark.skipif(
    "RAG_ASSETS_TEST_POOLER" not in os.environ and shutil.which(PROGRAM) is None,
    reason="PgBouncer is not installed: `make pooler`",
)


@contextmanager
def pooler(url: str, mode: str, *settings: str) -> Iterator[str]:
    """Run PgBouncer in front of a database; yield the database's URL there."""
    server = urlsplit(url)
    folder = Path(tempfile.mkdtemp(prefix="rag-assets-pooler-"))
    folder.chmod(0o755)
    port = find_free_port()
    database = f"{server.path[1:]} = host={server.hostname} port={server.port}"
    lines = [
        "[databases]",
        f"{database} user={server.username} password={server.password}",
        "[pgbouncer]",
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =",
        f"auth_type = any\npool_mode = {mode}",
        *settings,
    ]
    (folder / "pooler.ini").write_text("\n".join(lines) + "\n")
    # PgBouncer refuses to run as root.
    account = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([PROGRAM, "-q", *account, str(folder / "pooler.ini")])
    try:
        _await(port, process)
        yield f"postgresql://anybody:x@127.0.0.1:{port}{server.path}"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("PgBouncer does not answer")


@pytest.fixture(autouse=True)
def each_verified_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_verified", set())


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("transaction", ()),
        ("transaction", ("default_pool_size = 1",)),
        ("transaction", ("min_pool_size = 5", "server_round_robin = 1")),
        # The same session, but reset.
        ("transaction", ("server_reset_query_always = 1",)),
        ("statement", ()),
    ],
)
def test_a_pooler_that_keeps_no_session_is_refused(
    installation: Installation, mode: str, settings: tuple[str, ...]
) -> None:
    with pooler(installation.environment["RAG_ASSETS_DATABASE_URL"], mode, *settings) as url:
        with pytest.raises(SessionsNotKept, match="pooler in front of Postgres") as refused:
            Catalog.open(url)
        assert refused.value.hint is not None
        assert "pool_mode = session" in refused.value.hint


def test_a_pooler_under_load_that_keeps_no_session_is_refused(installation: Installation) -> None:
    """Other clients acquire and release sessions at the same time."""
    with pooler(installation.environment["RAG_ASSETS_DATABASE_URL"], "transaction") as url:
        # A statement prepared by one client would already exist for another.
        options = {"autocommit": True, "prepare_threshold": None}
        others = [psycopg.connect(url, **options) for _ in range(4)]
        try:
            for _ in range(20):
                for other in others:
                    other.execute("SELECT 1")
                database = Database(url)
                with pytest.raises(SessionsNotKept):
                    require_sessions(database)
                database.close()
        finally:
            for other in others:
                other.close()


def test_a_tenant_is_synced_behind_a_pooler_that_keeps_sessions(
    installation: Installation,
) -> None:
    """The URL of Dagster's storage is that of Postgres itself."""
    with pooler(installation.environment["RAG_ASSETS_DATABASE_URL"], "session") as url:
        folder = installation.add_tenant("acme", **FAST)
        (folder / "a.md").write_text("# A\n\nThe valve is green.\n")
        behind = {"RAG_ASSETS_DATABASE_URL": url}
        refused = installation.command("sync", "acme", **behind)
        assert refused.code == 1
        assert "RAG_ASSETS_DAGSTER_DATABASE_URL" in refused.err
        direct = installation.environment["RAG_ASSETS_DATABASE_URL"]
        behind["RAG_ASSETS_DAGSTER_DATABASE_URL"] = direct
        assert installation.command("sync", "acme", **behind).code == 0
        found = installation.command("search", "acme", "valve", "--json", **behind)
        assert [hit["uri"] for hit in found.json["hits"]] == ["files/a.md"]
        catalog = Catalog.open(url)
        try:
            with catalog.lock.hold("acme", Holder.here("a test")) as held:
                held.check()
                assert catalog.lock.is_held("acme")
            assert not catalog.lock.is_held("acme")
        finally:
            catalog.close()


def test_a_command_names_the_pooler(installation: Installation) -> None:
    with pooler(installation.environment["RAG_ASSETS_DATABASE_URL"], "transaction") as url:
        said = installation.command("sync", "--all", RAG_ASSETS_DATABASE_URL=url)
    assert said.code == 1
    assert "pooler in front of Postgres" in said.err
    assert "RAG_ASSETS_DATABASE_URL" in said.err


def test_a_server_is_verified_once_per_process(installation: Installation) -> None:
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    require_sessions(database)
    database.close()
    away = Database("postgresql://127.0.0.1:1/none")
    lock._verified.add(away.url)
    require_sessions(away)
