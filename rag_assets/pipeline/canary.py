"""The canary: detect that a provider changed the model of an embedder.

A provider may change a model without changing its name. Older and newer vectors then lie in two
spaces, and no search over both is correct. So a few fixed texts are embedded daily and compared
with their first vectors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import build_usage
from rag_assets.common.batches import batched
from rag_assets.common.errors import ProviderError, ProviderUnavailable, RagAssetsError, TenantGone
from rag_assets.models.embedding.protocol import Answer, Charge, Embedder
from rag_assets.models.embedding.vectors import PROBES_KEY, compute_distances, embed_probes
from rag_assets.models.factory import find_price
from rag_assets.models.prices import Price, split_embedder_id
from rag_assets.storage.catalog.builds.measurements import StoredProbes
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import Tenant

FRESH = timedelta(hours=20)
"""A measurement younger than this is reused. A measurement of the previous day is always older."""
_BATCH_TENANTS = 200
_MAX_CONCURRENT_CALLS = 32
_CALL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class CanaryTarget:
    """A tenant's embedder, and the largest cosine distance by which its vectors may move."""

    ref: TenantRef
    embedder: Embedder
    limit: float
    price: Price | None

    @classmethod
    def from_tenant(cls, ref: TenantRef, tenant: Tenant, embedder: Embedder) -> CanaryTarget:
        """Return the canary target of a tenant's embedder."""
        return cls(ref, embedder, tenant.canary_distance, find_price(tenant.embedder))


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """The result of probing an embedder.

    Attributes:
        distances: cosine distance of each probe's vector from its first vector, which is stored;
            empty if no vectors were compared.
        at: when the embedder last answered; None if it never answered.
        is_new: whether this is the first result, or its verdict differs from the last result's.
    """

    ref: TenantRef
    embedder_id: str
    limit: float
    distances: tuple[float, ...] = ()
    since: datetime | None = None
    at: datetime | None = None
    is_new: bool = False
    error: str | None = None

    @property
    def passed(self) -> bool:
        """Return whether no probe moved by more than the limit."""
        return all(distance <= self.limit for distance in self.distances)


def run_every_canary(catalog: Catalog, embedders: Embedders) -> Iterator[CanaryResult]:
    """Probe the embedder of every active tenant that has a build.

    A failure of one embedder does not stop the others. An embedder that several tenants share, such
    as a local model, is probed once per batch of tenants.
    """
    indexed = catalog.generations.tenants()
    records = [r for r in catalog.tenants.all() if r.state == "ACTIVE" and r.id in indexed]
    for batch in batched(records, _BATCH_TENANTS):
        targets = []
        for record in batch:
            try:
                tenant = embedders.tenant(record)
                embedder = embedders.get_document_embedder(record, tenant.embedder)
                targets.append(CanaryTarget.from_tenant(record.ref, tenant, embedder))
            except RagAssetsError as error:
                yield CanaryResult(record.ref, "", 0.0, error=error.advice)
        yield from run_canary(catalog, targets)


def run_canary(
    catalog: Catalog, targets: Sequence[CanaryTarget], *, fresh: timedelta = timedelta(0)
) -> list[CanaryResult]:
    """Probe embedders, compare their vectors with the first vectors, and record the results.

    There is at most one embedder per tenant. Measurements younger than `fresh` are reused.
    """
    known = catalog.probes.find({target.ref.id: target.embedder.embedder_id for target in targets})
    known = {id_: stored for id_, stored in known.items() if stored.probes_key == PROBES_KEY}
    now = datetime.now(UTC)
    due = [
        target
        for target in targets
        if target.ref.id not in known or now - known[target.ref.id].measured_at >= fresh
    ]
    answers = asyncio.run(_probe_embedders({target.ref.id: target.embedder for target in due}))
    results = []
    for target in targets:
        # A tenant that was removed in the meantime needs no result.
        with suppress(TenantGone):
            id_ = target.ref.id
            results.append(_build_result(catalog, target, known.get(id_), answers.get(id_), now))
    return results


async def _probe_embedders(embedders: Mapping[str, Embedder]) -> dict[str, Answer | RagAssetsError]:
    """Probe each distinct embedder once, a few at a time; return its answer or error by tenant."""
    room = asyncio.Semaphore(_MAX_CONCURRENT_CALLS)

    async def ask(embedder: Embedder) -> Answer | RagAssetsError:
        async with room:
            try:
                async with asyncio.timeout(_CALL_SECONDS):
                    return await embed_probes(embedder)
            except TimeoutError:
                return ProviderUnavailable(
                    f"the embedder did not answer within {_CALL_SECONDS:.0f} s"
                )
            except RagAssetsError as error:
                return error.with_traceback(None)
            except (
                Exception
            ) as error:  # A failure of one tenant's embedder must not stop the others.
                return ProviderError(f"the embedder failed unexpectedly: {type(error).__name__}")

    distinct = {id(embedder): embedder for embedder in embedders.values()}
    answers = await asyncio.gather(*map(ask, distinct.values()))
    by_embedder = dict(zip(distinct, answers, strict=True))
    return {tenant_id: by_embedder[id(embedder)] for tenant_id, embedder in embedders.items()}


def _build_result(
    catalog: Catalog,
    canary_target: CanaryTarget,
    before: StoredProbes | None,
    answer: Answer | RagAssetsError | None,
    now: datetime,
) -> CanaryResult:
    embedder_id = canary_target.embedder.embedder_id
    result = CanaryResult(canary_target.ref, embedder_id, canary_target.limit)
    stored = before
    charge = _find_charge(answer)
    if charge is not None:
        used = build_usage(charge, canary_target.price)
        catalog.usage.add(canary_target.ref, *split_embedder_id(embedder_id), used)
    if isinstance(answer, Answer):
        stored = _update_probes(before, answer, now)
    elif answer is not None:
        result = replace(result, error=answer.advice)
    if stored is None:
        return result
    result = replace(
        result, distances=stored.distances, since=stored.stored_at, at=stored.measured_at
    )
    stored = replace(stored, passed=result.passed)
    is_new = before is None or result.passed != before.passed
    if before is None:
        catalog.probes.store(canary_target.ref, embedder_id, stored)
    elif stored != before:
        catalog.probes.record_measurement(canary_target.ref, embedder_id, stored)
    if is_new and not result.passed:
        moved = {"distance": max(stored.distances), "limit": canary_target.limit}
        catalog.events.write(
            canary_target.ref, "model_changed", [{"embedder": embedder_id, **moved}]
        )
    return replace(result, is_new=is_new)


def _find_charge(answer: Answer | RagAssetsError | None) -> Charge | None:
    """Return the charge for an answer, even for an unusable one; None if nothing is charged."""
    if isinstance(answer, Answer):
        return Charge(answer.tokens, answer.requests, len(answer.vectors))
    if isinstance(answer, ProviderError) and answer.tokens:
        return Charge(answer.tokens, answer.requests)
    return None


def _update_probes(before: StoredProbes | None, answer: Answer, now: datetime) -> StoredProbes:
    if before is None:
        packed = np.ascontiguousarray(answer.vectors, dtype="<f4").tobytes()
        return StoredProbes(PROBES_KEY, packed, now, now, (), passed=True)
    first = np.frombuffer(before.vectors, "<f4").reshape(answer.vectors.shape)
    return replace(before, measured_at=now, distances=compute_distances(first, answer.vectors))
