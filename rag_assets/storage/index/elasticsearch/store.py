"""The vector store on Elasticsearch's core server: no module or licence beyond it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

from rag_assets.common.errors import IndexInconsistent
from rag_assets.storage.index import fields
from rag_assets.storage.index.elasticsearch import hits, mapping, queries, requests
from rag_assets.storage.index.elasticsearch.errors import TRANSIENT, translated_errors
from rag_assets.storage.index.elasticsearch.searcher import ElasticsearchSearcher
from rag_assets.storage.index.model import (
    Entry,
    EntryFilter,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    ScannedEntry,
    StoredEntry,
)

_PAGE = 1_000
_STORED = ["*"]


class ElasticsearchStore:
    """Entries in Elasticsearch (see VectorStore).

    Args:
        url: address of the cluster, with credentials if it wants any.
        prefix: of the names of indexes and aliases.
        shared_limit: entries above which a new shared index is opened for new generations.
    """

    def __init__(self, url: str, *, prefix: str = "rag", shared_limit: int = 2_000_000) -> None:
        self._names = mapping.Names(prefix)
        self._client = Elasticsearch(
            url, request_timeout=60, max_retries=3, retry_on_status=TRANSIENT, retry_on_timeout=True
        )
        self._url = url
        self._shared_limit = shared_limit

    def searcher(self) -> ElasticsearchSearcher:
        return ElasticsearchSearcher(self._url)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        with translated_errors():
            if placement == "dedicated":
                name = self._names.dedicated(spec, tenant)
                if not self._fits(name, spec):
                    self.drop_index(name)  # the tenant's by its name, but nothing we wrote to
            else:
                name = self._shared_with_room(spec)
            self._create(name, spec)
            uuid = self.uuid_of(name)
        if uuid is None:
            raise IndexInconsistent(
                f"index {name!r} vanished while it was being made", hint="run the sync again"
            )
        return IndexRef(name, uuid)

    def uuid_of(self, index_name: str) -> str | None:
        with translated_errors():
            try:
                settings = self._client.indices.get_settings(index=index_name, name="index.uuid")
            except NotFoundError:
                return None
        return str(settings[index_name]["settings"]["index"]["uuid"])

    def upsert(self, index_name: str, entries: Iterable[Entry]) -> int:
        actions = (hits.upsert_action(index_name, entry) for entry in entries)
        return requests.bulk(self._client, actions)

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        actions = (
            {"_op_type": "delete", "_index": index_name, "_id": id_, "routing": tenant}
            for id_ in ids
        )
        return requests.bulk(self._client, actions)

    def rescope(self, index_name: str, owner: Owner, scopes: Mapping[str, str]) -> int:
        by_scope: dict[str, list[str]] = {}
        for document_id, scope in scopes.items():
            by_scope.setdefault(scope, []).append(document_id)
        return sum(
            requests.bulk(self._client, self._rescoped(index_name, owner, document_ids, scope))
            for scope, document_ids in by_scope.items()
        )

    def refresh(self, index_name: str) -> None:
        with translated_errors():
            self._client.indices.refresh(index=index_name)

    def ids_of(
        self, index_name: str, owner: Owner, documents: Mapping[str, str | None]
    ) -> Iterator[str]:
        query = queries.entries(owner, [{"terms": {"document_id": list(documents)}}])
        fields = ["document_id", "index_key"]
        for hit in requests.pages(self._client, index_name, owner.tenant, query, fields):
            found = hit["_source"]
            if found["index_key"] != documents[found["document_id"]]:
                yield str(hit["_id"])

    def scan(
        self, index_name: str, tenant: str, digest_key: bytes | None = None
    ) -> Iterator[ScannedEntry]:
        # Entries routed as this tenant's but carrying another's id are found as well.
        query = {"bool": {"should": [{"term": {"tenant": tenant}}, {"term": {"_routing": tenant}}]}}
        for hit in requests.pages(self._client, index_name, None, query, _STORED):
            yield hits.live_entry(hit, digest_key)

    def dimensions_of(self, index_name: str) -> int | None:
        with translated_errors():
            try:
                answer = self._client.indices.get_mapping(index=index_name)
            except NotFoundError:
                return None
        fields = answer[index_name]["mappings"].get("properties", {})
        return int(fields.get("vector", {}).get("dims", 0))

    def without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        query = queries.entries(owner, but={"exists": {"field": "vector"}})
        for hit in requests.pages(self._client, index_name, owner.tenant, query, ["ordinal"]):
            yield str(hit["_id"])

    def stored(
        self, index_name: str, owner: Owner, entry_filter: EntryFilter | None = None
    ) -> Iterator[StoredEntry]:
        query = queries.entries(owner, queries.clauses_of(entry_filter or EntryFilter()))
        for hit in requests.pages(self._client, index_name, owner.tenant, query, _STORED):
            yield hits.stored(owner, hit)

    def count(self, index_name: str, owner: Owner) -> int:
        query = queries.entries(owner)
        with translated_errors():
            try:
                answer = self._client.count(index=index_name, query=query, routing=owner.tenant)
            except NotFoundError:
                return 0
        return int(answer["count"])

    def alias_name(self, tenant: str) -> str:
        return self._names.alias(tenant)

    def point_alias(self, index_name: str, owner: Owner) -> None:
        alias = self._names.alias(owner.tenant)
        add = {
            "index": index_name,
            "alias": alias,
            "filter": queries.entries(owner),
            "routing": owner.tenant,
        }
        remove = {"index": "*", "alias": alias, "must_exist": False}
        with translated_errors():
            self._client.indices.update_aliases(actions=[{"remove": remove}, {"add": add}])

    def drop_alias(self, tenant: str) -> None:
        alias = self._names.alias(tenant)
        with translated_errors():
            try:
                self._client.indices.delete_alias(index="*", name=alias)
            except NotFoundError:
                return

    def alias_target(self, tenant: str) -> tuple[str, Mapping[str, object]] | None:
        alias = self._names.alias(tenant)
        with translated_errors():
            try:
                answer = self._client.indices.get_alias(name=alias)
            except NotFoundError:
                return None
        for index_name, body in answer.items():
            return str(index_name), body["aliases"][alias].get("filter", {})
        return None

    def is_dedicated(self, index_name: str, tenant: str) -> bool:
        return self._names.is_dedicated(index_name, tenant)

    def drop_index(self, index_name: str) -> None:
        with translated_errors():
            self._client.indices.delete(index=index_name, ignore_unavailable=True)

    def tenants_in(self, index_name: str) -> list[tuple[str, int]]:
        sources = [
            {"tenant": {"terms": {"field": "tenant"}}},
            {"incarnation": {"terms": {"field": "incarnation"}}},
        ]
        found: list[tuple[str, int]] = []
        composite: dict[str, Any] = {"size": _PAGE, "sources": sources}
        with translated_errors():
            while True:
                try:
                    answer = self._client.search(
                        index=index_name, size=0, aggs={"owners": {"composite": composite}}
                    )["aggregations"]["owners"]
                except BadRequestError:  # an index of that name which is none of ours
                    return []
                found += [(b["key"]["tenant"], b["key"]["incarnation"]) for b in answer["buckets"]]
                if "after_key" not in answer:
                    return found
                composite = {**composite, "after": answer["after_key"]}

    def indexes(self) -> list[str]:
        with translated_errors():
            return sorted(
                self._client.indices.get_settings(index=self._names.patterns, name="index.uuid")
            )

    def _fits(self, name: str, spec: IndexSpec) -> bool:
        try:
            answer = self._client.indices.get_mapping(index=name)
        except NotFoundError:
            return True
        return mapping.fits(answer[name]["mappings"], spec)

    def _shared_with_room(self, spec: IndexSpec) -> str:
        stem = self._names.shared_stem(spec)
        settings = self._client.indices.get_settings(index=f"{stem}*", name="index.uuid")
        # One stem may begin another, as the default kind of vector index has no name of its own.
        numbered = re.compile(re.escape(stem) + r"(\d+)")
        numbers = sorted(int(m[1]) for name in settings if (m := numbered.fullmatch(name)))
        if not numbers:
            return f"{stem}1"
        newest = f"{stem}{numbers[-1]}"
        full = self._client.count(index=newest)["count"] >= self._shared_limit
        # Whoever writes to an index that is gone makes one of that name with any mapping.
        usable = not full and self._fits(newest, spec)
        return newest if usable else f"{stem}{numbers[-1] + 1}"

    def _create(self, name: str, spec: IndexSpec) -> None:
        if self._client.indices.exists(index=name):
            return
        try:
            self._client.indices.create(
                index=name, **mapping.index_body(spec), wait_for_active_shards=1
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise

    def _rescoped(
        self, index_name: str, owner: Owner, document_ids: list[str], scope: str
    ) -> Iterator[dict[str, Any]]:
        query = queries.entries(
            owner,
            [{"terms": {"document_id": document_ids}}],
            but={"term": {"access_scope": scope}},
        )
        for hit in requests.pages(self._client, index_name, owner.tenant, query, _STORED):
            changed = {"access_scope": scope}
            # What was altered keeps the digest that gives it away.
            if fields.is_intact(hit["_source"], owner.digest_key):
                altered = {**hit["_source"], **changed}
                changed["digest"] = fields.digest_of(altered, owner.digest_key)
            yield {
                "_op_type": "update",
                "_index": index_name,
                "_id": hit["_id"],
                "routing": owner.tenant,
                "doc": changed,
            }
