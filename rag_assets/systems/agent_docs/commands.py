"""The commands `rag-assets agent …`, which need no server; command_line.py does their work."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="Documentation of command-line agents, on this machine only.", no_args_is_help=True
)
AgentArgument = Annotated[str, typer.Argument(help="Id of an agent, with or without @.")]
AgentArguments = Annotated[
    list[str] | None, typer.Argument(help="Ids of agents; by default all that have sources.")
]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the agents that agents.yaml declares."""
    from rag_assets.systems.agent_docs.command_line import list_agents

    list_agents(as_json=json)


@app.command()
def config(json: Json = False) -> None:
    """Show every setting, and the file and line or the variable that sets it."""
    from rag_assets.systems.agent_docs.command_line import show_config

    show_config(as_json=json)


@app.command()
def index(agents: AgentArguments = None, json: Json = False) -> None:
    """Index the documentation of agents, if it has changed."""
    from rag_assets.systems.agent_docs.command_line import index_agents

    index_agents(agents or [], as_json=json)


@app.command()
def search(
    agent: AgentArgument,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[
        int | None, typer.Option(min=1, max=100, help="Maximum number of passages.")
    ] = None,
    json: Json = False,
) -> None:
    """Search the documentation of an agent; changed files are indexed first."""
    from rag_assets.systems.agent_docs.command_line import search_agent

    search_agent(agent, query, top_k, as_json=json)


@app.command()
def status(agents: AgentArguments = None, json: Json = False) -> None:
    """Show whether the indexes of agents match their files."""
    from rag_assets.systems.agent_docs.command_line import show_status

    show_status(agents or [], as_json=json)


@app.command()
def advise(agents: AgentArguments = None, json: Json = False) -> None:
    """Recommend preload or rag for agents, by the size and cost of their documentation."""
    from rag_assets.systems.agent_docs.command_line import advise_agents

    advise_agents(agents or [], as_json=json)


@app.command()
def preload(agent: AgentArgument, json: Json = False) -> None:
    """Print the documentation of an agent that fits its budget."""
    from rag_assets.systems.agent_docs.command_line import print_preload

    print_preload(agent, as_json=json)


@app.command()
def prompt(agent: AgentArgument, json: Json = False) -> None:
    """Print the prompt of an agent, with its documentation or a hint at the search tool."""
    from rag_assets.systems.agent_docs.command_line import print_prompt

    print_prompt(agent, as_json=json)


@app.command()
def tools(agent: AgentArgument, json: Json = False) -> None:
    """Show the tools that an agent has for its documentation."""
    from rag_assets.systems.agent_docs.command_line import print_tools

    print_tools(agent, as_json=json)


@app.command()
def docs(
    commands: Annotated[list[str], typer.Argument(help="Commands; quote subcommands: 'aws s3'.")],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    from_: Annotated[
        Literal["help", "man"], typer.Option("--from", help="Source of the pages.")
    ] = "help",
    depth: Annotated[int, typer.Option(min=0, max=8, help="Levels of subcommands.")] = 3,
    json: Json = False,
) -> None:
    """Write the help or man pages of commands as Markdown, one file per subcommand."""
    from rag_assets.systems.agent_docs.command_line import write_docs

    write_docs(commands, out, from_, depth, as_json=json)


@app.command()
def mcp(
    agent: AgentArgument,
    folder: Annotated[
        Path | None, typer.Option(help="Working directory; by default the current one.")
    ] = None,
) -> None:
    """Serve the documentation of an agent over MCP on standard input and output."""
    _exit_with_parent(os.getppid())
    from rag_assets.systems.agent_docs.command_line import serve_agent

    serve_agent(agent, folder)


@app.command()
def host(
    name: Annotated[str, typer.Argument(help="claude-code, cursor, vscode, codex, gemini or zed.")],
    agents: AgentArguments = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write it to the program's file, and keep everything else there."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print the configuration that makes a program start the MCP servers of agents."""
    from rag_assets.systems.agent_docs.command_line import show_host

    show_host(name, agents or [], write=write, as_json=json)


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
