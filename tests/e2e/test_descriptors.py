"""No child of a command keeps the command's output open: a reader must not wait for children."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.installation import Installation

SLOW = {"embedder": {"provider": "deterministic", "seconds_per_text": 0.02}}


def outputs(pid: int) -> set[str]:
    """Return the pipes to which a process writes its output."""
    return {str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (1, 2)}


def others_with(pipes: set[str], *known: int) -> set[str]:
    """Return the command lines of other processes that hold one of the pipes open."""
    found = set()
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) in known:
            continue
        try:
            held = {str(descriptor.readlink()) for descriptor in (process / "fd").iterdir()}
            if held & pipes:
                found.add((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended in between
    return found


def test_children_of_a_sync_hold_none_of_its_output(installation: Installation) -> None:
    folder = installation.add_tenant("team", **SLOW)
    for number in range(100):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    command = installation.start("sync", "team")
    pipes = outputs(command.pid)
    holders: set[str] = set()
    catalog = installation.session().catalog
    deadline = time.monotonic() + 120
    while command.poll() is None and time.monotonic() < deadline:
        holders |= others_with(pipes, command.pid, os.getpid())
        if catalog.documents.count_by_status("team").get("READY", 0) > 0:
            break
        time.sleep(0.05)
    os.kill(command.pid, signal.SIGKILL)
    command.communicate(timeout=5)
    assert holders == set()
