"""`rag-assets agent`: what its commands do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

from rag_assets.cli.commands.output import print_json, print_table, progress, say, seconds, warn
from rag_assets.common.errors import ConfigurationError, DamagedIndex
from rag_assets.common.formatting import counted
from rag_assets.systems.agent_docs.configuration import Surroundings, agent_of, load_configuration
from rag_assets.systems.agent_docs.globs import expand
from rag_assets.systems.agent_docs.hosts import (
    Host,
    configuration_text,
    host_of,
    merged_text,
    servers_of,
)
from rag_assets.systems.agent_docs.manager import (
    IndexReport,
    RagIndexManager,
    as_record,
    as_text,
    open_embedder,
    open_manager,
    open_store,
)
from rag_assets.systems.agent_docs.passages import ProjectRules
from rag_assets.systems.agent_docs.prompts import (
    SECONDS,
    advise,
    has_tool,
    hint_of,
    preload,
    prompt_of,
    read_sections,
    tool_categories,
    tool_schema,
)
from rag_assets.systems.agent_docs.settings import Agent, Configuration, Setting
from rag_assets.systems.agent_docs.stores import SearchResult


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


@contextmanager
def _store_errors(configuration: Configuration) -> Iterator[None]:
    """Tell what of a store cannot be read or written."""
    hint = "check its permissions and its disk, or set another `rag.path`"
    place = configuration.rag.path.value
    try:
        yield
    except OSError as error:
        why = f"the store {place} cannot be used: {error.strerror}"
        raise ConfigurationError(why, hint=hint) from None
    except sqlite3.Error as error:
        why = f"the database in {place} cannot be used: {error}"
        raise ConfigurationError(why, hint=hint) from None


def index_agents(ids: Sequence[str], *, as_json: bool) -> None:
    """Index agents; by default those that have the tool."""
    configuration = configured()
    agents = [
        agent for agent in chosen(configuration, ids) if ids or has_tool(configuration, agent)
    ]
    if not agents:
        if as_json:
            print_json({"indexed": []})
        else:
            say("No agent has `strategy: rag`.")
        return
    _warn_of_memory(configuration)
    manager = open_manager(configuration)
    with _store_errors(configuration):
        reports = [_ensured(manager, agent) for agent in agents]
    if as_json:
        print_json({"indexed": reports})
        return
    for one in reports:
        what = f"{counted(one.embedded, 'text')} embedded" if one.built else "nothing changed"
        size = f"{counted(one.files, 'file')}, {counted(one.chunks, 'chunk')}"
        dropped = (
            f", {counted(one.dropped, 'chunk')} of a credential alone dropped"
            if one.dropped
            else ""
        )
        say(f"@{one.agent_id}: {size}{dropped}; {what} ({seconds(one.seconds)})")
        for path, rules in sorted(one.secrets.items()):
            say(f"  {path}: credentials masked ({', '.join(rules)})")


def search_agent(id_: str, query: str, top_k: int | None, *, as_json: bool) -> None:
    """Search the documentation of an agent."""
    configuration = configured()
    agent = agent_of(configuration, id_)
    # Without an embedder this is an error: an empty answer would read as "nothing is documented".
    manager = open_manager(configuration)
    with _store_errors(configuration):
        if agent.docs.sources.value:
            _warn_of_memory(configuration)
            _ensured(manager, agent)
        try:
            found = _found(manager, agent, query, top_k)
        except DamagedIndex:
            _ensured(manager, agent)
            found = _found(manager, agent, query, top_k)
        if manager.is_doubted(agent.id):
            warn(f"the index of @{agent.id} was not what its files hold; it is built again")
            _ensured(manager, agent)
            found = _found(manager, agent, query, top_k)
    if as_json:
        print_json({"agent": agent.id, "results": [as_record(one) for one in found]})
    else:
        say(as_text(found))


def _found(
    manager: RagIndexManager, agent: Agent, query: str, top_k: int | None
) -> list[SearchResult]:
    docs = agent.docs
    return manager.search(
        *(agent.id, query, top_k or docs.top_k.value),
        mode=docs.mode.value,
        min_score=docs.min_score.value,
    )


def show_status(ids: Sequence[str], *, as_json: bool) -> None:
    """Print the state of agents' indexes."""
    from rag_assets.systems.agent_docs.pages import outdated

    configuration = configured()
    store = open_store(configuration.rag)
    rows: list[dict[str, Any]] = []
    for agent in chosen(configuration, ids):
        matches = expand(agent.docs.sources.value, agent.base)
        with _store_errors(configuration):
            state = store.state(agent.id)
        current = (
            state is not None
            and can_search(configuration, agent)
            and open_manager(configuration).is_current(
                agent.id, agent.docs.sources.value, agent.base
            )
        )
        rows.append(
            {
                "agent": agent.id,
                "strategy": agent.docs.strategy.value,
                "files": len(matches.files),
                "index": "none" if state is None else "current" if current else "stale",
                "chunks": 0 if state is None else len(state.text_hashes),
                "embedder": None if state is None else state.embedder_id,
                "left_out": {} if state is None else dict(state.left_out),
                "empty": list(matches.empty),
                "outdated": outdated(file.file for file in matches.files),
            }
        )
    rag = configuration.rag
    if as_json:
        store_of = {"store": rag.store.value, "path": str(rag.path.value)}
        print_json(store_of | {"agents": rows})
        return
    say(
        f"store: {rag.store.value}" + ("" if rag.store.value == "memory" else f", {rag.path.value}")
    )
    columns = ["agent", "strategy", "files", "index", "chunks", "embedder"]
    print_table(columns, [[f"@{row['agent']}", *(row[c] for c in columns[1:])] for row in rows])
    for row in rows:
        for path, why in row["left_out"].items():
            say(f"@{row['agent']} leaves out {path}: {why}")
        warn_of_empty(row["empty"])
        for line in row["outdated"]:
            warn(f"@{row['agent']}: {line}; write its pages again with `agent docs`")


