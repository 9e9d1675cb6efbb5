"""Embedded servers that are copied, moved, or run in containers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.liveness import read_birth
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.runtime.stack import LocalStack, ServiceStatus
from tests.namespaces import needs_namespaces, start_in_namespace
from tests.servers import server_directory

START = """
import sys
from pathlib import Path
from rag_assets.common.errors import RagAssetsError
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.postgres import EmbeddedPostgres
kind, directory = sys.argv[1:]
kinds = {"postgres": EmbeddedPostgres, "elasticsearch": EmbeddedElasticsearch}
server = kinds[kind](Path(directory))
try:
    print(server.start(), flush=True)
except RagAssetsError as error:
    raise SystemExit(f"{error.message}; {error.hint}")
sys.stdin.read()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    with server_directory() as directory:
        yield directory


@contextmanager
def container_with(kind: str, directory: Path) -> Iterator[str]:
    """Start a server in a PID namespace, which is killed at the end; yield its URL."""
    container = start_in_namespace(START, kind, directory)
    try:
        assert container.stdout is not None
        url = container.stdout.readline().strip()
        assert url.startswith(("postgresql://", "http://")), url
        yield url
    finally:
        container.kill()
        container.communicate()


def refused_in_container(kind: str, directory: Path) -> str:
    """Start a second server in a container, which must be refused; return the error."""
    refused = start_in_namespace(START, kind, directory)
    out, _ = refused.communicate(timeout=60)
    assert refused.returncode == 1, out
    return out


