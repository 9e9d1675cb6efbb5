"""The three protocols of a vector store: entries, searches, administration.

Methods take the name of an index that `place` returned. All raise ServiceUnavailable when the store
does not answer. What is specific to one store stays in its adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index.model import (
    NONE_MOVED,
    BuildCount,
    Candidate,
    CountedBuild,
    Entry,
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


class NoteStore(Protocol):
    """Keeps notes: small texts about the catalog, each under a name such as `acme/1/mark.json`.

    All methods raise ServiceUnavailable when the store does not answer.
    """

    def read(self, name: str) -> str | None:
        """Return a note; None if there is none."""
        ...

    def write(self, name: str, text: str) -> None:
        """Write a note as a whole, in place of the former one."""
        ...

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        ...


class EntryWriter(Protocol):
    """Writes the entries of tenants' generations.

    Searches see a write or deletion as soon as the method returns.
    """

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        """Write entries in bounded requests; returns their number.

        Raises:
            IndexInconsistent: the store rejected an entry permanently.
        """
        ...

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        """Delete entries by id; returns their number, including entries that were missing."""
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
        """Delete the entries of other versions of these documents; returns their number.

        Args:
            index_name, owner: the index, and the owner of the entries.
            kept: by document_id, the version (index_key) to keep; None keeps none.
            guard: called before each write; raises when this writer may no longer write.
            refreshed: whether all that was written can be found already, as right after `write`.
        """
        ...

    def set_scopes(
        self,
        index_name: str,
        owner: Owner,
        scopes: Mapping[str, str],
        *,
        guard: Callable[[], None],
    ) -> int:
        """Set the access scope of the entries of documents; returns the number of changed entries.

        Args:
            index_name, owner: the index, and the owner of the entries.
            scopes: the access scope of each document, by document_id.
            guard: called before each write; raises when this writer may no longer write.
        """
        ...


class EntryStore(EntryWriter, Protocol):
    """Writes and reads the entries of tenants' generations.

    Reads return everything that was written, also by a writer that died since; nothing if the index
    does not exist.
    """

    def scan(
        self,
        index_name: str,
        tenant: str,
        digest_key: bytes | None = None,
        document_ids: Collection[str] | None = None,
    ) -> Iterator[ScannedEntry]:
        """Every entry that a tenant's searches may find, of any generation or tenant.

        Args:
            index_name: the index to scan.
            tenant: the tenant.
            digest_key: of the generation whose entries are to be verified.
            document_ids: of the entries; None: all.
        """
        ...

    def strangers(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        """The entries that scan() finds and that belong to none of these owners, unverified."""
        ...

    def counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        """How many entries a generation has of each version of each document."""
        ...

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        """A generation's entries with their stored fields, in no particular order."""
        ...

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        """The entries of some documents that searches see now, in no particular order."""
        ...

    def count(self, index_name: str, owner: Owner) -> int:
        """The number of a generation's entries."""
        ...

    def matching(
        self, index_name: str, tenant: str, field: str, values: Collection[str]
    ) -> list[str]:
        """Ids of a tenant's entries of which a keyword has one of these values, of any build."""
        ...

    def containing(self, index_name: str, tenant: str, phrase: str) -> dict[str, str]:
        """The text_sha256 of a tenant's entries with these words in this order, by entry id."""
        ...

    def vectors(
        self, index_name: str, owner: Owner, texts: HashRange | Collection[str]
    ) -> Iterator[EntryVector]:
        """The vectors of a generation's entries, in no particular order.

        Args:
            index_name, owner: the index, and the owner of the entries.
            texts: text_sha256 of the entries: a range, or all of them.
        """
        ...

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        """Ids of a generation's entries without a vector, which no vector search can find."""
        ...


