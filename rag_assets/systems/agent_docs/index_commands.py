"""agent: index, search, status, mcp."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_assets.cli.commands.output import print_json, print_table, progress, say, seconds, warn
from rag_assets.common.errors import ConfigurationError, DamagedIndex
from rag_assets.common.formatting import counted
from rag_assets.systems.agent_docs.command_line import can_search, chosen, configured, warn_of_empty
from rag_assets.systems.agent_docs.configuration import agent_of
from rag_assets.systems.agent_docs.globs import expand
from rag_assets.systems.agent_docs.known import outdated
from rag_assets.systems.agent_docs.manager import IndexReport, RagIndexManager
from rag_assets.systems.agent_docs.opening import open_manager, open_store
from rag_assets.systems.agent_docs.prompts import has_tool, hint_of
from rag_assets.systems.agent_docs.results import as_record, as_text
from rag_assets.systems.agent_docs.settings import Agent, Configuration
from rag_assets.systems.agent_docs.stores import SearchResult


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
