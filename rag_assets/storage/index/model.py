"""Values that callers exchange with a vector store: entries, requests, candidates, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_assets.common.hashing import canonical, compute_key, sha256_hex, short_digest
from rag_assets.common.times import stamp
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.storage.index.terms import TERMS_VERSION

SCHEMA_VERSION = 7
SYMBOL, SIGNATURE = "code_symbol", "code_signature"
"""Keys in the metadata of entries of source code."""
_MAX_NAME_CHARACTERS = 1_000
"""Maximum number of characters of a symbol or a signature that an entry keeps."""

VectorIndex = Literal["int8_hnsw", "hnsw", "bbq_hnsw"]
Placement = Literal["shared", "dedicated"]
_MIN_BIT_DIMENSIONS = 384
"""From this many dimensions on, one bit per number is enough to find candidates."""


Presence = Literal["present", "missing", "replaced"]
"""Whether an index exists, is missing, or was replaced by another of the same name."""


@dataclass(frozen=True, slots=True)
class IndexRef:
    """A reference to one index; a later index with the same name has another reference."""

    name: str
    identity: str

    def compute_presence(self, identity: str | None) -> Presence:
        """Return whether the index still exists, is missing, or was replaced by another index."""
        if identity is None:
            return "missing"
        return "present" if identity == self.identity else "replaced"


def choose_vector_index(dimensions: int) -> VectorIndex:
    """Return the default kind of vector index for vectors with this number of dimensions."""
    return "bbq_hnsw" if dimensions >= _MIN_BIT_DIMENSIONS else "int8_hnsw"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """The properties of an index; generations with equal properties may share an index."""

    dimensions: int
    vector_index: VectorIndex = "int8_hnsw"


@dataclass(frozen=True, slots=True)
class Owner:
    """A generation of one incarnation of a tenant, as the owner of entries.

    Attributes:
        digest_key: the generation's key, which is never stored in the index. None in generations of
            the first four schemas: anyone with write access to the index can forge their digests.
        vectors_beside: whether the generation's vectors are searched in the separate vector store.
    """

    tenant: str
    incarnation: int
    generation: int
    digest_key: bytes | None = field(default=None, repr=False, compare=False)
    vectors_beside: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class CountedBuild:
    """A build whose entries are to be counted."""

    index: IndexRef
    owner: Owner
    recent_keys: tuple[str, ...] = ()
    is_serving: bool = False


@dataclass(frozen=True, slots=True)
class BuildCount:
    """The number of searchable entries of a build.

    Attributes:
        presence: whether the build's index still exists; if not, the counts are 0.
        is_shown: whether the tenant's view shows exactly these entries; always True for a build
            that is not the serving one.
    """

    presence: Presence
    entries: int = 0
    recent: int = 0
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class EntryDocument:
    """The values that all entries of one version of a document share.

    Attributes:
        path: the document's printable path within its source, for the chunk id.
        passage_source: the first part of the chunk id; None: tenant and path.
        language: an ISO 639-1 code or a programming language; None if uncertain.
        source_id: the document's id in the application that pushed it; None if it was not pushed.
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
    source_id: str | None = None
    page_uuid: str | None = None
    passage_source: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One chunk of one version of a document, with its vector.

    Attributes:
        chunk_type: the chunk's source type; None if it is the document's.
        within: if the chunk is a block, the ordinals of the document's entries that contain part of
            it.
    """

    owner: Owner
    document: EntryDocument
    chunk: Chunk
    vector: npt.NDArray[np.float32]
    chunk_type: str | None = None
    within: tuple[int, ...] = ()

    @property
    def source_type(self) -> str:
        """Return the chunk's own source type, or else its document's."""
        return self.chunk_type or self.document.source_type

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the document's metadata, with the symbol and signature that the chunk defines."""
        named = self.chunk.definition
        if named is None:
            return dict(self.document.metadata)
        names = {SYMBOL: named.symbol, SIGNATURE: named.signature}
        stored_names = {
            name: value[:_MAX_NAME_CHARACTERS] for name, value in names.items() if value
        }
        return {**self.document.metadata, **stored_names}

    @property
    def id(self) -> str:
        """Return the entry's id in the index."""
        return entry_id(
            self.owner, self.document.document_id, self.document.indexed_key, self.chunk.ordinal
        )


