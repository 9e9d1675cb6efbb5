"""agent: list, config, advise, preload, prompt, tools, host."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.systems.agent_docs.advice import advise
from rag_assets.systems.agent_docs.configuration import Surroundings, agent_of, load_configuration
from rag_assets.systems.agent_docs.credentials import ProjectRules
from rag_assets.systems.agent_docs.globs import expand
from rag_assets.systems.agent_docs.hosts import (
    Host,
    configuration_text,
    host_of,
    merged_text,
    servers_of,
)
from rag_assets.systems.agent_docs.opening import open_embedder
from rag_assets.systems.agent_docs.preload import preload
from rag_assets.systems.agent_docs.prompts import (
    SECONDS,
    has_tool,
    prompt_of,
    tool_categories,
    tool_schema,
)
from rag_assets.systems.agent_docs.sections import read_sections
from rag_assets.systems.agent_docs.settings import Agent, Configuration, Setting


def configured() -> Configuration:
    """The configuration of this process, with its warnings on standard error."""
    configuration = load_configuration(Surroundings.of_process())
    for warning in configuration.warnings:
        warn(warning)
    for error in configuration.refused.values():
        warn(f"an agent is left out: {error.message}")
    return configuration


def chosen(configuration: Configuration, ids: Sequence[str]) -> list[Agent]:
    """The agents of these ids; by default all that have sources."""
    if ids:
        return [agent_of(configuration, id_) for id_ in ids]
    return [agent for agent in configuration.agents.values() if agent.docs.sources.value]


def can_search(configuration: Configuration, agent: Agent) -> bool:
    """Whether there is an embedder; a warning says so where an agent needs one."""
    try:
        open_embedder(configuration)
    except ConfigurationError as error:
        if has_tool(configuration, agent):
            warn(f"@{agent.id} is preloaded instead: {error.message}")
        return False
    return True


def warn_of_empty(empty: Sequence[str]) -> None:
    """Warn of patterns that match no file."""
    for pattern in empty:
        warn(f"no file matches {pattern}")


def list_agents(*, as_json: bool) -> None:
    """Print all agents."""
    configuration = configured()
    rows = [
        {
            "id": agent.id,
            "strategy": agent.docs.strategy.value,
            "mode": agent.docs.mode.value,
            "sources": list(agent.docs.sources.value),
            "description": agent.description or agent.name,
            "declared": agent.origin,
        }
        for agent in configuration.agents.values()
    ]
    if as_json:
        print_json({"agents": rows})
    elif not rows:
        say("No agent is declared. Agents are declared in .swebash/agents.yaml.")
    else:
        shown = [[f"@{r['id']}", r["strategy"], len(r["sources"]), r["declared"]] for r in rows]
        print_table(["agent", "strategy", "sources", "declared"], shown)


def show_config(*, as_json: bool) -> None:
    """Print every setting and its origin."""
    configuration = configured()
    settings = dict(_settings(configuration))
    if as_json:
        shown = {name: {"value": s.value, "origin": s.origin} for name, s in settings.items()}
        print_json({"settings": shown, "files": [str(path) for path in configuration.files]})
        return
    rows = [[name, _shown(setting.value), setting.origin] for name, setting in settings.items()]
    print_table(["setting", "value", "from"], rows)


def _settings(configuration: Configuration) -> Iterator[tuple[str, Setting[Any]]]:
    for field in fields(configuration.rag):
        yield f"rag.{field.name}", getattr(configuration.rag, field.name)
    yield "tools.rag", configuration.tool_for_all
    yield "base", configuration.base
    for agent in configuration.agents.values():
        for field in fields(agent.docs):
            yield f"@{agent.id} docs.{field.name}", getattr(agent.docs, field.name)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def advise_agents(ids: Sequence[str], *, as_json: bool) -> None:
    """Print advice for agents."""
    configuration, rules = configured(), ProjectRules()
    found = [advise(configuration, agent, rules) for agent in chosen(configuration, ids)]
    for one in found:
        warn_of_empty(one.empty)
    if as_json:
        print_json({"advice": found})
        return
    columns = ["agent", "advice", "files", "tokens", "chunks", "preload costs", "rag costs", "why"]
    rows = [
        [
            *(f"@{one.agent_id}", one.way, one.files, one.tokens, one.chunks),
            *(one.preload_tokens, one.rag_tokens, one.reason),
        ]
        for one in found
    ]
    print_table(columns, rows)
    say("Costs are tokens: preloading of every question, rag of those that search.")


def print_preload(id_: str, *, as_json: bool) -> None:
    """Print the documentation that fits an agent's budget."""
    configuration = configured()
    agent = agent_of(configuration, id_)
    matches = expand(agent.docs.sources.value, agent.base)
    warn_of_empty(matches.empty)
    documentation = read_sections(matches.files, ProjectRules())
    loaded = preload(documentation, agent.docs.budget.value)
    if as_json:
        print_json(asdict(loaded) | {"unread": documentation.left_out})
        return
    say(loaded.text)
    _warn_of_left_out(loaded.left_out)
    for path, why in documentation.left_out.items():
        warn(f"{path}: {why}")


