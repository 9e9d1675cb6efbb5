"""Writing and reading entries in Elasticsearch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from elastic_transport import ConnectionTimeout
from elasticsearch import Elasticsearch, NotFoundError
from elasticsearch.helpers import streaming_bulk

from rag_assets.common.batches import batched
from rag_assets.common.errors import IndexInconsistent
from rag_assets.common.hashing import HashRange
from rag_assets.storage.index import fields
from rag_assets.storage.index.elasticsearch import mapping, queries
from rag_assets.storage.index.elasticsearch.errors import (
    TRANSIENT,
    build_bulk_item_error,
    convert_response_error,
    translated_errors,
)
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

_BULK_ACTIONS = 500
_BULK_THREADS = 2
_BULK_BYTES = 8 * 1024 * 1024
_PAGE_ENTRIES = 1_000
_PAGE_ENTRIES_WITH_VECTORS = 250
_BUCKETS = 5_000
_REFRESH_SECONDS = 10.0
_OK, _NOT_FOUND = 200, 404


class ElasticsearchEntries:
    """Writes and reads entries in Elasticsearch (see EntryStore)."""

    def __init__(self, client: Elasticsearch, ownership: Ownership) -> None:
        self._client = client
        self._ownership = ownership

    def write(self, index_name: str, entries: Iterable[Entry]) -> int:
        self._ownership.require(index_name)
        written = self._execute_actions(
            queries.build_upsert_action(index_name, entry) for entry in entries
        )
        return self._refresh_after(index_name, written)

    def delete(self, index_name: str, tenant: str, ids: Iterable[str]) -> int:
        self._ownership.require(index_name)
        deleted = self._execute_actions(_build_deletion(index_name, tenant, id_) for id_ in ids)
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
            ids = list(self._iter_other_versions(index_name, owner, document_ids, kept))
            guard()
            deleted += self._execute_actions(
                _build_deletion(index_name, owner.tenant, id_) for id_ in ids
            )
        return self._refresh_after(index_name, deleted)

    def set_scopes(
        self, index_name: str, owner: Owner, scopes: Mapping[str, str], *, guard: Callable[[], None]
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
                changed += self._execute_actions(
                    self._iter_scope_updates(index_name, owner, document_ids, scope)
                )
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
            query = {"bool": {"filter": [queries.build_reachable_query(tenant), *clauses]}}
            for hit in self._iter_hits(index_name, None, query, _STORED):
                yield queries.parse_scanned_hit(hit, digest_key)

    def iter_unowned_entries(
        self, index_name: str, tenant: str, owners: Collection[Owner]
    ) -> Iterator[ScannedEntry]:
        self._refresh(index_name)
        ours = [
            queries.build_entries_query(owner, [{"term": {"_routing": owner.tenant}}])
            for owner in owners
        ]
        query = {"bool": {"filter": [queries.build_reachable_query(tenant)], "must_not": ours}}
        for hit in self._iter_hits(index_name, None, query, _STORED):
            yield queries.parse_scanned_hit(hit, None)

    def iter_version_counts(self, index_name: str, owner: Owner) -> Iterator[VersionCount]:
        self._refresh(index_name)
        versions = self._iter_versions(index_name, owner)
        for (document_id, index_key, access_scope), count in versions:
            yield VersionCount(document_id, index_key, access_scope, count)

    def stored(self, index_name: str, owner: Owner) -> Iterator[StoredEntry]:
        self._refresh(index_name)
        for hit in self._iter_hits(
            index_name, owner.tenant, queries.build_entries_query(owner), _STORED
        ):
            yield queries.parse_stored_hit(owner, hit)

    def of_documents(
        self, index_name: str, owner: Owner, document_ids: Collection[str]
    ) -> Iterator[StoredEntry]:
        for ids in batched(document_ids, _QUERY_DOCUMENTS):
            clauses = queries.build_filter_clauses(EntryFilter(documents=tuple(ids)))
            query = queries.build_entries_query(owner, clauses)
            for hit in self._iter_hits(index_name, owner.tenant, query, _STORED):
                yield queries.parse_stored_hit(owner, hit)

    def count(self, index_name: str, owner: Owner) -> int:
        self._refresh(index_name)
        with translated_errors(index_name=index_name):
            try:
                answer = self._client.count(
                    index=index_name, query=queries.build_entries_query(owner), routing=owner.tenant
                )
            except NotFoundError:
                return 0
        return int(answer["count"])

    def matching(
        self, index_name: str, tenant: str, field: str, values: Collection[str]
    ) -> list[str]:
        self._refresh(index_name)
        query = _match_tenant(tenant, {"terms": {field: list(values)}})
        hits = self._iter_hits(index_name, None, query, ["ordinal"])
        return [str(hit["_id"]) for hit in hits]

    def containing(self, index_name: str, tenant: str, phrase: str) -> dict[str, str]:
        held = {"multi_match": {"query": phrase, "type": "phrase", "fields": ["text", "context"]}}
        query = _match_tenant(tenant, held)
        hits = self._iter_hits(index_name, None, query, ["text_sha256"])
        return {str(hit["_id"]): str(hit["_source"]["text_sha256"]) for hit in hits}

    def vectors(
        self, index_name: str, owner: Owner, texts: HashRange | Collection[str]
    ) -> Iterator[EntryVector]:
        self._refresh(index_name)
        for clause in _iter_text_clauses(texts):
            query = queries.build_entries_query(owner, [clause])
            for hit in self._iter_hits(index_name, owner.tenant, query, _STORED, vectors=True):
                yield queries.parse_entry_vector(owner, hit)

    def iter_ids_without_vector(self, index_name: str, owner: Owner) -> Iterator[str]:
        self._refresh(index_name)
        query = queries.build_entries_query(owner, excluding={"exists": {"field": "vector"}})
        for hit in self._iter_hits(index_name, owner.tenant, query, ["ordinal"]):
            yield str(hit["_id"])

    def _execute_actions(self, actions: Iterable[dict[str, Any]]) -> int:
        return bulk(self._client, actions, self._ownership.make_writable)

    def _iter_hits(
        self,
        index_name: str,
        routing: str | None,
        query: Mapping[str, Any],
        names: list[str],
        *,
        vectors: bool = False,
    ) -> Iterator[Mapping[str, Any]]:
        """Yield every hit of a query, from one snapshot of the index; empty if it is missing.

        Args:
            routing: the tenant whose shard is searched; None searches all shards.
        """
        size = _PAGE_ENTRIES_WITH_VECTORS if vectors else _PAGE_ENTRIES
        body: dict[str, Any] = {
            "query": query,
            "size": size,
            "source_includes": names,
            "track_total_hits": False,
            # Otherwise the hits of only some shards could be treated as all hits.
            "allow_partial_search_results": False,
        }
        if vectors:
            body["source_exclude_vectors"] = False
        client = self._client
        target: dict[str, Any] = {"index": index_name, "routing": routing}
        with translated_errors():
            try:
                # Most queries have few hits: one request returns them all, from one snapshot.
                first = client.search(**target, **body)["hits"]["hits"]
                if len(first) < size:
                    yield from first
                    return
                pit = client.open_point_in_time(**target, keep_alive="2m")["id"]
            except NotFoundError:
                return
            try:
                after = None
                while True:
                    answer = client.search(
                        pit={"id": pit, "keep_alive": "2m"},
                        sort=[{"_shard_doc": "asc"}],
                        search_after=after,
                        **body,
                    )
                    page = answer["hits"]["hits"]
                    yield from page
                    if len(page) < size:
                        return
                    pit, after = answer["pit_id"], page[-1]["sort"]
            finally:
                client.close_point_in_time(id=pit)

    def _iter_versions(
        self, index_name: str, owner: Owner
    ) -> Iterator[tuple[tuple[str | None, ...], int]]:
        """Yield every combination of values of _VERSION with its number of entries."""
        sources = [{name: {"terms": {"field": name, "missing_bucket": True}}} for name in _VERSION]
        composite: dict[str, Any] = {"size": _BUCKETS, "sources": sources}
        with translated_errors():
            while True:
                try:
                    answer = self._client.search(
                        index=index_name,
                        routing=owner.tenant,
                        query=queries.build_entries_query(owner),
                        size=0,
                        aggs={"found": {"composite": composite}},
                        allow_partial_search_results=False,
                    )["aggregations"]["found"]
                except NotFoundError:
                    return
                for bucket in answer["buckets"]:
                    yield tuple(bucket["key"][name] for name in _VERSION), bucket["doc_count"]
                if "after_key" not in answer:
                    return
                composite = {**composite, "after": answer["after_key"]}

    def _refresh(self, index_name: str) -> None:
        """Make all writes to an index visible to searches, if the index exists.

        Raises:
            IndexUnavailable: the index is red; Elasticsearch would wait for a minute.
        """
        shortly = self._client.options(request_timeout=_REFRESH_SECONDS, max_retries=0)
        with translated_errors(self._client, index_name):
            try:
                shortly.indices.refresh(index=index_name, ignore_unavailable=True)
            except ConnectionTimeout:
                require_usable(self._client, index_name)
                self._client.indices.refresh(index=index_name, ignore_unavailable=True)

    def _refresh_after(self, index_name: str, changed: int) -> int:
        """Refresh the index unless `changed` is 0; return `changed`."""
        if changed:
            self._refresh(index_name)
        return changed

    def _iter_other_versions(
        self, index_name: str, owner: Owner, document_ids: list[str], kept: Mapping[str, str | None]
    ) -> Iterator[str]:
        query = queries.build_entries_query(owner, [{"terms": {"document_id": document_ids}}])
        for hit in self._iter_hits(index_name, owner.tenant, query, ["document_id", "index_key"]):
            source = hit["_source"]
            if source["index_key"] != kept[source["document_id"]]:
                yield str(hit["_id"])

    def _iter_scope_updates(
        self, index_name: str, owner: Owner, document_ids: list[str], scope: str
    ) -> Iterator[dict[str, Any]]:
        query = queries.build_entries_query(
            owner,
            [{"terms": {"document_id": document_ids}}],
            excluding={"term": {"access_scope": scope}},
        )
        for hit in self._iter_hits(index_name, owner.tenant, query, _STORED):
            changed = fields.with_scope(hit["_source"], scope, owner.digest_key)
            yield {
                "_op_type": "update",
                "_index": index_name,
                "_id": hit["_id"],
                "routing": owner.tenant,
                "doc": {name: changed[name] for name in _SCOPE_FIELDS if name in changed},
            }


def _iter_text_clauses(texts: HashRange | Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield filter clauses that together match the entries of these texts, one for each query."""
    if isinstance(texts, HashRange):
        end = {} if texts.end is None else {"lt": texts.end}
        yield {"range": {"text_sha256": {"gte": texts.first, **end}}}
        return
    for batch in batched(texts, _QUERY_TEXTS):
        yield {"terms": {"text_sha256": batch}}


