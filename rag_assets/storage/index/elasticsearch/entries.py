"""Writing and reading entries in Elasticsearch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from elasticsearch import Elasticsearch, NotFoundError

from rag_assets.common.batches import batched
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index import fields
from rag_assets.storage.index.elasticsearch import hits, queries, requests
from rag_assets.storage.index.elasticsearch.errors import translated_errors
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.model import (
    Entry,
    EntryFilter,
    EntryVector,
    Owner,
    ScannedEntry,
    StoredEntry,
    VersionCount,
)

_QUERY_DOCUMENTS = 500
_QUERY_TEXTS = 1_000
_STORED = ["*"]
_VERSION = ("document_id", "index_key", "access_scope")
_SCOPE_FIELDS = ("access_scope", "digest")


class ElasticsearchEntries:
    """Writes and reads entries in Elasticsearch (see EntryStore).

    Args:
        client: a client of the cluster.
        ownership: checks who owns an index before it is changed.
    """

    def __init__(self, client: Elasticsearch, ownership: Ownership) -> None:
        self._client = client
        self._ownership = ownership

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        self._ownership.require(index_name)
        written = self._bulk(hits.upsert_action(index_name, entry) for entry in entries)
        return self._refresh_after(index_name, written)

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        self._ownership.require(index_name)
        deleted = self._bulk(_deletion(index_name, tenant, id_) for id_ in ids)
        return self._refresh_after(index_name, deleted)

    def delete_other_versions(
        self,
        index_name: str,
        owner: Owner,
        kept: Mapping[str, str | None],
        *,
        guard: Callable[[], None],
        refreshed: bool = False,
    ) -> int:
        self._ownership.require(index_name)
        if not refreshed:
            self._refresh(index_name)
        deleted = 0
        for document_ids in batched(kept, _QUERY_DOCUMENTS):
            ids = list(self._other_versions(index_name, owner, document_ids, kept))
            guard()
            deleted += self._bulk(_deletion(index_name, owner.tenant, id_) for id_ in ids)
        return self._refresh_after(index_name, deleted)

    def set_scopes(
        self,
        index_name: str,
        owner: Owner,
        scopes: Mapping[str, str],
        *,
        guard: Callable[[], None],
    ) -> int:
        self._ownership.require(index_name)
        self._refresh(index_name)
        by_scope: dict[str, list[str]] = {}
        for document_id, scope in scopes.items():
            by_scope.setdefault(scope, []).append(document_id)
        changed = 0
        for scope, ids in by_scope.items():
            for document_ids in batched(ids, _QUERY_DOCUMENTS):
                guard()
                changed += self._bulk(self._with_scope(index_name, owner, document_ids, scope))
        return self._refresh_after(index_name, changed)

    def scan(
        self,
        index_name: str,
        tenant: str,
        digest_key: bytes | None = None,
        document_ids: Collection[str] | None = None,
    ) -> Iterator[ScannedEntry]:
        self._refresh(index_name)
        batches = [None] if document_ids is None else batched(document_ids, _QUERY_DOCUMENTS)
        for batch in batches:
            clauses = [] if batch is None else [{"terms": {"document_id": batch}}]
            query = {"bool": {"filter": [queries.reachable(tenant), *clauses]}}
            for hit in requests.pages(self._client, index_name, None, query, _STORED):
                yield hits.parse_scanned_hit(hit, digest_key)

    def strangers(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        self._refresh(index_name)
        ours = [queries.entries(owner, [{"term": {"_routing": owner.tenant}}]) for owner in owners]
        query = {"bool": {"filter": [queries.reachable(tenant)], "must_not": ours}}
        for hit in requests.pages(self._client, index_name, None, query, _STORED):
            yield hits.parse_scanned_hit(hit, None)

    def counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        self._refresh(index_name)
        found = requests.buckets(
            self._client, index_name, owner.tenant, queries.entries(owner), _VERSION
        )
        for (document_id, index_key, access_scope), count in found:
            yield VersionCount(document_id, index_key, access_scope, count)

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        self._refresh(index_name)
        for hit in self._pages(index_name, owner, queries.entries(owner), _STORED):
            yield hits.parse_stored_hit(owner, hit)

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        for ids in batched(document_ids, _QUERY_DOCUMENTS):
            clauses = queries.filter_clauses(EntryFilter(documents=tuple(ids)))
            query = queries.entries(owner, clauses)
            for hit in self._pages(index_name, owner, query, _STORED):
                yield hits.parse_stored_hit(owner, hit)

    def count(self, index_name: str, owner: Owner) -> int:
        self._refresh(index_name)
        with translated_errors(index_name=index_name):
            try:
                answer = self._client.count(
                    index=index_name, query=queries.entries(owner), routing=owner.tenant
                )
            except NotFoundError:
                return 0
        return int(answer["count"])

    def matching(
        self, index_name: str, tenant: str, field: str, values: Collection[str]
    ) -> list[str]:
        self._refresh(index_name)
        query = _of_tenant(tenant, {"terms": {field: list(values)}})
        found = requests.pages(self._client, index_name, None, query, ["ordinal"])
        return [str(hit["_id"]) for hit in found]

    def containing(self, index_name: str, tenant: str, phrase: str) -> dict[str, str]:
        held = {"multi_match": {"query": phrase, "type": "phrase", "fields": ["text", "context"]}}
        query = _of_tenant(tenant, held)
        found = requests.pages(self._client, index_name, None, query, ["text_sha256"])
        return {str(hit["_id"]): str(hit["_source"]["text_sha256"]) for hit in found}

    def vectors(
        self, index_name: str, owner: Owner, texts: HashRange | Collection[str]
    ) -> Iterator[EntryVector]:
        self._refresh(index_name)
        for clause in _texts(texts):
            query = queries.entries(owner, [clause])
            for hit in requests.pages(
                self._client, index_name, owner.tenant, query, _STORED, vectors=True
            ):
                yield hits.entry_vector(owner, hit)

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        self._refresh(index_name)
        query = queries.entries(owner, excluding={"exists": {"field": "vector"}})
        for hit in self._pages(index_name, owner, query, ["ordinal"]):
            yield str(hit["_id"])

    def _bulk(self, actions: Iterable[dict[str, Any]]) -> int:
        return requests.bulk(self._client, actions, self._ownership.make_writable)

    def _pages(
        self, index_name: str, owner: Owner, query: Mapping[str, Any], names: list[str]
    ) -> Iterator[Mapping[str, Any]]:
        return requests.pages(self._client, index_name, owner.tenant, query, names)

    def _refresh_after(self, index_name: str, changed: int) -> int:
        """Refresh the index if it was changed; return the number of changes."""
        if changed:
            self._refresh(index_name)
        return changed

    def _refresh(self, index_name: str) -> None:
        requests.refresh(self._client, index_name)

    def _other_versions(
        self,
        index_name: str,
        owner: Owner,
        document_ids: list[str],
        kept: Mapping[str, str | None],
    ) -> Iterator[str]:
        query = queries.entries(owner, [{"terms": {"document_id": document_ids}}])
        for hit in self._pages(index_name, owner, query, ["document_id", "index_key"]):
            found = hit["_source"]
            if found["index_key"] != kept[found["document_id"]]:
                yield str(hit["_id"])

    def _with_scope(
        self, index_name: str, owner: Owner, document_ids: list[str], scope: str
    ) -> Iterator[dict[str, Any]]:
        query = queries.entries(
            owner,
            [{"terms": {"document_id": document_ids}}],
            excluding={"term": {"access_scope": scope}},
        )
        for hit in self._pages(index_name, owner, query, _STORED):
            changed = fields.with_scope(hit["_source"], scope, owner.digest_key)
            yield {
                "_op_type": "update",
                "_index": index_name,
                "_id": hit["_id"],
                "routing": owner.tenant,
                "doc": {name: changed[name] for name in _SCOPE_FIELDS if name in changed},
            }


def _texts(texts: HashRange | Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield clauses of the queries that find the entries of these texts."""
    if isinstance(texts, HashRange):
        end = {} if texts.end is None else {"lt": texts.end}
        yield {"range": {"text_sha256": {"gte": texts.first, **end}}}
        return
    for batch in batched(texts, _QUERY_TEXTS):
        yield {"terms": {"text_sha256": batch}}


def _of_tenant(tenant: str, clause: Mapping[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"tenant": tenant}}, clause]}}


def _deletion(index_name: str, tenant: str, id_: str) -> dict[str, Any]:
    return {"_op_type": "delete", "_index": index_name, "_id": id_, "routing": tenant}
