"""Dagster's webserver and daemon with a workspace of one asset, and a real Postgres."""

from __future__ import annotations

import http.client
import json
import os
import socket
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime import program_processes, stack
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.processes import Progress, ignore_progress
from rag_assets.runtime.program_processes import fingerprint_program
from rag_assets.runtime.stack import LocalStack
from rag_assets.runtime.watch_report import NO_WATCHER, WatchReportFile

DEFINITIONS = """
import os
import dagster as dg

place = f"{os.environ['RAG_ASSETS_HOME']} {os.environ.get('RAG_ASSETS_DATABASE_URL', '')}"

@dg.asset(description=place)
def greeting() -> None: ...

defs = dg.Definitions(assets=[greeting])
"""
INSTANCE = """
storage:
  postgres:
    postgres_url:
      env: DAGSTER_POSTGRES_URL
telemetry:
  enabled: false
"""


@pytest.fixture
def settings(tmp_path: Path, postgres_url: str) -> Iterator[Settings]:
    database = f"dagster_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    (folder := tmp_path / ".local" / "dagster").mkdir(parents=True)
    (folder / "workspace.yaml").write_text("load_from: [{python_file: definitions.py}]\n")
    (folder / "definitions.py").write_text(DEFINITIONS)
    (folder / "dagster.yaml").write_text(INSTANCE)
    yield Settings(
        home=tmp_path,
        database_url=urlsplit(postgres_url)._replace(path=f"/{database}").geturl(),
        elasticsearch_url="http://127.0.0.1:9",
        dagster_port=find_free_port(),
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())


def start(stack: LocalStack, progress: Progress = ignore_progress) -> None:
    stack.start_servers(for_dagster=True, progress=progress)
    stack.start_dagster(progress)


def graphql(port: int, query: str) -> object:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"query": query})
    connection.request("POST", "/graphql", body, {"content-type": "application/json"})
    answer = json.load(connection.getresponse())
    connection.close()
    return answer["data"]


def body(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_the_ui_and_the_daemon_live_and_end_together(settings: Settings) -> None:
    stack = LocalStack(settings)
    messages: list[str] = []
    with socket.create_server(("127.0.0.1", settings.dagster_port)):
        start(stack, messages.append)
    try:
        webserver, daemon = stack.dagster.webserver.find(), stack.dagster.daemon.find()
        assert webserver is not None
        assert daemon is not None
        assert webserver.port is not None
        assert webserver.port > settings.dagster_port, "a taken port is left to its owner"
        states = {status.name: status for status in stack.status()}
        assert states["Postgres"].state == "external"
        assert states["Elasticsearch"].state == "unreachable"
        assert states["Dagster webserver"].state == states["Dagster daemon"].state == "running"
        assert states["Change watcher"].state == "running"
        assert states["Dagster webserver"].url == f"http://127.0.0.1:{webserver.port}"

        answer = graphql(webserver.port, "{assetNodes {assetKey {path} description}}")
        description = f"{settings.home} {settings.database_url}"
        assert answer == {
            "assetNodes": [{"assetKey": {"path": ["greeting"]}, "description": description}]
        }
        assert "no tenant yet" in body(webserver.port, "/documents"), "our pages beside Dagster's"
        assert "/_next/" in body(webserver.port, "/runs"), "and its own catch-all"
        with psycopg.connect(settings.database_url or "") as connection:
            tables = connection.execute("SELECT count(*) FROM rag_dagster.runs").fetchone()
        assert tables == (0,), "the storage is the Postgres we named"

        for record, process in (
            (webserver, stack.dagster.webserver),
            (daemon, stack.dagster.daemon),
        ):
            outputs = {
                str(Path(f"/proc/{member.pid}/fd/{number}").readlink())
                for member in psutil.process_iter()
                if belongs_to(member, record.pid)
                for number in (1, 2)
            }
            assert outputs == {str(process.log_file)}, "no output of the command that started it"

        report = WatchReportFile(settings)
        assert wait_until(lambda: report.read() != NO_WATCHER, 90), "it uses the same servers"
        messages.clear()
        start(stack, messages.append)
        assert messages == []
        assert stack.dagster.webserver.find() == webserver
        assert stack.dagster.daemon.find() == daemon
    finally:
        stack.down()
    assert {status.state for status in stack.status()[2:]} == {"stopped"}
    assert not [process for process in psutil.process_iter() if belongs_to(process, webserver.pid)]


@pytest.mark.long
@pytest.mark.nightly
def test_processes_of_another_environment_or_checkout_are_replaced(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pids(own: LocalStack) -> list[int | None]:
        processes = (own.fork_server.process, own.dagster.daemon, own.dagster.webserver)
        records = [process.find() for process in processes]
        return [None if record is None else record.pid for record in records]

    first = LocalStack(settings)
    start(first)
    try:
        former = pids(first)
        assert None not in former
        start(LocalStack(settings))
        assert pids(first) == former, "they are the same program"

        # tenants.yaml names a key that only the present shell has.
        (tmp_path / "tenants.yaml").write_text("tenants: [{id: a, api_key: $OWN_KEY}]\n")
        monkeypatch.setenv("OWN_KEY", "a new key")
        messages: list[str] = []
        LocalStack(settings).start_servers(for_dagster=False, progress=messages.append)
        assert "Fork server: stopping because its code or environment has changed" in messages
        second = pids(first)
        assert second[0] not in {None, former[0]}
        assert second[1:] == former[1:], "without Dagster, its processes are left alone"
        environment = psutil.Process(second[0]).environ()
        assert environment["OWN_KEY"] == "a new key"

        start(LocalStack(settings))
        third = pids(first)
        assert third[0] == second[0]
        assert not {*third[1:]} & {None, *second[1:]}

        other = tmp_path / "checkout"
        (other / "rag_assets").mkdir(parents=True)
        (other / "rag_assets" / "module.py").touch()
        of_other = partial(fingerprint_program, root=other)
        for module in (stack, program_processes, program_processes):
            monkeypatch.setattr(module, "fingerprint_program", of_other)
        start(LocalStack(settings))
        assert not {*pids(first)} & {None, *third}
    finally:
        first.down()


def belongs_to(process: psutil.Process, leader: int) -> bool:
    try:
        return os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ProcessLookupError):
        return False


@pytest.mark.long
def test_a_broken_instance_is_reported_with_its_reason(settings: Settings) -> None:
    (settings.own_dagster_home / "dagster.yaml").write_text("storage: {nonsense: true}\n")
    stack = LocalStack(settings)
    with pytest.raises(ServiceUnavailable, match="ended while starting") as caught:
        start(stack)
    assert "nonsense" in caught.value.message
    stack.down()
