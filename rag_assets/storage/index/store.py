"""The vector store of all tenants: its protocols, its settings, and how it is opened.

Methods take the name of an index that `place` returned. All methods raise ServiceUnavailable when
the store does not answer. Details of one store stay in its adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.model import (
    NONE_MOVED,
    BuildCount,
    Candidate,
    CountedBuild,
    Entry,
    EntryCounts,
    EntryVector,
    IndexRef,
    IndexSpec,
    MovedPages,
    Owner,
    PassageVector,
    Placement,
    Presence,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
    TenantView,
    VersionCount,
)

if TYPE_CHECKING:
    from rag_assets.storage.index.pgvector.tables import PgVectors


class NoteStore(Protocol):
    """Keeps notes: small texts about the catalog, each under a name such as `acme/1/mark.json`."""

    def read(self, name: str) -> str | None:
        """Return a note; None if it does not exist."""
        ...

    def write(self, name: str, text: str) -> None:
        """Write a note, replacing the former note."""
        ...

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        ...


class EntryWriter(Protocol):
    """Writes the entries of tenants' generations.

    Searches see a write or deletion as soon as the method returns.
    """

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        """Write entries in bounded requests; return their number.

        Raises:
            IndexInconsistent: the store rejected an entry permanently.
        """
        ...

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        """Delete entries by id; return the number of ids, including ids without an entry."""
        ...

    def delete_other_versions(
        self,
        index_name: str,
        owner: Owner,
        kept: Mapping[str, str | None],
        *,
        guard: Callable[[], None],
        refreshed: bool = False,
    ) -> int:
        """Delete the entries of these documents that have another version; return their number.

        Args:
            kept: by document_id, the version (index_key) whose entries stay; None deletes all.
            guard: called before each write; raises when this writer may no longer write.
            refreshed: whether searches can already find everything that was written, as right after
                `write`.
        """
        ...

    def set_scopes(
        self, index_name: str, owner: Owner, scopes: Mapping[str, str], *, guard: Callable[[], None]
    ) -> int:
        """Set the access scope of the entries of documents; return how many entries changed."""
        ...


class EntryStore(EntryWriter, Protocol):
    """Writes and reads the entries of tenants' generations.

    Reads return everything that was written, even by a writer that has died since. They are empty
    if the index does not exist.
    """

    def scan(
        self,
        index_name: str,
        tenant: str,
        digest_key: bytes | None = None,
        document_ids: Collection[str] | None = None,
    ) -> Iterator[ScannedEntry]:
        """Yield every entry that a tenant's searches can reach, and whether it is intact.

        This includes entries of all its generations, and misplaced entries of other tenants.

        Args:
            digest_key: digest key of the generation whose entries are verified.
        """
        ...

    def iter_unowned_entries(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        """Yield entries that scan() finds and none of these owners has, without verifying them."""
        ...

    def iter_version_counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        """Yield, for each version of each document, how many entries a generation has of it."""
        ...

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        """Yield a generation's entries with their stored fields, in no particular order."""
        ...

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        """Yield the entries of these documents that searches see now, in no particular order."""
        ...

    def count(self, index_name: str, owner: Owner) -> int:
        """Return the number of a generation's entries."""
        ...

    def matching(
        self, index_name: str, tenant: str, field: str, values: Collection[str]
    ) -> list[str]:
        """Return ids of a tenant's entries, in any build, whose field has one of these values."""
        ...

    def containing(self, index_name: str, tenant: str, phrase: str) -> dict[str, str]:
        """Return the text_sha256 of a tenant's entries that contain this phrase, by entry id."""
        ...

    def vectors(
        self, index_name: str, owner: Owner, texts: HashRange | Collection[str]
    ) -> Iterator[EntryVector]:
        """Yield the vectors of a generation's entries, in no particular order."""
        ...

    def iter_ids_without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        """Yield the ids of a generation's entries without a vector."""
        ...


