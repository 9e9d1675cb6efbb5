"""The fork server of an installation: `python -m rag_assets.cli.fork_server`.

It imports the libraries of commands and of the daemon's runs, and executes both in forks. When its
code changes, it restarts in the same process; meanwhile, commands import the libraries themselves.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import rag_assets
from rag_assets.cli import find_home_folder
from rag_assets.cli.runs import get_repository
from rag_assets.common.settings import Settings
from rag_assets.dagster_compat import LAZY_MODULES
from rag_assets.forkserver.protocol import COMMAND, RUN, SOCKET, SYNC
from rag_assets.forkserver.server import Fingerprint, ForkServer, restart_process
from rag_assets.ingest.workers.process import get_fork_server_socket, scrub_environment
from rag_assets.ingest.workers.worker import prepare_chunking
from rag_assets.plugins.registry import installed_systems
from rag_assets.privacy.masker import get_masker

_PARSERS = "rag_assets.ingest.workers.fork_server"
_SKIPPED_MODULES = re.compile(
    r"__main__$|migrations\.|elasticsearch_node|\.docling|\.workers\.(worker|fork_server)$|"
    r"^rag_assets\.testing$"  # a plugin of pytest, which is installed only for tests
)
_LIBRARIES = (
    *("polars", "deltalake", "elasticsearch.helpers", "psycopg", "psycopg2.extras"),
    *("sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.postgresql.psycopg2"),
    *("dagster_postgres", *LAZY_MODULES),
    *("onnxruntime", "tokenizers", "Stemmer", "ahocorasick_rs", "fasttext", "fsspec"),
    *("kingfisher_sdk", "rich.console", "rich.table", "anyio._backends._asyncio"),
    *("ruamel.yaml.mergevalue", "upath.implementations.local", "fsspec.implementations.local"),
)
"""Libraries that other code imports lazily; the fork server imports them at its start."""


def main() -> None:
    """Import the libraries, and serve until stopped.

    The command-line arguments are descriptors that forks must not inherit, such as the lock.
    """
    home = Path(find_home_folder())
    prepare(home / ".local")
    instance = Settings(home).own_dagster_home
    configuration = [instance / name for name in ("dagster.yaml", "workspace.yaml")]
    root = Path(__file__).resolve().parents[2]
    fingerprint = Fingerprint([*configuration, root / "requirements" / "lock.txt"])
    parsers = _start_parsers(home / ".local")
    executors = {COMMAND: _execute_command, RUN: _execute_run, SYNC: _execute_syncs}
    descriptors = [int(number) for number in sys.argv[1:]]
    server = ForkServer(
        home / SOCKET,
        fingerprint,
        executors,
        not_for_forks=descriptors,
        refused_commands=installed_systems().own_process_commands,
    )
    if server.serve():
        restart_process()  # This closes the input of the parsers' fork server, which then ends.
    parsers.communicate()


def _start_parsers(local: Path) -> subprocess.Popen[bytes]:
    """Start the fork server of parsers, which ends with this process."""
    cache = local / "cache"
    return subprocess.Popen(  # noqa: S603  (our own command, no shell)
        [sys.executable, "-P", "-m", _PARSERS, get_fork_server_socket(cache), cache],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=scrub_environment(os.environ),
        cwd=tempfile.gettempdir(),
        start_new_session=True,
    )


def prepare(local: Path) -> None:
    """Import libraries, and load rules, tokenizer and Dagster's definitions, before any fork."""
    # Imported objects stay alive, so checking them would waste a sixth of the time.
    gc.disable()
    for name in _LIBRARIES:
        importlib.import_module(name)
    for name in _iter_own_modules():
        importlib.import_module(name)
    get_masker(local).load()
    prepare_chunking()
    get_repository()
    gc.collect()
    gc.freeze()
    gc.enable()


def _iter_own_modules() -> Iterator[str]:
    for package in pkgutil.walk_packages(rag_assets.__path__, "rag_assets."):
        if not _SKIPPED_MODULES.search(package.name):
            yield package.name


def _execute_command(arguments: Sequence[str]) -> None:
    from rag_assets.cli.app import run

    raise SystemExit(run(arguments))


def _execute_run(arguments: Sequence[str]) -> None:
    from rag_assets.jobs.run_worker import execute_run

    execute_run(arguments[0])


def _execute_syncs(arguments: Sequence[str]) -> None:
    from rag_assets.cli.follow import follow

    follow(int(arguments[0]))


if __name__ == "__main__":
    main()