class EntrySearcher(Protocol):
    """Searches the entries of a generation in one event loop, with pooled connections."""

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        """Return the ranking of each request, best first, ties broken by id.

        The score of a candidate is its cosine in a ranking by vector. In one by words, each word
        counts by its rarity among the entries that pass the filter: no other entry has any part in
        it.

        Raises:
            IndexInconsistent: the index does not exist, or lacks fields that are searched.
            SearchRejected: the search has too many words and filters.
            VectorsUnavailable: the vectors of this owner are searched elsewhere, which does not
                answer.
        """
        ...

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """The cosine of each of these entries that exists, by id.

        Raises:
            IndexInconsistent: see rankings().
        """
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
        """Those of these entries that exist and have one of these access scopes, by id.

        Args:
            index_name, owner: the index, and the owner of the entries.
            ids: of entries.
            scopes: that may be read; None: any.
            vector: to compute cosines with; None computes none.
            moved: pages for which the scopes of entries do not count.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        """The vectors of those of these entries that exist and have one, by id.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def count(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> tuple[int, int]:
        """Count a generation's entries: all, and those with one of these index keys.

        Raises:
            IndexInconsistent: see rankings().
        """
        ...

    async def presence(self, index: IndexRef) -> Presence:
        """Whether an index is the very one that was made."""
        ...

    async def close(self) -> None:
        """Close the connections, in the event loop that opened them."""
        ...


class IndexAdministration(Protocol):
    """Places generations in indexes, manages tenants' views of them, and deletes indexes.

    Only what belongs to the installation is returned or changed; all methods that change something
    raise ForeignInstallation for an index or a view of another one.
    """

    def cluster_id(self) -> str | None:
        """Return the id of the server or cluster; None if it is not available."""
        ...

    def adopt(self, indexes: Mapping[str, str]) -> None:
        """Claim indexes that an earlier version made without an owner.

        Args:
            indexes: the identity of each, by name; one with another identity is not claimed.
        """
        ...

    def take_over(self, former: UUID) -> None:
        """Claim the indexes of an installation of which this store holds a copy."""
        ...

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        """The index for a new generation of a tenant; created if it does not exist."""
        ...

    def presence(self, index: IndexRef) -> Presence:
        """Whether an index is the very one that was made."""
        ...

    def require_usable(self, index_name: str) -> None:
        """Require that an index can be searched; nothing is required of one that does not exist.

        Raises:
            IndexUnavailable: it is closed, blocked or red.
        """
        ...

    def conditions(self) -> list[RagAssetsError]:
        """Return the errors that requests for indexes would be refused with, such as a closed one.

        A nearly full disk is among them. Each request waits two seconds at most.
        """
        ...

    def layout_differences(self) -> list[str]:
        """Return in words how indexes are laid out otherwise than new ones would be."""
        ...

    def count(self, builds: Sequence[CountedBuild]) -> list[BuildCount]:
        """Count the entries of builds, of any tenants, in two requests for all of them.

        Entries that were written without a refresh may be missing.

        Raises:
            IndexUnavailable: an index is closed, blocked or red.
        """
        ...

    def vector_length(self, index_name: str) -> int | None:
        """The number of dimensions of the index's vectors; None if the index does not exist."""
        ...

    def fits(self, index_name: str, spec: IndexSpec) -> bool:
        """Whether an index has the fields and the kind of vectors that a spec asks for.

        True if the index does not exist.
        """
        ...

    def names(self) -> list[str]:
        """Names of all indexes of the installation, sorted."""
        ...

    def dedicated(self, tenant: str) -> list[str]:
        """Names of this tenant's dedicated indexes, sorted."""
        ...

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        """Every tenant and incarnation with entries in an index, sorted."""
        ...

    def bytes_per_entry(self, index_name: str) -> float | None:
        """The average bytes on disk of an index's entries; None without an entry, or unknown."""
        ...

    def drop(self, index_name: str) -> None:
        """Delete an index, if it exists."""
        ...

    def expunge(self, index_name: str) -> int | None:
        """Remove deleted entries from an index's files, which keep them until they are rewritten.

        It may take half a minute where entries were deleted just now, in the embedded server
        seconds.

        Returns:
            how many deleted entries the files still hold, because others were deleted meanwhile;
            None where the server rewrites its files by itself and does not show them.
        """
        ...

    def view_name(self, tenant: str) -> str:
        """The name of the tenant's view."""
        ...

    def publish(self, index_name: str, owner: Owner) -> None:
        """Make the tenant's view show exactly one generation, in one atomic change."""
        ...

    def withdraw(self, tenant: str) -> None:
        """Delete the tenant's view, if it exists."""
        ...

    def is_published(self, index_name: str, owner: Owner) -> bool:
        """Whether the tenant's view shows exactly this generation."""
        ...

    def view(self, tenant: str) -> TenantView | None:
        """The tenant's view with what it shows; None if it does not exist."""
        ...
