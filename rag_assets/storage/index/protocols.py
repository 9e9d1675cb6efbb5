"""What the chain and retrieval need of a search index: entries, searches, administration.

Methods take the name of an index as `place` gave it. Each raises ServiceUnavailable when the
store does not answer. An adapter holds what only its store knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    Presence,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
    TenantView,
)


class EntryStore(Protocol):
    """Writes and reads the entries of tenants' generations.

    What a method writes or deletes, searches see when it returns. What is read is all that was
    ever written, by a writer that died as well; nothing where there is no such index.
    """

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        """Write entries, in bounded requests; returns how many.

        Raises:
            IndexInconsistent: the store refused an entry for good.
        """
        ...

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        """Delete entries by id, and return how many; one that is missing already counts."""
        ...

    def delete_other_versions(
        self,
        index_name: str,
        owner: Owner,
        kept: Mapping[str, str | None],
        *,
        guard: Callable[[], None],
    ) -> int:
        """Delete all entries of some documents but those of one version; returns how many.

        Args:
            index_name, owner: where they are, and whose.
            kept: the version (index_key) to keep by document_id; None keeps none.
            guard: called before each write; raises when this writer may no longer write.
        """
        ...

    def rescope(
        self,
        index_name: str,
        owner: Owner,
        scopes: Mapping[str, str],
        *,
        guard: Callable[[], None],
    ) -> int:
        """Give the entries of documents another access scope in place; returns how many.

        Entries that carry it already are left alone.

        Args:
            index_name, owner: where they are, and whose.
            scopes: the access scope of each document, by document_id.
            guard: called before each write; raises when this writer may no longer write.
        """
        ...

    def scan(
        self, index_name: str, tenant: str, digest_key: bytes | None = None
    ) -> Iterator[ScannedEntry]:
        """Every entry that a tenant's searches may meet, of whatever generation or tenant.

        Args:
            index_name: where to look.
            tenant: whose entries.
            digest_key: of the generation of which it matters whether its entries are intact.
        """
        ...

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        """A generation's entries with their stored fields, in no order."""
        ...

    def of_document(self, index_name: str, owner: Owner, document_id: str) -> list[StoredEntry]:
        """The entries of one document that searches see now, in no order."""
        ...

    def count(self, index_name: str, owner: Owner) -> int:
        """How many entries a generation has."""
        ...

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        """Ids of a generation's entries that no vector search can find."""
        ...


class EntrySearcher(Protocol):
    """Searches the entries of a generation, in one event loop; connections are kept."""

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        """The ranking of each request, in one round trip; best first, ties broken by id.

        The score of a candidate is its cosine where a vector was given, else its BM25.

        Raises:
            IndexInconsistent: the index is gone, or has not the fields that are searched.
            SearchRejected: it takes no search of so many words and filters.
        """
        ...

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """The cosine of each of these entries that is there, by id.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def entries(
        self,
        index_name: str,
        owner: Owner,
        ids: Sequence[str],
        scopes: Collection[str],
        vector: npt.NDArray[np.float32] | None = None,
    ) -> dict[str, StoredEntry]:
        """Those of these entries that are there and carry one of these access scopes, by id.

        Args:
            index_name, owner: where they are, and whose.
            ids: of entries.
            scopes: that may be read.
            vector: to compute cosines with; None where they do not matter.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def presence(self, index: IndexRef) -> Presence:
        """Whether an index is the very one that was made."""
        ...

    async def close(self) -> None:
        """Give the connections back, in the loop that used them."""
        ...


class IndexAdministration(Protocol):
    """Places generations in indexes, says which one answers direct queries, and removes them."""

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        """The index in which a new generation of a tenant belongs; made when there is none."""
        ...

    def presence(self, index: IndexRef) -> Presence:
        """Whether an index is the very one that was made."""
        ...

    def vector_length(self, index_name: str) -> int | None:
        """Length of the vectors that the index takes; None when there is no such index."""
        ...

    def names(self) -> list[str]:
        """Names of every index that holds entries of any tenant, sorted."""
        ...

    def dedicated(self, tenant: str) -> list[str]:
        """Names of the indexes that belong to this tenant alone, sorted."""
        ...

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        """Every tenant and incarnation that has entries in an index, sorted."""
        ...

    def drop(self, index_name: str) -> None:
        """Delete an index, if it is there."""
        ...

    def view_name(self, tenant: str) -> str:
        """The name under which a trusted service queries the tenant's generation directly."""
        ...

    def publish(self, index_name: str, owner: Owner) -> None:
        """Let the tenant's view show exactly one generation; one atomic change."""
        ...

    def withdraw(self, tenant: str) -> None:
        """Remove the tenant's view, if it is there."""
        ...

    def is_published(self, index_name: str, owner: Owner) -> bool:
        """Whether the tenant's view shows exactly this generation."""
        ...

    def view(self, tenant: str) -> TenantView | None:
        """What the tenant's view really shows; None when there is none."""
        ...
