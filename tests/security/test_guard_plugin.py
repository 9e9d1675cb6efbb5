"""The plugin that guards the embedded Elasticsearch, and servers of earlier versions."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import uuid
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import (
    GUARD_DIGEST,
    compile_guard,
    install_distribution,
    install_guard,
)
from rag_assets.runtime.net import find_free_port, send_get
from rag_assets.runtime.stack import LocalStack
from tests.guarded_server import INDEX, fill
from tests.raw_http import Target
from tests.servers import server_directory


def test_the_sources_of_the_guard_compile_to_the_recorded_digest(tmp_path: Path) -> None:
    install_distribution(tmp_path)
    digest = hashlib.sha256(compile_guard(tmp_path)).hexdigest()
    assert digest == GUARD_DIGEST.read_text().strip(), (
        "python -m rag_assets.runtime.elasticsearch_install"
    )


def test_a_damaged_guard_is_compiled_again(tmp_path: Path) -> None:
    install_distribution(tmp_path)
    lines: list[str] = []
    install_guard(tmp_path, progress=lines.append)
    jar = tmp_path / "modules" / "transport-netty4" / "guard.jar"
    compiled = jar.read_bytes()
    jar.write_bytes(compiled[:-1])
    install_guard(tmp_path, progress=lines.append)
    assert jar.read_bytes() == compiled
    install_guard(tmp_path, progress=lines.append)
    assert len(lines) == 2, "a guard that is in place is not compiled again"


def test_deletions_are_history_for_seconds_in_a_new_index(elasticsearch_url: str) -> None:
    name = f"history-{uuid.uuid4().hex}"
    with Elasticsearch(elasticsearch_url) as client:
        client.indices.create(index=name)
        try:
            progress_lines = client.indices.get_settings(index=name, flat_settings=True)[name][
                "settings"
            ]
        finally:
            client.indices.delete(index=name)
    assert progress_lines["index.soft_deletes.retention_lease.sync_interval"] == "2s"


@pytest.mark.long
def test_a_server_without_the_guard_is_replaced_and_keeps_its_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server is as an earlier version left it: running, with an index, without a password."""
    monkeypatch.setenv("RAG_ASSETS_FORK_SERVER", "0")  # it would outlive this test
    with server_directory() as directory:
        settings = Settings(
            home=directory, database_url="postgresql://127.0.0.1:9/x", elasticsearch_heap="512m"
        )
        stack = LocalStack(settings)
        server = stack.elasticsearch
        try:
            home = server.directory / "elasticsearch-9.5.3"
            install_distribution(home)
            install_guard(home)
            descriptor = home / "modules" / "transport-netty4" / "plugin-descriptor.properties"
            bare = "classname=org.elasticsearch.transport.netty4.Netty4Plugin"
            descriptor.write_text(re.sub("classname=.*", bare, descriptor.read_text()))
            port = find_free_port()
            url = f"http://127.0.0.1:{port}"
            start_node(server, home, port, url)
            with Elasticsearch(url) as client:
                fill(client)
                client.indices.flush(index=INDEX)
            with pytest.raises(ServiceUnavailable, match="without a password") as caught:
                _ = server.url
            assert "rag-assets up" in (caught.value.hint or "")
            assert "unguarded" in [status.state for status in stack.status()]

            progress_lines: list[str] = []
            stack.start_servers(for_dagster=False, progress=progress_lines.append)
            with Elasticsearch(server.url) as client:
                assert client.count(index=INDEX)["count"] == 3
            assert "Dagster: stopping" in progress_lines[0], "its clients are of that version, too"
            assert "without a password" in progress_lines[1]
            assert "running" in [status.state for status in stack.status()]
            assert send_get(Target.of(server.url).port, "/_cluster/health")[0] == 401

            server.stop()
            next(home.glob("config/http-guard.properties")).unlink()
            with pytest.raises(ServiceUnavailable, match="GuardedNetworkPlugin"):
                start_node(server, home, port, url)
        finally:
            server.stop()


def start_node(server: EmbeddedElasticsearch, home: Path, port: int, url: str) -> None:
    module = "rag_assets.runtime.elasticsearch_node"
    command = [sys.executable, "-m", module, "--home", home, "--data", server.directory / "data"]
    with server.process.lock():
        server.process.start(
            [*command, "--port", str(port), "--heap", "512m"],
            env=os.environ,
            healthy=lambda: send_get(port, "/_cluster/health")[0] == 200,
            timeout=60,
            port=port,
        )
