"""Answers without a network, with the documented server and configuration."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from ruamel.yaml import YAML

from tests.installation import FAST, Installation

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("RAG_ASSETS_TEST_WRITER", ROOT / ".venv-writer/bin/python"))
SECTION = "## Without a network"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON.is_file(), reason="needs xllamacpp and gguf: make writer"),
]


def documented(language: str, port: int) -> str:
    """Return the documentation's block in a language, with another port."""
    section = (ROOT / "docs/answering.md").read_text().split(SECTION)[1].split("\n## ")[0]
    block = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert block is not None
    assert "8080" in block[1]
    return block[1].replace("8080", str(port))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run the documented program with a tiny random model; yield its port."""
    folder = tmp_path_factory.mktemp("writer")
    subprocess.run([PYTHON, ROOT / "tests/gguf_model.py", folder / "model.gguf"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    log = (folder / "log").open("w")
    program = [PYTHON, "-c", documented("python", port)]
    server = subprocess.Popen(program, cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 300
        while not is_ready(port):
            assert server.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server did not start within five minutes"
            time.sleep(0.2)
        yield port
    finally:
        server.kill()
        server.wait()
        log.close()


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_documented_way_answers_by_a_model_on_this_machine(
    shared_installation: Installation, port: int
) -> None:
    [tenant] = YAML(typ="safe").load(documented("yaml", port))["tenants"]
    folder = shared_installation.add_tenant("offline", chat_model=tenant["chat_model"], **FAST)
    (folder / "valve.md").write_text("# Valve\n\nThe valve opens at 4 bar and closes at 3 bar.\n")
    shared_installation.synced("offline")
    allowed = re.search(r"export (\w+)=(\S+)", documented("bash", port))
    assert allowed is not None
    asked = ("answer", "offline", "At what pressure does the valve open?", "--json")
    refused = shared_installation.command(*asked, RAG_ASSETS_PRIVATE_ENDPOINTS="")
    assert refused.code != 0
    assert "base_url" in refused.out
    answered = shared_installation.command(*asked, **{allowed[1]: allowed[2]})
    assert answered.code == 0, answered.err
    told = answered.json
    assert told["input_tokens"] > told["output_tokens"] > 0
    assert "local" in told["model"]
    # A random model says nothing that the passage supports, so nothing of it is shown.
    assert told["answer"] == ""
    assert [hit["uri"] for hit in told["hits"]] == ["files/valve.md"]
