"""What is written to, and read from, an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_assets.common.hashing import key_of
from rag_assets.common.times import stamp
from rag_assets.ingest.chunking.model import Chunk

SCHEMA_VERSION = 5

VectorIndex = Literal["int8_hnsw", "hnsw", "bbq_hnsw"]
Placement = Literal["shared", "dedicated"]


Presence = Literal["present", "missing", "replaced"]
"""Of an index: the one that was made is there, none of its name is, another one is."""


@dataclass(frozen=True, slots=True)
class IndexRef:
    """A concrete index.

    Attributes:
        name: under which it is found.
        identity: given by the store; an index of the same name that is made later has another.
    """

    name: str
    identity: str

    def presence_of(self, identity: str | None) -> Presence:
        """Whether the index of that name with this identity is this one; None: there is none."""
        if identity is None:
            return "missing"
        return "present" if identity == self.identity else "replaced"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What distinguishes indexes: entries of equal spec may share one."""

    dimensions: int
    vector_index: VectorIndex = "int8_hnsw"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose entries: one generation of one use of a tenant's id.

    Attributes:
        digest_key: of the generation, which the index never holds; None in builds of the first
            four schemas, whose digests have no key and prove nothing against whoever can write.
    """

    tenant: str
    incarnation: int
    generation: int
    digest_key: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class EntryDocument:
    """What every entry of one version of a document has in common.

    Attributes:
        indexed_key: hash of everything its entries hold.
        media_type: what its content is.
        path: the document's printable path within its source, for the chunk id.
        language: of its content: an ISO 639-1 code, a programming language, None if not sure.
        modified_at: when its present content was made, to the millisecond.
    """

    document_id: str
    indexed_key: str
    source: str
    source_type: str
    path: str
    uri: str
    media_type: str
    title: str | None
    access_scope: str
    modified_at: datetime
    language: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One chunk of one version of a document, with its vector."""

    owner: Owner
    document: EntryDocument
    chunk: Chunk
    vector: npt.NDArray[np.float32]

    @property
    def id(self) -> str:
        """The entry's id in the index."""
        return entry_id(
            self.owner, self.document.document_id, self.document.indexed_key, self.chunk.ordinal
        )


def is_within(uri: str, path: str) -> bool:
    """Whether a uri is this path, or lies in the folder of that name, slash at its end or not."""
    folder = path.rstrip("/")
    return uri.rstrip("/") == folder or uri.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which of a generation's entries a search may find; what is empty narrows nothing.

    Attributes:
        scopes: access scopes, one of which an entry must carry; None: any.
        source_types, sources, documents: one of which it must be of.
        paths: in one of which its document must lie; see is_within.
        languages: one of which its document must be written in.
        modified_after, modified_before: when its document's content was made, the first included.
        tags: all of which it must carry.
        metadata: values that it must hold.
    """

    scopes: frozenset[str] | None = None
    source_types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """One ranking that is asked for: by nearness to a vector, or by words.

    Attributes:
        by: the query's vector, of shape (dimensions,), or its words.
        limit: how many entries at most.
        entry_filter: which entries may be among them.
    """

    by: npt.NDArray[np.float32] | str
    limit: int
    entry_filter: EntryFilter = EntryFilter()


@dataclass(frozen=True, slots=True)
class ScannedEntry:
    """What a scan of the index finds.

    Attributes:
        correctly_routed: whether it is where its tenant's searches look.
        intact: whether the stored fields still hash to the digest written with them.
    """

    id: str
    tenant: str
    incarnation: int
    generation: int
    document_id: str
    index_key: str
    ordinal: int
    access_scope: str
    correctly_routed: bool
    intact: bool


@dataclass(frozen=True, slots=True)
class TenantView:
    """What somebody sees who queries a tenant's generation directly.

    Attributes:
        name: of the view.
        restricted: whether it certainly leaves nothing but this tenant's entries.
        tenants: of which entries show through it, sorted.
    """

    name: str
    restricted: bool
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a search found: what its place among others depends on.

    Attributes:
        uri: of its document, as the index has it; empty where it is too long for a column.
        text_key: equal for equal texts; in builds of the first three schemas, for equal texts
            under equal titles and headings.
    """

    id: str
    document_id: str
    index_key: str
    score: float
    uri: str
    text_key: str


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as the index holds it, its vector left out.

    Attributes:
        intact: whether its fields are what was written; always in builds without a key.
        cosine: of its vector and one that was named; None where there was none.
    """

    id: str
    index_key: str
    fields: Mapping[str, Any]
    intact: bool
    cosine: float | None = None


def entry_id(owner: Owner, document_id: str, indexed_key: str, ordinal: int) -> str:
    """The id under which one chunk of one version of a document is kept."""
    return key_of(
        "entry",
        owner.tenant,
        owner.incarnation,
        owner.generation,
        document_id,
        indexed_key,
        ordinal,
    )


def indexed_key(
    chunk_set_digest: str,
    embedder_id: str,
    *,
    title: str | None,
    uri: str,
    media_type: str,
    language: str | None,
    modified_at: datetime,
    access_scope: str,
    tags: tuple[str, ...],
    metadata: Mapping[str, Any],
    reindex_requests: int = 0,
) -> str:
    """Hash of everything that the entries of a version hold."""
    return key_of(
        "index",
        chunk_set_digest,
        embedder_id,
        title,
        uri,
        media_type,
        language,
        stamp(modified_at),
        access_scope,
        list(tags),
        dict(metadata),
        SCHEMA_VERSION,
        *([reindex_requests] if reindex_requests else []),
    )
