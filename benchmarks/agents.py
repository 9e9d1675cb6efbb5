"""What agents' documentation costs: fresh commands, indexing, refreshing and questions.

    python -m benchmarks.agents [--processes N]

The corpus is the project's own documentation, with the shipped model; larger indexes have vectors
without meaning, since only their number counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import PROJECT, machine, save
from rag_assets.agents.manager import RagIndexManager
from rag_assets.indexing.files import FileStore
from rag_assets.indexing.memory import MemoryStore
from rag_assets.indexing.passages import DocChunk, IndexState, PassageStore
from rag_assets.indexing.sqlite import SqliteStore
from rag_assets.models.embedding.local import OnnxEmbedder

SIZES = (500, 5_000, 50_000)
QUESTIONS = ("how is drift repaired?", "which keys are rotated?", "what does a sync cost?")
AGENTS = (
    "rag: {store: sqlite}\nagents:\n  - {id: a, docs: {strategy: rag, sources: [docs/**/*.md]}}\n"
)
_LOADING = """
import asyncio, time
started = time.perf_counter()
from rag_assets.models.embedding.local import OnnxEmbedder
asyncio.run(OnnxEmbedder().embed(["a question"]))
print(time.perf_counter() - started)
"""


def main() -> None:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=20, help="fresh processes a median is of")
    processes = parser.parse_args().processes
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(PROJECT / "docs", place / "docs", ignore=shutil.ignore_patterns("tools"))
        result = {
            "machine": before,
            "commands": commands(place, processes),
            "index": indexing(place),
            "stores": [row for size in SIZES for row in stores(place, size)],
        }
    print(json.dumps(result, indent=1))
    save("agents", result)


def commands(place: Path, processes: int) -> dict[str, Any]:
    """Seconds of fresh processes: a search, and what loading the model takes of it."""
    (place / ".swebash").mkdir()
    (place / ".swebash/agents.yaml").write_text(AGENTS)
    command = str(Path(sys.executable).with_name("rag-assets"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            arguments, cwd=place, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    run(command, "agent", "index")
    time.sleep(2.1)
    question = (command, "agent", "search", "@a", QUESTIONS[0])
    whole = _median(lambda: run(*question), processes)
    loading = statistics.median(
        float(run(sys.executable, "-c", _LOADING)) for _ in range(processes)
    )
    listing = _median(lambda: run(command, "agent", "list"), processes)
    return {"search": whole, "loading the model": loading, "list": listing}


def indexing(place: Path) -> dict[str, Any]:
    """Seconds of a first index, of an unchanged one, and of one edited file, in this process."""
    embedder = OnnxEmbedder()
    asyncio.run(embedder.embed(["warm"]))
    manager = RagIndexManager(embedder, SqliteStore(place / "index" / "rag.db"))
    sources = ["docs/**/*.md"]
    first = manager.ensure_index("a", sources, place)
    texts = [one.content for one in manager.store.chunks("a")]
    alone = _median(lambda: asyncio.run(_embed(embedder, texts)), 3)
    time.sleep(2.1)
    manager.ensure_index("a", sources, place)
    unchanged = _median(lambda: manager.ensure_index("a", sources, place), 20)
    edited = statistics.median(_edited(manager, sources, place, n) for n in range(10))
    asked = _median(lambda: manager.search("a", QUESTIONS[1], 5), 50)
    hybrid = _median(lambda: manager.search("a", QUESTIONS[1], 5, mode="hybrid"), 20)
    return {
        "files": first.files,
        "chunks": first.chunks,
        "first": first.seconds,
        "the model alone": alone,
        "unchanged": unchanged,
        "one file edited": edited,
        "question": asked,
        "question, hybrid": hybrid,
    }


async def _embed(embedder: OnnxEmbedder, texts: list[str]) -> None:
    size = embedder.limits.texts
    batches = [texts[at : at + size] for at in range(0, len(texts), size)]
    slots = asyncio.Semaphore(embedder.limits.concurrency)

    async def one(batch: list[str]) -> None:
        async with slots:
            await embedder.embed(batch)

    await asyncio.gather(*map(one, batches))


def _edited(manager: RagIndexManager, sources: list[str], place: Path, number: int) -> float:
    path = place / "docs" / "drift.md"
    path.write_text(f"{path.read_text()}\nA new sentence, the {number}th of its kind.\n")
    return manager.ensure_index("a", sources, place).seconds


def stores(place: Path, size: int) -> list[dict[str, Any]]:
    """Seconds that stores of a size take to be written, and to answer, first and later."""
    chunks = [DocChunk.at("a", f"{n // 10}.md", n * 100, "word " * 300) for n in range(size)]
    vectors = np.random.default_rng(size).standard_normal((size, 384)).astype(np.float32)
    state = IndexState("", "", "", 0, (), {}, {one.id: "" for one in chunks})
    made: dict[str, Callable[[], PassageStore]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(place / f"files-{size}"),
        "sqlite": lambda: SqliteStore(place / f"{size}.db"),
    }
    rows = []
    for name, make in made.items():
        store = make()
        written = _seconds(lambda: store.replace("a", chunks, vectors, state))  # noqa: B023
        reader = store if name == "memory" else make()
        first = _seconds(lambda: reader.search(vectors[1], "a", 5))  # noqa: B023
        later = _median(lambda: reader.search(vectors[2], "a", 5), 20)  # noqa: B023
        rows.append(
            {"store": name, "chunks": size, "write": written, "first": first, "later": later}
        )
    return rows


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median(work: Callable[[], object], times: int) -> float:
    return statistics.median(_seconds(work) for _ in range(times))


if __name__ == "__main__":
    main()
