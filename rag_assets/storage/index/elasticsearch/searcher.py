"""Searches in Elasticsearch from an event loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from elasticsearch import AsyncElasticsearch, NotFoundError, OrjsonSerializer

from rag_assets.common.errors import IndexInconsistent, SearchRejected, ServiceUnavailable
from rag_assets.storage.index.elasticsearch import hits, queries
from rag_assets.storage.index.elasticsearch.errors import TRANSIENT, translated_errors
from rag_assets.storage.index.model import (
    NONE_MOVED,
    Candidate,
    EntryFilter,
    IndexRef,
    MovedPages,
    Owner,
    PassageVector,
    Presence,
    RankingRequest,
    StoredEntry,
)

_CONNECTIONS = 16
_SECONDS = 30
_NOT_FOUND = 404
_TOO_MUCH = frozenset({"too_many_clauses", "too_many_nested_clauses"})
_JSON = ("application/json", "application/vnd.elasticsearch+json")


def json_serializers() -> dict[str, OrjsonSerializer]:
    """Serializers of a client's requests and answers by orjson."""
    return {kind: OrjsonSerializer() for kind in _JSON}


class ElasticsearchSearcher:
    """Searches entries in Elasticsearch (see EntrySearcher).

    Args:
        url: address of the cluster, with credentials if it requires them.
    """

    def __init__(self, url: str) -> None:
        self._client = AsyncElasticsearch(
            url,
            connections_per_node=_CONNECTIONS,
            request_timeout=_SECONDS,
            max_retries=2,
            retry_on_status=TRANSIENT,
            serializers=json_serializers(),
        )

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        bodies = [
            {
                **queries.candidate_options(owner, symbols=one.symbols),
                **queries.ranking(owner, one),
            }
            for one in requests
        ]
        found = await self._search(index_name, owner, bodies)
        return [hits.ranking(owner, one, page) for one, page in zip(requests, found, strict=True)]

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        if not ids:
            return {}
        body = queries.cosine_search(owner, vector, [queries.id_clause(ids)], len(ids))
        [found] = await self._search(index_name, owner, [{**body, **queries.SCORE_OPTIONS}])
        return {hit["_id"]: hits.cosine(hit) for hit in found}

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
        if not ids:
            return {}
        wanted = EntryFilter(None if scopes is None else frozenset(scopes), moved)
        readable = queries.filter_clauses(wanted)
        clauses = [queries.id_clause(ids), *readable]
        if vector is None:
            body = {"query": queries.entries(owner, clauses), "size": len(ids)}
        else:
            body = queries.cosine_search(owner, vector, clauses, len(ids))
        [found] = await self._search(index_name, owner, [{**body, **queries.ENTRY_OPTIONS}])
        return {
            hit["_id"]: hits.stored(owner, hit, None if vector is None else hits.cosine(hit))
            for hit in found
        }

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        if not ids:
            return {}
        query = queries.entries(owner, [queries.id_clause(ids)])
        body = {"query": query, "size": len(ids), **queries.VECTOR_OPTIONS}
        [found] = await self._search(index_name, owner, [body])
        return {hit["_id"]: hits.passage_vector(hit) for hit in found if "vector" in hit["_source"]}

    async def presence(self, index: IndexRef) -> Presence:
        with translated_errors():
            try:
                settings = await self._client.indices.get_settings(
                    index=index.name, name="index.uuid"
                )
            except NotFoundError:
                return "missing"
        return index.presence_of(str(settings[index.name]["settings"]["index"]["uuid"]))

    async def close(self) -> None:
        await self._client.close()

    async def _search(
        self, index_name: str, owner: Owner, bodies: Sequence[Mapping[str, Any]]
    ) -> list[list[Mapping[str, Any]]]:
        """The hits of several queries for a tenant's entries, in one round trip."""
        # Replicas may differ for a moment. The preference sends all requests of a tenant to the
        # same one, so that found entries can be read and equal queries return equal hits.
        target = {"index": index_name, "routing": owner.tenant, "preference": owner.tenant}
        header = orjson.dumps(target)
        lines: list[Any] = []
        for body in bodies:
            lines += [header, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)]
        with translated_errors():
            answers = (await self._client.msearch(searches=lines)).body["responses"]
        return [_hits(answer, index_name, owner) for answer in answers]


def _hits(answer: Mapping[str, Any], index_name: str, owner: Owner) -> list[Mapping[str, Any]]:
    if "error" not in answer:
        return list(answer["hits"]["hits"])
    status, kind = answer.get("status"), answer["error"].get("type", "an error")
    if status in TRANSIENT:
        raise ServiceUnavailable(
            f"Elasticsearch is too busy to search: {kind}", hint="try again in a moment"
        )
    if _is_too_much(answer["error"]):
        raise SearchRejected(
            "the search has more words and filters than the index accepts",
            hint="use fewer words or fewer filters",
        )
    problem = "is gone" if status == _NOT_FOUND else f"rejected the search: {kind}"
    raise IndexInconsistent(
        f"index {index_name!r} of tenant {owner.tenant!r} {problem}",
        hint=f"restore it with `rag-assets sync {owner.tenant} --repair`",
    )


def _is_too_much(error: Mapping[str, Any]) -> bool:
    # The error itself only says that shards failed: the cause is in each shard's reason.
    reasons = [shard.get("reason", {}) for shard in error.get("failed_shards", ())]
    causes = [*reasons, *(reason.get("caused_by", {}) for reason in reasons)]
    return any(cause.get("type") in _TOO_MUCH for cause in causes)