def serve_agent(id_: str, folder: Path | None) -> None:
    """Serve the tool of an agent until its host ends."""
    from rag_assets.systems.agent_docs.server import Refreshed, serve

    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            why = f"the folder {folder} cannot be entered: {error.strerror}"
            raise ConfigurationError(why, hint="print the configuration again") from None
    configuration = configured()
    agent = agent_of(configuration, id_)
    if not can_search(configuration, agent):
        serve(None)
    manager = open_manager(configuration)
    warn_of_empty(expand(agent.docs.sources.value, agent.base).empty)
    serve(Refreshed(manager, agent, warn), hint_of(agent))


def _ensured(manager: RagIndexManager, agent: Agent) -> IndexReport:
    if not manager.store.has_index(agent.id):
        progress(f"indexing the documentation of @{agent.id}")
    report = manager.ensure_index(agent.id, agent.docs.sources.value, agent.base)
    warn_of_empty(report.empty)
    for path, why in report.left_out.items():
        warn(f"@{agent.id} leaves out {path}: {why}")
    return report


def _warn_of_memory(configuration: Configuration) -> None:
    if configuration.rag.store.value == "memory":
        warn(
            "the store `memory` keeps nothing between commands, so all is indexed each time;"
            " `rag.store: sqlite` keeps it"
        )


_SHOWN_EVERY = 50


def write_docs(
    commands: Sequence[str],
    out: Path,
    source: Literal["help", "man"],
    depth: int,
    *,
    as_json: bool,
) -> None:
    """Write the pages of commands.

    Raises:
        ConfigurationError: a command is not installed, or the folder cannot be written.
    """
    from rag_assets.systems.agent_docs.calls import MAX_CALLS, can_forbid_network, executable
    from rag_assets.systems.agent_docs.help_pages import pages_of_help
    from rag_assets.systems.agent_docs.man_pages import pages_of_man
    from rag_assets.systems.agent_docs.pages import remember, write_pages

    read = 0

    def show(name: str) -> None:
        nonlocal read
        read += 1
        if read % _SHOWN_EVERY == 0:
            progress(f"{counted(read, 'page')}, {name}")

    programs = {
        words[0]: executable(words[0], os.environ) for words in map(str.split, commands) if words
    }
    if not can_forbid_network():
        warn("this platform cannot keep the commands from the network")
    if source == "man":
        corpus = pages_of_man(commands, os.environ, calls=MAX_CALLS)
    else:
        corpus = pages_of_help(commands, depth, os.environ, calls=MAX_CALLS, progress=show)
    folder = out.expanduser()
    try:
        changed, deleted = write_pages(
            corpus.pages, folder, instead_of=() if corpus.warnings else commands
        )
        remember(programs)
    except OSError as error:
        raise ConfigurationError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="choose another --out",
        ) from None
    for warning in corpus.warnings:
        warn(warning)
    counts = {"pages": len(corpus.pages), "changed": changed, "deleted": deleted}
    if as_json:
        print_json({"out": str(folder), **counts, "warnings": corpus.warnings})
        return
    say(f"{folder}: {counted(len(corpus.pages), 'page')}, {changed} changed, {deleted} deleted")
