"""The fork server of an installation: `python -m rag_assets.cli.fork_server`.

It imports what commands and the daemon's runs need, and executes both in forks. When its code has
changed it begins anew, in the same process; until then commands import for themselves.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

from rag_assets.cli import home_folder
from rag_assets.forkserver.fingerprint import Fingerprint
from rag_assets.forkserver.protocol import COMMAND, RUN, SOCKET
from rag_assets.forkserver.server import ForkServer

_LIBRARIES = (
    *("dagster", "dagster_postgres", "polars", "deltalake", "elasticsearch", "psycopg", "psycopg2"),
    *("onnxruntime", "tokenizers", "rich.console", "rich.table", "sqlalchemy.dialects.postgresql"),
)
_OWN = ("rag_assets.cli.commands", "rag_assets.pipeline", "rag_assets.retrieval", "rag_assets.storage")


def main() -> None:
    """Import, and serve until stopped."""
    home = Path(home_folder())
    prepare()
    configuration = [home / name for name in ("dagster.yaml", "workspace.yaml")]
    root = Path(__file__).resolve().parents[2]
    fingerprint = Fingerprint([*configuration, root / "requirements" / "lock.txt"])
    executors = {COMMAND: _execute_command, RUN: _execute_run}
    if ForkServer(home / SOCKET, fingerprint, executors).serve():
        os.execv(sys.executable, sys.orig_argv)


def prepare() -> None:
    """Import everything, and have forks share it."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for name in _OWN:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    importlib.import_module("rag_assets.cli.app")
    importlib.import_module("rag_assets.definitions")
    gc.collect()
    gc.freeze()


def _execute_command(arguments: Sequence[str]) -> None:
    from rag_assets.cli.app import run

    raise SystemExit(run(arguments))


def _execute_run(arguments: Sequence[str]) -> None:
    from rag_assets.jobs.run_worker import execute_run

    execute_run(arguments[0])


if __name__ == "__main__":
    main()
