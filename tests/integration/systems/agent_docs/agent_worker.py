"""A process that builds or searches the index of an agent, for tests that kill such processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.models.providers.local import DeterministicEmbedder
from rag_assets.systems.agent_docs import sqlite_store
from rag_assets.systems.agent_docs.file_store import FileStore
from rag_assets.systems.agent_docs.manager import RagIndexManager
from rag_assets.systems.agent_docs.passages import Chunking
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore


def plain(parsed: ParsedText) -> ParsedText:
    return parsed


def manager_of(kind: str, folder: Path, wait: float = 30.0) -> RagIndexManager:
    database = SqliteStore(folder / "rag.db", busy_seconds=wait)
    store = FileStore(folder / "rag") if kind == "file" else database
    return RagIndexManager(DeterministicEmbedder(32), store, Chunking(200, 20), mask=plain)


def work(what: str, kind: str, folder: Path, output: Path) -> None:
    """Build or search repeatedly, until this process or its parent is killed.

    Args:
        what: `build` or `search`.
        kind: `file` or `sqlite`.
        folder: contains the documents and the store.
        output: receives what this process prints.
    """
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT), stream)
    # A reader that waits longer for a lock fails.
    manager = manager_of(kind, folder, wait=0.1 if what == "search" else 30.0)
    sqlite_store.MAX_ROWS = 20  # type: ignore[misc] - so that builders are killed between batches
    print("ready", flush=True)  # noqa: T201 - read by the test
    parent = os.getppid()
    while os.getppid() == parent:
        if what == "build":
            for path in sorted((folder / "docs").glob("*.md"))[:3]:
                path.write_text(path.read_text() + f"One more sentence {time.time_ns()}. ")
            manager.ensure_index("a", ["docs/*.md"], folder)
            continue
        started = time.monotonic()
        found = manager.search("a", "a question", 5)
        took = time.monotonic() - started
        stale = {one.chunk.agent_id for one in found} != {"a"} or len(found) != 5
        print(f"{took:.6f} {'wrong' if stale else 'right'}", flush=True)  # noqa: T201 - likewise
        time.sleep(0.005)
