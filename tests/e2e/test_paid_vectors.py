"""kill -9 while texts are embedded: vectors that were paid for, except the last, are stored.

A server counts which texts it answered, and the lake is read after each kill. At the end every text
was answered once, except those lost in a kill.
"""

from __future__ import annotations

import time

from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation

CONCURRENCY = 4
BATCH = 5
UNDER_WAY = CONCURRENCY * BATCH
LATENCY = 0.5
KILLS = (1.3, 3.6)
"""After so many rounds of requests: while some are under way, and while some are written."""


def test_a_killed_sync_loses_no_more_than_was_under_way_and_in_writing(
    shared_installation: Installation,
) -> None:
    with embedding_server(seconds=LATENCY) as server:
        embedder = {
            "provider": "openai-compatible",
            "model": "counting",
            "dimensions": server.dimensions,
            "base_url": server.url,
            "batch_size": BATCH,
            "concurrency": CONCURRENCY,
        }
        folder = shared_installation.add_tenant("paid", embedder=embedder)
        documents = 10 * UNDER_WAY
        for number in range(documents):
            (folder / f"d{number}.md").write_text(f"# Document {number}\n\nOne of many.\n")
        allowed = {"RAG_ASSETS_PRIVATE_ENDPOINTS": "127.0.0.1"}
        lost = []
        for rounds in KILLS:
            before = sum(server.answered.values())
            process = shared_installation.start("sync", "paid", **allowed)
            wait_for_answers(server, before + int(rounds) * UNDER_WAY)
            time.sleep(rounds % 1 * LATENCY)
            process.kill()
            process.communicate()
            time.sleep(2 * LATENCY)  # the server still answers, and charges for, requests in flight
            lost.append(len(server.answered) - stored_vectors(shared_installation))
            assert stored_vectors(shared_installation) < documents
        assert stored_vectors(shared_installation) > 0
        done = shared_installation.start("sync", "paid", **allowed)
        _, complaint = done.communicate()
        assert done.returncode == 0, complaint
        assert stored_vectors(shared_installation) == len(server.answered) == documents
        assert all(count <= 2 * UNDER_WAY for count in lost)
        assert sum(server.answered.values()) - documents == sum(lost)


def wait_for_answers(server: EmbeddingServer, count: int) -> None:
    deadline = time.monotonic() + 120
    while sum(server.answered.values()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stored_vectors(installation: Installation) -> int:
    """Return the number of texts with a vector in the lake, or in the spool until the next sync."""
    ctx = installation.context("paid")
    embedder = ctx.embedder
    texts = set(ctx.lake.read_vector_hashes(embedder.embedder_id))
    for _, spooled, _ in ctx.lake.spool(embedder.embedder_id, embedder.dimensions).kept():
        texts |= set(spooled)
    return len(texts)
