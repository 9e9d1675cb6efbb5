"""Prompts: documentation within a budget, or a hint at the tool, and which of them is advised."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import canonical
from rag_assets.common.tokens import count_text
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.systems.agent_docs.configuration import Environment, load_configuration
from rag_assets.systems.agent_docs.globs import expand_patterns
from rag_assets.systems.agent_docs.hosts import (
    HOSTS,
    build_server_configs,
    merge_servers,
    render_servers,
)
from rag_assets.systems.agent_docs.prompts import (
    advise,
    build_hint,
    build_prompt,
    build_tool_schema,
    has_search_tool,
    preload,
    read_sections,
)
from rag_assets.systems.agent_docs.settings import Configuration

SECTION = "## Section {n}\n\nFirst sentence of {n}. Second sentence of {n}. Third one of {n}.\n\n"


def plain(parsed: ParsedText) -> ParsedText:
    return parsed


def configured(folder: Path, docs: str, variables: dict[str, str] | None = None) -> Configuration:
    (folder / ".swebash").mkdir(exist_ok=True)
    text = f"agents:\n  - {{id: a, systemPrompt: You help., docs: {docs}}}\n"
    (folder / ".swebash/agents.yaml").write_text(text)
    return load_configuration(Environment(variables or {}, folder, folder / "home"))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        text = "---\ntags: [x]\n---\n# Title\n\n" + "".join(SECTION.format(n=n) for n in range(9))
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


@pytest.mark.parametrize("budget", [0, 5, 40, 100, 250, 400, 5_000])
def test_sections_fill_the_budget_up_to_a_whole_sentence(docs: Path, budget: int) -> None:
    documentation = read_sections(expand_patterns(["two.md", "one.md"], docs).files, plain)
    found = preload(documentation, budget)
    assert found.tokens == count_text(found.text) <= budget
    whole = documentation.token_count + 20 < budget
    assert bool(found.left_out) != whole
    if found.text:
        assert found.text.startswith("--- two.md ---\n# Title")
        assert found.text.rstrip().endswith((".", "Title")) or "Section" in found.text[-14:]
    assert "tags" not in found.text
    if whole:
        assert found.text.count("## Section") == 18
        assert found.text.index("--- two.md ---") < found.text.index("--- one.md ---")


def test_omitted_sections_are_named(docs: Path) -> None:
    documentation = read_sections(expand_patterns(["two.md", "one.md"], docs).files, plain)
    names = preload(documentation, 150).left_out
    assert names[0].startswith("two.md: Section")
    assert names[-1] == "one.md"


def test_the_strategy_decides_what_a_prompt_has(docs: Path) -> None:
    preloaded = configured(docs, '{sources: ["*.md"]}')
    text = build_prompt(preloaded, preloaded.agents["a"], plain).text
    assert text.startswith("You help.\n\n--- one.md ---")
    assert "rag_search" not in text
    searched = configured(docs, '{strategy: rag, sources: ["*.md"]}')
    text = build_prompt(searched, searched.agents["a"], plain).text
    assert "rag_search" in text
    assert "--- one.md" not in text
    assert "one, two" in text
    without = build_prompt(searched, searched.agents["a"], plain, can_search=False).text
    assert "--- one.md ---" in without
    assert "rag_search" not in without


@pytest.mark.parametrize(
    ("docs_of_agent", "variable", "has"),
    [
        ('{strategy: rag, sources: ["*.md"]}', "false", True),
        ('{sources: ["*.md"]}', "", False),
        ('{sources: ["*.md"]}', "true", True),
        ("{strategy: rag}", "true", False),
    ],
)
def test_rag_agents_with_sources_have_the_tool(
    docs: Path, docs_of_agent: str, variable: str, has: bool
) -> None:
    found = configured(docs, docs_of_agent, {"SWEBASH_AI_TOOLS_RAG": variable})
    assert has_search_tool(found, found.agents["a"]) is has


def test_the_hint_and_the_schema_are_short(docs: Path) -> None:
    for number in range(300):
        name = f"some-rather-long-name-of-a-file-{number}"
        (docs / f"{name}.md").write_text("text")
    found = configured(docs, '{strategy: rag, sources: ["*.md"]}')
    assert 20 < count_text(build_hint(found.agents["a"])) <= 120
    assert count_text(canonical(build_tool_schema())) <= 150


def test_many_files_are_described_by_what_they_have_in_common(tmp_path: Path) -> None:
    verbs = [*(f"config_{x}" for x in "abcdefghij"), *(f"rollout_{x}" for x in "abcdefgh")]
    names = [*(f"alpha{x}" for x in "abcdefghijklmnop"), *verbs]
    for folder in ("reference", "guides"):
        (tmp_path / folder).mkdir()
    for number, name in enumerate(names):
        place = tmp_path / ("guides" if number % 3 else "reference") / f"tool_{name}.md"
        place.write_text(f"---\nx: y\n---\n# tool {name}\n\nIt helps.\n")
    found = configured(tmp_path, '{strategy: rag, sources: ["**/*.md"]}')
    hint = build_hint(found.agents["a"])
    assert "(34 files) about tool, guides, reference, config, rollout" in hint
    assert count_text(hint) <= 120
    docs = '{strategy: rag, sources: ["**/*.md"], description: Pages of the tool.}'
    described = build_hint(configured(tmp_path, docs).agents["a"])
    assert "this agent (34 files). Pages of the tool. Call it" in described


def test_a_threshold_is_a_cosine(docs: Path) -> None:
    found = configured(docs, '{sources: ["*.md"], min_score: 0.4}')
    assert found.agents["a"].docs.min_score.value == 0.4
    for wrong in ("2", "true", "'0.4'"):
        with pytest.raises(ConfigurationError, match="min_score must be a number from -1 to 1"):
            configured(docs, f'{{sources: ["*.md"], min_score: {wrong}}}')


def test_little_documentation_is_preloaded_and_much_is_searched(docs: Path) -> None:
    found = configured(docs, '{sources: ["*.md"]}')
    little = advise(found, found.agents["a"], plain)
    assert (little.way, little.files) == ("preload", 2)
    assert little.tokens == little.preload_tokens
    for number in range(30):
        (docs / f"n{number}.md").write_text("A sentence. " * 10)
    assert advise(found, found.agents["a"], plain).way == "rag"
    for path in docs.glob("n*.md"):
        path.unlink()
    (docs / "long.md").write_text("Another sentence of this. " * 4_000)
    much = advise(found, found.agents["a"], plain)
    assert much.way == "rag"
    assert much.rag_tokens < much.preload_tokens == 12_000
    tiny = configured(docs, '{sources: ["*.md"]}', {"SWEBASH_AI_RAG_CHUNK_SIZE": "64"})
    (docs / "huge.md").write_text("Another sentence of this. " * 50_000)
    assert advise(tiny, tiny.agents["a"], plain).way == "dagster"


@pytest.mark.parametrize("name", HOSTS)
def test_configurations_of_hosts_are_what_their_files_hold(name: str) -> None:
    host = HOSTS[name]
    variables = {"SWEBASH_AI_RAG_STORE": "sqlite", "SWEBASH_AGENTS_CONFIG": "/ü/😀"}
    around = Environment({**variables, "KEY": "secret"}, Path("/srv/é"), Path("/home"))
    agents = ["a", "b c", "b/c", "..", "ü"]
    configs = build_server_configs(host, '/opt/my "own"/rag-assets', agents, around)
    text = render_servers(host, configs)
    read = tomllib.loads(text) if host.is_toml else json.loads(text)
    servers = read[host.key]
    assert list(servers) == ["rag-a", "rag-b-c", "rag-b-c-2", "rag-agent", "rag-agent-2"]
    assert servers["rag-b-c"]["command"] == '/opt/my "own"/rag-assets'
    assert servers["rag-b-c"]["args"] == ["agent", "mcp", "@b c", "--folder", "/srv/é"]
    assert servers["rag-a"]["env"] == variables
    bare = Environment({}, Path("/w"), Path("/home"))
    without = render_servers(host, build_server_configs(host, "/x", ["a"], bare))
    assert "env" not in without or host.extra == {"env": {}}


@pytest.mark.parametrize("name", HOSTS)
def test_servers_are_merged_into_what_a_hosts_file_holds(name: str) -> None:
    host, around = HOSTS[name], Environment({}, Path("/w"), Path("/home"))
    others = {"theme": "dark", host.key: {"other": {"command": "x", "args": ["é"]}}}
    former = build_server_configs(host, "/old", ["a", "b"], around)
    text = json.dumps(others)
    if host.is_toml:
        text = f'theme = "dark" # mine\n\n[{host.key}.other]\ncommand = "x"\nargs = ["é"]\n'
    load = tomllib.loads if host.is_toml else json.loads
    once = merge_servers(host, text, former)
    twice = merge_servers(host, once, build_server_configs(host, "/new", ["a"], around))
    found = load(twice)
    assert found["theme"] == "dark"
    assert found[host.key]["other"] == others[host.key]["other"]  # type: ignore[index]
    assert found[host.key]["rag-a"]["command"] == "/new"
    assert found[host.key]["rag-b"]["command"] == "/old"
    assert not host.is_toml or "# mine" in twice
    assert load(merge_servers(host, "", former)) == {host.key: former}
    with pytest.raises(ConfigurationError, match="was not changed"):
        merge_servers(host, "// {} [", former)
