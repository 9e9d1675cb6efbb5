"""What the chain and retrieval ask of a vector store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    EntryFilter,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
)


class VectorStore(Protocol):
    """Entries of many tenants in a few indexes.

    Every method raises ServiceUnavailable when the store does not answer.
    """

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        """The index in which a new generation of a tenant belongs; made when there is none."""
        ...

    def uuid_of(self, index_name: str) -> str | None:
        """The UUID of the live index of that name; None when there is none."""
        ...

    def upsert(self, index_name: str, entries: Iterable[Entry]) -> int:
        """Write entries, in bounded requests; returns how many.

        Raises:
            IndexInconsistent: the store refused an entry for good.
        """
        ...

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        """Delete entries by id; one that is missing already is a success."""
        ...

    def rescope(self, index_name: str, owner: Owner, scopes: Mapping[str, str]) -> int:
        """Give the entries of these documents another access scope in place; returns how many.

        Entries that carry it already are left alone.
        """
        ...

    def refresh(self, index_name: str) -> None:
        """Make what was written visible to searches."""
        ...

    def ids_of(
        self, index_name: str, owner: Owner, documents: Mapping[str, str | None]
    ) -> Iterator[str]:
        """Ids of entries of these documents, those of the given version left out."""
        ...

    def scan(
        self, index_name: str, tenant: str, digest_key: bytes | None = None
    ) -> Iterator[ScannedEntry]:
        """Every entry routed to a tenant, of whatever generation, and every foreign one there.

        Args:
            index_name: where to look.
            tenant: whose entries.
            digest_key: of the generation of which it matters whether its entries are intact.
        """
        ...

    def dimensions_of(self, index_name: str) -> int | None:
        """Length of the vectors that the live index takes; None when there is no such index."""
        ...

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        """Ids of a generation's entries that no vector search can find."""
        ...

    def stored(
        self, index_name: str, owner: Owner, narrowing: EntryFilter | None = None
    ) -> Iterator[StoredEntry]:
        """A generation's entries with their stored fields, in no order; all, or some."""
        ...

    def count(self, index_name: str, owner: Owner) -> int:
        """How many entries a generation has."""
        ...

    def alias_name(self, tenant: str) -> str:
        """The alias through which the tenant's serving generation can be queried directly."""
        ...

    def point_alias(self, index_name: str, owner: Owner) -> None:
        """Have the tenant's alias show exactly one generation; one atomic change."""
        ...

    def drop_alias(self, tenant: str) -> None:
        """Remove the tenant's alias, if it is there."""
        ...

    def alias_target(self, tenant: str) -> tuple[str, Mapping[str, object]] | None:
        """Index and filter of the tenant's alias; None when it is not there."""
        ...

    def is_dedicated(self, index_name: str, tenant: str) -> bool:
        """Whether an index belongs to this tenant alone."""
        ...

    def drop_index(self, index_name: str) -> None:
        """Delete an index, if it is there."""
        ...

    def tenants_in(self, index_name: str) -> list[tuple[str, int]]:
        """Every tenant and incarnation that has entries in an index."""
        ...

    def indexes(self) -> list[str]:
        """Names of every index that holds entries of any tenant."""
        ...

    def searcher(self) -> Searcher:
        """What questions are asked of, by one event loop."""
        ...


class Searcher(Protocol):
    """Answers the searches of one event loop; connections are kept.

    Every method raises ServiceUnavailable when the store does not answer.
    """

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        """What each asks for, in one round trip; best first, ties broken by id.

        The score of a candidate is its cosine where a vector was asked for, else its BM25.

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
            vector: to tell the cosines of; None where they do not matter.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def uuid_of(self, index_name: str) -> str | None:
        """The UUID of the live index of that name; None when there is none."""
        ...

    async def close(self) -> None:
        """Give the connections back, in the loop that asked."""
        ...
