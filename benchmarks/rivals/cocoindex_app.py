"""CocoIndex: an app that indexes a folder into Postgres with pgvector.

It has no Elasticsearch target, so this uses its native target, as in its own example of text
embedding: files are memoised, chunks mapped, rows declared. Its splitter counts characters: 1,150
of this corpus are about 256 tokens. COCOINDEX_VECTOR_INDEX=hnsw adds the vector index that the
example leaves out; without it, a search there reads every row.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any

import asyncpg
import cocoindex as coco
import numpy as np
from cocoindex.connectors import localfs, postgres
from cocoindex.ops.text import RecursiveSplitter
from cocoindex.resources.chunk import Chunk
from cocoindex.resources.file import FileLike, PatternFilePathMatcher
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from numpy.typing import NDArray

from benchmarks.rivals import common
from benchmarks.rivals.names import INDEX
from rag_assets.models.providers.local import DeterministicEmbedder

_CHARACTERS = 1_150
_OVERLAP = 140

_DATABASE = coco.ContextKey[asyncpg.Pool]("database")
_SPLITTER = RecursiveSplitter()
_EMBEDDER = DeterministicEmbedder(common.DIMENSIONS)
_VECTOR = VectorSchema(dtype=np.dtype(np.float32), size=common.DIMENSIONS)


@dataclass
class Row:
    """One chunk."""

    id: int
    path: str
    start: int
    end: int
    text: str
    embedding: Annotated[NDArray[np.float32], _VECTOR]


@coco.lifespan
async def lifespan(builder: coco.EnvironmentBuilder) -> AsyncIterator[None]:
    """Connect to Postgres."""
    builder.settings.db_path = Path(sys.argv[2]) / "cocoindex.db"
    async with asyncpg.create_pool(common.get_postgres_url()) as pool:
        builder.provide(_DATABASE, pool)
        yield


@coco.fn.as_async(batching=True, max_batch_size=64)
async def embed(texts: list[str]) -> list[NDArray[np.float32]]:
    """Return the vectors of a batch of texts, which CocoIndex collects."""
    return list((await _EMBEDDER.embed(texts)).vectors)


@coco.fn
async def declare_chunk(
    chunk: Chunk, path: PurePath, ids: IdGenerator, table: postgres.TableTarget[Row]
) -> None:
    """Declare the row of a chunk."""
    table.declare_row(
        row=Row(
            id=await ids.next_id(chunk.text),
            path=str(path),
            start=chunk.start.char_offset,
            end=chunk.end.char_offset,
            text=chunk.text,
            embedding=await embed(chunk.text),
        )
    )


@coco.fn(memo=True)
async def process_file(file: FileLike[Any], table: postgres.TableTarget[Row]) -> None:
    """Split a file and declare its chunks."""
    chunks = _SPLITTER.split(
        await file.read_text(),
        chunk_size=_CHARACTERS,
        chunk_overlap=_OVERLAP,
        language="markdown",
    )
    await coco.map(declare_chunk, chunks, file.file_path.path, IdGenerator(), table)


@coco.fn
async def app_main(folder: Path) -> None:
    """Index the folder into the table."""
    table = await postgres.mount_table_target(
        _DATABASE,
        table_name=INDEX,
        table_schema=await postgres.TableSchema.from_class(Row, primary_key=["id"]),
    )
    if os.environ.get("COCOINDEX_VECTOR_INDEX") == "hnsw":
        table.declare_vector_index(column="embedding", metric="cosine", method="hnsw")
    files = localfs.walk_dir(
        folder,
        recursive=True,
        path_matcher=PatternFilePathMatcher(included_patterns=["**/*.md"]),
    )
    await coco.mount_each(process_file, files.items(), table)


def synchronise(task: common.RivalTask) -> dict[str, Any]:
    """Update the table from the files."""
    app = coco.App(coco.AppConfig(name="Rival"), app_main, folder=task.folder)
    app.update_blocking()
    return {}


if __name__ == "__main__":
    common.run(synchronise)
