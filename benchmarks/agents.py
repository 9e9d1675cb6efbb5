"""Measure the cost of agents' documentation: fresh commands, indexing, refreshing, questions.

    python -m benchmarks.agents [--processes N]

The corpus is the project's own documentation, embedded by the shipped model; larger indexes hold
random vectors, because only their number matters. Every figure has seconds of wall time and of
CPU time: on a busy machine, compare CPU times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.measure import PROJECT, machine, save
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.providers.deterministic import DeterministicEmbedder
from rag_assets.systems.agent_docs.file_store import FileStore
from rag_assets.systems.agent_docs.manager import RagIndexManager
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore
from rag_assets.systems.agent_docs.stores import DocChunk, IndexState, MemoryStore, PassageStore

Cost: TypeAlias = dict[str, float]
"""Seconds of wall time ("wall") and of CPU time ("cpu")."""

SIZES = (500, 5_000, 50_000)
QUESTIONS = ("how is drift repaired?", "which keys are rotated?", "what does a sync cost?")
AGENTS = (
    "rag: {store: sqlite}\nagents:\n  - {id: a, docs: {strategy: rag, sources: [docs/**/*.md]}}\n"
)
_LOADING = """
import asyncio
from rag_assets.models.embedding.local import OnnxEmbedder
asyncio.run(OnnxEmbedder().embed(["a question"]))
"""
_NOTHING = "import rag_assets"


def main() -> None:
    """Measure and save the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--processes", type=int, default=20, help="number of fresh processes per median"
    )
    processes = parser.parse_args().processes
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(PROJECT / "docs", place / "docs", ignore=shutil.ignore_patterns("tools"))
        result = {
            "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": before,
            "commands": commands(place, processes),
            "index": indexing(place),
            "files": looking(place),
            "memory": memory(),
            "stores": [row for size in SIZES for row in stores(place, size)],
        }
    print(json.dumps(result, indent=1))
    save("agents", result)


