"""The commands of agents as their users run them, and the tool through the official client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from rag_assets.common.tokens import count_text
from tests.rules import with_rules

COMMAND = Path(sys.executable).with_name("rag-assets")
LOCKED = Path(__file__).resolve().parents[4] / "requirements" / "agent.txt"
AGENTS = """\
rag: {store: sqlite}
agents:
  - id: guide
    docs: {strategy: rag, top_k: 2, sources: ["docs/*.md"]}
  - id: small
    docs: {sources: ["docs/fruit.md"]}
  - id: nothing
    docs: {strategy: rag, sources: ["no/*.md"]}
"""
FORBIDDEN = (
    *("dagster", "elasticsearch", "sqlalchemy", "polars", "deltalake", "lxml", "fastapi"),
    *("openai", "google", "psycopg", "alembic", "great_expectations", "mcp", "tree_sitter"),
)


class Place:
    """A working directory with agents, in which commands are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.variables = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        (root / "docs").mkdir(parents=True)
        (root / "home").mkdir()
        (root / ".swebash").mkdir()
        (root / ".swebash/agents.yaml").write_text(AGENTS)
        self.write("fruit", "Apples are red fruits. Pears are green fruits that grow on trees.")
        self.write("ships", "A ship sails over the sea. Its captain stands at the helm.")

    def write(self, name: str, text: str) -> None:
        (self.root / f"docs/{name}.md").write_text(f"# {name}\n\n{text}\n")

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, "agent", *arguments],
            cwd=self.root,
            env=self.variables | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *arguments: str, **variables: str) -> dict:  # type: ignore[type-arg]
        done = self.run(*arguments, "--json", **variables)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "place")
    with_rules(made.root / "home/.cache/rag-assets/rules")
    return made


