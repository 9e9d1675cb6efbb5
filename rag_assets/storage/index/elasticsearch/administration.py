"""Administration of indexes and aliases in Elasticsearch."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch, NotFoundError

from rag_assets.common.batches import batched
from rag_assets.common.disk_space import DiskSpace
from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.common.errors import IndexInconsistent, RagAssetsError
from rag_assets.storage.index.elasticsearch import mapping, queries
from rag_assets.storage.index.elasticsearch.entries import build_search_header, require_usable
from rag_assets.storage.index.elasticsearch.errors import (
    CONDITION_SETTINGS,
    convert_response_error,
    list_index_errors,
    translated_errors,
)
from rag_assets.storage.index.elasticsearch.mapping import create_index, iter_flat_settings
from rag_assets.storage.index.elasticsearch.ownership import Ownership
from rag_assets.storage.index.elasticsearch.server import list_node_disks
from rag_assets.storage.index.model import (
    BuildCount,
    CountedBuild,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    Presence,
    TenantView,
)

_PAGE_ENTRIES = 1_000
_MERGE_SECONDS = 3_600
_HISTORY_SECONDS = 90.0
_POLL_SECONDS = 0.25
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
_HTTP_UNAVAILABLE = 503

_MAX_NAMES_PER_REQUEST = 20
_CONDITION_SECONDS = 2.0


class ElasticsearchIndexes:
    """Administers indexes in Elasticsearch (see IndexAdministration).

    Args:
        shared_limit: when a shared index has this many entries, new generations use a new shared
            index.
    """

    def __init__(
        self,
        client: Elasticsearch,
        names: mapping.IndexNames,
        shared_limit: int,
        ownership: Ownership,
        layout: IndexLayout,
    ) -> None:
        self._client = client
        self._names = names
        self._shared_limit = shared_limit
        self._ownership = ownership
        self._server = ownership.server
        self._layout = layout

    def cluster_id(self) -> str | None:
        return self._ownership.cluster_id()

    def adopt(self, indexes: Mapping[str, str]) -> None:
        self._ownership.adopt(indexes)

    def take_over(self, former: UUID) -> None:
        self._ownership.take_over([*self._names.patterns, f"{self._names.notes_index}*"], former)

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        with translated_errors():
            if placement == "dedicated":
                name = self._names.dedicated(spec, tenant)
                if not self._fits(name, spec):
                    self.drop(name)  # has the name of the tenant's index, but another mapping
            else:
                name = self._find_shared_index_with_room(spec)
            self._create(name, spec)
            uuid = self._find_uuid(name)
        if uuid is None:
            raise IndexInconsistent(
                f"index {name!r} was deleted while it was being created",
                hint="run the sync again to create it",
            )
        return IndexRef(name, uuid)

    def presence(self, index: IndexRef) -> Presence:
        with translated_errors():
            presence = index.compute_presence(self._find_uuid(index.name))
        if presence != "present":
            self._ownership.forget(index.name)
        return presence

    def require_usable(self, index_name: str) -> None:
        require_usable(self._client, index_name)

    def conditions(self) -> list[RagAssetsError]:
        with translated_errors():
            is_serverless = self._server.is_serverless
        patterns = self._names.patterns
        return conditions(self._client, patterns, is_serverless=is_serverless)

    def list_layout_differences(self) -> list[str]:
        with translated_errors():
            is_serverless = self._server.is_serverless
            settings = self._client.indices.get_settings(
                index=self._names.patterns, flat_settings=True, expand_wildcards=["open", "closed"]
            )
        return [
            f"{name}: {', '.join(parts)}"
            for name in self.names()
            if name in settings
            and (
                parts := self._list_differing_settings(
                    name, settings[name]["settings"], is_serverless
                )
            )
        ]

    def _list_differing_settings(
        self, name: str, live: Mapping[str, str], is_serverless: bool
    ) -> list[str]:
        """Return descriptions of the settings that differ between this index and a new index."""
        body = {
            "index": mapping.build_index_settings(
                self._read_layout(name), is_serverless=is_serverless
            )
        }
        return [
            f"{setting} is {live.get(setting, 'not set')}, but {value} in a new index"
            for setting, value in iter_flat_settings(body)
            if live.get(setting) != str(value)
        ]

    def _read_layout(self, name: str) -> IndexLayout:
        """Return the layout that a new index of this name would get.

        All entries of a tenant are in one shard, so a tenant's dedicated index has a single shard.
        """
        return replace(self._layout, shards=1) if "-own-" in name else self._layout

    def count(self, builds: Sequence[CountedBuild]) -> list[BuildCount]:
        return count_builds(self._client, builds, self._names.alias)

    def vector_length(self, index_name: str) -> int | None:
        with translated_errors():
            try:
                answer = self._client.indices.get_mapping(index=index_name)
            except NotFoundError:
                return None
        fields = answer[index_name]["mappings"].get("properties", {})
        return int(fields.get("vector", {}).get("dims", 0))

    def fits(self, index_name: str, spec: IndexSpec) -> bool:
        with translated_errors():
            return self._fits(index_name, spec)

    def names(self) -> list[str]:
        return self._ownership.select(self._names.patterns)

    def dedicated(self, tenant: str) -> list[str]:
        return [name for name in self.names() if self._names.is_dedicated(name, tenant)]

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        sources = [
            {"tenant": {"terms": {"field": "tenant"}}},
            {"incarnation": {"terms": {"field": "incarnation"}}},
        ]
        owners: list[tuple[str, int]] = []
        composite: dict[str, Any] = {"size": _PAGE_ENTRIES, "sources": sources}
        with translated_errors():
            self._client.indices.refresh(index=index_name, ignore_unavailable=True)
            while True:
                try:
                    answer = self._client.search(
                        index=index_name, size=0, aggs={"owners": {"composite": composite}}
                    )["aggregations"]["owners"]
                except BadRequestError as error:
                    if error.error == "index_closed_exception":
                        raise
                    return []  # an index with another mapping, not created by this store
                owners += [(b["key"]["tenant"], b["key"]["incarnation"]) for b in answer["buckets"]]
                if "after_key" not in answer:
                    return owners
                composite = {**composite, "after": answer["after_key"]}

    def bytes_per_entry(self, index_name: str) -> float | None:
        with translated_errors():
            if self._server.is_serverless:
                return None
            try:
                stats = self._client.indices.stats(index=index_name, metric="docs,store")
            except NotFoundError:
                return None
        total = stats["_all"]["primaries"]
        # Deleted entries take up space until the file that contains them is rewritten.
        entries = total["docs"]["count"] + total["docs"]["deleted"]
        return total["store"]["size_in_bytes"] / entries if entries else None

    def drop(self, index_name: str) -> None:
        self._ownership.require(index_name)
        with translated_errors():
            self._client.indices.delete(index=index_name, ignore_unavailable=True)

    def expunge(self, index_name: str) -> int | None:
        self._ownership.require(index_name)
        with translated_errors():
            if self._server.is_serverless:
                return None
        # By default, files with at most a tenth of deleted entries are not rewritten.
        all_deleted = {"index.merge.policy.expunge_deletes_allowed": "0"}
        deadline = time.monotonic() + _HISTORY_SECONDS
        with translated_errors():
            try:
                if not (remaining := self._count_deleted(index_name)):
                    return 0
                self._client.indices.put_settings(index=index_name, settings=all_deleted)
                last_operations = self._read_last_operations(index_name)
                while remaining and time.monotonic() < deadline:
                    self._await_history(index_name, last_operations, deadline)
                    remaining = self._merge_deleted(index_name)
                    time.sleep(_POLL_SECONDS if remaining else 0.0)
            except NotFoundError:
                return 0
        return remaining

    def _merge_deleted(self, index_name: str) -> int:
        """Rewrite files that contain deleted entries; return how many deleted entries remain."""
        merging = self._client.options(request_timeout=_MERGE_SECONDS)
        self._client.indices.flush(index=index_name, wait_if_ongoing=True)
        merging.indices.forcemerge(index=index_name, only_expunge_deletes=True)
        # After the next commit, merged files and the transaction log of writes are removed.
        self._client.indices.flush(index=index_name, force=True, wait_if_ongoing=True)
        return self._count_deleted(index_name)

    def _await_history(self, index_name: str, written: Mapping[str, int], deadline: float) -> None:
        """Wait until no shard copy keeps deletions as history for recovery, or until a deadline.

        Elasticsearch checks this twice a minute, the embedded server every other second. Until
        then, a merge keeps deleted entries, and rewrites large files and their graphs for nothing.
        """
        while time.monotonic() < deadline:
            history = {
                shard: _get_history_start(stats) for shard, stats in self._iter_shards(index_name)
            }
            if all(history.get(shard, last + 1) > last for shard, last in written.items()):
                return
            time.sleep(_POLL_SECONDS)

    def _read_last_operations(self, index_name: str) -> dict[str, int]:
        """Return the sequence number of the last operation of each shard."""
        return {
            shard: int(stats["seq_no"]["max_seq_no"])
            for shard, stats in self._iter_shards(index_name)
        }

    def _iter_shards(self, index_name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield number and statistics of each shard's primary copy, if it has statistics."""
        stats = self._client.indices.stats(index=index_name, level="shards", metric="docs")
        for shards in (index["shards"] for index in stats["indices"].values()):
            for shard, copies in shards.items():
                yield from (
                    (shard, copy)
                    for copy in copies
                    if copy["routing"]["primary"] and "seq_no" in copy
                )

    def _count_deleted(self, index_name: str) -> int:
        self._client.indices.refresh(index=index_name)
        stats = self._client.indices.stats(index=index_name, metric="docs")
        return int(stats["_all"]["total"]["docs"]["deleted"])

    def view_name(self, tenant: str) -> str:
        return self._names.alias(tenant)

    def publish(self, index_name: str, owner: Owner) -> None:
        self._ownership.require(index_name)
        self._ownership.require_alias(self._names.alias(owner.tenant))
        add = {
            "index": index_name,
            "alias": self._names.alias(owner.tenant),
            "filter": self._build_filter(owner),
            "routing": owner.tenant,
        }
        actions: list[dict[str, Any]] = [
            {"remove": {"index": "*", "alias": alias, "must_exist": False}}
            for alias in self._names.aliases(owner.tenant)
            if self._ownership.has_alias(alias)
        ]
        with translated_errors():
            self._client.indices.update_aliases(actions=[*actions, {"add": add}])

    def withdraw(self, tenant: str) -> None:
        for alias in filter(self._ownership.has_alias, self._names.aliases(tenant)):
            with translated_errors():
                try:
                    self._client.indices.delete_alias(index="*", name=alias)
                except NotFoundError:
                    continue

    def is_published(self, index_name: str, owner: Owner) -> bool:
        return self._find_alias(owner.tenant) == (index_name, self._build_filter(owner))

    def view(self, tenant: str) -> TenantView | None:
        alias = self._find_alias(tenant)
        if alias is None:
            return None
        name = self._names.alias(tenant)
        tenants = tuple(sorted({owner for owner, _ in self.owners(name)}))
        return TenantView(name, is_tenant_filter(tenant, alias[1]), tenants)

    def _build_filter(self, owner: Owner) -> dict[str, Any]:
        return self._ownership.named(queries.build_entries_query(owner))

    def _find_alias(self, tenant: str) -> tuple[str, Mapping[str, Any]] | None:
        alias = self._names.alias(tenant)
        with translated_errors():
            try:
                answer = self._client.indices.get_alias(name=alias)
            except NotFoundError:
                return None
        for index_name, body in answer.items():
            return str(index_name), body["aliases"][alias].get("filter", {})
        return None

    def _find_uuid(self, index_name: str) -> str | None:
        try:
            settings = self._client.indices.get_settings(index=index_name, name="index.uuid")
        except NotFoundError:
            return None
        return str(settings[index_name]["settings"]["index"]["uuid"])

    def _fits(self, name: str, spec: IndexSpec) -> bool:
        try:
            answer = self._client.indices.get_mapping(index=name)
        except NotFoundError:
            return True
        return mapping.fits(answer[name]["mappings"], spec)

    def _find_shared_index_with_room(self, spec: IndexSpec) -> str:
        stem = self._names.shared_stem(spec)
        settings = self._client.indices.get_settings(index=f"{stem}*", name="index.uuid")
        # The stem of the default vector index is a prefix of the other stems, so match the number
        # too.
        numbered = re.compile(re.escape(stem) + r"(\d+)")
        numbers = sorted(int(m[1]) for name in settings if (m := numbered.fullmatch(name)))
        if not numbers:
            return f"{stem}1"
        newest = f"{stem}{numbers[-1]}"
        full = self._count_entries(newest) >= self._shared_limit
        # Writing to a deleted index would make Elasticsearch create it with a guessed mapping.
        usable = not full and self._fits(newest, spec)
        return newest if usable else f"{stem}{numbers[-1] + 1}"

    def _count_entries(self, name: str) -> int:
        """Return the number of entries in an index; wait for an index that was only just created.

        Elasticsearch reports it as unavailable until its first shard has started.
        """
        for pause in _PAUSES:
            try:
                return int(self._client.count(index=name)["count"])
            except ApiError as error:
                if error.status_code != _HTTP_UNAVAILABLE:
                    raise
            time.sleep(pause)
        return int(self._client.count(index=name)["count"])

    def _create(self, name: str, spec: IndexSpec) -> None:
        if not self._client.indices.exists(index=name):
            body = mapping.build_index_body(
                spec,
                self._ownership.meta,
                self._read_layout(name),
                is_serverless=self._server.is_serverless,
            )
            create_index(self._client, name, body, self._ownership.write_aliases(name))
        self._ownership.require(name)


