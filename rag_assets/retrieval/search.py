"""Searching a tenant's serving generation: the one core behind every door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.accounts.embedders import Embedders
from rag_assets.accounts.meter import Meter
from rag_assets.catalog.catalog import Catalog
from rag_assets.catalog.database import TenantRef
from rag_assets.catalog.generations import Generation
from rag_assets.catalog.index_rows import ReadableVersion
from rag_assets.catalog.tenants import TenantRecord
from rag_assets.embedding.protocol import Answer, Charge, Embedder
from rag_assets.embedding.query import embed_query
from rag_assets.embedding.registry import EmbedderConfig, price_of
from rag_assets.errors import BadVectors, IndexInconsistent
from rag_assets.indexing.mapping import PLACES
from rag_assets.indexing.model import Owner
from rag_assets.indexing.protocol import VectorStore
from rag_assets.retrieval.budget import within_budget
from rag_assets.retrieval.candidates import CandidateSearch, Found
from rag_assets.retrieval.duplicates import Distinct, collapse
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.model import Debug, Hit, SearchAnswer, SearchRequest
from rag_assets.tenants.model import Tenant

_ATTEMPTS = 5


class Retriever:
    """Answers questions from the indexes.

    Args:
        catalog: says which generation answers, which version of a document counts, who reads it.
        store: where entries are searched.
        embedders: makes the embedder that built a generation.
    """

    def __init__(self, catalog: Catalog, store: VectorStore, embedders: Embedders) -> None:
        self._catalog = catalog
        self._store = store
        self._embedders = embedders
        self._made: dict[tuple[TenantRef, str, EmbedderConfig], Embedder] = {}
        self._meter = Meter(catalog)

    def search(self, tenant_id: str, request: SearchRequest) -> SearchAnswer:
        """Search one tenant's knowledge.

        Raises:
            UnknownTenant: there is none of that id.
            EmbeddingError: the question could not be embedded.
            IndexInconsistent: the tenant's index was lost.
            ServiceUnavailable: a server does not answer.
        """
        record = self._catalog.tenants.get(tenant_id)
        if record.state != "ACTIVE":
            return SearchAnswer(disabled=True)
        tenant = Tenant.from_config(record.config)
        serving = self._catalog.generations.serving(tenant_id)
        mode = request.mode or tenant.retrieval.mode
        if serving is None:
            return SearchAnswer(mode=mode, needs_clarification=True)
        clock = _Clock()
        with clock.step("embed"):
            vector = self.embed(record.ref, tenant, serving, request.query)
        search = self._candidates(record, tenant, serving, request, vector)
        order, found = self._ranked(search, clock)
        with clock.step("pack"):
            hits = _packed(order, found, request)
        return SearchAnswer(
            hits=tuple(hits),
            needs_clarification=not hits,
            generation=serving.number,
            mode=mode,
            debug=Debug(mode, clock.milliseconds, found.seen),
        )

    def close(self) -> None:
        """Wait until what the searches cost is recorded."""
        self._meter.close()

    def embed(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, query: str
    ) -> npt.NDArray[np.float32]:
        """The question's vector, by exactly the embedder that built the generation."""
        made = (ref, serving.embedder_id, tenant.embedder)
        embedder = self._made.get(made)
        if embedder is None:
            embedder = self._embedders.that_built(ref, tenant, serving)
            if embedder.embedder_id != serving.embedder_id:
                raise IndexInconsistent(
                    f"generation {serving.number} was built by {serving.embedder_id},"
                    f" which is now {embedder.embedder_id}",
                    hint="sync the tenant: a new generation is built with the present model",
                )
            self._made[made] = embedder
        # What the tenant says now that it pays, or else what was so when it was built.
        price = tenant.embedder.price or price_of(EmbedderConfig.model_validate(serving.embedder))
        try:
            answer = asyncio.run(_answer_of(embedder, query))
        except BadVectors as error:
            charge = Charge(error.tokens, error.requests)
            self._meter.count(ref, serving.embedder_id, charge, price)
            raise
        charge = Charge(answer.tokens, answer.requests, len(answer.vectors))
        self._meter.count(ref, serving.embedder_id, charge, price)
        first: npt.NDArray[np.float32] = answer.vectors[0]
        return first

    def _candidates(
        self,
        record: TenantRecord,
        tenant: Tenant,
        serving: Generation,
        request: SearchRequest,
        vector: npt.NDArray[np.float32],
    ) -> CandidateSearch:
        default = tenant.retrieval
        least = default.min_score if request.min_score is None else request.min_score
        return CandidateSearch(
            catalog=self._catalog,
            store=self._store,
            serving=serving,
            owner=Owner(record.id, record.incarnation, serving.number),
            request=request,
            mode=request.mode or default.mode,
            limit=request.top_k or default.top_k,
            vector=vector,
            min_cosine=least,
        )

    def _ranked(
        self, search: CandidateSearch, clock: _Clock
    ) -> tuple[list[tuple[Distinct, float]], Found]:
        """Distinct passages with their cosines, best first."""
        order: list[Distinct] = []
        cosines: Mapping[str, float] = {}
        found = Found((), {}, 0)
        for _ in range(_ATTEMPTS):
            with clock.step("search"):
                found = search.found()
            fused = fuse([[candidate.id for candidate in ranking] for ranking in found.rankings])
            by_id = found.by_id
            order = collapse([by_id[id_] for id_ in fused])
            # A threshold may drop any of them, so all are scored before the first are taken.
            if search.min_cosine is None:
                order = order[: search.limit]
            with clock.step("score"):
                cosines = self._cosines(search, found, order)
            # An entry that is gone now was replaced meanwhile: its successor is found next time.
            if all(distinct.candidate.id in cosines for distinct in order):
                break
        if not found.seen:
            self._require_index(search)
        least = -1.0 if search.min_cosine is None else search.min_cosine
        scored = [(d, cosines[d.candidate.id]) for d in order if d.candidate.id in cosines]
        return [(d, score) for d, score in scored if score >= least][: search.limit], found

    def _cosines(
        self, search: CandidateSearch, found: Found, order: Sequence[Distinct]
    ) -> dict[str, float]:
        known: dict[str, float] = {}
        if search.mode != "text":
            known = {candidate.id: candidate.score for candidate in found.rankings[0]}
        unknown = [d.candidate.id for d in order if d.candidate.id not in known]
        if unknown and search.vector is not None:
            name = search.serving.index_name
            known |= self._store.cosines(name, search.owner, search.vector, unknown)
        return known

    def _require_index(self, search: CandidateSearch) -> None:
        """Tell an index that has nothing to say from one that was replaced by an empty one."""
        serving, tenant_id = search.serving, search.owner.tenant
        if self._store.uuid_of(serving.index_name) != serving.index_uuid:
            raise IndexInconsistent(
                f"index {serving.index_name!r} of tenant {tenant_id!r} was replaced",
                hint=f"restore it with `rag-assets sync {tenant_id} --repair`",
            )


