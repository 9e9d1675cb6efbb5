"""Vectors of judged questions: embedded once, within the tenant's caps, and kept in the catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import numpy as np

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.ledger import present_caps
from rag_assets.billing.opt_in import require_opt_in
from rag_assets.billing.spending import Spending, require_price
from rag_assets.common.errors import IndexInconsistent, ProviderRefused
from rag_assets.common.hashing import sha256_hex
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.coverage import Reading, assess_reading
from rag_assets.models.embedding.protocol import Embedder, Vectors
from rag_assets.models.factory import get_embedder_id
from rag_assets.models.prices import split_embedder_id
from rag_assets.search.tenant_models import Vector
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.common_words import sentence_language
from rag_assets.tenants.model import Tenant

_KEPT_WITHIN = 0.1
"""Maximum seconds until a vector that was paid for is stored."""


class KeptVectors:
    """The stored vectors of a tenant's judged questions, which searches use instead of new vectors.

    Args:
        catalog: stores them.
        embedders: creates the embedder that built a generation.
    """

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._embedders = embedders
        self._vectors: dict[tuple[str, str], Vector] = {}
        self._made: dict[str, Embedder] = {}

    def prepare(
        self, ref: TenantRef, tenant: Tenant, generation: Generation, texts: Sequence[str]
    ) -> int:
        """Load the vectors of questions for a generation, and embed questions that have none.

        Args:
            ref, tenant: the tenant of the questions.
            generation: the build that is searched; its embedder is used.
            texts: the questions, as they may be sent.

        Returns:
            The number of questions that were embedded now.

        Raises:
            CapReached: the call would exceed a spending cap; earlier vectors are kept.
            ProviderError: a question could not be embedded; earlier vectors are kept.
            ConfigurationError: the embedder is not usable, or caps lack a price.
            IndexInconsistent: the embedder has changed since the build.
        """
        embedder_id = generation.embedder_id
        by_hash = {sha256_hex(text): text for text in texts}
        kept = self._catalog.question_vectors.find(ref.id, embedder_id, by_hash.keys())
        for key, packed in kept.items():
            self._vectors[embedder_id, key] = np.frombuffer(packed, "<f4").astype(np.float32)
        lacking = [EmbedItem(key, text) for key, text in by_hash.items() if key not in kept]
        if lacking:
            self._embed(ref, tenant, generation, lacking)
        return len(lacking)

    async def of(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the vector of a question that has been prepared; see VectorsOfQuestions."""
        return self._vectors[serving.embedder_id, sha256_hex(question)]

    async def assess_reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """See VectorsOfQuestions."""
        if serving.embedder_id not in self._made:
            self._made[serving.embedder_id] = self._embedder(ref, tenant, serving)
        embedder = self._made[serving.embedder_id]
        return assess_reading(embedder, question, sentence_language(question))

    async def close(self) -> None:
        """See VectorsOfQuestions."""

    def _embed(
        self, ref: TenantRef, tenant: Tenant, generation: Generation, items: Sequence[EmbedItem]
    ) -> None:
        embedder = self._embedder(ref, tenant, generation)
        billed = tenant.model_copy(update={"embedder": _get_embedder_config(tenant, generation)})
        caps = present_caps(self._catalog, ref, tenant, run=0.0)
        spending = Spending(ref.id, require_price(billed), caps)
        account = split_embedder_id(embedder.embedder_id)

        def record() -> None:
            if used := spending.take():
                self._catalog.usage.add(ref, *account, used)

        def keep(keys: Collection[str], vectors: Vectors) -> None:
            packed = np.ascontiguousarray(vectors, dtype="<f4")
            stored = {key: row.tobytes() for key, row in zip(keys, packed, strict=True)}
            self._catalog.question_vectors.keep(ref, embedder.embedder_id, stored)
            record()
            for key, row in zip(keys, packed, strict=True):
                self._vectors[embedder.embedder_id, key] = row.astype(np.float32)

        try:
            outcome = asyncio.run(
                embed_all(
                    embedder,
                    items,
                    keep=keep,
                    purpose="query",
                    flush_seconds=_KEPT_WITHIN,
                    budget=spending,
                )
            )
        finally:
            record()
        if outcome.outage is not None:
            raise outcome.outage
        if outcome.rejected:
            raise ProviderRefused(
                f"{len(outcome.rejected):,} of the questions cannot be embedded:"
                f" {next(iter(outcome.rejected.values()))}",
                hint="correct these questions, and import them again",
            )

    def _embedder(self, ref: TenantRef, tenant: Tenant, generation: Generation) -> Embedder:
        record = self._catalog.tenants.get(ref.id)
        require_opt_in(record.profile, record.organization, has_opted_in=record.has_opted_in)
        embedder = self._embedders.of_generation(ref, tenant, generation)
        if embedder.embedder_id != generation.embedder_id:
            raise IndexInconsistent(
                f"build {generation.number} was created with {generation.embedder_id}, but the"
                f" embedder is now {embedder.embedder_id}",
                hint="sync the tenant to create a new build with the current model",
            )
        return embedder


def _get_embedder_config(tenant: Tenant, generation: Generation) -> EmbedderConfig:
    """Return the configuration of the embedder that built a generation, with its price."""
    built = EmbedderConfig.model_validate(generation.embedder)
    present = tenant.embedder
    same = present.provider == built.provider
    return present if same and get_embedder_id(present) == generation.embedder_id else built
