"""A randomized operator: two installations on shared servers, and hundreds of steps.

It edits sources, uploads, pushes, purges and removes. It copies, moves, clones and restores. It
changes prefixes and addresses, sets clocks, unmounts disks, kills commands, and runs every daily
and weekly job. No step may change the other installation. Regularly and at the end, each
installation must equal its sources, no original may be lost, and every receipt must be true.

RAG_ASSETS_TEST_OPERATOR_STEPS=300 takes a longer walk, RAG_ASSETS_TEST_OPERATOR_SEED another one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.killing import fork_server
from tests.e2e.operators import everyday, losses, moves
from tests.e2e.operators.model import LAKE
from tests.e2e.operators.walk import Walk
from tests.e2e.operators.world import World
from tests.parsers import share_parsers

STEPS = int(os.environ.get("RAG_ASSETS_TEST_OPERATOR_STEPS", "40"))
SEED = int(os.environ.get("RAG_ASSETS_TEST_OPERATOR_SEED", "1"))
VERIFY_EVERY = 50
STEPS_OF = (everyday, losses, moves)
"""The modules whose steps are taken: each registers them when it is imported."""


@pytest.fixture
def walk(
    postgres_url: str,
    elasticsearch_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Walk]:
    monkeypatch.delenv(LAKE, raising=False)
    monkeypatch.setenv("RAG_ASSETS_ELASTICSEARCH_URL", elasticsearch_url)
    world = World(tmp_path, postgres_url, elasticsearch_url, f"t{uuid.uuid4().hex[:8]}")
    cache = tmp_path / "server"
    cache.mkdir()
    share_parsers(cache)
    try:
        with fork_server({**os.environ, "RAG_ASSETS_HOME": str(cache)}) as server:
            yield Walk(world, server, SEED)
    finally:
        world.close()


@pytest.mark.nightly
@pytest.mark.timeout(max(600, 30 * STEPS))
def test_after_any_walk_each_installation_equals_its_sources(walk: Walk) -> None:
    for number in range(1, STEPS + 1):
        try:
            walk.take(number)
            if number % VERIFY_EVERY == 0 or number == STEPS:
                for operated in walk.installations:
                    operated.verify()
        finally:
            walk.write_log()