class _Clock:
    """Milliseconds by step; a step that is taken again adds up."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        took = 1_000 * (time.perf_counter() - started)
        self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + took, 3)


async def _answer_of(embedder: Embedder, query: str) -> Answer:
    try:
        return await embed_query(embedder, query)
    finally:
        await embedder.close()


def _packed(
    order: Sequence[tuple[Distinct, float]],
    found: Found,
    request: SearchRequest,
) -> list[Hit]:
    hits = [
        _hit(number, distinct, score, found.versions[distinct.candidate.document_id])
        for number, (distinct, score) in enumerate(order, start=1)
    ]
    return hits if request.token_budget is None else within_budget(hits, request.token_budget)


def _hit(number: int, distinct: Distinct, cosine: float, version: ReadableVersion) -> Hit:
    fields: Mapping[str, Any] = distinct.candidate.fields
    places: Mapping[str, Any] = {name: fields.get(name) for name in PLACES}
    return Hit(
        number=number,
        score=round(cosine, 6),
        text=fields["text"],
        uri=fields["uri"],
        title=fields.get("title"),
        heading_path=tuple(fields["heading_path"]),
        media_type=fields.get("media_type"),
        start=fields["start"],
        end=fields["end"],
        **places,
        document_id=distinct.candidate.document_id,
        chunk_id=fields["chunk_id"],
        source_sha256=version.content_sha256,
        stale=version.stale,
        also=distinct.also,
    )