def _match_tenant(tenant: str, clause: Mapping[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"tenant": tenant}}, clause]}}


def _build_deletion(index_name: str, tenant: str, id_: str) -> dict[str, Any]:
    return {"_op_type": "delete", "_index": index_name, "_id": id_, "routing": tenant}


def bulk(
    client: Elasticsearch, actions: Iterable[dict[str, Any]], make_writable: Callable[[str], bool]
) -> int:
    """Execute bulk actions in bounded requests, two at a time; return the number of actions.

    The result of several actions on one id must not depend on their order. Deleting a missing entry
    counts as done. All requests have ended when this returns or raises.

    Args:
        make_writable: adds the write alias of an index if it is missing; returns whether it was
            missing.

    Raises:
        IndexInconsistent: an action was rejected permanently.
        ServiceUnavailable: Elasticsearch does not answer, or stays overloaded.
    """
    parts = batched(actions, _BULK_ACTIONS)
    first = next(parts, [])
    if len(first) < _BULK_ACTIONS:
        return _send_actions(client, first, make_writable)
    sender = ThreadPoolExecutor(_BULK_THREADS, thread_name_prefix="bulk")
    try:
        sent = deque([sender.submit(_send_actions, client, first, make_writable)])
        action_count = 0
        for part in parts:
            sent.append(sender.submit(_send_actions, client, part, make_writable))
            # One more request than there are threads may wait while the next one is prepared.
            if len(sent) > _BULK_THREADS:
                action_count += sent.popleft().result()
        return action_count + sum(part_sent.result() for part_sent in sent)
    finally:
        sender.shutdown(wait=True, cancel_futures=True)


