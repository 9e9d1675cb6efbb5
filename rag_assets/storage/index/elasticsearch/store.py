"""The vector store in Elasticsearch: its searches from an event loop, and its notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import orjson
from cachetools import LRUCache
from elasticsearch import AsyncElasticsearch, Elasticsearch, NotFoundError, OrjsonSerializer

from rag_assets.storage.index.connection import ElasticsearchConnection, to_connection
from rag_assets.storage.index.elasticsearch import queries
from rag_assets.storage.index.elasticsearch.administration import ElasticsearchIndexes
from rag_assets.storage.index.elasticsearch.entries import ElasticsearchEntries
from rag_assets.storage.index.elasticsearch.errors import (
    TRANSIENT,
    convert_response_error,
    translated_errors,
)
from rag_assets.storage.index.elasticsearch.mapping import IndexNames, create_index
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.model import (
    NONE_MOVED,
    Candidate,
    EntryCounts,
    EntryFilter,
    IndexRef,
    MovedPages,
    Owner,
    PassageVector,
    Presence,
    RankingRequest,
    StoredEntry,
)
from rag_assets.storage.index.store import StoreConfig, VectorStore
from rag_assets.storage.index.terms import (
    ANALYSES,
    EVERY_ANALYSIS,
    FORMER,
    QueryWords,
    parse_query_words,
)

_NOTE_SECONDS: Final = 5
_UNINDEXED: Final = {"type": "keyword", "index": False, "doc_values": False}


class ElasticsearchNotes:
    """Reads and writes notes (see NoteStore), always by id, so that no refresh is needed.

    Args:
        installation: the owner of the notes; a copy of the installation has separate notes.
    """

    def __init__(
        self,
        client: Elasticsearch,
        index_name: str,
        ownership: Ownership,
        installation: UUID | None,
    ) -> None:
        self._client = client.options(request_timeout=_NOTE_SECONDS, max_retries=1)
        self._index = index_name
        self._ownership = ownership
        self._installation = str(installation)

    def read(self, name: str) -> str | None:
        with translated_errors():
            try:
                note = self._client.get(index=self._index, id=self._build_note_id(name))
            except NotFoundError:
                return None
        return str(note["_source"]["text"])

    def write(self, name: str, text: str) -> None:
        with translated_errors():
            self._require_index()
            document = {"installation": self._installation, "name": name, "text": text}
            self._client.index(index=self._index, id=self._build_note_id(name), document=document)

    def delete(self, name: str) -> None:
        with translated_errors():
            try:
                self._client.delete(index=self._index, id=self._build_note_id(name))
            except NotFoundError:
                return

    def _require_index(self) -> None:
        # A write to a missing index would create it with a guessed mapping.
        if not self._client.indices.exists(index=self._index):
            is_serverless = self._ownership.server.is_serverless
            body = _build_index_body(self._ownership.meta, is_serverless=is_serverless)
            create_index(self._client, self._index, body)
        self._ownership.require(self._index)

    def _build_note_id(self, name: str) -> str:
        return f"{self._installation}/{name}"


def _build_index_body(meta: dict[str, Any], *, is_serverless: bool) -> dict[str, Any]:
    shards = {} if is_serverless else {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
    fields = {"installation": _UNINDEXED, "name": _UNINDEXED, "text": _UNINDEXED}
    return {
        "settings": {"index": {**shards, "refresh_interval": "-1"}},
        "mappings": {"dynamic": "strict", "_meta": meta, "properties": fields},
    }


def open_store(config: StoreConfig) -> VectorStore:
    """Open the vector store in Elasticsearch, without connecting yet."""
    connection = to_connection(config.server)
    client = Elasticsearch(
        **connection.client_options(),
        request_timeout=60,
        max_retries=3,
        retry_on_status=TRANSIENT,
        retry_on_timeout=True,
        serializers=build_json_serializers(),
    )
    ownership = Ownership(client, config.installation)
    names = IndexNames(config.prefix, config.former_prefixes)
    return VectorStore(
        entries=ElasticsearchEntries(client, ownership),
        indexes=ElasticsearchIndexes(client, names, config.shared_limit, ownership, config.layout),
        searcher=partial(ElasticsearchSearcher, connection),
        notes=ElasticsearchNotes(client, names.notes_index, ownership, config.installation),
        close=client.close,
    )


_MAX_CONNECTIONS = 16
_REQUEST_SECONDS = 30
_MAX_BUILDS = 4_096
"""Maximum number of builds with cached analyses."""
_JSON = ("application/json", "application/vnd.elasticsearch+json")


def build_json_serializers() -> dict[str, OrjsonSerializer]:
    """Return serializers, based on orjson, for the requests and answers of a client."""
    return {kind: OrjsonSerializer() for kind in _JSON}


class ElasticsearchSearcher:
    """Searches entries in Elasticsearch (see EntrySearcher)."""

    def __init__(self, server: str | ElasticsearchConnection) -> None:
        self._client = AsyncElasticsearch(
            **to_connection(server).client_options(is_async=True),
            connections_per_node=_MAX_CONNECTIONS,
            request_timeout=_REQUEST_SECONDS,
            max_retries=2,
            retry_on_status=TRANSIENT,
            serializers=build_json_serializers(),
        )
        self._analyses: LRUCache[tuple[str, Owner], tuple[str, ...]] = LRUCache(_MAX_BUILDS)

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        known = self._analyses.get((index_name, owner), EVERY_ANALYSIS)
        words = {
            n: parse_query_words(r.by, known)
            for n, r in enumerate(requests)
            if isinstance(r.by, str)
        }
        first = [
            queries.build_word_count_search(owner, request, words[number])
            if number in words
            else _add_candidate_options(
                owner, request, queries.build_ranking_search(owner, request)
            )
            for number, request in enumerate(requests)
        ]
        answers = [*await self._fetch_answers(index_name, owner, first)]
        await self._repeat_word_counts(index_name, owner, requests, words, answers)
        # A word is weighted by its rarity among readable entries, so these must be counted first.
        weighed = {
            number: queries.parse_word_weights(words[number], answers[number]) for number in words
        }
        second = {
            number: _add_candidate_options(
                owner,
                requests[number],
                queries.build_words_search(owner, requests[number], words[number], weights),
            )
            for number, weights in weighed.items()
            if weights
        }
        if second:
            ranked = await self._fetch_answers(index_name, owner, [*second.values()])
            for number, answer in zip(second, ranked, strict=True):
                answers[number] = answer
        return [
            queries.parse_ranking(owner, ranking_request, answer["hits"]["hits"])
            for ranking_request, answer in zip(requests, answers, strict=True)
        ]

    async def cosines(
        self, index_name: str, owner: Owner, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        if not ids:
            return {}
        body = queries.build_cosine_search(owner, vector, [queries.build_id_clause(ids)], len(ids))
        [hits] = await self._fetch_hits(index_name, owner, [{**body, **queries.SCORE_OPTIONS}])
        return {hit["_id"]: queries.parse_cosine(hit) for hit in hits}

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
        entry_filter = EntryFilter(None if scopes is None else frozenset(scopes), moved)
        readable = queries.build_filter_clauses(entry_filter)
        clauses = [queries.build_id_clause(ids), *readable]
        if vector is None:
            body = {"query": queries.build_entries_query(owner, clauses), "size": len(ids)}
        else:
            body = queries.build_cosine_search(owner, vector, clauses, len(ids))
        [hits] = await self._fetch_hits(index_name, owner, [{**body, **queries.ENTRY_OPTIONS}])
        return {
            hit["_id"]: queries.parse_stored_hit(
                owner, hit, None if vector is None else queries.parse_cosine(hit)
            )
            for hit in hits
        }

    async def vectors(
        self, index_name: str, owner: Owner, ids: Sequence[str]
    ) -> dict[str, PassageVector]:
        if not ids:
            return {}
        query = queries.build_entries_query(owner, [queries.build_id_clause(ids)])
        body = {"query": query, "size": len(ids), **queries.VECTOR_OPTIONS}
        [hits] = await self._fetch_hits(index_name, owner, [body])
        return {
            hit["_id"]: queries.parse_passage_vector(hit)
            for hit in hits
            if "vector" in hit["_source"]
        }

    async def count_entries(
        self, index_name: str, owner: Owner, recent_keys: Sequence[str]
    ) -> EntryCounts:
        [answer] = await self._fetch_answers(
            index_name, owner, [queries.build_entry_count_search(owner, recent_keys)]
        )
        total, recent = answer["hits"]["total"], answer["aggregations"]["recent"]
        return EntryCounts(total["value"], recent["doc_count"])

    async def presence(self, index: IndexRef) -> Presence:
        with translated_errors():
            try:
                settings = await self._client.indices.get_settings(
                    index=index.name, name="index.uuid"
                )
            except NotFoundError:
                return "missing"
        return index.compute_presence(str(settings[index.name]["settings"]["index"]["uuid"]))

    async def close(self) -> None:
        await self._client.close()

    async def _repeat_word_counts(
        self,
        index_name: str,
        owner: Owner,
        requests: Sequence[RankingRequest],
        words: dict[int, QueryWords],
        answers: list[Mapping[str, Any]],
    ) -> None:
        """Repeat the word counts of requests that found entries with unexpected analyses.

        `words` and `answers` are updated in place. The analyses are cached for later requests of
        the same generation. The cache only decides which forms are counted first, never which
        entries are found: the answer shows whether some entries have none of the known analyses.
        """
        incomplete = {
            number: parse_query_words(str(requests[number].by))
            for number, query_words in words.items()
            if not {*queries.parse_counted_analyses(answers[number])} <= {*query_words.analyses}
        }
        if incomplete:
            words |= incomplete
            repeated = [
                queries.build_word_count_search(owner, requests[n], query_words)
                for n, query_words in incomplete.items()
            ]
            counted = await self._fetch_answers(index_name, owner, repeated)
            for number, answer in zip(incomplete, counted, strict=True):
                answers[number] = answer
        for number in words:
            present = {*queries.parse_counted_analyses(answers[number])}
            known = {*self._analyses.get((index_name, owner), ())}
            # Entries without an analysis mark will soon be written again, so they are not cached.
            if present and FORMER not in present and not present <= known:
                all_analyses = tuple(
                    analysis for analysis in ANALYSES if analysis in known | present
                )
                self._analyses[index_name, owner] = all_analyses

    async def _fetch_hits(
        self, index_name: str, owner: Owner, bodies: Sequence[Mapping[str, Any]]
    ) -> list[list[Mapping[str, Any]]]:
        """Return the hits of several queries for a tenant's entries, in one round trip."""
        answers = await self._fetch_answers(index_name, owner, bodies)
        return [list(answer["hits"]["hits"]) for answer in answers]

    async def _fetch_answers(
        self, index_name: str, owner: Owner, bodies: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        # Replicas may differ for a moment. The preference sends all requests of a tenant to the
        # same replica. So found entries can be read, and equal queries return equal hits.
        target = {"index": index_name, "routing": owner.tenant, "preference": owner.tenant}
        header = orjson.dumps(target)
        lines: list[Any] = []
        for body in bodies:
            lines += [header, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)]
        with translated_errors():
            response = await self._client.msearch(searches=lines)
        answers: list[Mapping[str, Any]] = response["responses"]
        for answer in answers:
            if "error" in answer:
                raise convert_response_error(
                    int(answer["status"]), answer, index_name, tenant_id=owner.tenant
                )
        return answers


def _add_candidate_options(
    owner: Owner, request: RankingRequest, search: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a search, extended by the options that make it return candidates."""
    return {**queries.build_candidate_options(owner, symbols=request.symbols), **search}
