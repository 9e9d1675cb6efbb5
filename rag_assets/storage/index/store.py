"""The vector store of all tenants, opened by its address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_assets.storage.index.protocols import EntrySearcher, EntryStore, IndexAdministration

MEMORY = "memory:"
"""Address of a store in the memory of its process, for tests and experiments."""


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The address and settings of a store.

    Attributes:
        url: address of an Elasticsearch, with credentials if it requires them, or `memory:`.
        prefix: of the names of indexes and views; separates installations that share a server.
        shared_limit: number of entries from which on new generations go to a new shared index.
    """

    url: str
    prefix: str = "rag"
    shared_limit: int = 2_000_000


@dataclass(frozen=True, slots=True)
class VectorStore:
    """An open store.

    Attributes:
        entries: writes and reads entries.
        indexes: administers indexes and views.
        searcher: creates a searcher for one event loop.
        close: closes all connections except those of searchers.
    """

    entries: EntryStore
    indexes: IndexAdministration
    searcher: Callable[[], EntrySearcher]
    close: Callable[[], None]


def open_store(config: StoreConfig) -> VectorStore:
    """Open the store at an address, without connecting yet."""
    if config.url.startswith(MEMORY):
        from rag_assets.storage.index.memory import store as memory

        return memory.open_store(config)
    from rag_assets.storage.index.elasticsearch import store as elasticsearch

    return elasticsearch.open_store(config)