def print_prompt(id_: str, *, as_json: bool) -> None:
    """Print the prompt of an agent."""
    configuration = configured()
    agent = agent_of(configuration, id_)
    warn_of_empty(expand(agent.docs.sources.value, agent.base).empty)
    searchable = can_search(configuration, agent)
    found = prompt_of(configuration, agent, ProjectRules(), searchable=searchable)
    if as_json:
        print_json(found)
        return
    say(found.text)
    _warn_of_left_out(found.left_out)


def _warn_of_left_out(names: Sequence[str]) -> None:
    if names:
        warn(f"{counted(len(names), 'section')} beyond the budget: {', '.join(names)}")


def print_tools(id_: str, *, as_json: bool) -> None:
    """Print the tools of an agent."""
    configuration = configured()
    agent = agent_of(configuration, id_)
    searchable = can_search(configuration, agent)
    categories = {k: on and searchable for k, on in tool_categories(configuration, agent).items()}
    tools = [tool_schema() | {"timeout_seconds": SECONDS}] if categories["rag"] else []
    if as_json:
        print_json({"agent": agent.id, "categories": categories, "tools": tools})
        return
    for category, on in categories.items():
        say(f"{category}: {'on' if on else 'off'}")
    for tool in tools:
        say(f"{tool['name']} {{query}}: {tool['description']}")


def show_host(name: str, ids: Sequence[str], *, write: bool, as_json: bool) -> None:
    """Print the configuration of a host, or write it into the host's file."""
    configuration, host = configured(), host_of(name)
    agents = [one.id for one in chosen(configuration, ids) if ids or has_tool(configuration, one)]
    found = shutil.which(sys.argv[0]) or str(Path(sys.executable).with_name("rag-assets"))
    around = Surroundings.of_process()
    servers = servers_of(host, str(Path(found).resolve()), agents, around)
    if write:
        path = around.path(host.file, around.folder)
        _write_host(host, path, servers)
        shown = {"host": host.title, "file": str(path), "written": [*servers]}
        if as_json:
            print_json(shown)
        else:
            say(f"{path}: {counted(len(servers), 'server')} written, all else kept.")
        return
    text = configuration_text(host, servers)
    if as_json:
        print_json({"host": host.title, "file": host.file, "text": text})
        return
    say(text)
    sys.stderr.write(f"for {host.title}: {host.file}\n")


def _write_host(host: Host, path: Path, servers: Mapping[str, Mapping[str, Any]]) -> None:
    """Merge servers into a host's file, in one step.

    Raises:
        ConfigurationError: the file cannot be read, merged into or written; it stays as it is.
    """
    # A link, as people keep their settings elsewhere, stays one.
    path = path.resolve()
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        merged = merged_text(host, text, servers)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(merged, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text", hint="correct the file") from None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}", hint="check its permissions"
        ) from None
