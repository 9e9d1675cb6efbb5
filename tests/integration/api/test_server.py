"""`rag-assets serve` in a process of its own, and the commands that create tokens."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.driving import Driver
from tests.installation import FAST, Installation


@pytest.fixture(scope="module")
def served(shared_installation: Installation, driver: Driver) -> Installation:
    folder = shared_installation.add_tenant("served", **FAST)
    (folder / "valves.md").write_text("# Valves\n\nThe valve opens at 4 bar.\n")
    driver.sync("served")
    return shared_installation


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def serving(installation: Installation, port: int) -> Iterator[subprocess.Popen[str]]:
    process = installation.start("serve", "--port", str(port))
    try:
        until = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None, process.stderr
            assert time.monotonic() < until
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.communicate()


def answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200
    except httpx2.TransportError:
        return False


def test_a_token_made_beside_a_running_service_counts_until_it_is_revoked(
    served: Installation,
) -> None:
    port = free_port()

    def ask(token: str) -> Any:
        return httpx2.post(
            f"http://127.0.0.1:{port}/rag/query",
            json={"query": "valve"},
            headers={"Authorization": f"Bearer {token}"},
        )

    with serving(served, port) as process:
        made = served.command("tokens", "create", "served", "--principal", "bot", "--json").json
        assert ask(made["token"]).json()["hits"][0]["uri"] == "files/valves.md"
        listed = served.command("tokens", "list", "served", "--json")
        assert listed.json["tokens"][0]["principals"] == ["bot"]
        assert made["token"] not in listed.out
        taken = served.command("serve", "--port", str(port))
        assert (taken.code, "--port" in taken.err) == (1, True)
        assert served.command("tokens", "revoke", "served", made["token_id"]).code == 0
        assert ask(made["token"]).status_code == 401
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    asked = [line["status"] for line in lines if line.get("route") == "/rag/query"]
    assert asked == [200, 401]
    assert made["token"] not in err


def test_an_open_address_needs_authentication(served: Installation) -> None:
    refused = served.command("serve", "--host", "0.0.0.0", "--port", str(free_port()))
    assert refused.code == 1
    assert "no authentication is configured" in refused.err


def test_a_malformed_token_id_is_not_repeated(served: Installation) -> None:
    refused = served.command("tokens", "revoke", "served", "rag_perhaps-the-token-itself")
    assert refused.code == 1
    assert "perhaps" not in refused.err
