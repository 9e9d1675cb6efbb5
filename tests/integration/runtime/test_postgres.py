"""The embedded Postgres, started, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import psycopg2  # type: ignore[import-untyped]
import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.storage.catalog.installation.roles import ROLES, is_superuser
from tests.servers import server_directory


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with server_directory() as folder:
        # The path of a Unix socket is limited to 107 bytes, but that of a home folder is not.
        directory = folder / ("long-name-" * 12) / ("of a home with blanks " * 4)
        server = EmbeddedPostgres(directory)
        yield server
        server.stop()


@pytest.fixture
def url(server: EmbeddedPostgres) -> str:
    return server.start()


def pid_of(server: EmbeddedPostgres) -> int:
    record = server.process.find()
    assert record is not None
    return record.pid


def password_in(url: str) -> str:
    return urlsplit(url).password or ""


def kill(server: EmbeddedPostgres) -> None:
    os.kill(pid_of(server), signal.SIGKILL)


def one(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def test_both_drivers_connect_and_the_settings_hold(url: str) -> None:
    assert one(url, "SELECT current_database()") == "rag_assets"
    assert one(url, "SHOW server_version").startswith("18")  # type: ignore[attr-defined]
    assert one(url, "SHOW max_connections") == "200"
    assert one(url, "SHOW fsync") == "on"
    assert one(url, "SHOW listen_addresses") == "127.0.0.1"
    assert one(url, "SHOW server_encoding") == "UTF8"
    connection = psycopg2.connect(url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT upper('ärger') || 1")
        assert cursor.fetchone() == ("ÄRGER1",)
    connection.close()


@pytest.mark.usefixtures("url")
def test_the_server_and_its_children_write_to_the_log_alone(server: EmbeddedPostgres) -> None:
    leader = psutil.Process(pid_of(server))
    outputs = set()
    for process in (leader, *leader.children()):
        with suppress(FileNotFoundError):  # some of its workers may end at any moment
            folder = Path(f"/proc/{process.pid}/fd")
            outputs |= {str((folder / str(number)).readlink()) for number in (1, 2)}
    assert outputs == {str(server.process.log_file.resolve())}


def test_a_connection_without_the_password_is_refused(url: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace(password_in(url), "guess"))


def test_starting_again_uses_the_running_one(server: EmbeddedPostgres, url: str) -> None:
    before = pid_of(server)
    messages: list[str] = []
    assert EmbeddedPostgres(server.directory).start(messages.append) == url
    assert pid_of(server) == before
    assert messages == []


def test_data_and_url_survive_a_stop_with_clients_connected(
    server: EmbeddedPostgres, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE rag_dagster.kept (n int)")
        connection.execute("INSERT INTO rag_dagster.kept VALUES (1)")
        assert server.stop() is True
    assert server.is_running() is False
    with pytest.raises(ServiceUnavailable, match="Postgres is not running"):
        _ = server.url
    assert server.start() == url
    assert one(url, "SELECT n FROM rag_dagster.kept") == 1


def test_a_killed_server_starts_again_without_loss(server: EmbeddedPostgres, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE rag_dagster.committed AS SELECT generate_series(1, 1000) AS n"
        )
        kill(server)
        assert server.start() == url
    assert one(url, "SELECT count(*) FROM rag_dagster.committed") == 1000


def test_a_pid_file_of_another_process_does_not_stop_it(server: EmbeddedPostgres, url: str) -> None:
    server.stop()
    stale = server.directory / "data" / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{server.directory / 'data'}\n1\n5432\n\n\n0 0\nready\n")
    assert server.start() == url


def test_a_taken_port_is_left_to_its_owner(server: EmbeddedPostgres, url: str) -> None:
    server.stop()
    taken = int(url.rpartition(":")[2].partition("/")[0])
    with socket.create_server(("127.0.0.1", taken)):
        other = server.start()
        assert other != url
        assert one(other, "SELECT 1") == 1
    assert server.start() == other


def test_two_commands_at_once_start_one_server(server: EmbeddedPostgres) -> None:
    server.stop()
    code = (
        "import sys; from pathlib import Path;"
        "from rag_assets.runtime.postgres import EmbeddedPostgres as E;"
        "e = E(Path(sys.argv[1])); e.start(); print(e.process.find().pid)"
    )
    command = [sys.executable, "-c", code, str(server.directory)]
    commands = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    pids = {int(command.communicate()[0]) for command in commands}
    assert pids == {pid_of(server)}


def test_a_document_in_a_failing_statement_is_not_logged(
    server: EmbeddedPostgres, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE rag_dagster.texts (t text PRIMARY KEY CHECK (t <> 'the text'))"
        )
        for query in (
            "INSERT INTO rag_dagster.texts VALUES ('the text')",
            "SELECT 'the text'::int + nope",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(query)
    log = server.process.log_file.read_text()
    assert "ready to accept connections" in log
    assert "the text" not in log
    assert password_in(url) not in log


def test_a_server_that_cannot_start_reports_the_reason(server: EmbeddedPostgres, url: str) -> None:
    server.stop()
    version = server.directory / "data" / "PG_VERSION"
    good = version.read_text()
    version.write_text("12\n")
    try:
        with pytest.raises(ServiceUnavailable, match="Postgres ended while starting") as caught:
            server.start()
    finally:
        version.write_text(good)
    assert "version 12" in caught.value.message
    assert server.is_running() is False
    assert server.start() == url


def test_a_half_made_data_folder_is_made_again_and_only_the_path_to_it_is_opened() -> None:
    with server_directory() as directory:
        home: Path = directory / "private"
        (home / "postgres" / "data.new" / "base").mkdir(parents=True)
        home.chmod(0o700)
        server = EmbeddedPostgres(home / "postgres")
        assert one(server.start(), "SELECT 1") == 1
        assert (home / "postgres" / "server.json").stat().st_mode & 0o077 == 0
        status = Path(f"/proc/{pid_of(server)}/status").read_text()
        assert "\nUid:\t0" not in status, "Postgres refuses to run as root"
        as_root = os.geteuid() == 0
        assert home.stat().st_mode & 0o777 == (0o710 if as_root else 0o700)
        server.stop()


@pytest.mark.usefixtures("url")
def test_each_role_has_an_address_of_its_own_and_none_is_a_superuser(
    server: EmbeddedPostgres,
) -> None:
    for role in ROLES:
        assert one(server.get_url(role), "SELECT current_user") == f"rag_assets_{role}"
        assert not is_superuser(server.get_url(role))
    assert server.url == server.get_url("writer")
    assert is_superuser(server.superuser_url)


def test_what_an_earlier_version_has_made_gets_roles(server: EmbeddedPostgres, url: str) -> None:
    with psycopg.connect(server.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS rag_catalog")
        connection.execute("CREATE TABLE rag_catalog.earlier (id serial, name text)")
        connection.execute("CREATE SEQUENCE rag_catalog.alone")
        for table in ("runs", "run_tags", "event_logs", "instigators", "secondary_indexes"):
            connection.execute(f"CREATE TABLE public.{table} (id serial)".encode())
        connection.execute("CREATE SCHEMA rag_vectors_example")
        connection.execute("CREATE TABLE rag_vectors_example.rag_chunks (a int)")
    file = server.directory / "server.json"
    recorded = json.loads(file.read_text())
    del recorded["roles"]
    file.write_text(json.dumps(recorded))
    assert server.start() != url, "the passwords are new"
    with psycopg.connect(server.superuser_url) as connection:
        owners = dict(
            connection.execute(
                "SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relname IN"
                " ('earlier', 'earlier_id_seq', 'alone', 'event_logs', 'rag_chunks')"
            ).fetchall()
        )
    assert owners == {
        "earlier": "rag_assets_owner",
        "earlier_id_seq": "rag_assets_owner",
        "alone": "rag_assets_owner",
        "event_logs": "rag_assets_dagster",
        "rag_chunks": "rag_assets_writer",
    }
    with psycopg.connect(server.get_url("service"), autocommit=True) as connection:
        connection.execute("INSERT INTO rag_catalog.earlier (name) VALUES ('by a request')")
        connection.execute("SELECT * FROM rag_vectors_example.rag_chunks")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM rag_dagster.event_logs")
