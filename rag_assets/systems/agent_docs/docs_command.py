"""agent docs: pages of what commands say of themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rag_assets.cli.commands.output import print_json, progress, say, warn
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.systems.agent_docs.calls import MAX_CALLS, can_forbid_network
from rag_assets.systems.agent_docs.help_pages import executable, pages_of_help
from rag_assets.systems.agent_docs.known import remember
from rag_assets.systems.agent_docs.man_pages import pages_of_man
from rag_assets.systems.agent_docs.pages import write_pages

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
