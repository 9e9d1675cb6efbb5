"""Many processes with one store: killed builders do not disturb readers."""

from __future__ import annotations

import multiprocessing
import random
import time
from contextlib import ExitStack, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from tests.integration.systems.agent_docs import agent_worker
from tests.integration.systems.agent_docs.agent_worker import manager_of

pytestmark = pytest.mark.long

READERS, BUILDERS, KILLS = 10, 5, 25
MAX_LOG = 64 * 1024 * 1024


def start(what: str, kind: str, folder: Path, output: Path) -> ForkServerProcess:
    """Fork a worker from a process that has imported its modules already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([agent_worker.__name__])
    process = context.Process(target=agent_worker.work, args=(what, kind, folder, output))
    process.start()
    return process


def stop(process: ForkServerProcess) -> None:
    process.kill()
    process.join()


def wait_for(output: Path, count: int) -> None:
    until = time.monotonic() + 60
    while output.read_bytes().count(b"ready") < count:
        assert time.monotonic() < until, output.read_text()[-2_000:]
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_killed_builders_cost_readers_nothing(kind: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(20):
        (docs / f"{number}.md").write_text(f"Sentence about {number}. " * 50)
    manager = manager_of(kind, tmp_path)
    manager.ensure_index("a", ["docs/*.md"], tmp_path)
    moments, largest = random.Random(20), 0
    readers, builders = tmp_path / "readers", tmp_path / "builders"
    with ExitStack() as stack:
        for _ in range(READERS):
            stack.callback(stop, start("search", kind, tmp_path, readers))
        running: list[ForkServerProcess] = []
        stack.callback(lambda: [stop(process) for process in running])
        running += [start("build", kind, tmp_path, builders) for _ in range(BUILDERS)]
        wait_for(readers, READERS)
        wait_for(builders, BUILDERS)
        for kill in range(KILLS):
            time.sleep(moments.uniform(0.01, 0.1))
            stop(running.pop(0))
            running.append(start("build", kind, tmp_path, builders))
            if kill % BUILDERS == BUILDERS - 1:
                wait_for(builders, BUILDERS + kill + 1)
            with suppress(FileNotFoundError):  # the last connection deletes it
                largest = max(largest, (tmp_path / "rag.db-wal").stat().st_size)
    lines = [line for line in readers.read_text().splitlines() if line != "ready"]
    # The last line of a killed reader may be truncated and joined with another's.
    assert len(lines) > 100
    assert not [line for line in lines if "wrong" in line or "Error" in line or "Trace" in line]
    assert "Error" not in builders.read_text()
    assert largest < MAX_LOG
    assert not list(tmp_path.rglob("*.damaged*"))
    time.sleep(2.1)  # then the modification times of the last edits are reliable
    manager.ensure_index("a", ["docs/*.md"], tmp_path)
    other = manager_of("file", tmp_path / "fresh")
    other.ensure_index("a", ["docs/*.md"], tmp_path)
    assert manager.store.chunks("a") == other.store.chunks("a")
    assert manager.is_current("a", ["docs/*.md"], tmp_path)