class EntrySearcher(Protocol):
    """Searches the entries of a generation in one event loop, with pooled connections.

    Searches raise IndexInconsistent if the index does not exist, or lacks fields that are searched.
    """

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        """Return the ranking of each request: candidates, best first, ties broken by id.

        In a ranking by vector, the score of a candidate is its cosine. In a ranking by words, each
        word is weighted by its rarity among the entries that pass the filter; other entries have no
        influence.

        Raises:
            SearchRejected: the search has too many words and filters.
            VectorsUnavailable: the vectors of this owner are searched in another store, which does
                not answer.
        """
        ...

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of the query vector and each of these entries that exists, by id."""
        ...

    async def entries(
        self,
        index_name: str,
        owner: Owner,
        ids: Sequence[str],
        scopes: Collection[str] | None,
        vector: npt.NDArray[np.float32] | None = None,
        *,
        moved: MovedPages = NONE_MOVED,
    ) -> dict[str, StoredEntry]:
        """Return the entries that exist and have one of these access scopes, by id.

        Args:
            moved: pages for which the scopes of entries are ignored.
        """
        ...

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        """Return the vectors of the entries that exist and have a vector, by id."""
        ...

    async def count_entries(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> EntryCounts:
        """Return the number of all entries of a generation, and of those with recent index keys."""
        ...

    async def presence(self, index: IndexRef) -> Presence:
        """Return whether an index is present, missing, or replaced by another of the same name."""
        ...

    async def close(self) -> None:
        """Close the connections, in the event loop that opened them."""
        ...


class IndexAdministration(Protocol):
    """Places generations in indexes, manages tenants' views of indexes, and deletes indexes.

    Methods only return or change what belongs to the installation. Methods that change an index or
    a view raise ForeignInstallation if it belongs to another installation.
    """

    def cluster_id(self) -> str | None:
        """Return the id of the server or cluster; None if it is not available."""
        ...

    def adopt(self, indexes: Mapping[str, str]) -> None:
        """Claim indexes that an earlier version of the program created without an owner.

        Args:
            indexes: the identity of each index, by name; an index with another identity is not
                claimed.
        """
        ...

    def take_over(self, former: UUID) -> None:
        """Claim the indexes of the installation from which this store was copied."""
        ...

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        """Return the index to write a new generation of a tenant to; create it if necessary."""
        ...

    def presence(self, index: IndexRef) -> Presence:
        """Return whether an index is present, missing, or replaced by another of the same name."""
        ...

    def require_usable(self, index_name: str) -> None:
        """Require that an index is searchable; a missing index passes.

        Raises:
            IndexUnavailable: the index is closed, blocked or red.
        """
        ...

    def conditions(self) -> list[RagAssetsError]:
        """Return the errors that requests for indexes would raise now, such as for a closed index.

        A nearly full disk is returned as an error, too. Each request waits two seconds at most.
        """
        ...

    def list_layout_differences(self) -> list[str]:
        """Return descriptions of how existing indexes differ from the layout of new indexes."""
        ...

    def count(self, builds: Sequence[CountedBuild]) -> list[BuildCount]:
        """Count the entries of builds of any tenants, in two requests for all of them.

        Entries that were written without a refresh may not be counted.

        Raises:
            IndexUnavailable: an index is closed, blocked or red.
        """
        ...

    def vector_length(self, index_name: str) -> int | None:
        """Return the number of dimensions of an index's vectors; None if it does not exist."""
        ...

    def fits(self, index_name: str, spec: IndexSpec) -> bool:
        """Return whether an index fits a spec, in fields and kind of vectors, or does not exist."""
        ...

    def names(self) -> list[str]:
        """Return the names of all indexes of the installation, sorted."""
        ...

    def dedicated(self, tenant: str) -> list[str]:
        """Return the names of this tenant's dedicated indexes, sorted."""
        ...

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        """Return every tenant and incarnation with entries in an index, sorted."""
        ...

    def bytes_per_entry(self, index_name: str) -> float | None:
        """Return an entry's average size on disk in bytes; None if unknown or without entries."""
        ...

    def drop(self, index_name: str) -> None:
        """Delete an index, if it exists."""
        ...

    def expunge(self, index_name: str) -> int | None:
        """Remove deleted entries from an index's files.

        This takes up to half a minute if entries were deleted shortly before; the embedded server
        takes a few seconds.

        Returns:
            number of deleted entries that the files still contain, because they were deleted during
            the call; None if the server rewrites its files automatically and does not report them.
        """
        ...

    def view_name(self, tenant: str) -> str:
        """Return the name of the tenant's view."""
        ...

    def publish(self, index_name: str, owner: Owner) -> None:
        """Make the tenant's view show exactly this generation, in one atomic change."""
        ...

    def withdraw(self, tenant: str) -> None:
        """Delete the tenant's view, if it exists."""
        ...

    def is_published(self, index_name: str, owner: Owner) -> bool:
        """Return whether the tenant's view shows exactly this generation."""
        ...

    def view(self, tenant: str) -> TenantView | None:
        """Return the tenant's view and the tenants whose entries it shows; None if missing."""
        ...


MEMORY = "memory:"
"""Address of a store in the memory of its process, for tests and experiments."""


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The address and settings of a vector store.

    Attributes:
        server: connection to an Elasticsearch, or its address, or `memory:`.
        prefix: prefix of the names of indexes and views; separates installations that share a
            server.
        shared_limit: when a shared index has this many entries, new generations use a new shared
            index.
        vectors_url: address of a Postgres with additional copies of some builds' vectors, if any.
        installation: the owner of indexes, views and schemas; None: every user of the store owns
            all of them.
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
    """An open vector store, with objects for its entries, indexes, searches and notes.

    Attributes:
        close: closes all connections except the searchers'.
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
    from rag_assets.storage.index.pgvector.searcher import PgVectorSearcher
    from rag_assets.storage.index.pgvector.tables import PgVectors
    from rag_assets.storage.index.second_store import SplitSearcher

    url = config.vectors_url or ""
    vectors = PgVectors(url, config.prefix, config.installation)

    def close() -> None:
        first.close()
        vectors.close()

    def searcher() -> EntrySearcher:
        return SplitSearcher(first.searcher(), PgVectorSearcher(url, config.prefix))

    return replace(first, searcher=searcher, close=close, vectors=vectors)
