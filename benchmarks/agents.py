"""Measure the cost of agents' documentation: fresh commands, indexing, refreshing, questions.

    python -m benchmarks.agents [--processes N]

The corpus is the project's own documentation, embedded by the shipped model; larger indexes hold
random vectors, because only their number matters. Every figure has seconds of wall time and of
CPU time: on a busy machine, compare CPU times.
"""

from __future__ import annotations

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

from benchmarks.measure import PROJECT, create_parser, describe_machine, save_result
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.providers.local import DeterministicEmbedder
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
_LOAD_MODEL = """
import asyncio
from rag_assets.models.embedding.local import OnnxEmbedder
asyncio.run(OnnxEmbedder().embed(["a question"]))
"""
_IMPORT_ONLY = "import rag_assets"


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument(
        "--processes", type=int, default=20, help="number of fresh processes per median"
    )
    processes = parser.parse_args().processes
    before = describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(PROJECT / "docs", root / "docs", ignore=shutil.ignore_patterns("tools"))
        result = {
            "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": before,
            "commands": measure_commands(root, processes),
            "index": measure_indexing(root),
            "files": measure_current_check(root),
            "memory": measure_memory(),
            "stores": [row for size in SIZES for row in measure_stores(root, size)],
        }
    print(json.dumps(result, indent=1))
    save_result("agents", result)