def write_rows(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS rag_dagster.kept (n int)")
        for n in range(count):
            connection.execute("INSERT INTO rag_dagster.kept VALUES (%s)", [n])


def rows(url: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM rag_dagster.kept").fetchone()
    return row[0] if row else None


@needs_namespaces
def test_postgres_in_use_by_another_container_is_refused_and_loses_no_row(directory: Path) -> None:
    url = EmbeddedPostgres(directory).start()
    write_rows(url, 200)
    error = refused_in_container("postgres", directory)
    record = EmbeddedPostgres(directory).process.find()
    assert record is not None, "the record of the server that runs is kept"
    for named in (
        str(directory),
        f"process {record.pid}",
        f"host {record.host}",
        record.started_at,
    ):
        assert named in error
    assert str(record.pid_namespace) in error
    assert "`rag-assets down` there" in error
    write_rows(url, 200)
    assert rows(url) == 400


@needs_namespaces
def test_a_server_of_a_container_is_neither_used_nor_stopped_by_its_host(directory: Path) -> None:
    with container_with("postgres", directory / ".local" / "postgres") as url:
        write_rows(url, 100)
        stack = LocalStack(Settings(home=directory, elasticsearch_url="http://127.0.0.1:9"))
        with pytest.raises(ServiceUnavailable, match="Postgres is not running"):
            stack.endpoints()
        with pytest.raises(ServiceUnavailable, match="it already runs in"):
            stack.postgres.start()
        stack.down()
        assert state_of(stack, "Postgres").state == "elsewhere"
        write_rows(url, 100)
        assert rows(url) == 200


@needs_namespaces
def test_postgres_starts_after_its_container_was_killed(directory: Path) -> None:
    with container_with("postgres", directory) as url:
        write_rows(url, 300)
    stale = directory / "data" / "postmaster.pid"
    # As after a restart of the container, the recorded pid belongs to another process.
    lines = stale.read_text().split("\n")
    stale.write_text("\n".join(["1", *lines[1:]]))
    with container_with("postgres", directory) as url:
        assert rows(url) == 300
    assert rows(EmbeddedPostgres(directory).start()) == 300


JOIN = """
import subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", "/dev/shm"], check=True)
from pathlib import Path
import psycopg
from rag_assets.runtime.postgres import EmbeddedPostgres
with psycopg.connect(EmbeddedPostgres(Path(sys.argv[1])).start(), autocommit=True) as connection:
    connection.execute("CREATE TABLE rag_dagster.numbers AS SELECT generate_series(1, 400000) AS n")
    connection.execute("ANALYZE rag_dagster.numbers")
    for name, value in (
        *(("parallel_setup_cost", "0"), ("parallel_tuple_cost", "0")),
        *(("min_parallel_table_scan_size", "0"), ("work_mem", "'64MB'")),
        *(("enable_mergejoin", "off"), ("enable_nestloop", "off")),
    ):
        connection.execute(f"SET {name} = {value}")
    join = "SELECT count(*) FROM rag_dagster.numbers a JOIN rag_dagster.numbers b USING (n)"
    plan = str(connection.execute(f"EXPLAIN {join}").fetchall())
    print("Parallel Hash" in plan, connection.execute(join).fetchone())
"""


@needs_namespaces
def test_large_joins_need_no_large_dev_shm(directory: Path) -> None:
    out, _ = start_in_namespace(JOIN, directory).communicate(timeout=120)
    assert out == "True (400000,)\n"


def state_of(stack: LocalStack, name: str) -> ServiceStatus:
    return next(status for status in stack.status() if status.name == name)


def test_a_copied_home_has_servers_of_its_own(directory: Path) -> None:
    original = LocalStack(
        Settings(home=directory / "original", elasticsearch_url="http://127.0.0.1:9")
    )
    url = original.postgres.start()
    write_rows(url, 50)
    record = original.postgres.process.find()
    assert record is not None
    home = directory / "copy"
    subprocess.run(["cp", "-a", directory / "original", home], check=True)
    copy = LocalStack(Settings(home=home, elasticsearch_url="http://127.0.0.1:9"))
    assert state_of(copy, "Postgres").state == "stopped"
    with pytest.raises(ServiceUnavailable, match="Postgres is not running"):
        copy.endpoints()
    copy.down()
    assert original.postgres.process.find() == record
    own = copy.postgres.start()
    try:
        assert own != url
        write_rows(own, 7)
        assert (rows(url), rows(own)) == (50, 57)
    finally:
        copy.down()
    assert rows(url) == 50
    original.down()


def test_a_moved_home_still_finds_its_servers(directory: Path) -> None:
    before = EmbeddedPostgres(directory / "before" / "postgres")
    write_rows(before.start(), 10)
    record = before.process.find()
    (directory / "before").rename(directory / "after")
    after = EmbeddedPostgres(directory / "after" / "postgres")
    assert after.process.find() == record
    assert rows(after.start()) == 10
    assert after.stop() is True
    assert record is not None
    assert read_birth(record.pid) is None


def test_a_running_server_without_its_record_is_named(directory: Path) -> None:
    server = EmbeddedPostgres(directory)
    url = server.start()
    record, kept = server.process.find(), server.process.pid_file.read_text()
    assert record is not None
    server.process.pid_file.unlink()
    with pytest.raises(ServiceUnavailable, match=f"as process {record.pid}, which") as caught:
        server.start()
    assert f"`kill -INT {record.pid}`" in (caught.value.hint or "")
    server.process.pid_file.write_text(kept)
    assert server.start() == url


@needs_namespaces
@pytest.mark.long
def test_elasticsearch_in_use_by_another_container_is_refused(directory: Path) -> None:
    server = EmbeddedElasticsearch(directory, heap="512m")
    url = server.start()
    error = refused_in_container("elasticsearch", directory)
    assert "Elasticsearch cannot start: it already runs in" in error
    assert server.start() == url
    assert server.answers()


def test_a_record_of_an_earlier_version_counts_by_its_birth(directory: Path) -> None:
    server = EmbeddedPostgres(directory)
    url = server.start()
    written = json.loads(server.process.pid_file.read_text())
    for name in ("place", "host", "pid_namespace"):
        del written[name]
    server.process.pid_file.write_text(json.dumps(written))
    assert server.start() == url
    assert server.stop() is True
    assert server.start() == url
    again = json.loads(server.process.pid_file.read_text())
    assert again["place"].endswith(f":{directory.stat().st_ino}")