def is_within(uri: str, path: str) -> bool:
    """Return whether a URI equals a path or is below it; a trailing slash is ignored."""
    folder = path.rstrip("/")
    return uri.rstrip("/") == folder or uri.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class MovedPages:
    """Pages whose entries may not yet have the access scope of their documents.

    Attributes:
        readable: pages that the caller may read, whatever scope their entries have.
        unreadable: pages that the caller may not read, whatever scope their entries have.
    """

    readable: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


NONE_MOVED = MovedPages()


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The entries of a generation that a search may find.

    None does not filter. An empty list of allowed values matches no entry.

    Attributes:
        scopes: allowed access scopes; None: any.
        moved: pages for which the scopes of entries are ignored.
        pages: allowed pages; None: any page, and entries without a page.
        source_types, sources, documents: allowed values.
        paths: folders or files; the document must be within one of them, see is_within.
        modified_after, modified_before: bounds of the document's modified_at; the first is
            inclusive, the second exclusive.
        tags: tags that an entry must all have.
        metadata: by key, the allowed values; None stands for a missing value.
    """

    scopes: frozenset[str] | None = None
    moved: MovedPages = NONE_MOVED
    pages: tuple[str, ...] | None = None
    source_types: tuple[str, ...] | None = None
    without_source_types: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None
    documents: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    without_metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def by_readers_alone(self) -> bool:
        """Return whether the filter restricts only access: its other conditions are all empty."""
        return replace(self, scopes=None, moved=NONE_MOVED) == EntryFilter()


@dataclass(frozen=True, slots=True)
class Place:
    """A document, or one symbol in it, whose entries a ranking returns.

    Attributes:
        symbol: the symbol that an entry must define; None: any entry of the document.
    """

    document_id: str
    symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """A ranking by place: all entries of the first place, then all of the second, and so on."""

    of: tuple[Place, ...]


MAX_PLACES = 200


@dataclass(frozen=True, slots=True)
class EqualTexts:
    """A request for the entries that have one of these texts; the result is unordered."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """A request for one ranking: by similarity to a vector, by words, or in a given order.

    Attributes:
        by: the query's vector, of shape (dimensions,); or the query's text; or places; or texts.
            None: any entries, in no particular order.
        first: how many of the best entries to return; None returns all.
    """

    by: npt.NDArray[np.float32] | str | Places | EqualTexts | None
    limit: int
    entry_filter: EntryFilter = EntryFilter()
    first: int | None = None
    symbols: bool = False

    @property
    def returned(self) -> int:
        """Return the maximum number of entries that the search returns."""
        return self.limit if self.first is None else min(self.first, self.limit)


@dataclass(frozen=True, slots=True)
class ScannedEntry:
    """An entry found by a scan of the index."""

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
class EntryVector:
    """The vector of an entry, as the index stores it.

    Attributes:
        genuine: whether the entry's fields are unaltered and belong to its id. Only then do the
            fields show which text the vector belongs to.
    """

    id: str
    document_id: str
    index_key: str
    text_sha256: str
    vector: npt.NDArray[np.float32] | None
    genuine: bool


@dataclass(frozen=True, slots=True)
class PassageVector:
    """The vector of an entry, bit for bit as it was written, and the id of its passage."""

    chunk_id: str
    vector: npt.NDArray[np.float32]


class EntryCounts(NamedTuple):
    """The number of a generation's entries.

    Attributes:
        recent: how many of them have one of the index keys that were written last.
    """

    total: int
    recent: int


@dataclass(frozen=True, slots=True)
class VersionCount:
    """The number of entries that a generation has of one version of a document.

    Attributes:
        document_id, index_key, access_scope: the values that all counted entries have; None if the
            entries lack the field.
        ids: checksum of the entries' ids and ordinals (see compute_checksum); None if the store
            cannot compute it.
    """

    document_id: str | None
    index_key: str | None
    access_scope: str | None
    count: int
    ids: int | None = None


def compute_checksum(ids: Iterable[str]) -> int:
    """Return the checksum of the ids of a version's entries, in the order of their ordinals.

    It is the sum, over all ids, of the first 60 bits of the id's SHA-256 times its position,
    counted from 1. A store that computes the checksum itself must get the same number.
    """
    return sum(int(sha256_hex(id_)[:15], 16) * place for place, id_ in enumerate(ids, start=1))


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant's view, through which trusted services query its serving generation directly.

    Attributes:
        restricted: whether its filter provably shows only this tenant's entries.
    """

    name: str
    restricted: bool
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a search found, with the values by which candidates are ranked.

    Attributes:
        uri: the document's uri, from the index; empty if it is too long for a doc value.
        text_key: equal for equal texts; in generations of the first three schemas, equal for equal
            texts with equal titles and headings.
        within: if it is a block, the ordinals of the entries that contain part of it.
        symbol: the symbol that it defines; empty if it defines none, or if not requested.
        matched: in a ranking by words, how many of the query's words it contains; otherwise 0.
    """

    id: str
    document_id: str
    index_key: str
    score: float
    uri: str
    text_key: str
    ordinal: int = 0
    within: tuple[int, ...] = ()
    symbol: str = ""
    matched: int = 0


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as the index stores it, without its vector.

    Attributes:
        intact: whether its fields are unaltered; always True in generations without a digest key.
        cosine: similarity of its vector and the query's; None without a query vector.
    """

    id: str
    index_key: str
    fields: Mapping[str, Any]
    intact: bool
    cosine: float | None = None