def _get_history_start(shard: Mapping[str, Any]) -> int:
    """Return the sequence number of the oldest operation that some copy of a shard still needs."""
    leases = shard.get("retention_leases", {}).get("leases", [])
    following = int(shard["seq_no"]["global_checkpoint"]) + 1
    return min((int(lease["retaining_seq_no"]) for lease in leases), default=following)


def is_tenant_filter(tenant: str, query: Mapping[str, Any]) -> bool:
    """Return whether an alias's filter provably shows only entries of this tenant."""
    inner = query.get("bool")
    clauses = inner.get("filter") if isinstance(inner, Mapping) else None
    if not isinstance(clauses, Sequence):
        return False
    return any(_is_tenant_term(clause, tenant) for clause in clauses)


def _is_tenant_term(clause: object, tenant: str) -> bool:
    term = clause.get("term") if isinstance(clause, Mapping) else None
    value = term.get("tenant") if isinstance(term, Mapping) else None
    return value == tenant or (isinstance(value, Mapping) and value.get("value") == tenant)


def conditions(
    client: Elasticsearch, patterns: Sequence[str], *, is_serverless: bool = False
) -> list[RagAssetsError]:
    """Return the errors that requests for the indexes would raise, and errors for full disks.

    Each request waits two seconds at most.

    Args:
        is_serverless: whether the server is Serverless, where shards and disks are not visible.
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
    disks = [] if is_serverless else _list_disks(shortly)
    full = [disk.error for disk in disks if disk.is_nearly_full]
    return full + [
        error
        for name in sorted({*health, *settings})
        for error in list_index_errors(
            name,
            health.get(name, {}).get("status"),
            settings.get(name, {}).get("settings", {}),
            shortly,
        )
    ]


def _list_disks(client: Elasticsearch) -> list[DiskSpace]:
    """Return the disks of the nodes; empty if this account may not see them."""
    try:
        return list_node_disks(client)
    except (ApiError, TransportError):
        return []


def count_builds(
    client: Elasticsearch, builds: Sequence[CountedBuild], alias_of: Callable[[str], str]
) -> list[BuildCount]:
    """Count the entries of builds, in one request for all existing builds.

    Raises:
        IndexUnavailable: an index is closed, blocked or red.
    """
    uuids = _find_uuids(client, {build.index.name for build in builds})
    presence = [build.index.compute_presence(uuids.get(build.index.name)) for build in builds]
    searches: list[Mapping[str, Any]] = []
    for build, present in zip(builds, presence, strict=True):
        if present == "present":
            searches += _iter_count_searches(build, alias_of(build.owner.tenant))
    answers: Iterator[Mapping[str, Any]] = iter(())
    if searches:
        with translated_errors(client):
            answers = iter(client.msearch(searches=searches)["responses"])
    return [
        _read_build_count(build, answers) if present == "present" else BuildCount(present)
        for build, present in zip(builds, presence, strict=True)
    ]


def _find_uuids(client: Elasticsearch, names: Collection[str]) -> dict[str, str]:
    """Return the uuid of each of these indexes that exists, including closed indexes."""
    uuids: dict[str, str] = {}
    with translated_errors(client):
        for part in batched(sorted(names), _MAX_NAMES_PER_REQUEST):
            # With a wildcard in each name, missing indexes are left out.
            answer = client.indices.get_settings(
                index=[f"{name}*" for name in part],
                name="index.uuid",
                expand_wildcards=["open", "closed", "hidden"],
            )
            uuids |= {name: str(body["settings"]["index"]["uuid"]) for name, body in answer.items()}
    return uuids


def _iter_count_searches(build: CountedBuild, alias: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a multi-search request that counts a build's entries.

    For a serving build, a second search counts the entries that the tenant's alias shows.
    """
    owner = build.owner
    yield build_search_header(build.index.name, owner.tenant)
    yield queries.build_entry_count_search(owner, build.recent_keys)
    if build.is_serving:
        of_index = {"term": {"_index": build.index.name}}
        shown = {"filter": queries.build_entries_query(owner, [of_index])}
        yield build_search_header(alias, None)
        yield {"size": 0, "track_total_hits": True, "aggs": {"shown": shown}}


def _read_build_count(build: CountedBuild, answers: Iterator[Mapping[str, Any]]) -> BuildCount:
    """Return a build's count from the answers to the searches that _iter_count_searches yields."""
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
