"""Texts that are embedded to be compared with each other, and not to be searched.

Their vectors are stored in the lake together with the chunks' vectors, and paid for under the same
spending caps. They are kept as long as their system names the texts (FollowUp.kept_texts).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_assets.billing.ledger import Ledger
from rag_assets.common.errors import MalformedResponse
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.protocol import Vectors
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.builds.generations import Generation


def vectors_of(
    ctx: TenantContext, generation: Generation, texts: Mapping[str, str]
) -> tuple[dict[str, npt.NDArray[np.float32]], str | None]:
    """Return the vectors of texts; embed the missing ones and store them in the lake.

    Args:
        ctx: context of the build (TenantContext.for_build).
        generation: the build to which the cost is charged.
        texts: the texts, by the sha256_hex of each.

    Returns:
        Unit vectors by hash, of shape (dimensions,), and why some of them are missing.
    """
    embedder_id = ctx.embedder.embedder_id
    ctx.lake.store_spooled(embedder_id, ctx.embedder.dimensions)
    missing = ctx.lake.missing_vectors(embedder_id, set(texts))
    reason = _embed(ctx, generation, {key: texts[key] for key in texts if key in missing})
    found = ctx.lake.vectors(embedder_id, set(texts))
    units = found.vectors / np.maximum(np.linalg.norm(found.vectors, axis=1, keepdims=True), 1e-12)
    return dict(zip(found.hashes, units, strict=True)), reason


def _embed(ctx: TenantContext, generation: Generation, texts: Mapping[str, str]) -> str | None:
    """Embed texts; return why some were not embedded, else None."""
    if not texts:
        return None
    embedder_id = ctx.embedder.embedder_id
    ledger = Ledger(ctx.catalog, ctx.ref, ctx.tenant, embedder_id, generation=generation.number)

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        # Store the vectors before their price, as for chunks.
        ctx.lake.append_vectors(embedder_id, keys, vectors)
        ledger.record()

    try:
        outcome = asyncio.run(
            embed_all(
                ctx.embedder,
                [EmbedItem(key, text) for key, text in texts.items()],
                keep=keep,
                deadline=time.monotonic() + ctx.limits.embed_seconds,
                budget=ledger.budget,
                spool=ctx.lake.spool(embedder_id, ctx.embedder.dimensions),
            )
        )
    except MalformedResponse as error:
        return error.advice
    finally:
        ledger.close()
    if outcome.outage is not None:
        return outcome.outage.advice
    return next(iter(outcome.rejected.values()), None)
