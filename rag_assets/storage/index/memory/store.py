"""The vector store in memory."""

from __future__ import annotations

from functools import partial

from rag_assets.storage.index.memory.administration import MemoryIndexes
from rag_assets.storage.index.memory.entries import MemoryEntries
from rag_assets.storage.index.memory.searcher import MemorySearcher
from rag_assets.storage.index.memory.state import Memory
from rag_assets.storage.index.store import StoreConfig, VectorStore


def open_store(config: StoreConfig) -> VectorStore:
    """Open a new, empty store in memory."""
    memory = Memory(config.prefix, config.shared_limit)
    return VectorStore(
        entries=MemoryEntries(memory),
        indexes=MemoryIndexes(memory),
        searcher=partial(MemorySearcher, memory),
        close=memory.indexes.clear,
    )
