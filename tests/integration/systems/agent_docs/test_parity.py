"""200 questions have the same answers in memory, files, SQLite, Elasticsearch, and over its tool.

The corpus consists of this project's documentation, source code, licences of installed packages
(many with equal text), and difficult files: with byte order marks, other line ends and scripts, and
names that are escaped in URIs.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import httpx2
import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from rag_assets.ingest.sources.model import parse_path
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import DEFAULT_TOOLS, Knowledge, MessageContext
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose, Vectors
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, Hit
from rag_assets.systems.agent_docs.configuration import Environment, load_configuration
from rag_assets.systems.agent_docs.file_store import FileStore
from rag_assets.systems.agent_docs.manager import RagIndexManager, format_results
from rag_assets.systems.agent_docs.passages import Chunking
from rag_assets.systems.agent_docs.prompts import build_tool_schema
from rag_assets.systems.agent_docs.server import RefreshingIndex
from rag_assets.systems.agent_docs.server import build_server as build_light_server
from rag_assets.systems.agent_docs.settings import Agent
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore
from rag_assets.systems.agent_docs.stores import (
    MemoryStore,
    PassageStore,
    SearchResult,
    Trust,
    build_passage_id_prefix,
)
from tests.installation import Installation
from tests.security.service_process import started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.long]

ROOT = Path(__file__).resolve().parents[4]
ID = "Guide: all of it"
"""No id of a tenant; and with a colon, as between the parts of passages' ids."""
TENANT = "guide-all-of-it-"
TOP_K = 7
QUESTIONS = 200
PAGES = ("agents", "architecture", "drift", "generations", "retention", "searching", "security")
AGENTS = f"""\
rag: {{store: sqlite, path: rag.db, chunk_size: 900, chunk_overlap: 120}}
agents:
  - id: "{ID}"
    docs:
      strategy: rag
      top_k: {TOP_K}
      sources: ["docs/*.md", "licences/**", "code/*.py", "odd/*", "docs/a*"]
  - id: preloaded
    docs: {{sources: ["docs/*.md"]}}
"""


@dataclass
class Remembering:
    """The shipped model with a cache of vectors, because only the stores are compared."""

    model: Embedder = field(default_factory=OnnxEmbedder)
    known: dict[tuple[str, Purpose], Vectors] = field(default_factory=dict)

    @property
    def embedder_id(self) -> str:
        return self.model.embedder_id

    @property
    def dimensions(self) -> int:
        return self.model.dimensions

    @property
    def limits(self) -> CallLimits:
        return self.model.limits

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Answer:
        missing = [text for text in dict.fromkeys(texts) if (text, purpose) not in self.known]
        if missing:
            answer = await self.model.embed(missing, purpose=purpose)
            for text, vector in zip(missing, answer.vectors, strict=True):
                self.known[text, purpose] = vector
        return Answer(np.stack([self.known[text, purpose] for text in texts]), tokens=0)

    async def close(self) -> None:
        await self.model.close()


@dataclass(frozen=True)
class Place:
    """A project's folder with agents, the same documentation as a tenant, and questions."""

    root: Path
    agent: Agent
    managers: dict[str, RagIndexManager]
    embedder: Remembering
    installation: Installation
    tenant: str
    questions: list[str]

    def vector(self, question: str) -> Vectors:
        return self.embedder.known[question, "query"]

    def found(self, store: str, question: str) -> list[SearchResult]:
        return self.managers[store].search(ID, question, TOP_K)


def corpus(root: Path) -> None:
    (root / "docs").mkdir(parents=True)
    for name in PAGES:
        shutil.copy(ROOT / f"docs/{name}.md", root / "docs")
    (root / "code").mkdir()
    for path in sorted((ROOT / "rag_assets/systems/agent_docs").glob("*.py"))[:6]:
        shutil.copy(path, root / "code")
    licences = root / "licences/deep"
    licences.mkdir(parents=True)
    for number, text in enumerate(licences_of_packages()):
        (licences / f"{number:02}.txt").write_text(text)
    same = "The pump is primed before the valve is opened, and never after.\n"
    for number in range(90):
        (licences / f"pump {number}.txt").write_text(same)
    odd = root / "odd"
    odd.mkdir()
    page = "# Tides\n\nThe tide turns twice a day. The harbour master rings a bell.\n\n"
    (odd / "marked.md").write_bytes(b"\xef\xbb\xbf" + (page * 20).encode())
    (odd / "lines.md").write_bytes((page * 20).replace("\n", "\r\n").encode())
    (odd / "100% of it, ünïcode.txt").write_text("Der Hafenmeister läutet die Glocke. " * 60)
    (odd / "arabic.md").write_text("# ميناء\n\n" + "يدق رئيس الميناء الجرس مرتين في اليوم. " * 60)
    (odd / "without suffix").write_text("A page without a suffix is plain text.\n" * 5)
    (odd / ".hidden.md").write_text("# Hidden\n\nFiles that begin with a dot match.\n")
    (odd / "key.md").write_text("# Key\n\naws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/b" * 2)


