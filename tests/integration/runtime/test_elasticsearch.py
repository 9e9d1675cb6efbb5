"""The embedded Elasticsearch, started, killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from jgo.config import GlobalSettings

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import install_distribution, read_locked_jars
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.net import is_port_free
from tests.servers import server_directory


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with server_directory() as directory:
        yield directory


def request(url: str, method: str = "GET", body: object = None) -> Any:
    return httpx.request(method, url, json=body, timeout=30).raise_for_status().json()


@pytest.mark.long
def test_its_life(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, because each start takes seconds: start, reuse, kill, offline start, stop."""
    server = EmbeddedElasticsearch(directory, heap="512m")
    code = (
        "import sys; from pathlib import Path;"
        "from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch as E;"
        "e = E(Path(sys.argv[1]), heap='512m'); e.start(); print(e.process.find().pid)"
    )
    command = [sys.executable, "-c", code, str(directory)]
    commands = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    pids = {int(command.communicate()[0]) for command in commands}
    record = server.process.find()
    assert record is not None
    assert pids == {record.pid}, "two commands at once start one server"
    outputs = {str(Path(f"/proc/{record.pid}/fd/{number}").readlink()) for number in (1, 2)}
    assert outputs == {str(server.process.log_file)}, "no output of the command that started it"

    messages: list[str] = []
    url = server.start(messages.append)
    assert messages == [], "a running server is used"
    assert request(f"{url}/_nodes/jvm,http")["_nodes"]["total"] == 1
    node = next(iter(request(f"{url}/_nodes/jvm,http,transport")["nodes"].values()))
    assert node["version"] == "9.5.3"
    assert node["jvm"]["mem"]["heap_max_in_bytes"] == 512 * 2**20
    assert node["http"]["bound_address"] == [f"127.0.0.1:{record.port}"]
    assert node["transport"]["publish_address"].endswith("127.0.0.1:0"), "nothing listens for nodes"

    mapping = {"properties": {"v": {"type": "dense_vector", "dims": 3}}}
    request(f"{url}/kept", "PUT", {"mappings": mapping, "settings": {"number_of_replicas": 0}})
    request(f"{url}/kept/_doc/1?refresh=true", "PUT", {"v": [1, 0, 0]})
    os.kill(record.pid, signal.SIGKILL)
    assert wait_until(lambda: is_port_free(record.port or 0), 10)

    # Its folder is complete now: start without cache and network, while its port is in use.
    monkeypatch.setenv("M2_REPO", str(directory / "empty"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with socket.create_server(("127.0.0.1", record.port or 0)):
        moved = server.start()
    assert moved != url
    knn = {"knn": {"field": "v", "query_vector": [1, 0, 0], "k": 1}}
    hits = request(f"{moved}/kept/_search", "POST", knn)["hits"]["hits"]
    assert [hit["_id"] for hit in hits] == ["1"], "what was acknowledged survives kill -9"
    assert "NativeAccess" not in server.process.log_file.read_text()

    assert server.stop() is True
    assert "closed" in server.process.read_log_tail(1)[0], "the node was closed in good order"
    with pytest.raises(ServiceUnavailable, match="Elasticsearch is not running"):
        _ = server.url


def test_a_server_that_cannot_start_reports_the_reason(directory: Path) -> None:
    server = EmbeddedElasticsearch(directory, heap="1m")
    with pytest.raises(ServiceUnavailable, match="Elasticsearch ended while starting") as caught:
        server.start()
    assert "heap" in caught.value.message
    assert server.is_running() is False


# Fetching, from a Maven repository of our own on the loopback.


@pytest.fixture(scope="module")
def published(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the published jars in the layout of a Maven repository."""
    install_distribution(directory / "elasticsearch-9.5.3")
    root = tmp_path_factory.mktemp("published")
    for jar in read_locked_jars():
        folder = root.joinpath(*jar.group.split("."), jar.artifact, jar.version)
        folder.mkdir(parents=True)
        source = directory / "elasticsearch-9.5.3" / jar.folder / jar.file_name
        shutil.copy(source, folder)
    return root


@pytest.fixture
def cache(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create an empty Maven cache of a user whose mirror has only the published jars."""
    handler = partial(QuietHandler, directory=str(published))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as mirror:
        threading.Thread(target=mirror.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{mirror.server_port}"
        configuration = tmp_path / "jgo.conf"
        configuration.write_text(f"[repositories]\nmirror = {address}\n")
        monkeypatch.setenv("JGO_CONFIG_FILE", str(configuration))
        monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        assert GlobalSettings.load().repositories == {"mirror": address}
        yield tmp_path / "m2"
        mirror.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_jars_are_fetched_once_and_shared_through_the_cache(cache: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    install_distribution(tmp_path / "first", progress=messages.append)
    assert len(messages) == 53
    assert messages[-1].startswith("Elasticsearch: fetching jar 53 of 53")
    install_distribution(tmp_path / "second", progress=messages.append)
    install_distribution(tmp_path / "first", progress=messages.append)
    assert len(messages) == 53
    shutil.rmtree(cache)
    (tmp_path / "first" / "lib" / "lucene-core-10.5.1.jar").unlink()
    install_distribution(tmp_path / "first", progress=messages.append)
    assert len(messages) == 54, "only what is missing is fetched"
    module = tmp_path / "first" / "modules" / "transport-netty4"
    assert "\nmodulename" not in (module / "plugin-descriptor.properties").read_text()


def test_a_download_cut_short_is_fetched_again(cache: Path, tmp_path: Path) -> None:
    cut = cache / "org/apache/lucene/lucene-core/10.5.1/lucene-core-10.5.1.jar"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(b"PK\x03\x04")
    install_distribution(tmp_path / "home")
    installed = (tmp_path / "home" / "lib" / "lucene-core-10.5.1.jar").read_bytes()
    assert len(installed) > 1_000_000


def test_an_altered_jar_is_refused_and_not_kept(
    cache: Path, published: Path, tmp_path: Path
) -> None:
    name = "at/yawk/lz4/lz4-java/1.11.1/lz4-java-1.11.1.jar"
    good = (published / name).read_bytes()
    (published / name).write_bytes(good + b"altered")
    try:
        with pytest.raises(ServiceUnavailable, match=r"lz4-java-1\.11\.1\.jar differs"):
            install_distribution(tmp_path / "home")
    finally:
        (published / name).write_bytes(good)
    assert not (cache / name).exists()
    assert list((tmp_path / "home" / "lib").iterdir()) == []


def test_without_cache_and_network_the_error_has_the_remedy(
    cache: Path, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JGO_CONFIG_FILE", str(tmp_path / "none.conf"))
    server = EmbeddedElasticsearch(tmp_path / "home")
    with pytest.raises(ServiceUnavailable, match=r"jar could not be fetched \(Proxy") as caught:
        server.start()
    assert "first start" in (caught.value.hint or "")
