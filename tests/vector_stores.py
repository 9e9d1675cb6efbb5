"""Entries and opened vector stores for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rag_assets.ingest.chunking.model import Chunk, Definition
from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    EntryDocument,
    EntryFilter,
    IndexRef,
    IndexSpec,
    Owner,
    Places,
    RankingRequest,
)
from rag_assets.storage.index.store import EntrySearcher, VectorStore

T = TypeVar("T")
SPEC = IndexSpec(dimensions=4)
MADE = datetime(2026, 11, 21, 14, 35, 0, 123_000, UTC)
KEY = b"k" * 32


def unit(*values: float) -> npt.NDArray[np.float32]:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def owner_of(tenant: str, generation: int = 1, *, incarnation: int = 1) -> Owner:
    return Owner(tenant, incarnation, generation, KEY)


def entry(
    owner: Owner,
    name: str,
    text: str = "Nothing in particular.",
    *,
    version: str = "v1",
    ordinal: int = 0,
    vector: npt.NDArray[np.float32] | None = None,
    symbol: str = "",
    **document: Any,
) -> Entry:
    facts: dict[str, Any] = {
        "document_id": name,
        "indexed_key": version,
        "source": "files",
        "source_type": "file",
        "path": f"{name}.md",
        "uri": f"files/{name}.md",
        "media_type": "text/markdown",
        "title": None,
        "access_scope": "public",
        "modified_at": MADE,
    }
    chunk = Chunk(
        ordinal=ordinal,
        text=text,
        text_sha256=f"{name}-{ordinal}",
        start=0,
        end=len(text),
        byte_start=0,
        token_count=3,
        heading_path=(),
        definition=Definition("method", symbol) if symbol else None,
    )
    return Entry(
        owner,
        EntryDocument(**{**facts, **document}),
        chunk,
        unit(1, 0, 0, 0) if vector is None else vector,
    )


@dataclass(frozen=True)
class Opened:
    """A store with one shared index."""

    store: VectorStore
    index: IndexRef

    @property
    def name(self) -> str:
        return self.index.name

    def write(self, *entries: Entry) -> int:
        return self.store.entries.write(self.name, entries)

    def uris(self, owner: Owner) -> list[str]:
        return sorted(e.fields["uri"] for e in self.store.entries.stored(self.name, owner))

    def ask(self, question: Callable[[EntrySearcher], Awaitable[T]]) -> T:
        async def run() -> T:
            searcher = self.store.searcher()
            try:
                return await question(searcher)
            finally:
                await searcher.close()

        return asyncio.run(run())

    def ranking(
        self,
        owner: Owner,
        by: npt.NDArray[np.float32] | str | Places,
        limit: int = 10,
        **wanted: Any,
    ) -> list[Candidate]:
        request = RankingRequest(by, limit, EntryFilter(**wanted))
        [found] = self.ask(lambda searcher: searcher.rankings(self.name, owner, [request]))
        return found

    def found(self, owner: Owner, **wanted: Any) -> list[str]:
        ranking = self.ranking(owner, unit(1, 0, 0, 0), **wanted)
        return sorted(candidate.document_id for candidate in ranking)
