"""One search index of many tenants, opened by its address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_assets.storage.index.protocols import EntrySearcher, EntryStore, IndexAdministration

MEMORY = "memory:"
"""Address of a store that lives as long as its process, for tests and for trying things out."""


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Which store to open, and how.

    Attributes:
        url: address of an Elasticsearch, with credentials if it wants any, or `memory:`.
        prefix: of the names of indexes and views; tells installations apart that share a server.
        shared_limit: entries above which a new shared index is opened for new generations.
    """

    url: str
    prefix: str = "rag"
    shared_limit: int = 2_000_000


@dataclass(frozen=True, slots=True)
class VectorStore:
    """The three parts of an opened store.

    Attributes:
        entries: writes and reads entries.
        indexes: places generations, publishes and removes them.
        searcher: makes what one event loop searches with.
        close: gives all connections back but the searchers'.
    """

    entries: EntryStore
    indexes: IndexAdministration
    searcher: Callable[[], EntrySearcher]
    close: Callable[[], None]


def open_store(config: StoreConfig) -> VectorStore:
    """Open the store that an address names; nothing is connected yet."""
    if config.url.startswith(MEMORY):
        from rag_assets.storage.index.memory import store as memory

        return memory.open_store(config)
    from rag_assets.storage.index.elasticsearch import store as elasticsearch

    return elasticsearch.open_store(config)