def test_from_nothing_to_an_answer(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")  # its cache contains the compiled rules
    listed = place.json("list")["agents"]
    assert [one["id"] for one in listed] == ["guide", "small", "nothing"]
    indexed = {one["agent_id"]: one for one in place.json("index")["indexed"]}
    assert set(indexed) == {"guide", "nothing"}
    assert (indexed["guide"]["files"], indexed["guide"]["built"]) == (2, True)
    found = place.json("search", "@guide", "Who steers the boat?")["results"]
    assert found[0]["source_path"] == "docs/ships.md"
    assert set(found[0]) == {
        *("id", "content", "source_path", "byte_offset", "agent_id", "score"),
    }
    text = place.run("search", "guide", "Who steers the boat?").stdout
    assert text.startswith("--- Result 1 (score: 0.")
    assert "source: docs/ships.md) ---\n" in text
    status = {one["agent"]: one for one in place.json("status")["agents"]}
    assert (status["guide"]["files"], status["guide"]["chunks"]) == (2, 2)


def test_stores_by_their_variables_find_the_same(place: Place) -> None:
    found = [
        place.json("search", "guide", "green food", SWEBASH_AI_RAG_STORE=store)["results"]
        for store in ("memory", "file", "sqlite")
    ]
    assert found[0] == found[1] == found[2] != []
    kept = {path.name for path in (place.root / ".swebash/rag").iterdir()}
    assert {"guide.index.json", "guide.state.json", "rag.db"} <= kept


def test_memory_says_that_it_keeps_nothing(place: Place) -> None:
    done = place.run("search", "guide", "food", SWEBASH_AI_RAG_STORE="memory")
    assert "sqlite" in done.stderr
    assert not (place.root / ".swebash/rag").exists()


def test_an_unknown_agent_is_told_those_there_are(place: Place) -> None:
    done = place.run("search", "@gide", "x")
    assert done.returncode == 2
    assert "@guide, @nothing, @small" in done.stderr


def test_patterns_without_files_are_warned_of(place: Place) -> None:
    done = place.run("search", "nothing", "x")
    assert done.returncode == 0
    assert done.stdout == "No relevant documentation found for your query.\n"
    assert "no file matches no/*.md" in done.stderr


def test_a_wrong_file_is_one_line(place: Place) -> None:
    (place.root / ".swebash/agents.yaml").write_text("rag: {store: redis}\n")
    done = place.run("list")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "agents.yaml:1:14: store must be one of memory, file, sqlite" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_a_store_that_cannot_be_written_is_one_line(place: Place, store: str) -> None:
    (place.root / "taken").write_text("a file where a folder is wanted")
    path = {"SWEBASH_AI_RAG_STORE_PATH": "taken/below"}
    done = place.run("index", SWEBASH_AI_RAG_STORE=store, **path)
    assert done.returncode == 1
    assert "taken/below cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(["config"], ["advise"], ["preload", "small"], ["prompt", "guide"], ["prompt", "small"]),
        *(["tools", "guide"], ["host", "zed"], ["status", "guide"]),
    ],
)
def test_every_command_answers_in_words_and_in_json(place: Place, arguments: list[str]) -> None:
    done = place.run(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert place.json(*arguments)


def test_a_host_keeps_its_other_servers(place: Place) -> None:
    file = place.root / ".mcp.json"
    file.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    assert place.json("host", "claude-code", "guide", "--write")["written"] == ["rag-guide"]
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers["other"] == {"command": "x"}
    assert servers["rag-guide"]["args"][:3] == ["agent", "mcp", "@guide"]
    file.write_text("{ // mine\n}")
    assert place.run("host", "claude-code", "guide", "--write").returncode != 0
    assert file.read_text() == "{ // mine\n}"
    file.unlink()


def test_without_an_embedder_documentation_is_preloaded(place: Place) -> None:
    """Prompts print a warning; search and index fail."""
    hidden = place.root / "hidden"
    (hidden / "onnxruntime").mkdir(parents=True)
    code = (
        "import sys, importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'onnxruntime' else real(name, *a)\n"
        "from rag_assets.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    for arguments in (
        *(["prompt", "guide"], ["mcp", "guide"], ["search", "guide", "x"]),
        *(["search", "guide", "x", "--json"], ["index", "guide"]),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, "agent", *arguments],
            cwd=place.root,
            env=place.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        is_needed = arguments[0] in {"search", "index"}
        assert (done.returncode != 0) is is_needed, done.stderr
        assert done.stderr.count("warning: ") == (0 if is_needed else 1)
        assert "onnxruntime is not installed" in done.stderr + done.stdout
    assert not (place.root / ".swebash/rag").exists()


def test_a_search_imports_no_part_of_the_service(place: Place) -> None:
    place.json("index")
    code = (
        "import sys\nfrom rag_assets.cli.app import run\n"
        "code = run(sys.argv[1:])\n"
        "tops = sorted({name.partition('.')[0] for name in sys.modules})\n"
        "sys.stderr.write(' '.join(tops)); sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "agent", "search", "guide", "food", "--json"],
        cwd=place.root,
        env=place.variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["results"]
    imported = set(done.stderr.split())
    assert {"rag_assets", "numpy", "onnxruntime"} <= imported
    assert not imported & set(FORBIDDEN)


_ALLOWED = """
import importlib.abc, importlib.metadata, re, sys
from pathlib import Path
locked = Path(sys.argv[1]).read_text()
named = {re.sub("[-_.]+", "-", one).lower() for one in re.findall(r"^([\\w.-]+)==", locked, re.M)}
of = importlib.metadata.packages_distributions()
plain = lambda name: re.sub("[-_.]+", "-", name).lower()
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        owners = {plain(one) for one in of.get(top, ())}
        if owners and top != "rag_assets" and not owners & named:
            raise ModuleNotFoundError(f"{name} is not in agent.txt", name=name)
sys.meta_path.insert(0, Refuse())
from rag_assets.cli.app import run
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["list"], ["config"], ["index"], ["search", "guide", "food"], ["status"], ["advise"]),
        *(["preload", "small"], ["prompt", "guide"], ["tools", "guide"], ["host", "zed"]),
        *(["mcp", "guide"], ["docs", "git", "--out", "pages", "--depth", "0"]),
    ],
)
@pytest.mark.long
def test_the_packages_of_agents_run_every_command(place: Place, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ALLOWED, LOCKED, "agent", *arguments],
        cwd=place.root,
        env=place.variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not in agent.txt" not in done.stderr


def test_the_packages_of_agents_are_few_and_those_of_the_lock_file() -> None:
    line = re.compile(r"^([\w.-]+==\S+)", re.MULTILINE)
    few = set(line.findall(LOCKED.read_text()))
    assert few <= set(line.findall(LOCKED.with_name("lock.txt").read_text()))
    assert len({one.partition("==")[0] for one in few}) <= 50
    assert "--hash=sha256:" in LOCKED.read_text()


async def _asked(place: Place, work) -> None:  # type: ignore[no-untyped-def]
    server = StdioServerParameters(
        command=str(COMMAND), args=["agent", "mcp", "@guide"], cwd=place.root, env=place.variables
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await work(session)


async def _answer(session: ClientSession, **arguments: object) -> tuple[bool, str]:
    result = await session.call_tool("rag_search", arguments)
    return bool(result.is_error), result.content[0].text  # type: ignore[union-attr]


def test_the_tool_through_the_official_client(place: Place) -> None:
    async def work(session: ClientSession) -> None:
        (tool,) = (await session.list_tools()).tools
        assert tool.name == "rag_search"
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert set(tool.input_schema["properties"]) == {"query"}
        assert count_text(tool.model_dump_json(exclude_none=True)) <= 150
        failed, text = await _answer(session, query="Who steers the boat?")
        assert not failed
        assert text.startswith("--- Result 1 (score: 0.")
        assert "source: docs/ships.md) ---\n" in text
        assert (await _answer(session, query=" "))[0]
        for given in ({}, {"query": "Who steers the boat?"}):
            failed, text = await _answer(session, queri="a secret that nobody repeats", **given)
            assert failed
            assert "secret" not in text

    place.json("index")  # so the first answer does not wait for the index
    asyncio.run(_asked(place, work))
    shown = place.run("search", "guide", "Who steers the boat?").stdout
    assert "docs/ships.md" in shown


def test_the_server_notices_new_files(place: Place) -> None:
    async def work(session: ClientSession) -> None:
        await _answer(session, query="Who steers the boat?")
        place.write("music", "A violin is a string instrument that is played with a bow.")
        until = time.monotonic() + 30
        text = ""
        while "docs/music.md" not in text and time.monotonic() < until:
            _, text = await _answer(session, query="Which instrument has strings?")
        assert "docs/music.md" in text

    asyncio.run(_asked(place, work))


@pytest.fixture
def host(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that runs a server and can be killed; its child keeps the input open."""
    place.json("index")
    script = f"exec 3<>fifo; {COMMAND} agent mcp guide <&3 & echo $!; wait"
    os.mkfifo(place.root / "fifo")
    process = subprocess.Popen(
        ["bash", "-c", script], cwd=place.root, env=place.variables, stdout=subprocess.PIPE
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_the_server_ends_with_its_input_while_it_indexes(place: Place) -> None:
    for number in range(60):
        place.write(f"long-{number}", f"Sentence {number} of a file, and its number. " * 200)
    server = subprocess.Popen(
        [COMMAND, "agent", "mcp", "guide"],
        cwd=place.root,
        env=place.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    lock = place.root / ".swebash/rag/.rag.db.guide.lock"
    until = time.monotonic() + 60
    while not lock.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert lock.exists()
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(timeout=10) == 0
    assert place.json("status", "guide")["agents"][0]["index"] == "none"


@pytest.mark.long
def test_the_server_ends_with_a_host_that_was_killed(host: subprocess.Popen[bytes]) -> None:
    assert host.stdout is not None
    server = psutil.Process(int(host.stdout.readline()))
    time.sleep(5)
    assert server.is_running()
    host.send_signal(signal.SIGKILL)
    gone, _ = psutil.wait_procs([server], timeout=20)
    assert gone == [server]
