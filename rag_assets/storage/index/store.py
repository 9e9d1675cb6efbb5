"""The vector store of all tenants, opened by its address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.protocols import (
    EntrySearcher,
    EntryStore,
    IndexAdministration,
    NoteStore,
)

if TYPE_CHECKING:
    from rag_assets.storage.index.pgvector.entries import PgVectors

MEMORY = "memory:"
"""Address of a store in the memory of its process, for tests and experiments."""


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The address and settings of a store.

    Attributes:
        server: connection to an Elasticsearch, or its address, or `memory:`.
        prefix: prefix of the names of indexes and views; separates installations that share a
            server.
        shared_limit: when a shared index has this many entries, new generations use a new one.
        vectors_url: address of a Postgres with additional copies of some builds' vectors, if any.
        installation: the owner of indexes, views and schemas; None: every user of the store owns
            all of them.
        former_prefixes: former prefixes of the installation's indexes.
        layout: the layout of new indexes.
    """

    server: str | ElasticsearchConnection = field(repr=False)
    prefix: str = "rag"
    shared_limit: int = 2_000_000
    vectors_url: str | None = field(default=None, repr=False)
    installation: UUID | None = None
    former_prefixes: tuple[str, ...] = ()
    layout: IndexLayout = field(default_factory=IndexLayout)


@dataclass(frozen=True, slots=True)
class VectorStore:
    """An open store.

    Attributes:
        entries: writes and reads entries.
        indexes: administers indexes and views.
        searcher: creates a searcher for one event loop.
        notes: keeps notes about the catalog.
        close: closes all connections except the searchers'.
        vectors: additional copies of some builds' vectors; None without such a server.
    """

    entries: EntryStore
    indexes: IndexAdministration
    searcher: Callable[[], EntrySearcher]
    notes: NoteStore
    close: Callable[[], None]
    vectors: PgVectors | None = None


def open_store(config: StoreConfig) -> VectorStore:
    """Open the store at an address, without connecting yet."""
    if config.server == MEMORY:
        from rag_assets.storage.index.memory import store as memory

        opened = memory.open_store(config)
    else:
        from rag_assets.storage.index.elasticsearch import store as elasticsearch

        opened = elasticsearch.open_store(config)
    return opened if config.vectors_url is None else _with_vectors(opened, config)


def _with_vectors(first: VectorStore, config: StoreConfig) -> VectorStore:
    from rag_assets.storage.index.pgvector.entries import PgVectors
    from rag_assets.storage.index.pgvector.searcher import PgVectorSearcher
    from rag_assets.storage.index.second_store import SplitSearcher

    url = config.vectors_url or ""
    vectors = PgVectors(url, config.prefix, config.installation)

    def close() -> None:
        first.close()
        vectors.close()

    def searcher() -> EntrySearcher:
        return SplitSearcher(first.searcher(), PgVectorSearcher(url, config.prefix))

    return replace(first, searcher=searcher, close=close, vectors=vectors)
