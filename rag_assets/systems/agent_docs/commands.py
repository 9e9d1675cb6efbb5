"""The commands `rag-assets agent …`, which need no server.

Commands import the modules that do their work where they use them, so that help is printed quickly.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import format_seconds, print_json, print_table, progress, say, warn
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.common.private_files import rewrite_file

if TYPE_CHECKING:
    from rag_assets.systems.agent_docs.manager import IndexReport, RagIndexManager
    from rag_assets.systems.agent_docs.settings import Agent, Configuration, Setting

_PROGRESS_INTERVAL = 50
"""Pages between two lines of progress."""

app = typer.Typer(
    help="Documentation of command-line agents, on this machine only.", no_args_is_help=True
)
AgentArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help="Id of an agent, with or without @.")
]
AgentArguments = Annotated[
    list[str] | None, typer.Argument(help="Ids of agents; by default all that have sources.")
]


@app.command("list")
def list_agents(as_json: Json = False) -> None:
    """List the agents that agents.yaml declares."""
    rows = [
        {
            "id": agent.id,
            "strategy": agent.docs.strategy.value,
            "mode": agent.docs.mode.value,
            "sources": list(agent.docs.sources.value),
            "description": agent.description or agent.name,
            "declared": agent.origin,
        }
        for agent in _load_configuration().agents.values()
    ]
    if as_json:
        print_json({"agents": rows})
    elif not rows:
        say("No agent is declared. Declare agents in .swebash/agents.yaml.")
    else:
        table = [[f"@{r['id']}", r["strategy"], len(r["sources"]), r["declared"]] for r in rows]
        print_table(["agent", "strategy", "sources", "declared"], table)


@app.command("config")
def show_config(as_json: Json = False) -> None:
    """Show every setting, and the file and line or the variable that sets it."""
    configuration = _load_configuration()
    settings = dict(_list_settings(configuration))
    if as_json:
        values = {name: {"value": s.value, "origin": s.origin} for name, s in settings.items()}
        print_json({"settings": values, "files": [str(path) for path in configuration.files]})
        return
    rows = [[name, _format_value(s.value), s.origin] for name, s in settings.items()]
    print_table(["setting", "value", "from"], rows)


@app.command("index")
def index_agents(agents: AgentArguments = None, as_json: Json = False) -> None:
    """Index the documentation of agents, if it has changed."""
    from rag_assets.systems.agent_docs.manager import open_manager

    configuration = _load_configuration()
    selected = _select_agents_with_tool(configuration, agents or [])
    if not selected:
        if as_json:
            print_json({"indexed": []})
        else:
            say("No agent has `strategy: rag`.")
        return
    _warn_of_memory_store(configuration)
    manager = open_manager(configuration)
    with _convert_store_errors(configuration):
        reports = [_ensure_index(manager, agent) for agent in selected]
    if as_json:
        print_json({"indexed": reports})
        return
    for report in reports:
        work = (
            f"{format_count(report.embedded, 'text')} embedded"
            if report.built
            else "nothing changed"
        )
        size = f"{format_count(report.files, 'file')}, {format_count(report.chunks, 'chunk')}"
        if report.dropped:
            size += f", {format_count(report.dropped, 'chunk')} with only a credential dropped"
        say(f"@{report.agent_id}: {size}; {work} ({format_seconds(report.seconds)})")
        for path, rules in sorted(report.secrets.items()):
            say(f"  {path}: credentials masked ({', '.join(rules)})")


@app.command("search")
def search_agent(
    id_: AgentArgument,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[
        int | None, typer.Option(min=1, max=100, help="Maximum number of passages.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the documentation of an agent; changed files are indexed first."""
    from rag_assets.systems.agent_docs.errors import DamagedIndex
    from rag_assets.systems.agent_docs.manager import format_results, open_manager

    configuration, agent = _load_configuration_and_agent(id_)
    # Without an embedder, the command fails: an empty result would mean "not documented".
    manager = open_manager(configuration)
    with _convert_store_errors(configuration):
        if agent.docs.sources.value:
            _warn_of_memory_store(configuration)
            _ensure_index(manager, agent)
        try:
            results = manager.search_agent(agent, query, top_k)
        except DamagedIndex:
            _ensure_index(manager, agent)
            results = manager.search_agent(agent, query, top_k)
        if manager.needs_rebuild(agent.id):
            warn(f"the index of @{agent.id} did not match its files; it is being rebuilt")
            _ensure_index(manager, agent)
            results = manager.search_agent(agent, query, top_k)
    if as_json:
        records = [asdict(result.chunk) | {"score": result.score} for result in results]
        print_json({"agent": agent.id, "results": records})
    else:
        say(format_results(results))


