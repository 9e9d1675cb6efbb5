"""Agents of agents.yaml as tenants: created, changed, removed; conflicts and invalid files."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from sqlalchemy import text

from rag_assets.pipeline.tenancy import Projects, Reconciliation, reconcile_tenants
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.agent_docs.tenants import derive_tenant_id
from rag_assets.tenants.projects import Project, ProjectSettings
from tests.installation import Installation, new_installation

FAST = {"provider": "deterministic"}


class Place:
    """An installation, and two agents.yaml files that tenants.yaml names."""

    def __init__(self, installation: Installation, root: Path) -> None:
        self.installation = installation
        self.root = root
        self.first, self.second = root / "one/.swebash/agents.yaml", root / "two/agents.yaml"
        for path in (self.first, self.second):
            path.parent.mkdir(parents=True)
        (root / "one/docs").mkdir()
        (root / "one/docs/valves.md").write_text("# Valves\n\nThe valve opens at 4 bar.\n")
        self.agents(self.first, guide=["docs/*.md"])
        self.agents(self.second)
        self.file.write_text(
            f"# Kept.\nagents:\n  - {self.first}\n  - {self.second}\ntenants: []\n"
        )

    @property
    def file(self) -> Path:
        return self.installation.home / "tenants.yaml"

    def agents(self, path: Path, rag: str = "", **sources: list[str]) -> None:
        lines = [rag, "agents:"] if sources else [rag or "agents: []"]
        for id_, patterns in sources.items():
            lines.append(f"  - id: {id_!r}\n    docs: {{strategy: rag, sources: {patterns}}}")
        path.write_text("\n".join(lines) + "\n")

    def reconciled(self) -> Reconciliation:
        session = self.installation.session()
        return reconcile_tenants(session.catalog, session.settings, session.identity)

    def tenants(self) -> dict[str, TenantRecord]:
        return {record.id: record for record in self.reconciled().records}

    def states(self) -> Mapping[str, tuple[str, str]]:
        return {id_: (tenant.origin, tenant.state) for id_, tenant in self.tenants().items()}

    def problem(self) -> str:
        [problem] = self.reconciled().problems
        return problem.advice


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, elasticsearch_url: str
) -> Iterator[Installation]:
    home = tmp_path_factory.mktemp("agent-tenants") / "home"
    with new_installation(home, postgres_url, elasticsearch_url) as installation:
        yield installation


@pytest.fixture
def place(installed: Installation, tmp_path: Path) -> Iterator[Place]:
    yield Place(installed, tmp_path)
    (installed.home / "tenants.yaml").write_text("tenants: []\n")
    with installed.session().catalog.database.begin() as connection:
        connection.execute(text("DELETE FROM rag_catalog.tenants"))


def test_agents_with_the_strategy_rag_are_tenants(place: Place) -> None:
    place.first.write_text(
        "rag: {chunk_size: 3000, chunk_overlap: 5000}\n"
        "agents:\n"
        "  - id: guide\n"
        "    docs: {strategy: rag, top_k: 9, mode: hybrid, sources: ['docs/*.md', 'x/*']}\n"
        "  - {id: preloaded, docs: {sources: ['docs/*.md']}}\n"
        "  - {id: without sources, docs: {strategy: rag}}\n"
        "  - {id: 'Ärger!', docs: {strategy: rag, sources: [x.md]}, systemPrompt: Be brief.}\n"
    )
    found = place.tenants()
    slug = derive_tenant_id("Ärger!")
    assert {id_: one.origin for id_, one in found.items()} == {"guide": "agents", slug: "agents"}
    config = found["guide"].config
    assert (config["profile"], config["retrieval"]) == (
        "agent-docs",
        {"top_k": 9, "mode": "hybrid"},
    )
    limits = {"chunker": "passage", "max_characters": 3000, "overlap": 1500}
    assert config["chunker"] == limits
    [source] = config["sources"]
    assert source["base"] == str(place.root / "one"), "above its .swebash"
    assert source["patterns"] == ["docs/*.md", "x/*"]
    assert source["within"] == [source["base"]]
    assert found[slug].config["sources"][0]["agent"] == "Ärger!"


def test_an_agent_taken_out_is_disabled_and_comes_back(place: Place) -> None:
    place.agents(place.second, other=["*.md"])
    assert place.states() == {"guide": ("agents", "ACTIVE"), "other": ("agents", "ACTIVE")}
    place.agents(place.second)
    assert place.states()["other"] == ("agents", "DISABLED")
    place.agents(place.second, other=["*.md"])
    assert place.states()["other"] == ("agents", "ACTIVE")
    place.file.write_text("tenants: []\n")
    assert {state for _, state in place.states().values()} == {"DISABLED"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("agents: [}", ":1:10: the file is not valid YAML"),
        ("rag: {chunk_size: much}", ":1:19: chunk_size must be a whole number"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_file_leaves_the_tenants_of_agents_as_they_are(
    place: Place, wrong: str | None, said: str
) -> None:
    place.agents(place.second, other=["*.md"])
    before = place.states()
    if wrong is None:
        place.second.unlink()
    else:
        place.second.write_text(wrong)
    place.agents(place.first, guide=["*"], third=["docs/*"])
    folder = place.installation.add_tenant("plain", embedder=FAST)
    assert place.states() == before | {
        "plain": ("file", "ACTIVE"),
        "third": ("agents", "ACTIVE"),
    }
    assert f"{place.second}" in place.problem()
    assert said in place.problem()
    assert folder.is_dir()
    listed = place.installation.command("tenants", "list", "--json")
    assert listed.code == 0
    assert f"warning: {place.second}" in listed.err


def test_commands_that_write_tenants_yaml_keep_the_agents(place: Place) -> None:
    before = place.file.read_text()
    folder = place.root / "one/docs"
    assert place.installation.command("tenants", "add", "mine", "--source", str(folder)).code == 0
    after = place.file.read_text()
    assert after.startswith(before.removesuffix("tenants: []\n"))
    assert place.states() == {"guide": ("agents", "ACTIVE"), "mine": ("file", "ACTIVE")}
    assert place.installation.command("tenants", "disable", "mine").code == 0
    assert str(place.second) in place.file.read_text()


@pytest.mark.parametrize("pattern", ["/etc/passwd", "~/*", "../two/*", "linked/*.md"])
def test_an_agent_that_leads_out_of_its_project_is_no_tenant(place: Place, pattern: str) -> None:
    (place.root / "one/linked").symlink_to(place.root / "two")
    place.agents(place.second, other=["*.md"])
    assert place.states()["guide"] == ("agents", "ACTIVE")
    place.agents(place.first, guide=["docs/*.md", pattern])
    assert place.states() == {"guide": ("agents", "DISABLED"), "other": ("agents", "ACTIVE")}
    said = f"{place.first}:4: the source '{pattern}' of agent 'guide' is outside the project"
    assert said in place.problem()
    place.agents(place.first, guide=["docs/*.md"])
    assert place.states()["guide"] == ("agents", "ACTIVE")


def test_a_folder_that_becomes_a_link_is_read_no_more(place: Place) -> None:
    """The file has not changed, so only opening the source can refuse it."""
    run = place.installation.command
    place.installation.synced("guide")
    outside = place.root / "outside"
    outside.mkdir()
    (outside / "treasure.md").write_text("The treasure lies under the oak.\n")
    (place.root / "one/docs").rename(place.root / "one/former")
    (place.root / "one/docs").symlink_to(outside)
    done = run("sync", "guide", "--allow-deletes")
    assert done.code != 0
    assert "is outside" in done.err
    assert "treasure" not in run("search", "guide", "Where is the treasure?").out


def test_an_agent_that_two_files_declare_stays_as_it_is(place: Place) -> None:
    before = place.tenants()["guide"]
    place.agents(place.second, guide=["other/*.md"], new=["*.md"])
    problem = place.problem()
    assert f"{place.first}:" in problem
    assert f"{place.second}:" in problem
    after = place.tenants()
    assert after["guide"].config == before.config
    assert (after["guide"].state, after["new"].state) == ("ACTIVE", "ACTIVE")


def test_a_tenant_of_tenants_yaml_goes_before_an_agent(place: Place) -> None:
    assert place.states() == {"guide": ("agents", "ACTIVE")}
    place.installation.add_tenant("guide", embedder=FAST)
    place.agents(place.second, other=["*.md"])
    assert place.states() == {"guide": ("file", "ACTIVE"), "other": ("agents", "ACTIVE")}
    assert "'guide' was not created as a tenant: tenants.yaml lists a tenant" in place.problem()
    # It may have had records, which cannot be restored from a file.
    place.file.write_text(place.file.read_text().partition("tenants:")[0] + "tenants: []\n")
    assert place.states()["guide"] == ("file", "DISABLED")
    assert "rag-assets tenants remove guide --yes" in place.problem()
    assert place.tenants()["guide"].config["profile"] == "documents"


def test_a_project_of_the_api_goes_before_an_agent(place: Place) -> None:
    session = place.installation.session()
    made = Projects(session.catalog, session.settings).put(
        Project("team-guidelines", "acme", "web"), ProjectSettings()
    )
    place.agents(place.second, **{made.record.id: ["*.md"]}, other=["*.md"])
    assert "was created over the API" in place.problem()
    states = place.states()
    assert states[made.record.id] == ("api", "ACTIVE")
    assert states["other"] == ("agents", "ACTIVE")


def test_what_a_file_declares_is_changed_there(place: Place) -> None:
    run = place.installation.command
    assert place.states() == {"guide": ("agents", "ACTIVE")}
    disabled = run("tenants", "disable", "guide")
    assert disabled.code == 1
    assert "remove it from that file" in disabled.err
    removed = run("tenants", "remove", "guide", "--yes")
    assert removed.code == 1
    assert f"it is declared at {place.first}:3" in removed.err
    place.agents(place.first)
    assert run("tenants", "remove", "guide", "--yes").code == 0
    assert place.states() == {}


def test_a_value_that_is_no_list_of_paths_is_refused(place: Place) -> None:
    place.file.write_text("agents: {a: b}\ntenants: []\n")
    done = place.installation.command("tenants", "list")
    assert done.code == 1
    assert "agents must be a list of paths" in done.err
    place.file.write_text("agens: []\n")
    done = place.installation.command("tenants", "list")
    assert "unknown field 'agens'" in done.err


def test_the_variables_of_agents_count(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEBASH_AI_DOCS_BASE_DIR", str(place.root))
    monkeypatch.setenv("SWEBASH_AI_RAG_CHUNK_SIZE", "500")
    config = place.tenants()["guide"].config
    assert config["sources"][0]["base"] == str(place.root)
    assert config["chunker"]["max_characters"] == 500
    monkeypatch.setenv("SWEBASH_AI_RAG_CHUNK_SIZE", "many")
    before = place.states()
    assert "SWEBASH_AI_RAG_CHUNK_SIZE must be a whole number" in place.problem()
    assert place.states() == before == {"guide": ("agents", "ACTIVE")}


def test_the_command_serves_an_agent_its_tool(place: Place) -> None:
    place.installation.synced("guide")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rag_assets.cli", "mcp", "guide"],
        env={**os.environ, **place.installation.environment},
    )

    async def run() -> tuple[Any, Any]:
        async with Client(server, read_timeout_seconds=60) as client:
            [tool] = [t for t in (await client.list_tools()).tools if t.name == "rag_search"]
            assert list(tool.input_schema["properties"]) == ["query"]
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            found = await client.call_tool("rag_search", {"query": "At what pressure?"})
            empty = await client.call_tool("rag_search", {"query": " "})
            return found, empty

    found, empty = asyncio.run(run())
    [content] = found.content
    first, second, *_ = content.text.splitlines()
    assert first.startswith("--- Result 1 (score: 0.")
    assert first.endswith(", source: docs/valves.md) ---")
    assert second == "# Valves"
    assert empty.is_error
    assert "the query is empty; enter the words to search for" in empty.content[0].text
    (place.root / "one/docs/valves.md").unlink()
    place.installation.synced("guide", allow_deletes=True)
    assert not place.installation.search("guide", "pressure")