def measure_commands(root: Path, processes: int) -> dict[str, Any]:
    """Measure fresh processes: a search, a listing, loading the model, and a bare interpreter."""
    (root / ".swebash").mkdir()
    (root / ".swebash/agents.yaml").write_text(AGENTS)
    command = str(Path(sys.executable).with_name("rag-assets"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(root)}

    def run(*arguments: str) -> None:
        subprocess.run(arguments, cwd=root, env=environment, check=True, capture_output=True)

    run(command, "agent", "index")
    time.sleep(2.1)
    run(command, "agent", "index")
    runs = {
        "search": (command, "agent", "search", "@a", QUESTIONS[0]),
        "loading the model": (sys.executable, "-c", _LOAD_MODEL),
        "an interpreter": (sys.executable, "-c", _IMPORT_ONLY),
        "list": (command, "agent", "list"),
    }
    costs_by_name: dict[str, list[Cost]] = {name: [] for name in runs}
    # In turn, so that other work of the machine slows all alike.
    for _ in range(processes):
        for name, arguments in runs.items():
            costs_by_name[name].append(_measure(lambda: run(*arguments), _read_children_cpu))  # noqa: B023
    return {name: _compute_medians(costs) for name, costs in costs_by_name.items()}


def measure_indexing(root: Path) -> dict[str, Any]:
    """Measure a first index, an unchanged refresh, and a refresh after an edit, in this process."""
    embedder = OnnxEmbedder()
    asyncio.run(embedder.embed(["warm"]))
    manager = RagIndexManager(embedder, SqliteStore(root / "index" / "rag.db"))
    sources = ["docs/**/*.md"]
    manager.ensure_index("rules", [], root)
    first = _measure(lambda: manager.ensure_index("a", sources, root))
    texts = [chunk.content for chunk in manager.store.chunks("a")]
    alone = _measure(lambda: asyncio.run(_embed_in_batches(embedder, texts)))
    time.sleep(2.1)
    report = manager.ensure_index("a", sources, root)
    return {
        "files": report.files,
        "chunks": report.chunks,
        "first": first,
        "the model alone": alone,
        "unchanged": _measure_median(lambda: manager.ensure_index("a", sources, root), 20),
        "one file edited": _compute_medians(
            [_measure_edit(manager, sources, root, n) for n in range(10)]
        ),
        "question": _measure_median(lambda: manager.search("a", QUESTIONS[1], 5), 50),
        "question, hybrid": _measure_median(
            lambda: manager.search("a", QUESTIONS[1], 5, mode="hybrid"), 20
        ),
    }


def measure_current_check(root: Path) -> Cost:
    """Measure the check that 500 unchanged files are current."""
    folder = root / "many"
    folder.mkdir()
    for number in range(500):
        (folder / f"{number}.md").write_text(f"Text of file {number}.")
    manager = RagIndexManager(
        DeterministicEmbedder(384), SqliteStore(root / "many.db"), mask=lambda parsed: parsed
    )
    manager.ensure_index("a", ["many/*.md"], root)
    time.sleep(2.1)
    manager.ensure_index("a", ["many/*.md"], root)
    return _measure_median(lambda: manager.is_current("a", ["many/*.md"], root), 50)


def measure_memory() -> dict[str, float]:
    """Return the bytes per passage that a store keeps in memory, without the text."""
    size = 5_000
    chunks, vectors, state = _build_random_index(size)
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
    memory_store = MemoryStore()
    memory_store.replace(
        "a", [replace(chunk, content=chunk.content + " ") for chunk in chunks], vectors, state
    )
    own = tracemalloc.get_traced_memory()[0] - texts
    tracemalloc.stop()
    return {"sqlite": sqlite / size, "memory": own / size}


async def _embed_in_batches(embedder: OnnxEmbedder, texts: list[str]) -> None:
    size = embedder.limits.texts
    batches = [texts[at : at + size] for at in range(0, len(texts), size)]
    slots = asyncio.Semaphore(embedder.limits.concurrency)

    async def embed_batch(batch: list[str]) -> None:
        async with slots:
            await embedder.embed(batch)

    await asyncio.gather(*map(embed_batch, batches))


def _measure_edit(manager: RagIndexManager, sources: list[str], root: Path, number: int) -> Cost:
    path = root / "docs" / "drift.md"
    path.write_text(f"{path.read_text()}\nA new sentence, the {number}th of its kind.\n")
    return _measure(lambda: manager.ensure_index("a", sources, root))


def _build_random_index(size: int) -> tuple[list[DocChunk], Any, IndexState]:
    chunks = [
        DocChunk.from_location("a", f"{n // 10}.md", n * 100, "word " * 300) for n in range(size)
    ]
    vectors = np.random.default_rng(size).standard_normal((size, 384)).astype(np.float32)
    return (
        chunks,
        vectors,
        IndexState("", "", "", 0, (), {}, {chunk.id: "0" * 64 for chunk in chunks}),
    )


def measure_stores(root: Path, size: int) -> list[dict[str, Any]]:
    """Measure writing, the first search and later searches of each store with `size` chunks."""
    chunks, vectors, state = _build_random_index(size)
    factories: dict[str, Callable[[], PassageStore]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(root / f"files-{size}"),
        "sqlite": lambda: SqliteStore(root / f"{size}.db"),
    }
    rows = []
    for name, make in factories.items():
        store = make()
        write_cost = _measure(lambda: store.replace("a", chunks, vectors, state))  # noqa: B023
        reader = store if name == "memory" else make()
        first = _measure(lambda: reader.search(vectors[1], "a", 5))  # noqa: B023
        later = _measure_median(lambda: reader.search(vectors[2], "a", 5), 20)  # noqa: B023
        rows.append(
            {"store": name, "chunks": size, "write": write_cost, "first": first, "later": later}
        )
    return rows


def _read_children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measure(work: Callable[[], object], cpu: Callable[[], float] = time.process_time) -> Cost:
    started, used = time.perf_counter(), cpu()
    work()
    return {"wall": time.perf_counter() - started, "cpu": cpu() - used}


def _compute_medians(costs: Sequence[Cost]) -> Cost:
    return {key: statistics.median(cost[key] for cost in costs) for key in ("wall", "cpu")}


def _measure_median(work: Callable[[], object], times: int) -> Cost:
    return _compute_medians([_measure(work) for _ in range(times)])


if __name__ == "__main__":
    main()