def commands(place: Path, processes: int) -> dict[str, Any]:
    """Measure fresh processes: a search, a listing, loading the model, and a bare interpreter."""
    (place / ".swebash").mkdir()
    (place / ".swebash/agents.yaml").write_text(AGENTS)
    command = str(Path(sys.executable).with_name("rag-assets"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}

    def run(*arguments: str) -> None:
        subprocess.run(arguments, cwd=place, env=environment, check=True, capture_output=True)

    run(command, "agent", "index")
    time.sleep(2.1)
    run(command, "agent", "index")
    runs = {
        "search": (command, "agent", "search", "@a", QUESTIONS[0]),
        "loading the model": (sys.executable, "-c", _LOADING),
        "an interpreter": (sys.executable, "-c", _NOTHING),
        "list": (command, "agent", "list"),
    }
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    # In turn, so that other work of the machine slows all alike.
    for _ in range(processes):
        for name, arguments in runs.items():
            found[name].append(_cost(lambda: run(*arguments), _children_cpu))  # noqa: B023
    return {name: _median_of(costs) for name, costs in found.items()}


def indexing(place: Path) -> dict[str, Any]:
    """Measure a first index, an unchanged refresh, and a refresh after an edit, in this process."""
    embedder = OnnxEmbedder()
    asyncio.run(embedder.embed(["warm"]))
    manager = RagIndexManager(embedder, SqliteStore(place / "index" / "rag.db"))
    sources = ["docs/**/*.md"]
    manager.ensure_index("rules", [], place)
    first = _cost(lambda: manager.ensure_index("a", sources, place))
    texts = [chunk.content for chunk in manager.store.chunks("a")]
    alone = _cost(lambda: asyncio.run(_embed(embedder, texts)))
    time.sleep(2.1)
    report = manager.ensure_index("a", sources, place)
    return {
        "files": report.files,
        "chunks": report.chunks,
        "first": first,
        "the model alone": alone,
        "unchanged": _median(lambda: manager.ensure_index("a", sources, place), 20),
        "one file edited": _median_of([_edited(manager, sources, place, n) for n in range(10)]),
        "question": _median(lambda: manager.search("a", QUESTIONS[1], 5), 50),
        "question, hybrid": _median(
            lambda: manager.search("a", QUESTIONS[1], 5, mode="hybrid"), 20
        ),
    }


def looking(place: Path) -> Cost:
    """Measure the check that 500 unchanged files are current."""
    folder = place / "many"
    folder.mkdir()
    for number in range(500):
        (folder / f"{number}.md").write_text(f"Text of file {number}.")
    manager = RagIndexManager(
        DeterministicEmbedder(384), SqliteStore(place / "many.db"), mask=lambda parsed: parsed
    )
    manager.ensure_index("a", ["many/*.md"], place)
    time.sleep(2.1)
    manager.ensure_index("a", ["many/*.md"], place)
    return _median(lambda: manager.is_current("a", ["many/*.md"], place), 50)


def memory() -> dict[str, float]:
    """Return the bytes per passage that a store keeps in memory, without the text."""
    size = 5_000
    chunks, vectors, state = _made_up(size)
    with tempfile.TemporaryDirectory() as folder:
        SqliteStore(Path(folder) / "rag.db").replace("a", chunks, vectors, state)
        query = vectors[1].copy()
        texts = sum(len(chunk.content) for chunk in chunks)
        tracemalloc.start()
        store = SqliteStore(Path(folder) / "rag.db")
        store.state("a")
        store.search(query, "a", 5)
        sqlite = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    tracemalloc.start()
    kept = MemoryStore()
    kept.replace(
        "a", [replace(chunk, content=chunk.content + " ") for chunk in chunks], vectors, state
    )
    own = tracemalloc.get_traced_memory()[0] - texts
    tracemalloc.stop()
    return {"sqlite": sqlite / size, "memory": own / size}


async def _embed(embedder: OnnxEmbedder, texts: list[str]) -> None:
    size = embedder.limits.texts
    batches = [texts[at : at + size] for at in range(0, len(texts), size)]
    slots = asyncio.Semaphore(embedder.limits.concurrency)

    async def one(batch: list[str]) -> None:
        async with slots:
            await embedder.embed(batch)

    await asyncio.gather(*map(one, batches))


def _edited(manager: RagIndexManager, sources: list[str], place: Path, number: int) -> Cost:
    path = place / "docs" / "drift.md"
    path.write_text(f"{path.read_text()}\nA new sentence, the {number}th of its kind.\n")
    return _cost(lambda: manager.ensure_index("a", sources, place))


def _made_up(size: int) -> tuple[list[DocChunk], Any, IndexState]:
    chunks = [
        DocChunk.from_location("a", f"{n // 10}.md", n * 100, "word " * 300) for n in range(size)
    ]
    vectors = np.random.default_rng(size).standard_normal((size, 384)).astype(np.float32)
    return (
        chunks,
        vectors,
        IndexState("", "", "", 0, (), {}, {chunk.id: "0" * 64 for chunk in chunks}),
    )


def stores(place: Path, size: int) -> list[dict[str, Any]]:
    """Measure writing, the first search and later searches of each store with `size` chunks."""
    chunks, vectors, state = _made_up(size)
    made: dict[str, Callable[[], PassageStore]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(place / f"files-{size}"),
        "sqlite": lambda: SqliteStore(place / f"{size}.db"),
    }
    rows = []
    for name, make in made.items():
        store = make()
        written = _cost(lambda: store.replace("a", chunks, vectors, state))  # noqa: B023
        reader = store if name == "memory" else make()
        first = _cost(lambda: reader.search(vectors[1], "a", 5))  # noqa: B023
        later = _median(lambda: reader.search(vectors[2], "a", 5), 20)  # noqa: B023
        rows.append(
            {"store": name, "chunks": size, "write": written, "first": first, "later": later}
        )
    return rows


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cost(work: Callable[[], object], cpu: Callable[[], float] = time.process_time) -> Cost:
    started, used = time.perf_counter(), cpu()
    work()
    return {"wall": time.perf_counter() - started, "cpu": cpu() - used}


def _median_of(costs: Sequence[Cost]) -> Cost:
    return {key: statistics.median(cost[key] for cost in costs) for key in ("wall", "cpu")}


def _median(work: Callable[[], object], times: int) -> Cost:
    return _median_of([_cost(work) for _ in range(times)])


if __name__ == "__main__":
    main()
