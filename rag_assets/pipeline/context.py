"""The stage context: one tenant, its stores, and proof that the process may write to them.

Stages use it within `SliceLimits`. Comparisons read a `DailyShare`, limited by a `RateLimiter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property, partial
from time import monotonic, sleep
from typing import Any

from rag_assets.billing.embedders import Embedders
from rag_assets.common.clock import Clock
from rag_assets.common.hashing import HashRange
from rag_assets.common.settings import Settings
from rag_assets.ingest.chunking.chunk_set import compute_chunk_set_key
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import compute_parse_key
from rag_assets.ingest.sources.model import parse_path
from rag_assets.ingest.workers.pool import PersistentPool, WorkerPool, count_usable_cores
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.embedding.remote import BatchApi
from rag_assets.models.factory import build_batch_api, build_embedder
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.pipeline.recipes import (
    choose_index_spec,
    compute_config_key,
    compute_generation_key,
    configure_tenant_for_build,
    find_configured_build,
)
from rag_assets.storage.blobs.store import BlobStore, open_blobs
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.model import IndexRef, IndexSpec, Owner, choose_vector_index
from rag_assets.storage.index.second_store import MirroredEntries
from rag_assets.storage.index.store import EntryWriter, VectorStore
from rag_assets.storage.lake.store import Lake, TenantLake
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

BYTES_PER_SECOND = 64 * 1024 * 1024
"""Limit of the reading rate, so that other readers of the same disk are not slowed down."""

VECTORS_PAUSE = timedelta(minutes=1)
"""Pause of requests to the separate vector store after it did not answer."""


@dataclass(frozen=True)
class DailyShare:
    """The part of all ids and hashes that is compared on one day.

    Attributes:
        days: length of the cycle in which everything is compared once; with 1, everything is
            compared at once.
    """

    days: int
    day: date

    @cached_property
    def hash_range(self) -> HashRange:
        """Return the range of hashes and ids that are compared on this day."""
        return HashRange.part(self.day.toordinal() % self.days, self.days)

    def __contains__(self, hashed: str) -> bool:
        return hashed in self.hash_range


class RateLimiter:
    """Limits how many bytes are read per second, by sleeping."""

    def __init__(self, bytes_per_second: float = BYTES_PER_SECOND) -> None:
        self._rate = bytes_per_second
        self._started = monotonic()
        self._bytes_read = 0

    def add_bytes(self, size: int) -> None:
        """Record that this many bytes were read, and sleep if the rate was exceeded."""
        self._bytes_read += size
        ahead = self._bytes_read / self._rate - (monotonic() - self._started)
        if ahead > 0:
            sleep(ahead)


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """Limits of one run's slice.

    Attributes:
        parse_seconds: time after which no further document is sent to the parsers.
        embed_seconds: time after which no further text is sent to the embedder.
        list_seconds: time after which no more of the records that were pushed in bulk are listed.
        hurried_seconds: time limit for non-urgent work while urgent work waits. It applies to
            listing, parsing and embedding separately.
    """

    documents: int = 2_000
    megabytes: int = 64
    parse_seconds: float = 15.0
    embed_seconds: float = 10.0
    list_seconds: float = 5.0
    hurried_seconds: float = 1.5

    @property
    def halved(self) -> SliceLimits:
        """Return the limits of a slice that takes half as long."""
        return replace(
            self, parse_seconds=self.parse_seconds / 2, embed_seconds=self.embed_seconds / 2
        )


@dataclass(frozen=True)
class TenantContext:
    """Everything a stage needs for one tenant.

    A function that writes expects its caller to hold the tenant's lock.

    Attributes:
        guard: raises if this process no longer holds the tenant's lock; called before writes.
        batch_api, embedder_of: functions that take the id of a present or past embedder of the
            tenant; one returns its batch API, the other the embedder.
        kept_pool: keeps worker processes from stage to stage; without it each stage starts its own.
        scanned: the rules and findings of the last scan of the tenant's stores for credentials; see
            TenantRecord.
        has_changed: whether the change watcher has seen the tenant's sources change during the run.
    """

    tenant: Tenant
    ref: TenantRef
    settings: Settings
    catalog: Catalog
    lake: TenantLake
    store: VectorStore
    embedder: Embedder
    guard: Callable[[], None]
    log: Callable[[str], None]
    limits: SliceLimits = field(default_factory=SliceLimits)
    batch_api: Callable[[EmbedderConfig], BatchApi] = build_batch_api
    embedder_of: Callable[[EmbedderConfig], Embedder] = build_embedder
    kept_pool: PersistentPool | None = None
    clock: Clock = field(default_factory=Clock)
    scanned: Mapping[str, Any] = field(default_factory=dict)
    has_changed: Callable[[], bool] = lambda: False

    @classmethod
    def open(
        cls,
        record: TenantRecord,
        embedders: Embedders,
        catalog: Catalog,
        lake: Lake,
        store: VectorStore,
        *,
        guard: Callable[[], None] = lambda: None,
        log: Callable[[str], None] = lambda _line: None,
    ) -> TenantContext:
        """Return the context of a tenant; writing its data needs a `guard` of the tenant's lock."""
        tenant = embedders.tenant(record)
        return cls(
            tenant=tenant,
            ref=record.ref,
            scanned=record.scanned,
            settings=embedders.settings,
            catalog=catalog,
            lake=lake.tenant(record.id, record.incarnation, guard=guard),
            store=store,
            embedder=embedders.get_document_embedder(record, tenant.embedder),
            batch_api=partial(embedders.batch_api, record.ref),
            embedder_of=partial(embedders.get_document_embedder, record),
            guard=guard,
            log=log,
        )

    @contextmanager
    def worker_pool(self) -> Iterator[WorkerPool]:
        """Yield worker processes with the tenant's limits, at most one per core."""
        limits = self.tenant.parser.limits
        if self.kept_pool is not None:
            with self.kept_pool.open(limits) as pool:
                yield pool
        else:
            with WorkerPool(count_usable_cores(), limits, self.settings.local / "cache") as pool:
                yield pool

    @cached_property
    def parse_options(self) -> ParseOptions:
        """Return the tenant's parsing options, resolved once and not for each document."""
        options = self.tenant.parser.options
        if get_profile(self.tenant.profile).drops_described_secrets:
            return replace(options, strict_secrets=True)
        return options

    @property
    def blobs(self) -> BlobStore:
        """Return the store of the installation's uploaded files."""
        return open_blobs(self.settings)

    @cached_property
    def keeper(self) -> CatalogMarkKeeper:
        """Return the keeper of the marks by which a restored catalog is detected."""
        return CatalogMarkKeeper(
            self.catalog, Lake(self.settings.lake_url), self.blobs, lambda: self.store
        )

    @property
    def config_key(self) -> str:
        """Return a hash of all configuration that determines the entries of this build."""
        return compute_config_key(self.tenant, self.embedder.embedder_id)

    @property
    def new_build(self) -> tuple[str, IndexSpec]:
        """Return the key of a new build of the configuration, and the properties of its index."""
        chosen = self.tenant.index.vector_index
        dimensions = self.embedder.dimensions
        kind = choose_vector_index(dimensions) if chosen == "auto" else chosen
        key = compute_generation_key(self.tenant, self.embedder.embedder_id, kind)
        return key, IndexSpec(dimensions, kind)

    def for_build(self, generation: Generation) -> TenantContext:
        """Return the context for stages that work on a build: its chunkers, embedder and index.

        Raises:
            BuildNotWritable: the build's recipe is not known, or its recipe or model can no longer
                be used.
        """
        if find_configured_build([generation], self.tenant, self.embedder.embedder_id) is not None:
            return self
        tenant = configure_tenant_for_build(self.tenant, self.embedder.embedder_id, generation)
        same = generation.embedder_id == self.embedder.embedder_id
        embedder = self.embedder if same else self.embedder_of(tenant.embedder)
        return replace(self, tenant=tenant, embedder=embedder)

    def has_index(self, generation: Generation) -> bool:
        """Return whether the index that a build's entries were written to still exists."""
        return self.store.indexes.presence(build_index_ref(generation)) == "present"

    def index_spec(self, generation: Generation) -> IndexSpec:
        """Return the number of dimensions and the kind of a build's index."""
        return choose_index_spec(generation, self.tenant)

    def owner(self, generation: Generation) -> Owner:
        """Return the owner of a build's entries: its tenant and its number."""
        return build_owner(self.ref, generation)

    def writer(self, generation: Generation) -> EntryWriter:
        """Return the writer of a build's entries, which also writes to its separate vector store.

        After a failed write to that store, it answers no searches until it has caught up.
        """
        if generation.vectors_beside is None or self.store.vectors is None:
            return self.store.entries

        def record_missed_write() -> None:
            self.log(f"generation {generation.number}: its separate vector store missed a write")
            retry_at = self.clock.now() + VECTORS_PAUSE
            table = self.catalog.generations
            table.set_vectors_state(self.ref, generation, "filling", retry_at=retry_at)

        return MirroredEntries(self.store.entries, self.store.vectors, record_missed_write)

    def parse_key(self, document: Document) -> str:
        """Return the key of a document's parsed text in the lake."""
        return compute_parse_key(
            document.content_sha256 or "",
            document.media_type,
            self.parse_options,
            document.reindex_requests,
        )

    def chunk_set_key(self, document: Document, parsed_digest: str, media_type: str) -> str:
        """Return the key of a document's chunks in the lake."""
        chosen = self.chunk_parameters(document, media_type)
        return compute_chunk_set_key(parsed_digest, media_type, chosen)

    def chunk_parameters(self, document: Document, media_type: str) -> ChunkParameters:
        """Return the chunk parameters for a document with content of this type."""
        return self.tenant.chunk_parameters(
            source=document.source,
            source_type=document.source_type,
            media_type=media_type,
            path=parse_path(document.uri),
        )


def build_owner(ref: TenantRef, generation: Generation) -> Owner:
    """Return the owner of a build's entries (tenant and number); needs no stage context."""
    answers = generation.vectors_beside == "answering"
    return Owner(ref.id, ref.incarnation, generation.number, generation.digest_key, answers)


def build_index_ref(generation: Generation) -> IndexRef:
    """Return the index to which a build's entries were written."""
    return IndexRef(generation.index_name, generation.index_identity)
