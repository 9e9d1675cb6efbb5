"""The command line, which is a stable contract.

Every command takes --json, exits non-zero on failure, and reports bad input with one line and a
hint, never with a traceback. Each module declares and executes a group of commands, and is imported
when one of them runs. A running fork server executes a command in a fork; without one, `main`
executes it in this process.
"""

from __future__ import annotations

import os
import sys

from rag_assets.common.checkout import is_checkout

_OWN_PROCESS = {"up", "down", "demo", "serve"}
"""Commands that start, stop or outlive the fork server, so they run in their own process.

The fork server refuses such commands of systems.
"""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    Args:
        arguments: run this command in this process; by default, the command of the process, which a
            fork of the fork server may execute.
    """
    if arguments is None:
        arguments = sys.argv[1:]
        if (code := _run_in_fork(arguments)) is not None:
            sys.exit(code)
    from rag_assets.cli.app import run

    sys.exit(run(arguments))


def _run_in_fork(arguments: list[str]) -> int | None:
    """Execute a command in a fork and return its exit code; None without a fork server."""
    if _OWN_PROCESS.intersection(arguments[:1]):
        return None
    from rag_assets.forkserver.client import run_command

    return run_command(find_home_folder(), arguments)


def find_home_folder() -> str:
    """Return the installation's folder as Settings finds it, but without importing Settings."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120
    home = os.environ.get("RAG_ASSETS_HOME") or (root if is_checkout(root) else os.curdir)
    return os.path.realpath(os.path.expanduser(home))  # noqa: PTH111