def licences_of_packages() -> list[str]:
    """Return licences, some of which are equal."""
    found = []
    for package in sorted({d.metadata["Name"] for d in metadata.distributions()}):
        for file in metadata.files(package) or ():
            if re.search(r"licen[cs]e", file.name, re.IGNORECASE) and file.suffix in {"", ".txt"}:
                text = file.read_binary().decode("utf-8", "ignore")
                if text.strip() and len(text) < 2_500:
                    found.append(text)
    return found[:40]


def questions_of(texts: Sequence[str]) -> list[str]:
    """Return word sequences of the corpus, ordered or shuffled, some from two passages."""
    chance = random.Random(20)
    found = []
    while len(found) < QUESTIONS:
        words = re.findall(r"\w+", chance.choice(texts))
        if len(words) < 5:
            continue
        at = chance.randrange(len(words) - 4)
        run = words[at : at + chance.randrange(3, 14)]
        if len(found) % 3 == 1:
            chance.shuffle(run)
        if len(found) % 5 == 2:
            run += re.findall(r"\w+", chance.choice(texts))[:5]
        found.append(" ".join(run))
    return found


def key_of(root: Path) -> bytes:
    """Create the key of the commands' user; with another key they would rebuild the index."""
    path = root / "home/.config/rag-assets/agent-index.key"
    if not path.exists():
        path.parent.mkdir(parents=True)
        path.write_bytes(os.urandom(32))
        path.chmod(0o600)
    return path.read_bytes()