@app.command("status")
def show_status(agents: AgentArguments = None, as_json: Json = False) -> None:
    """Show whether the indexes of agents match their files."""
    from rag_assets.systems.agent_docs.globs import expand_patterns
    from rag_assets.systems.agent_docs.manager import open_manager, open_store
    from rag_assets.systems.agent_docs.pages import find_version_warnings

    configuration = _load_configuration()
    rag = configuration.rag
    store = open_store(rag)
    rows: list[dict[str, Any]] = []
    for agent in _select_agents(configuration, agents or []):
        docs = agent.docs
        matches = expand_patterns(docs.sources.value, agent.base)
        with _convert_store_errors(configuration):
            state = store.state(agent.id)
        index = "none"
        if state is not None:
            error = _find_embedder_error(configuration)
            _warn_if_preloaded_instead(configuration, agent, error)
            is_current = error is None and open_manager(configuration).is_current(
                agent.id, docs.sources.value, agent.base
            )
            index = "current" if is_current else "stale"
        rows.append(
            {
                "agent": agent.id,
                "strategy": docs.strategy.value,
                "files": len(matches.files),
                "index": index,
                "chunks": 0 if state is None else len(state.text_hashes),
                "embedder": None if state is None else state.embedder_id,
                "left_out": {} if state is None else dict(state.left_out),
                "empty": list(matches.empty),
                "outdated": find_version_warnings(Path(file.location) for file in matches.files),
            }
        )
    if as_json:
        print_json({"store": rag.store.value, "path": str(rag.path.value), "agents": rows})
        return
    location = "" if rag.store.value == "memory" else f", {rag.path.value}"
    say(f"store: {rag.store.value}{location}")
    columns = ["agent", "strategy", "files", "index", "chunks", "embedder"]
    print_table(columns, [[f"@{row['agent']}", *(row[c] for c in columns[1:])] for row in rows])
    for row in rows:
        for path, why in row["left_out"].items():
            say(f"@{row['agent']} skips {path}: {why}")
        _warn_of_unmatched_patterns(row["empty"])
        for line in row["outdated"]:
            warn(f"@{row['agent']}: {line}; write its pages again with `agent docs`")


@app.command("advise")
def advise_agents(agents: AgentArguments = None, as_json: Json = False) -> None:
    """Recommend preload or rag for agents, by the size and cost of their documentation."""
    from rag_assets.systems.agent_docs.passages import SecretMasker
    from rag_assets.systems.agent_docs.prompts import advise

    configuration, mask = _load_configuration(), SecretMasker()
    advice = [
        advise(configuration, agent, mask) for agent in _select_agents(configuration, agents or [])
    ]
    for item in advice:
        _warn_of_unmatched_patterns(item.empty)
    if as_json:
        print_json({"advice": advice})
        return
    columns = ["agent", "advice", "files", "tokens", "chunks", "preload costs", "rag costs", "why"]
    rows = [
        [
            *(f"@{item.agent_id}", item.way, item.files, item.tokens, item.chunks),
            *(item.preload_tokens, item.rag_tokens, item.reason),
        ]
        for item in advice
    ]
    print_table(columns, rows)
    say("Costs are in tokens: preload for every question, rag for questions that search.")


