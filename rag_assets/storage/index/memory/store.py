"""The vector store in memory."""

from __future__ import annotations

from functools import partial

from rag_assets.storage.index.memory.administration import MemoryIndexes
from rag_assets.storage.index.memory.entries import MemoryEntries
from rag_assets.storage.index.memory.searcher import MemorySearcher
from rag_assets.storage.index.memory.state import Memory
from rag_assets.storage.index.store import StoreConfig, VectorStore


class MemoryNotes:
    """Keeps notes in memory (see NoteStore)."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self._notes.get(name)

    def write(self, name: str, text: str) -> None:
        self._notes[name] = text

    def delete(self, name: str) -> None:
        self._notes.pop(name, None)


def open_store(config: StoreConfig) -> VectorStore:
    """Open a new, empty store in memory."""
    memory = Memory(config.prefix, config.shared_limit)
    return VectorStore(
        entries=MemoryEntries(memory),
        indexes=MemoryIndexes(memory),
        searcher=partial(MemorySearcher, memory),
        notes=MemoryNotes(),
        close=memory.indexes.clear,
    )
