"""A fork server of parsers and compiled rules for all installations of a test process.

`rag-assets up` starts a fork server and compiles rules once for each installation. The
installations of tests live for a second, and both would take several. Tests of the fork server and
of the rules do not use this module.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from rag_assets.ingest.workers.process import get_fork_server_socket, scrub_environment
from tests.rules import with_rules

_PROGRAM = "rag_assets.ingest.workers.fork_server"
_START_SECONDS = 120


def share_parsers(home: Path) -> None:
    """Let an installation use the parsers and the compiled rules of this process."""
    cache_dir = home / ".local" / "cache"
    link = get_fork_server_socket(cache_dir)
    for folder in (link.parent.parent, link.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    shared = _cache_dir()
    link.symlink_to(get_fork_server_socket(shared))
    shutil.copytree(shared, cache_dir)


@cache
def _cache_dir() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rag-assets-parsers-"))
    cache_dir = folder / "cache"
    with_rules(cache_dir)
    socket = get_fork_server_socket(cache_dir)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", _PROGRAM, socket, cache_dir],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=scrub_environment(os.environ),
        cwd=tempfile.gettempdir(),
    )

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    deadline = time.monotonic() + _START_SECONDS
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the fork server of parsers does not start")
        time.sleep(0.05)
    return cache_dir
