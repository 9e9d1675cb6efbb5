from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rag_assets.storage.lake.store import Lake, TenantLake

from .crash_writer import EMBEDDER, ROWS, batch_of

KILLS = 25
SCRIPT = Path(__file__).with_name("crash_writer.py")


def killed_writer(server: subprocess.Popen[str], first: int, chance: random.Random) -> list[int]:
    """Start a writer at batch `first`, kill it, and return the batches that it acknowledged."""
    assert server.stdin
    assert server.stdout
    print(first, file=server.stdin, flush=True)
    pid = int(server.stdout.readline())
    acknowledged = [int(server.stdout.readline()) for _ in range(chance.randint(0, 2))]
    time.sleep(chance.uniform(0.0, 0.1))
    os.kill(pid, signal.SIGKILL)
    return acknowledged + [int(line) for line in iter(server.stdout.readline, "dead\n")]


def assert_whole(lake: TenantLake, acknowledged: set[int]) -> set[int]:
    """Check that each batch is complete or absent, and every acknowledged one complete."""
    keys, hashes = lake.read_parsed_keys(), lake.read_vector_hashes(EMBEDDER)
    for found in (keys, hashes):
        batches = {int(key.split("-")[0]) for key in found}
        assert found == {f"{batch}-{row}" for batch in batches for row in range(ROWS)}
        assert batches >= acknowledged
    return {int(key.split("-")[0]) for key in keys}


@pytest.mark.slow
def test_a_killed_writer_leaves_the_state_before_or_after_its_commit(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake")).tenant("acme", 1)
    chance = random.Random(7)
    acknowledged: set[int] = set()
    first = 0
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path / "lake")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        for _ in range(KILLS):
            acknowledged.update(killed_writer(server, first, chance))
            there = assert_whole(lake, acknowledged)
            first = max(there, default=-1) + 1
        assert server.stdin
        server.stdin.close()
    assert len(acknowledged) >= KILLS // 2  # otherwise the kills came too early

    lake.compact()

    there = assert_whole(lake, acknowledged)
    rows = [row for batch in sorted(there) for row in batch_of(batch)]
    assert lake.parsed([row.key for row in rows]) == {row.key: row for row in rows}
    vectors = lake.vectors(EMBEDDER, lake.read_vector_hashes(EMBEDDER)).by_hash()
    assert all(np.all(v == int(key.split("-")[0]) + 1) for key, v in vectors.items())
    sizes = lake.size()
    assert sizes["parsed_text"].rows == len(rows)
    on_disk = [p for p in tmp_path.rglob("*") if p.is_file() and "_delta_log" not in p.parts]
    assert sum(p.stat().st_size for p in on_disk) == sum(size.bytes for size in sizes.values())
