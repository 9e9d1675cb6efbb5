"""The stage context: one tenant, its stores, and proof that it may write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

from rag_assets.common.clock import Clock
from rag_assets.common.hashing import key_of
from rag_assets.common.settings import Settings
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, chunk_set_key
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.languages import detector_version
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import parse_key, parsers_version
from rag_assets.ingest.workers.pool import KeptPool, WorkerPool, usable_cores
from rag_assets.models.config.embedder import EmbedderConfig
from rag_assets.models.embedding.batch_api import BatchApi
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.factory import build_batch_api
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.document_rows import Document
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.index.model import (
    SCHEMA_VERSION,
    IndexRef,
    IndexSpec,
    Owner,
    VectorIndex,
    suitable_index,
)
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.lake.store import TenantLake
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """Limits of one run's slice.

    Attributes:
        documents: the largest number of documents.
        megabytes: about the largest amount of source content.
        parse_seconds: time after which no further document is sent to the parsers.
        embed_seconds: time after which no further text is sent to the embedder.
    """

    documents: int = 2_000
    megabytes: int = 64
    parse_seconds: float = 15.0
    embed_seconds: float = 15.0


@dataclass(frozen=True)
class TenantContext:
    """Everything a stage needs for one tenant.

    Attributes:
        guard: raises when this process no longer holds the tenant's lock; called before writes.
        log: writes a line of progress.
        batch_api: returns the batch API of one of the tenant's embedders, past ones included.
        kept_pool: keeps worker processes from stage to stage; without one each stage starts its
            own.
        clock: by which ages are counted.
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
    kept_pool: KeptPool | None = None
    clock: Clock = field(default_factory=Clock)

    @contextmanager
    def worker_pool(self) -> Iterator[WorkerPool]:
        """Worker processes with the tenant's limits, as many as there are cores at most."""
        limits = self.tenant.parser.limits
        if self.kept_pool is not None:
            with self.kept_pool.opened(limits) as pool:
                yield pool
        else:
            with WorkerPool(usable_cores(), limits, self.settings.local / "cache") as pool:
                yield pool

    @cached_property
    def parse_options(self) -> ParseOptions:
        """The tenant's options of parsing, resolved once and not for each document.

        Raises:
            ConfigurationError: a variable, a package or a language's data is missing.
        """
        return self.tenant.parser.options

    @property
    def new_build(self) -> tuple[str, IndexSpec]:
        """The key of a build that is opened now, and the kind of index that it needs."""
        chosen = self.tenant.index.vector_index
        dimensions = self.embedder.dimensions
        kind = suitable_index(dimensions) if chosen == "auto" else chosen
        key = generation_key(self.tenant, self.embedder.embedder_id, kind)
        return key, IndexSpec(dimensions, kind)

    def index_spec(self, generation: Generation) -> IndexSpec:
        """The kind of index that one of the builds of the tenant's configuration needs."""
        kinds = _keys(self.tenant, self.embedder.embedder_id)
        return IndexSpec(generation.dimensions, kinds[generation.key])

    def owner(self, generation: Generation) -> Owner:
        """The owner of a generation's entries."""
        return owner_of(self.ref, generation)

    def parse_key(self, document: Document) -> str:
        """The key of a document's parsed text in the lake."""
        return parse_key(
            document.content_sha256 or "",
            document.media_type,
            self.parse_options,
            document.reindex_requests,
        )

    def chunk_set_key(self, document: Document, parsed_digest: str, media_type: str) -> str:
        """The key of a document's chunks in the lake.

        Args:
            document: the document.
            parsed_digest: hash of its parsed text.
            media_type: the type of its content.
        """
        chosen = self.chunk_parameters(document, media_type)
        return chunk_set_key(parsed_digest, media_type, chosen)

    def chunk_parameters(self, document: Document, media_type: str) -> ChunkParameters:
        """The chunk parameters for a document with content of this type."""
        return self.tenant.chunk_parameters(
            source=document.source, source_type=document.source_type, media_type=media_type
        )


def owner_of(ref: TenantRef, generation: Generation) -> Owner:
    """The owner of a generation's entries, for callers without a stage context."""
    return Owner(ref.id, ref.incarnation, generation.number, generation.digest_key)


def index_of(generation: Generation) -> IndexRef:
    """The index in which a generation's entries were written."""
    return IndexRef(generation.index_name, generation.index_identity)


def build_of(
    generations: Sequence[Generation], tenant: Tenant, embedder_id: str
) -> Generation | None:
    """The newest of these generations that is a build of the tenant's configuration.

    Where the tenant leaves the kind of index open, a build with any kind is one: it is kept.
    """
    keys = _keys(tenant, embedder_id)
    builds = [g for g in generations if g.key in keys and g.state != "REMOVING"]
    return builds[-1] if builds else None


def _keys(tenant: Tenant, embedder_id: str) -> dict[str, VectorIndex]:
    """The keys of all builds of a tenant's configuration, with the kinds of their indexes."""
    chosen = tenant.index.vector_index
    kinds: Sequence[VectorIndex] = get_args(VectorIndex) if chosen == "auto" else (chosen,)
    return {generation_key(tenant, embedder_id, kind): kind for kind in kinds}


def generation_key(tenant: Tenant, embedder_id: str, kind: VectorIndex) -> str:
    """Hash of what distinguishes one complete build of a tenant from another.

    Args:
        tenant: with the configuration.
        embedder_id: of the embedder that makes its vectors.
        kind: of its index.
    """
    chosen = tenant.chunker.parameters
    # Only where there are rules: the keys of tenants without rules must not change.
    rules = [[rule.identity() for rule in tenant.chunkers]] if tenant.chunkers else []
    return key_of(
        "generation",
        embedder_id,
        CHUNKER_VERSION,
        chosen.kind.name,
        chosen.limit,
        chosen.overlap,
        SCHEMA_VERSION,
        kind,
        tenant.index.placement,
        *rules,
    )


def config_key(tenant: Tenant, embedder_id: str) -> str:
    """Hash of all configuration that determines a tenant's entries.

    Parsers, secret rules and the detector of languages are in it but do not make a generation:
    their output replaces the previous one document by document. So are the parser's limits and
    passwords: documents that failed are retried after either changes.

    Raises:
        ConfigurationError: a password's variable, or another thing in the settings, is missing.
    """
    parser, chosen = tenant.parser, tenant.index.vector_index
    # Which kind a build has does not matter here. Keys of the time when int8_hnsw was the default
    # hold: no document is looked at again because a tenant leaves its kind open.
    kind: VectorIndex = "int8_hnsw" if chosen == "auto" else chosen
    return key_of(
        "config",
        generation_key(tenant, embedder_id, kind),
        parsers_version(),
        detector_version(),
        parser.model_dump(mode="json"),
        parser.options.identity(),
    )