@app.command("preload")
def print_preload(id_: AgentArgument, as_json: Json = False) -> None:
    """Print the documentation of an agent that fits its budget."""
    from rag_assets.systems.agent_docs.globs import expand_patterns
    from rag_assets.systems.agent_docs.passages import SecretMasker
    from rag_assets.systems.agent_docs.prompts import preload, read_sections

    _, agent = _load_configuration_and_agent(id_)
    matches = expand_patterns(agent.docs.sources.value, agent.base)
    _warn_of_unmatched_patterns(matches.empty)
    documentation = read_sections(matches.files, SecretMasker())
    loaded = preload(documentation, agent.docs.budget.value)
    if as_json:
        print_json(asdict(loaded) | {"unread": documentation.left_out})
        return
    say(loaded.text)
    _warn_of_omitted_sections(loaded.left_out)
    for path, why in documentation.left_out.items():
        warn(f"{path}: {why}")


@app.command("prompt")
def print_prompt(id_: AgentArgument, as_json: Json = False) -> None:
    """Print the prompt of an agent, with its documentation or a hint at the search tool."""
    from rag_assets.systems.agent_docs.globs import expand_patterns
    from rag_assets.systems.agent_docs.passages import SecretMasker
    from rag_assets.systems.agent_docs.prompts import build_prompt

    configuration, agent = _load_configuration_and_agent(id_)
    _warn_of_unmatched_patterns(expand_patterns(agent.docs.sources.value, agent.base).empty)
    error = _find_embedder_error(configuration)
    _warn_if_preloaded_instead(configuration, agent, error)
    prompt = build_prompt(configuration, agent, SecretMasker(), can_search=error is None)
    if as_json:
        print_json(prompt)
        return
    say(prompt.text)
    _warn_of_omitted_sections(prompt.left_out)


@app.command("tools")
def print_tools(id_: AgentArgument, as_json: Json = False) -> None:
    """Show the tools that an agent has for its documentation."""
    from rag_assets.systems.agent_docs.prompts import (
        TIMEOUT_SECONDS,
        build_tool_schema,
        has_search_tool,
    )

    configuration, agent = _load_configuration_and_agent(id_)
    error = _find_embedder_error(configuration)
    _warn_if_preloaded_instead(configuration, agent, error)
    has_search = error is None and has_search_tool(configuration, agent)
    tools = [build_tool_schema() | {"timeout_seconds": TIMEOUT_SECONDS}] if has_search else []
    if as_json:
        print_json({"agent": agent.id, "categories": {"rag": has_search}, "tools": tools})
        return
    say(f"rag: {'on' if has_search else 'off'}")
    for tool in tools:
        say(f"{tool['name']} {{query}}: {tool['description']}")


@app.command("docs")
def write_docs(
    commands: Annotated[list[str], typer.Argument(help="Commands; quote subcommands: 'aws s3'.")],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    from_: Annotated[
        Literal["help", "man"], typer.Option("--from", help="Source of the pages.")
    ] = "help",
    depth: Annotated[int, typer.Option(min=0, max=8, help="Levels of subcommands.")] = 3,
    as_json: Json = False,
) -> None:
    """Write the help or man pages of commands as Markdown, one file per subcommand."""
    from rag_assets.systems.agent_docs.command_runner import (
        MAX_CALLS,
        can_block_network,
        find_command,
    )
    from rag_assets.systems.agent_docs.help_pages import build_help_pages, build_man_pages
    from rag_assets.systems.agent_docs.pages import record_programs, write_pages

    page_count = 0

    def show_progress(name: str) -> None:
        nonlocal page_count
        page_count += 1
        if page_count % _PROGRESS_INTERVAL == 0:
            progress(f"{format_count(page_count, 'page')}, {name}")

    names = [command.split()[0] for command in commands if command.split()]
    programs = {name: find_command(name, os.environ) for name in names}
    if not can_block_network():
        warn("this platform cannot block the commands' access to the network")
    if from_ == "man":
        corpus = build_man_pages(commands, os.environ, max_calls=MAX_CALLS)
    else:
        corpus = build_help_pages(
            commands, depth, os.environ, max_calls=MAX_CALLS, progress=show_progress
        )
    folder = out.expanduser()
    try:
        complete = () if corpus.warnings else commands
        changed, deleted = write_pages(corpus.pages, folder, replacing=complete)
        record_programs(programs)
    except OSError as error:
        raise ConfigurationError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="choose a different folder with --out",
        ) from None
    for warning in corpus.warnings:
        warn(warning)
    counts = {"pages": len(corpus.pages), "changed": changed, "deleted": deleted}
    if as_json:
        print_json({"out": str(folder), **counts, "warnings": corpus.warnings})
        return
    say(
        f"{folder}: {format_count(len(corpus.pages), 'page')}, {changed} changed, {deleted} deleted"
    )


