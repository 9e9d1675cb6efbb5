"""Searching a tenant's serving generation, and keeping only what the catalog vouches for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.accounts.embedders import Embedders
from rag_assets.catalog.catalog import Catalog
from rag_assets.catalog.database import TenantRef
from rag_assets.catalog.generations import Generation
from rag_assets.catalog.tenants import TenantRecord
from rag_assets.embedding.protocol import Embedder
from rag_assets.embedding.query import embed_query
from rag_assets.embedding.registry import EmbedderConfig
from rag_assets.errors import IndexInconsistent
from rag_assets.indexing.mapping import PLACES
from rag_assets.indexing.model import Candidate, Owner
from rag_assets.indexing.protocol import VectorStore
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.model import Hit, SearchAnswer, SearchRequest
from rag_assets.tenants.model import SearchMode, Tenant

_OVERFETCH = 30
_ATTEMPTS = 5


class Retriever:
    """Answers questions from the indexes.

    Args:
        catalog: says which generation answers and which version of a document counts.
        store: where entries are searched.
        embedders: makes the embedder that built a generation.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: VectorStore,
        embedders: Embedders,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._embedders = embedders
        self._made: dict[tuple[TenantRef, str], Embedder] = {}

    def search(self, tenant_id: str, request: SearchRequest) -> SearchAnswer:
        """Search one tenant's knowledge.

        Raises:
            UnknownTenant: there is none of that id.
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
            return SearchAnswer(mode=mode)
        search = _Search(self, record, serving, request, tenant)
        return SearchAnswer(search.hits(mode), generation=serving.number, mode=mode)

    def embed(self, ref: TenantRef, serving: Generation, query: str) -> npt.NDArray[np.float32]:
        """The question's vector, by exactly the embedder that built the generation."""
        embedder = self._made.get((ref, serving.embedder_id))
        if embedder is None:
            embedder = self._embedders.of(ref, EmbedderConfig.model_validate(serving.embedder))
            if embedder.embedder_id != serving.embedder_id:
                raise IndexInconsistent(
                    f"generation {serving.number} was built by {serving.embedder_id},"
                    f" which is now {embedder.embedder_id}",
                    hint="sync the tenant: a new generation is built with the present model",
                )
            self._made[ref, serving.embedder_id] = embedder
        return asyncio.run(_vector_of(embedder, query))

    @property
    def catalog(self) -> Catalog:
        """The catalog that vouches for versions."""
        return self._catalog

    @property
    def store(self) -> VectorStore:
        """The store that is searched."""
        return self._store


async def _vector_of(embedder: Embedder, query: str) -> npt.NDArray[np.float32]:
    try:
        return await embed_query(embedder, query)
    finally:
        await embedder.close()


class _Search:
    """One search: fetches candidates, verifies them, ranks them, scores them by cosine."""

    def __init__(
        self,
        retriever: Retriever,
        record: TenantRecord,
        serving: Generation,
        request: SearchRequest,
        tenant: Tenant,
    ) -> None:
        self._catalog = retriever.catalog
        self._store = retriever.store
        self._serving = serving
        self._owner = Owner(record.id, record.incarnation, serving.number)
        self._query = request.query
        self._top_k = request.top_k or tenant.retrieval.top_k
        self._min_score = (
            tenant.retrieval.min_score if request.min_score is None else request.min_score
        )
        # Entries of versions that no longer count may be among the nearest: fetch some more.
        self._limit = 2 * self._top_k + _OVERFETCH
        self._vector = retriever.embed(record.ref, serving, request.query)

    def hits(self, mode: SearchMode) -> tuple[Hit, ...]:
        for _ in range(_ATTEMPTS):
            rankings = self._verified(mode)
            order = fuse([[candidate.id for candidate in ranking] for ranking in rankings])
            best = order if self._min_score is not None else order[: self._top_k]
            cosines = self._cosines(best, rankings, mode)
            # An entry that is gone now was replaced meanwhile: its successor is found next time.
            if all(id_ in cosines for id_ in best):
                break
        found = {candidate.id: candidate for ranking in rankings for candidate in ranking}
        if not found:
            self._require_index()
        hits = [_hit(found[id_], cosines[id_]) for id_ in best if id_ in cosines]
        if self._min_score is not None:
            hits = [hit for hit in hits if hit.score >= self._min_score]
        return tuple(hits[: self._top_k])

    def _require_index(self) -> None:
        """Tell an index that has nothing to say from one that was replaced by an empty one."""
        serving = self._serving
        if self._store.uuid_of(serving.index_name) != serving.index_uuid:
            raise IndexInconsistent(
                f"index {serving.index_name!r} of tenant {self._owner.tenant!r} was replaced",
                hint=f"restore it with `rag-assets sync {self._owner.tenant} --repair`",
            )

    def _fetch(self, mode: SearchMode) -> list[list[Candidate]]:
        index_name = self._serving.index_name
        rankings = []
        if mode != "text":
            rankings.append(
                self._store.knn(
                    index_name,
                    self._owner,
                    self._vector,
                    limit=self._limit,
                    min_cosine=self._min_score if mode == "knn" else None,
                )
            )
        if mode != "knn":
            rankings.append(
                self._store.text(index_name, self._owner, self._query, limit=self._limit)
            )
        return rankings

    def _verified(self, mode: SearchMode) -> list[list[Candidate]]:
        """Candidates of exactly the versions that the catalog says may be returned.

        A document can be replaced between the search and the look into the catalog; then the
        search found only the version that no longer counts, and is made again.
        """
        before: object = None
        kept: list[list[Candidate]] = []
        for _ in range(_ATTEMPTS):
            rankings = self._fetch(mode)
            documents = {c.document_id for ranking in rankings for c in ranking}
            keys = self._catalog.index.keys(
                self._owner.tenant, self._owner.generation, [*documents]
            )
            kept = [
                [c for c in ranking if keys.get(c.document_id) == c.index_key]
                for ranking in rankings
            ]
            replaced = _replaced(rankings, kept, keys)
            if not replaced or replaced == before:
                break
            before = replaced
        return kept

    def _cosines(
        self, ids: Sequence[str], rankings: Sequence[Sequence[Candidate]], mode: SearchMode
    ) -> dict[str, float]:
        known = (
            {candidate.id: candidate.score for candidate in rankings[0]} if mode != "text" else {}
        )
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            scored = self._store.knn(
                self._serving.index_name,
                self._owner,
                self._vector,
                limit=len(unknown),
                ids=unknown,
            )
            known.update({candidate.id: candidate.score for candidate in scored})
        return known


def _replaced(
    rankings: Sequence[Sequence[Candidate]],
    kept: Sequence[Sequence[Candidate]],
    keys: Mapping[str, str],
) -> set[tuple[str, str, str]]:
    """Living documents of which only versions were found that do not count."""
    present = {c.document_id for ranking in kept for c in ranking}
    return {
        (c.document_id, c.index_key, keys[c.document_id])
        for ranking in rankings
        for c in ranking
        if c.document_id in keys and c.document_id not in present
    }


def _hit(candidate: Candidate, cosine: float) -> Hit:
    fields: Mapping[str, Any] = candidate.fields
    return Hit(
        score=round(cosine, 6),
        text=fields["text"],
        uri=fields["uri"],
        title=fields.get("title"),
        heading_path=tuple(fields["heading_path"]),
        media_type=fields.get("media_type"),
        start=fields["start"],
        end=fields["end"],
        **{name: fields.get(name) for name in PLACES},
        document_id=candidate.document_id,
        chunk_id=fields["chunk_id"],
    )
