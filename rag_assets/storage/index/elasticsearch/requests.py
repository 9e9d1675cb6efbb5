"""Bulk requests and paged searches, which need several calls of the client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, Elasticsearch, NotFoundError
from elasticsearch.helpers import streaming_bulk

from rag_assets.common.batches import batched
from rag_assets.common.disk_space import DiskSpace
from rag_assets.common.errors import IndexInconsistent, RagAssetsError
from rag_assets.storage.index.elasticsearch import mapping, queries
from rag_assets.storage.index.elasticsearch.disks import node_disks
from rag_assets.storage.index.elasticsearch.errors import (
    CONDITION_SETTINGS,
    TRANSIENT,
    bulk_item_error,
    convert_response_error,
    index_errors,
    translated_errors,
)
from rag_assets.storage.index.model import BuildCount, CountedBuild

_BULK_ACTIONS = 500
_BULK_THREADS = 2
_BULK_BYTES = 8 * 1024 * 1024
_PAGE = 1_000
_PAGE_WITH_VECTORS = 250
_BUCKETS = 5_000
_NAMES = 20
_REFRESH_SECONDS = 10.0
_CONDITION_SECONDS = 2.0
_OK, _NOT_FOUND = 200, 404


def bulk(
    client: Elasticsearch,
    actions: Iterable[dict[str, Any]],
    make_writable: Callable[[str], bool],
) -> int:
    """Execute actions in bounded requests, two at a time; return the number of actions.

    The result of several actions on one id must not depend on their order. Deleting a missing entry
    counts as done. All requests have ended when this returns or raises.

    Args:
        actions: actions in the format of the client's helpers.
        make_writable: adds an index's missing write alias; returns whether it was missing.

    Raises:
        IndexInconsistent: an action was rejected permanently.
        ServiceUnavailable: Elasticsearch does not answer, or stays overloaded.
    """
    parts = batched(actions, _BULK_ACTIONS)
    first = next(parts, [])
    if len(first) < _BULK_ACTIONS:
        return _send(client, first, make_writable)
    sender = ThreadPoolExecutor(_BULK_THREADS, thread_name_prefix="bulk")
    try:
        sent = deque([sender.submit(_send, client, first, make_writable)])
        done = 0
        for part in parts:
            sent.append(sender.submit(_send, client, part, make_writable))
            # One more request than there are threads may wait while the next one is prepared.
            if len(sent) > _BULK_THREADS:
                done += sent.popleft().result()
        return done + sum(part_sent.result() for part_sent in sent)
    finally:
        sender.shutdown(wait=True, cancel_futures=True)


def _send(
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
    """Execute actions in one request.

    Args:
        client, actions: see bulk.
        may_be_gone: whether deletions from a missing index count as done. Otherwise a missing index
            is an error, because it may only lack its write alias.
    """
    done = 0
    aliased = (
        {**action, "_index": mapping.alias_for_writes(action["_index"])} for action in actions
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
                raise bulk_item_error(result, client)
            done += 1
    return done


def pages(
    client: Elasticsearch,
    index_name: str,
    routing: str | None,
    query: Mapping[str, Any],
    fields: list[str],
    *,
    vectors: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """Yield every hit of a query, from one snapshot of the index; empty if it is missing.

    Args:
        client: a client of the cluster.
        index_name: the index to search.
        routing: the tenant with the shard to search; None searches all shards.
        query: the query.
        fields: the stored fields of each hit to return.
        vectors: whether to return vectors, too.

    Raises:
        ServiceUnavailable: Elasticsearch does not answer.
    """
    size = _PAGE_WITH_VECTORS if vectors else _PAGE
    asked: dict[str, Any] = {
        "query": query,
        "size": size,
        "source_includes": fields,
        "track_total_hits": False,
        # Otherwise the hits of only some shards could be treated as all hits.
        "allow_partial_search_results": False,
    }
    if vectors:
        asked["source_exclude_vectors"] = False
    with translated_errors():
        try:
            # Most queries have few hits: one request returns them all, from one snapshot.
            first = client.search(index=index_name, routing=routing, **asked)["hits"]["hits"]
            if len(first) < size:
                yield from first
                return
            pit = client.open_point_in_time(index=index_name, keep_alive="2m", routing=routing)[
                "id"
            ]
        except NotFoundError:
            return
        try:
            after = None
            while True:
                answer = client.search(
                    pit={"id": pit, "keep_alive": "2m"},
                    sort=[{"_shard_doc": "asc"}],
                    search_after=after,
                    **asked,
                )
                page = answer["hits"]["hits"]
                yield from page
                if len(page) < size:
                    return
                pit, after = answer["pit_id"], page[-1]["sort"]
        finally:
            client.close_point_in_time(id=pit)


def buckets(
    client: Elasticsearch,
    index_name: str,
    routing: str,
    query: Mapping[str, Any],
    fields: Sequence[str],
) -> Iterator[tuple[tuple[str | None, ...], int]]:
    """Yield every combination of values of these keyword fields with its number of hits.

    Args:
        client: a client of the cluster.
        index_name: the index to search; a missing index yields no combinations.
        routing: the tenant with the shard to search.
        query: the query.
        fields: names of the keyword fields.

    Raises:
        ServiceUnavailable: Elasticsearch does not answer.
    """
    sources = [{name: {"terms": {"field": name, "missing_bucket": True}}} for name in fields]
    composite: dict[str, Any] = {"size": _BUCKETS, "sources": sources}
    with translated_errors():
        while True:
            try:
                answer = client.search(
                    index=index_name,
                    routing=routing,
                    query=query,
                    size=0,
                    aggs={"found": {"composite": composite}},
                    allow_partial_search_results=False,
                )["aggregations"]["found"]
            except NotFoundError:
                return
            for bucket in answer["buckets"]:
                yield tuple(bucket["key"][name] for name in fields), bucket["doc_count"]
            if "after_key" not in answer:
                return
            composite = {**composite, "after": answer["after_key"]}


def refresh(client: Elasticsearch, index_name: str) -> None:
    """Make all writes to an index visible to searches, if the index exists.

    Raises:
        IndexUnavailable: the index is red; Elasticsearch would wait for a minute.
        ServiceUnavailable: Elasticsearch does not answer.
    """
    shortly = client.options(request_timeout=_REFRESH_SECONDS, max_retries=0)
    with translated_errors(client, index_name):
        try:
            shortly.indices.refresh(index=index_name, ignore_unavailable=True)
        except ConnectionTimeout:
            require_usable(client, index_name)
            client.indices.refresh(index=index_name, ignore_unavailable=True)


def require_usable(client: Elasticsearch, index_name: str) -> None:
    """Require that an index can be searched; a missing index passes.

    Raises:
        IndexUnavailable: the index is closed, blocked or red.
    """
    search = [_header(index_name, None), {"size": 0, "terminate_after": 1}]
    with translated_errors(client, index_name):
        [answer] = client.msearch(searches=search)["responses"]
    if answer["status"] not in {_OK, _NOT_FOUND}:
        raise convert_response_error(answer["status"], answer, index_name, client=client)


def conditions(
    client: Elasticsearch, patterns: Sequence[str], *, is_serverless: bool = False
) -> list[RagAssetsError]:
    """Return the errors that requests for indexes would raise, including a nearly full disk.

    Each request waits two seconds at most.

    Args:
        client: a client of the cluster.
        patterns: patterns of the indexes' names.
        is_serverless: whether the server is Serverless, where shards and disks are not visible.

    Raises:
        ServiceUnavailable: Elasticsearch does not answer.
    """
    shortly = client.options(request_timeout=_CONDITION_SECONDS, max_retries=0)
    options: dict[str, Any] = {"index": list(patterns), "expand_wildcards": ["open", "closed"]}
    with translated_errors():
        health: Mapping[str, Any] = {}
        if not is_serverless:
            health = shortly.cluster.health(**options, level="indices")["indices"]
        settings = shortly.indices.get_settings(
            **options, name=list(CONDITION_SETTINGS), flat_settings=True
        )
    disks = [] if is_serverless else _disks(shortly)
    full = [disk.error for disk in disks if disk.is_nearly_full]
    return full + [
        error
        for name in sorted({*health, *settings})
        for error in index_errors(
            name,
            health.get(name, {}).get("status"),
            settings.get(name, {}).get("settings", {}),
            shortly,
        )
    ]


def _disks(client: Elasticsearch) -> list[DiskSpace]:
    """Return the disks of the nodes; empty if this account may not see them."""
    try:
        return node_disks(client)
    except (ApiError, TransportError):
        return []


def count_builds(
    client: Elasticsearch, builds: Sequence[CountedBuild], alias_of: Callable[[str], str]
) -> list[BuildCount]:
    """Count the entries of builds, in one request for all existing builds.

    Args:
        client: a client of the cluster.
        builds: builds of any tenants.
        alias_of: returns the name of a tenant's alias.

    Raises:
        IndexUnavailable: an index is closed, blocked or red.
    """
    uuids = _uuids(client, {build.index.name for build in builds})
    presence = [build.index.compute_presence(uuids.get(build.index.name)) for build in builds]
    searches: list[Mapping[str, Any]] = []
    for build, present in zip(builds, presence, strict=True):
        if present == "present":
            searches += _counting(build, alias_of(build.owner.tenant))
    answers: Iterator[Mapping[str, Any]] = iter(())
    if searches:
        with translated_errors(client):
            answers = iter(client.msearch(searches=searches)["responses"])
    return [
        _build_count(build, answers) if present == "present" else BuildCount(present)
        for build, present in zip(builds, presence, strict=True)
    ]


def _uuids(client: Elasticsearch, names: Collection[str]) -> dict[str, str]:
    """Return the uuid of each of these indexes that exists, including closed indexes."""
    found: dict[str, str] = {}
    with translated_errors(client):
        for part in batched(sorted(names), _NAMES):
            # With a wildcard in each name, missing indexes are left out.
            answer = client.indices.get_settings(
                index=[f"{name}*" for name in part],
                name="index.uuid",
                expand_wildcards=["open", "closed", "hidden"],
            )
            found |= {name: str(body["settings"]["index"]["uuid"]) for name, body in answer.items()}
    return found


def _counting(build: CountedBuild, alias: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of the searches that count a build."""
    owner = build.owner
    yield _header(build.index.name, owner.tenant)
    yield queries.entry_count(owner, build.recent_keys)
    if build.is_serving:
        of_index = {"term": {"_index": build.index.name}}
        shown = {"filter": queries.entries(owner, [of_index])}
        yield _header(alias, None)
        yield {"size": 0, "track_total_hits": True, "aggs": {"shown": shown}}


def _build_count(build: CountedBuild, answers: Iterator[Mapping[str, Any]]) -> BuildCount:
    """Return the count of a build from the answers to its searches."""
    answer = next(answers)
    by_alias = next(answers) if build.is_serving else None
    if "error" in answer:
        raise convert_response_error(
            answer["status"], answer, build.index.name, tenant_id=build.owner.tenant
        )
    entries = answer["hits"]["total"]["value"]
    is_shown = by_alias is None or (
        "error" not in by_alias
        and by_alias["hits"]["total"]["value"] == entries
        and by_alias["aggregations"]["shown"]["doc_count"] == entries
    )
    recent = answer["aggregations"]["recent"]["doc_count"]
    return BuildCount("present", entries, recent, is_shown)


def _header(index_name: str, routing: str | None) -> dict[str, Any]:
    """Return the header of a search in a request with several searches.

    Partial results are refused: the hits of only some shards could be treated as all hits.
    """
    routed = {} if routing is None else {"routing": routing}
    return {"index": index_name, "allow_partial_search_results": False, **routed}