@app.command("mcp")
def serve_agent(
    id_: AgentArgument,
    folder: Annotated[
        Path | None, typer.Option(help="Working directory; by default the current one.")
    ] = None,
) -> None:
    """Serve the documentation of an agent over MCP on standard input and output."""
    _exit_with_parent(os.getppid())
    from rag_assets.systems.agent_docs.globs import expand_patterns
    from rag_assets.systems.agent_docs.manager import open_manager
    from rag_assets.systems.agent_docs.prompts import build_hint
    from rag_assets.systems.agent_docs.server import RefreshingIndex, serve

    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            why = f"the folder {folder} cannot be entered: {error.strerror}"
            raise ConfigurationError(
                why,
                hint="check that the folder exists, or print the configuration again with a"
                " different folder",
            ) from None
    configuration, agent = _load_configuration_and_agent(id_)
    embedder_error = _find_embedder_error(configuration)
    if embedder_error is not None:
        _warn_if_preloaded_instead(configuration, agent, embedder_error)
        serve(None)
    manager = open_manager(configuration)
    _warn_of_unmatched_patterns(expand_patterns(agent.docs.sources.value, agent.base).empty)
    serve(RefreshingIndex(manager, agent, warn), build_hint(agent))


@app.command("host")
def show_host(
    name: Annotated[str, typer.Argument(help="claude-code, cursor, vscode, codex, gemini or zed.")],
    agents: AgentArguments = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write it to the program's file, and keep everything else there."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the configuration that makes a program start the MCP servers of agents."""
    from rag_assets.systems.agent_docs.configuration import Environment
    from rag_assets.systems.agent_docs.hosts import (
        build_server_configs,
        find_host,
        merge_servers,
        render_servers,
    )

    configuration, host = _load_configuration(), find_host(name)
    ids = [agent.id for agent in _select_agents_with_tool(configuration, agents or [])]
    command = shutil.which(sys.argv[0]) or str(Path(sys.executable).with_name("rag-assets"))
    environment = Environment.from_process()
    servers = build_server_configs(host, str(Path(command).resolve()), ids, environment)
    if not write:
        text = render_servers(host, servers)
        if as_json:
            print_json({"host": host.title, "file": host.file, "text": text})
            return
        say(text)
        sys.stderr.write(f"for {host.title}: {host.file}\n")
        return
    path = environment.resolve(host.file, environment.folder)
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        merged = merge_servers(host, text, servers)
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        rewrite_file(path, merged.encode(), new_mode=0o644)
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text", hint="save it as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read or written: {error.strerror}",
            hint="check the permissions and the free space of the disk, or run the command"
            " without --write",
        ) from None
    if as_json:
        print_json({"host": host.title, "file": str(path), "written": [*servers]})
    else:
        say(f"{path}: {format_count(len(servers), 'server')} written, all else kept.")


def _load_configuration() -> Configuration:
    """Load the configuration of this process, and print its warnings."""
    from rag_assets.systems.agent_docs.configuration import Environment, load_configuration

    configuration = load_configuration(Environment.from_process())
    for warning in configuration.warnings:
        warn(warning)
    for error in configuration.refused.values():
        warn(f"an agent was skipped: {error.message}")
    return configuration


