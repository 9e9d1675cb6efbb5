import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rag_assets.runtime.net import (
    accepts_connections,
    find_free_port,
    get_json,
    is_port_free,
    mask_url,
    open_listening_socket,
)


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_not_free(listener: int) -> None:
    assert not is_port_free(listener)
    assert find_free_port(listener) != listener


def test_a_port_is_free_again_right_after_its_server_has_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()  # the server closes first: its side stays in TIME_WAIT
    assert is_port_free(port)
    assert find_free_port(port) == port


def test_listening_sockets_asked_for_at_once_have_ports_of_their_own(listener: int) -> None:
    with open_listening_socket(listener) as one, open_listening_socket(listener) as other:
        ports = [socket_.getsockname()[1] for socket_ in (one, other)]
        assert listener < ports[0] < ports[1]
        assert not any(map(is_port_free, ports))


def test_own_ports_lie_below_those_of_outgoing_connections() -> None:
    assert all(20_000 <= find_free_port() < 32_000 for _ in range(5))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("postgresql://:s3cret@/x?host=/run", "postgresql://:***@/x?host=/run"),
        ("postgresql://db/x?user=me&password=s3cret&a=1", "postgresql://db/x?user=me&password=***&a=1"),
        ("https://es.example:9200?api_key=s3cret", "https://es.example:9200?api_key=***"),
        ("https://me:s3:cret@es", "https://me:***@es"),
        ("http://127.0.0.1:9200", "http://127.0.0.1:9200"),
    ],
)  # fmt: skip
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_connections_are_tried_on_every_host_named(listener: int, tmp_path: Path) -> None:
    closed = find_free_port()
    assert accepts_connections(f"http://127.0.0.1:{listener}")
    either = f"127.0.0.1:{closed},127.0.0.1:{listener}"
    assert accepts_connections(f"postgresql+psycopg://u:p@{either}/x")
    assert not accepts_connections(f"postgresql://u:p@127.0.0.1:{closed}/x")
    assert not accepts_connections("http://host.invalid:9200", timeout=0.5)
    assert not accepts_connections(f"postgresql:///x?host={tmp_path}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / ".s.PGSQL.5432"))
        server.listen(1)
        assert accepts_connections(f"postgresql:///x?host={tmp_path}")


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/good" else 503)
        self.end_headers()
        self.wfile.write(b'{"status": "green"}')

    def log_message(self, *_: object) -> None:
        pass


def test_health_is_requested_directly_despite_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert get_json(server.server_port, "/good") == {"status": "green"}
        assert get_json(server.server_port, "/bad") is None
        server.shutdown()
    assert get_json(server.server_port, "/good", timeout=0.5) is None