def _send_actions(
    client: Elasticsearch, actions: list[dict[str, Any]], make_writable: Callable[[str], bool]
) -> int:
    try:
        return _send_once(client, actions)
    except IndexInconsistent:
        # The index may have been replaced by another one since the last write.
        names = {action["_index"] for action in actions}
        is_deletion = all(action.get("_op_type") == "delete" for action in actions)
        if not [name for name in names if make_writable(name)] and not is_deletion:
            raise
        return _send_once(client, actions, may_be_gone=True)


def _send_once(
    client: Elasticsearch, actions: list[dict[str, Any]], *, may_be_gone: bool = False
) -> int:
    """Execute actions in one request; return their number.

    Args:
        may_be_gone: whether deletions from a missing index count as done. Otherwise a missing index
            is an error, because it may only lack its write alias.
    """
    action_count = 0
    aliased = (
        {**action, "_index": mapping.build_write_alias(action["_index"])} for action in actions
    )
    with translated_errors(client):
        for ok, item in streaming_bulk(
            client,
            aliased,
            # Otherwise Elasticsearch would create an index that was deleted in the meantime, with a
            # guessed mapping.
            require_alias=True,
            chunk_size=_BULK_ACTIONS,
            max_chunk_bytes=_BULK_BYTES,
            max_retries=5,
            initial_backoff=0.5,
            max_backoff=30,
            retry_on_status=TRANSIENT,
            raise_on_error=False,
            raise_on_exception=True,
        ):
            operation, result = next(iter(item.items()))
            is_missing = operation == "delete" and result["status"] == _NOT_FOUND
            if not ok and not (is_missing and (may_be_gone or "error" not in result)):
                raise build_bulk_item_error(result, client)
            action_count += 1
    return action_count


def require_usable(client: Elasticsearch, index_name: str) -> None:
    """Require that an index is searchable; a missing index passes.

    Raises:
        IndexUnavailable: the index is closed, blocked or red.
    """
    search = [build_search_header(index_name, None), {"size": 0, "terminate_after": 1}]
    with translated_errors(client, index_name):
        [answer] = client.msearch(searches=search)["responses"]
    if answer["status"] not in {_OK, _NOT_FOUND}:
        raise convert_response_error(answer["status"], answer, index_name, client=client)


def build_search_header(index_name: str, routing: str | None) -> dict[str, Any]:
    """Return the header of a search in a request with several searches.

    Partial results are refused: the hits of only some shards could be treated as all hits.
    """
    routed = {} if routing is None else {"routing": routing}
    return {"index": index_name, "allow_partial_search_results": False, **routed}