def _load_configuration_and_agent(id_: str) -> tuple[Configuration, Agent]:
    """Load the configuration, print its warnings, and find an agent in it."""
    from rag_assets.systems.agent_docs.configuration import find_agent

    configuration = _load_configuration()
    return configuration, find_agent(configuration, id_)


def _select_agents(configuration: Configuration, ids: Sequence[str]) -> list[Agent]:
    """Return the agents with these ids; without ids, all agents that have sources."""
    from rag_assets.systems.agent_docs.configuration import find_agent

    if ids:
        return [find_agent(configuration, id_) for id_ in ids]
    return [agent for agent in configuration.agents.values() if agent.docs.sources.value]


def _select_agents_with_tool(configuration: Configuration, ids: Sequence[str]) -> list[Agent]:
    """Return the agents with these ids; without ids, all agents that have the search tool."""
    from rag_assets.systems.agent_docs.prompts import has_search_tool

    agents = _select_agents(configuration, ids)
    return [agent for agent in agents if ids or has_search_tool(configuration, agent)]


def _find_embedder_error(configuration: Configuration) -> ConfigurationError | None:
    """Return why no embedder can be loaded; None if one can."""
    from rag_assets.systems.agent_docs.manager import open_embedder

    try:
        open_embedder(configuration)
    except ConfigurationError as error:
        return error
    return None


def _ensure_index(manager: RagIndexManager, agent: Agent) -> IndexReport:
    """Build the index of an agent if needed, and print progress and warnings."""
    if not manager.store.has_index(agent.id):
        progress(f"indexing the documentation of @{agent.id}")
    report = manager.ensure_index(agent.id, agent.docs.sources.value, agent.base)
    _warn_of_unmatched_patterns(report.empty)
    for path, why in report.left_out.items():
        warn(f"@{agent.id} skips {path}: {why}")
    return report


@contextmanager
def _convert_store_errors(configuration: Configuration) -> Iterator[None]:
    """Convert errors of the file system and of SQLite to configuration errors."""
    hint = "check the permissions and the free space of the disk, or set a different `rag.path`"
    path = configuration.rag.path.value
    try:
        yield
    except OSError as error:
        why = f"the store {path} cannot be used: {error.strerror}"
        raise ConfigurationError(why, hint=hint) from None
    except sqlite3.Error as error:
        why = f"the database in {path} cannot be used: {error}"
        raise ConfigurationError(why, hint=hint) from None


def _list_settings(configuration: Configuration) -> Iterator[tuple[str, Setting[Any]]]:
    for field in fields(configuration.rag):
        yield f"rag.{field.name}", getattr(configuration.rag, field.name)
    yield "tools.rag", configuration.tool_for_all
    yield "base", configuration.base
    for agent in configuration.agents.values():
        for field in fields(agent.docs):
            yield f"@{agent.id} docs.{field.name}", getattr(agent.docs, field.name)


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _warn_of_unmatched_patterns(patterns: Sequence[str]) -> None:
    for pattern in patterns:
        warn(f"no file matches {pattern}")


def _warn_if_preloaded_instead(
    configuration: Configuration, agent: Agent, embedder_error: ConfigurationError | None
) -> None:
    from rag_assets.systems.agent_docs.prompts import has_search_tool

    if embedder_error is not None and has_search_tool(configuration, agent):
        warn(f"@{agent.id} is preloaded instead: {embedder_error.message}")


def _warn_of_omitted_sections(names: Sequence[str]) -> None:
    if names:
        warn(f"{format_count(len(names), 'section')} beyond the budget: {', '.join(names)}")


def _warn_of_memory_store(configuration: Configuration) -> None:
    if configuration.rag.store.value == "memory":
        warn(
            "the store `memory` keeps no index between commands, so each command indexes all"
            " files again; set `rag.store: sqlite` to keep the index"
        )


_POLL_SECONDS: Final = 1.0


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent ends.

    Args:
        parent: the id of the parent process, read before slow imports, during which it may end.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        # The process exits directly, because a thread cannot raise an error in the main thread,
        # which waits for input.
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