def entry_id(owner: Owner, document_id: str, indexed_key: str, ordinal: int) -> str:
    """Return the id of the entry of one chunk of one version of a document."""
    return compute_key(*_get_id_parts(owner), document_id, indexed_key, ordinal)


def make_entry_id_function(owner: Owner) -> Callable[[str, str, int], str]:
    """Return a function that computes entry_id() for one owner, faster for many entries.

    The function takes a document's id, its indexed key, and the ordinal of the chunk.
    """
    prefix = canonical([*_get_id_parts(owner)])[:-1]

    def id_of(document_id: str, indexed_key: str, ordinal: int) -> str:
        # Ids and keys are hexadecimal, so JSON writes them unchanged; other strings take the slow
        # path.
        version_key = document_id + indexed_key
        if not (version_key.isascii() and version_key.isalnum()):
            return entry_id(owner, document_id, indexed_key, ordinal)
        content = f'{prefix},"{document_id}","{indexed_key}",{ordinal:d}]'
        return short_digest(content.encode("ascii"))

    return id_of


def _get_id_parts(owner: Owner) -> tuple[str, str, int, int]:
    return "entry", owner.tenant, owner.incarnation, owner.generation


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
    kinds: Mapping[str, str] | None = None,
    source_id: str | None = None,
    page_uuid: str | None = None,
    passage_source: str | None = None,
) -> str:
    """Return the hash of all inputs that determine the entries of a version."""
    # Included only if there are requests: the keys of other documents must not change.
    anew = [reindex_requests] if reindex_requests else []
    typed = [dict(kinds)] if kinds else []
    placed = [["of", source_id, page_uuid]] if source_id or page_uuid else []
    named = [] if passage_source is None else [{"passage_source": passage_source}]
    return compute_key(
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
        ["terms", TERMS_VERSION],
        *anew,
        *typed,
        *placed,
        *named,
    )
