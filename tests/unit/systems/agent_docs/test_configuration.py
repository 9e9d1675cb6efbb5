"""agents.yaml: layers, variables, defaults, and one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.configuration import Environment, find_agent, load_configuration
from rag_assets.systems.agent_docs.errors import UnknownAgent
from rag_assets.systems.agent_docs.settings import VARIABLES, Configuration

FULL = """\
version: 1
defaults:
  temperature: 0.5
  thinking: {mode: short}
rag:
  store: sqlite
  path: .swebash/rag.db
  chunk_size: 2000
  chunk_overlap: 200
agents:
  - id: awscli
    name: AWS
    description: Knows aws
    temperature: 0.2
    systemPrompt: |
      You know aws.
    tools: {fs: false, exec: true}
    triggerKeywords: [aws, s3]
    docs:
      strategy: rag
      budget: 9000
      top_k: 7
      sources:
        - "docs/ref/*.md"
  - id: git
    docs: {sources: "man/*.md"}
"""


class Machine:
    def __init__(self, root: Path) -> None:
        self.work, self.home = root / "work", root / "home"
        self.variables: dict[str, str] = {}
        for folder in (self.work, self.home):
            folder.mkdir()

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def declare(self, text: str) -> Path:
        """Write the file of the working directory."""
        return self.write(self.work / ".swebash/agents.yaml", text)

    def load(self) -> Configuration:
        return load_configuration(Environment(self.variables, self.work, self.home))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_files_the_defaults_hold(machine: Machine) -> None:
    found = machine.load()
    rag = found.rag
    assert (rag.store.value, rag.chunk_size.value, rag.chunk_overlap.value) == ("memory", 2000, 200)
    assert rag.path.value == machine.work / ".swebash/rag"
    assert (found.tool_for_all.value, found.agents, found.files) == (False, {}, ())


def test_a_full_file_with_settings_of_other_programs_is_read(machine: Machine) -> None:
    path = machine.declare(FULL)
    found = machine.load()
    assert found.warnings == ()
    assert found.rag.path.value == machine.work / ".swebash/rag.db"
    aws, git = found.agents.values()
    assert (aws.id, aws.prompt, aws.description) == ("awscli", "You know aws.\n", "Knows aws")
    docs = aws.docs
    assert (docs.strategy.value, docs.budget.value, docs.top_k.value) == ("rag", 9000, 7)
    assert docs.top_k.origin == f"{path}:22"
    assert (git.docs.strategy.value, git.docs.budget.value) == ("preload", 12_000)
    assert (git.docs.top_k.value, git.docs.sources.value) == (5, ("man/*.md",))
    assert aws.base == machine.work


def test_later_layers_replace_agents_whole_and_settings_one_by_one(machine: Machine) -> None:
    machine.declare(FULL)
    own = machine.write(
        machine.home / ".config/swebash/agents.yaml",
        "rag: {chunk_size: 900, path: mine}\nagents:\n  - {id: awscli, docs: {sources: [a.md]}}\n",
    )
    machine.write(machine.home / ".swebash/agents.yaml", "rag: {chunk_size: 77}\n")
    found = machine.load()
    assert (found.rag.store.value, found.rag.chunk_size.value) == ("sqlite", 900)
    assert found.rag.chunk_size.origin == f"{own}:1"
    assert found.rag.path.value == own.parent / "mine"
    aws = found.agents["awscli"]
    assert (aws.docs.strategy.value, aws.prompt, aws.base) == ("preload", "", own.parent)
    assert set(found.agents) == {"awscli", "git"}


def test_a_named_file_is_the_users_and_nothing_else(machine: Machine) -> None:
    machine.write(machine.home / ".config/swebash/agents.yaml", "rag: {chunk_size: 900}\n")
    named = machine.write(machine.work / "other.yaml", "rag: {chunk_overlap: 10}\n")
    machine.variables["SWEBASH_AGENTS_CONFIG"] = str(named)
    found = machine.load()
    assert (found.rag.chunk_size.value, found.rag.chunk_overlap.value) == (2000, 10)
    assert found.files == (named,)


@pytest.mark.parametrize(
    ("variable", "given", "value", "read"),
    [
        ("SWEBASH_AI_RAG_STORE", "file", "file", lambda c: c.rag.store),
        ("SWEBASH_AI_RAG_STORE_PATH", "/x/y", Path("/x/y"), lambda c: c.rag.path),
        ("SWEBASH_AI_RAG_CHUNK_SIZE", "700", 700, lambda c: c.rag.chunk_size),
        ("SWEBASH_AI_RAG_CHUNK_OVERLAP", "70", 70, lambda c: c.rag.chunk_overlap),
        ("SWEBASH_AI_TOOLS_RAG", "true", True, lambda c: c.tool_for_all),
        ("SWEBASH_AI_DOCS_BASE_DIR", "~/docs", None, lambda c: c.base),
    ],
)
def test_variables_override_files(machine, variable, given, value, read) -> None:  # type: ignore[no-untyped-def]
    machine.declare(FULL)
    machine.write(machine.home / "docs/.swebash/agents.yaml", FULL)
    machine.variables[variable] = given
    setting = read(machine.load())
    assert setting.value == (machine.home / "docs" if value is None else value)
    assert setting.origin == f"variable {variable}"
    assert variable in VARIABLES
    machine.variables[variable] = ""
    assert read(machine.load()).origin != f"variable {variable}"


def test_the_base_variable_applies_to_all_relative_globs(machine: Machine) -> None:
    base = machine.work / "base"
    machine.write(base / ".swebash/agents.yaml", FULL)
    own = "agents: [{id: mine, docs: {sources: [a.md]}}]\n"
    machine.write(machine.home / ".swebash/agents.yaml", own)
    machine.variables["SWEBASH_AI_DOCS_BASE_DIR"] = "base"
    assert {agent.base for agent in machine.load().agents.values()} == {base}


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("rag: {store: postgres}\n", "1:14", "store must be one of memory, file, sqlite"),
        ("rag:\n  chunk_size: many\n", "2:15", "chunk_size must be a whole number"),
        ("rag: 5\n", "1:6", "rag must be a mapping"),
        ("agents:\n  - id: a\n    docs:\n      top_k: 101\n", "4:14", "top_k must be"),
        ("agents:\n  - id: a\n    docs: {strategy: vector}\n", "3:22", "strategy must be one of"),
        ("agents:\n  - id: a\n    docs: {sources: {a: b}}\n", "3:21", "sources must be a list"),
        ("agents:\n  - id: a\n  - id: a\n", "3:9", "declared twice"),
        ("agents:\n  - name: a\n", "2:5", "an agent must be a mapping with a text as its `id`"),
        ("agents: {a: b}\n", "1:9", "agents must be a list"),
        ("- a\n", "1:1", "the document must be a mapping"),
        ("rag: [\n", "2:1", "the file is not valid YAML"),
        ("rag: {store: file}\nrag: {store: file}\n", "2:1", "a key occurs twice"),
        ("\x00", "1:1", "the file is not valid YAML"),
    ],
)
def test_a_mistake_is_one_line(machine: Machine, text: str, place: str, what: str) -> None:
    path = machine.declare(text)
    with pytest.raises(ConfigurationError) as raised:
        machine.load()
    assert raised.value.message.startswith(f"{path}:{place}: ")
    assert what in raised.value.message
    assert "\n" not in raised.value.message


def test_a_merged_setting_keeps_its_place(machine: Machine) -> None:
    text = (
        "shared: &shared\n  top_k: 3\n  strategy: rag\nagents:\n"
        "  - {id: a, docs: {<<: *shared, sources: [a.md], topk: 1}}\n  - {id: b, docs: *shared}\n"
    )
    path = machine.declare(text)
    found = machine.load()
    assert len(found.warnings) == 1
    for agent in found.agents.values():
        assert (agent.docs.top_k.value, agent.docs.top_k.origin) == (3, f"{path}:2")
    machine.write(path, text.replace("top_k: 3", "top_k: 300"))
    with pytest.raises(ConfigurationError, match=r"agents.yaml:2:10: top_k must be"):
        machine.load()


@pytest.mark.parametrize(
    ("variable", "given"),
    [
        ("SWEBASH_AI_RAG_STORE", "redis"),
        ("SWEBASH_AI_RAG_CHUNK_SIZE", "-1"),
        ("SWEBASH_AI_RAG_CHUNK_OVERLAP", "1.5"),
        ("SWEBASH_AI_TOOLS_RAG", "maybe"),
        ("SWEBASH_AI_DOCS_BASE_DIR", "/nowhere/at/all"),
        ("SWEBASH_AGENTS_CONFIG", "/nowhere.yaml"),
    ],
)
def test_a_wrong_variable_is_named(machine: Machine, variable: str, given: str) -> None:
    machine.variables[variable] = given
    with pytest.raises(ConfigurationError, match=variable):
        machine.load()


def test_unknown_settings_in_our_blocks_cause_warnings(machine: Machine) -> None:
    machine.declare("rag: {chunksize: 5}\nother: 1\nagents: [{id: a, docs: {topk: 3}, more: 1}]\n")
    first, second = machine.load().warnings
    assert first.endswith("agents.yaml:1: rag has no setting chunksize; did you mean chunk_size?")
    assert second.endswith("agents.yaml:3: agent a: docs has no setting topk; did you mean top_k?")


def test_an_overlap_over_half_becomes_half(machine: Machine) -> None:
    machine.declare("rag: {chunk_size: 5000, chunk_overlap: 4000}\n")
    found = machine.load()
    assert (found.rag.chunk_size.value, found.rag.chunk_overlap.value) == (5000, 2500)
    assert "over half" in found.warnings[0]


def test_agents_are_found_with_and_without_the_at_sign(machine: Machine) -> None:
    machine.declare(FULL)
    found = machine.load()
    assert find_agent(found, "@git") is find_agent(found, "git")
    with pytest.raises(UnknownAgent) as raised:
        find_agent(found, "gti")
    assert raised.value.hint == "known agents: @awscli, @git"
