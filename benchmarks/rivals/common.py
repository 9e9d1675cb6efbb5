"""The inputs of every framework: the corpus, the embedder, the token counter, the servers.

Runs in the frameworks' environments: besides the standard library it needs numpy and toktok.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toktok import batch_count

from rag_assets.models.providers.local import DeterministicEmbedder

DIMENSIONS = 384


@dataclass(frozen=True, slots=True)
class RivalTask:
    """A folder to index.

    Attributes:
        folder: contains the Markdown files.
        state: folder for the framework's state between two runs.
    """

    folder: Path
    state: Path

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield path within the folder and text of every file, in order."""
        for path in sorted(self.folder.rglob("*.md")):
            yield str(path.relative_to(self.folder)), path.read_text()


def embed(texts: list[str]) -> list[list[float]]:
    """Return the vectors of the project's own deterministic embedder, as lists."""
    vectors = asyncio.run(DeterministicEmbedder(DIMENSIONS).embed(texts)).vectors
    return [vector.tolist() for vector in vectors]


def count_tokens(text: str) -> int:
    """Count cl100k_base tokens, as the project counts them."""
    counts: list[int] = batch_count([text], "cl100k_base", threads=1)
    return counts[0]


def get_elasticsearch_url() -> str:
    """Return the address of Elasticsearch."""
    return os.environ["RAG_ASSETS_ELASTICSEARCH_URL"]


def get_postgres_url() -> str:
    """Return the URL of the Postgres database."""
    return os.environ["RAG_ASSETS_DATABASE_URL"]


def run(synchronise: Callable[[RivalTask], dict[str, Any]]) -> None:
    """Time the work of a framework, whose modules are already imported, and print its report."""
    task = RivalTask(Path(sys.argv[1]), Path(sys.argv[2]))
    task.state.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    report = synchronise(task)
    print(json.dumps({"inside": time.perf_counter() - started, **report}))