@pytest.fixture(scope="module")
def place(shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("agents")
    corpus(root)
    (root / ".swebash").mkdir()
    file = root / ".swebash/agents.yaml"
    file.write_text(AGENTS)
    (shared_installation.home / "tenants.yaml").write_text(f"agents: [{file}]\ntenants: []\n")
    tenants = shared_installation.session().catalog.tenants.all()
    [tenant] = [one.id for one in tenants if one.id.startswith(TENANT)]
    shared_installation.synced(tenant)
    configuration = load_configuration(Environment({}, root, root / "home"))
    embedder = Remembering()
    stores: dict[str, PassageStore] = {
        "memory": MemoryStore(),
        "file": FileStore(root / "store"),
        "sqlite": SqliteStore(root / "rag.db"),
    }
    managers = {
        name: RagIndexManager(embedder, store, Chunking(900, 120), trust=Trust(key_of(root)))
        for name, store in stores.items()
    }
    agent = configuration.agents[ID]
    for manager in managers.values():
        manager.ensure_index(ID, agent.docs.sources.value, agent.base)
    texts = [chunk.content for chunk in stores["memory"].chunks(ID)]
    questions = questions_of(texts)
    return Place(root, agent, managers, embedder, shared_installation, tenant, questions)


def ranked(results: Sequence[SearchResult]) -> list[tuple[str, float]]:
    return [(result.chunk.id, result.score) for result in results]


def test_all_passages_are_the_same_bytes_of_their_files(place: Place) -> None:
    light = {c.id: c.content for c in place.managers["memory"].store.chunks(ID)}
    ctx = place.installation.context(place.tenant)
    serving = ctx.catalog.generations.serving(place.tenant)
    assert serving is not None
    stored = [e.fields for e in ctx.store.entries.stored(serving.index_name, ctx.owner(serving))]
    assert {one["chunk_id"]: one["text"] for one in stored} == light
    assert len(stored) == len(light) > 200
    for one in stored:
        path = parse_path(one["uri"])
        offset = int(one["chunk_id"].removeprefix(f"{build_passage_id_prefix(ID, path)}:"))
        data = (place.root / path).read_bytes()[offset:]
        text = one["text"].encode()
        # Comments of Markdown are left out; the offset is that in the file.
        present = re.sub(rb"<!--.*?-->", b"", data)[: len(text)]
        # Every character of a credential is masked in its place.
        assert all(b in {a, ord("*")} for a, b in zip(present, text, strict=True)), path
        assert present == text or b"****" in text
    assert not any("wJalrXUtnFEMI" in one["text"] for one in stored)


def test_every_store_has_the_same_passages_in_the_same_order(
    place: Place,
) -> None:
    ties = 0
    for question in place.questions:
        wanted = ranked(place.found("memory", question))
        assert len(wanted) == TOP_K
        for store in ("file", "sqlite"):
            assert ranked(place.found(store, question)) == wanted, (store, question)
        scores = [score for _, score in wanted]
        ties += len(set(scores)) < len(scores)
    assert ties > 5, "without ties their order is not tested"


def test_searches_of_the_service_find_the_same(place: Place) -> None:
    def shown(hits: Sequence[Hit]) -> list[tuple[str, float | None, str]]:
        return [(hit.chunk_id, hit.score, hit.text) for hit in hits]

    for question in place.questions:
        light = place.found("memory", question)
        wanted = [(one.chunk.id, one.score, one.chunk.content) for one in light]
        assert shown(place.installation.search(place.tenant, question)) == wanted, question


def test_more_equal_passages_than_are_asked_for_come_by_their_ids(
    place: Place,
) -> None:
    question = "is the pump primed before the valve is opened?"
    for top_k in (1, 5, 100):
        wanted = ranked(place.managers["sqlite"].search(ID, question, top_k))
        hits = place.installation.search(place.tenant, question, top_k=top_k)
        assert [(hit.chunk_id, hit.score) for hit in hits] == wanted


def test_the_tool_answers_byte_for_byte(place: Place) -> None:
    session = place.installation.session()
    reader = DocumentReader(session.catalog, session.store)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    message = MessageContext(place.tenant, Caller())
    tools = [*DEFAULT_TOOLS, *installed_systems().load("tools").values()]
    server = build_server(Knowledge(retriever.search, reader), lambda _: message, tools)
    light = build_light_server(
        RefreshingIndex(place.managers["sqlite"], place.agent, report_failure=pytest.fail)
    )

    wanted = {
        question: format_results(place.found("file", question)) for question in place.questions
    }

    async def compare() -> None:
        try:
            async with Client(server) as service, Client(light) as alone:
                [tool] = [t for t in (await service.list_tools()).tools if t.name == "rag_search"]
                assert (await alone.list_tools()).tools == [tool]
                assert tool.description == build_tool_schema()["description"]
                for question in place.questions:
                    ours = await service.call_tool("rag_search", {"query": question})
                    theirs = await alone.call_tool("rag_search", {"query": question})
                    assert ours == theirs
                    [content] = ours.content
                    assert content.text == wanted[question]
                for wrong in ({"query": "  "}, {"query": "x" * 4_001}, {}):
                    ours = await service.call_tool("rag_search", wrong)
                    theirs = await alone.call_tool("rag_search", wrong)
                    assert ours.is_error
                    assert theirs.is_error
        finally:
            await retriever.close()

    asyncio.run(compare())


def test_commands_serve_the_same_over_a_pipe_and_over_http(place: Place, tmp_path: Path) -> None:
    """The processes are those that users start: `rag-assets mcp`, `serve` and `agent mcp`."""
    asked = place.questions[:12]
    installation, tenant = place.installation, place.tenant
    token = installation.command("tokens", "create", tenant, "--json").json["token"]
    environment = {**os.environ, **installation.environment}
    command = [sys.executable, "-m", "rag_assets.cli"]
    pipe = StdioServerParameters(
        command=command[0], args=[*command[1:], "mcp", tenant], env=environment
    )
    alone = StdioServerParameters(
        command=command[0],
        args=[*command[1:], "agent", "mcp", ID],
        env={**environment, "HOME": str(place.root / "home")},
        cwd=place.root,
    )

    async def answers(client: Client) -> list[str]:
        found = [await client.call_tool("rag_search", {"query": question}) for question in asked]
        return [str(one.content[0].text) for one in found]  # type: ignore[union-attr]

    async def over(server: StdioServerParameters) -> list[str]:
        async with Client(server, read_timeout_seconds=60) as client:
            return await answers(client)

    async def over_http(port: int) -> list[str]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            address = f"http://127.0.0.1:{port}/mcp"
            async with Client(streamable_http_client(address, http_client=http)) as client:
                [tool] = [t for t in (await client.list_tools()).tools if t.name == "rag_search"]
                assert list(tool.input_schema["properties"]) == ["query"]
                return await answers(client)

    wanted = [format_results(place.found("sqlite", question)) for question in asked]
    assert asyncio.run(over(pipe)) == wanted
    assert asyncio.run(over(alone)) == wanted
    with started(installation, tmp_path / "log") as (_, port):
        assert asyncio.run(over_http(port)) == wanted
