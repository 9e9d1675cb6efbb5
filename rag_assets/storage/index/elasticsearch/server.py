"""Version, disk space and privileges that an Elasticsearch server reports, and a check of it.

Elastic Serverless manages nodes, shards and files itself. It answers no request about them, and
refuses index settings that concern them.

The roles here are minimal. `docs/elasticsearch.md` shows them, and a test runs the project with
exactly these roles against a server that enforces them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from elastic_transport import TransportError
from elasticsearch import ApiError, AsyncElasticsearch, Elasticsearch, UnsupportedProductError

from rag_assets.common.disk_space import DiskSpace
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch.errors import translated_errors

_JSON: Final = {"accept": "application/json"}
_SECONDS: Final = 5
_RETRIES: Final = 1
_TRANSIENT: Final = (429, 502, 503, 504)
"""HTTP statuses after which a later request may be answered."""
_FORBIDDEN: Final = (401, 403)
_NO_MASTER_ID: Final = "_na_"
"""The cluster id that a node reports before it has found a master."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The answer to `GET /`."""

    version: str | None = None
    is_serverless: bool = False
    cluster_id: str | None = None


class Server:
    """Requests version and id of a server's cluster once, and caches the answer."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client.options(
            request_timeout=_SECONDS,
            max_retries=_RETRIES,
            retry_on_status=_TRANSIENT,
            retry_on_timeout=True,
        )
        self._info: ServerInfo | None = None

    def info(self) -> ServerInfo:
        """Return the server's answer, or an empty one if it does not answer or refuses the account.

        The embedded server has no `GET /`.
        """
        try:
            return self._fetch_info()
        except UnsupportedProductError:
            raise
        except (ApiError, TransportError):
            return ServerInfo()

    @property
    def is_serverless(self) -> bool:
        """Return whether the server is Elastic Serverless, which accepts fewer requests.

        Raises:
            ApiError: the server is overloaded or not available, or is another product.
            TransportError: the server does not answer.
        """
        return self._fetch_info().is_serverless

    def _fetch_info(self) -> ServerInfo:
        if self._info is not None:
            return self._info
        try:
            body = self._client.perform_request("GET", "/", headers=_JSON).body
        except ApiError as error:
            if error.status_code in _TRANSIENT or isinstance(error, UnsupportedProductError):
                raise
            if error.status_code in _FORBIDDEN:
                return ServerInfo()
            body = {}
        answer: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        version, cluster_id = answer.get("version", {}), answer.get("cluster_uuid")
        info = ServerInfo(
            version.get("number"),
            version.get("build_flavor") == "serverless",
            parse_cluster_id(cluster_id),
        )
        self._info = None if cluster_id == _NO_MASTER_ID else info
        return info


def parse_cluster_id(text: str | None) -> str | None:
    """Return a cluster's id as stated by a node; None if the node does not know it yet."""
    return None if text == _NO_MASTER_ID else text


_DISK: Final = "cluster.routing.allocation.disk."
_FLOOD: Final = f"{_DISK}watermark.flood_stage"
_LEVELS: Final = ("defaults", "persistent", "transient")
_DEFAULT_FLOOD: Final = "95%"
_DEFAULT_HEADROOM: Final = "100gb"
_UNITS: Final = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?b)")


def list_node_disks(client: Elasticsearch) -> list[DiskSpace]:
    """Return the disk of each node; empty if the cluster's disk thresholds are disabled."""
    answer = client.cluster.get_settings(
        include_defaults=True, flat_settings=True, filter_path=[f"*.{_DISK}*"]
    )
    settings: dict[str, str] = {}
    for level in _LEVELS:
        settings |= answer.get(level, {})
    if settings.get(f"{_DISK}threshold_enabled") == "false":
        return []
    nodes = client.nodes.stats(metric="fs")["nodes"].values()
    return [
        DiskSpace(
            f"Elasticsearch (node {node.get('name', '?')})",
            int(total["available_in_bytes"]),
            compute_flood_stage_bytes(int(total["total_in_bytes"]), settings),
        )
        for node in nodes
        if (total := node.get("fs", {}).get("total"))
    ]


def compute_flood_stage_bytes(size: int, settings: Mapping[str, str]) -> int:
    """Return how many bytes of a disk must be free so that its indexes accept entries."""
    flood = settings.get(_FLOOD, _DEFAULT_FLOOD)
    if (absolute := _parse_bytes(flood)) is not None:
        return absolute
    used = float(flood.rstrip("%")) / (100 if flood.endswith("%") else 1)
    max_headroom = _parse_bytes(settings.get(f"{_FLOOD}.max_headroom", _DEFAULT_HEADROOM))
    required = int(size * (1 - used))
    return required if max_headroom is None else min(required, max_headroom)


def _parse_bytes(text: str) -> int | None:
    """Return a size like "100gb" in bytes; None if it is a percentage, or unlimited (-1)."""
    match = _SIZE.fullmatch(text.lower())
    return None if match is None else int(float(match[1]) * _UNITS[match[2]])


Purpose: TypeAlias = Literal["indexing", "searching"]
"""The purpose of an account; indexing includes searches."""
OLDEST_MAJOR: Final = 9
"""Major version of the oldest server that supports the mapping of vectors."""
_PRIVILEGES: Final[Mapping[Purpose, tuple[str, ...]]] = {
    "indexing": ("manage", "read", "index", "delete"),
    "searching": ("read", "view_index_metadata"),
}
_CHECK_SECONDS: Final = 10
_NO_SECURITY_STATUSES: Final = (400, 404, 405)
"""HTTP statuses with which a server without security answers, because it does not have this
request."""


@dataclass(frozen=True, slots=True)
class ElasticsearchCheck:
    """The result of check_elasticsearch.

    Attributes:
        flavor: "serverless" or "default".
        health: color of the installation's indexes; None if not visible or on Serverless.
        missing: privileges that the account lacks, by purpose; None if the server has no security.
    """

    nodes: str
    version: str | None
    flavor: str
    licence: str | None
    health: str | None
    missing: Mapping[str, list[str]] | None
    problems: list[str]
    warnings: list[str]


def build_role(purpose: Purpose, prefix: str) -> dict[str, Any]:
    """Return the smallest role of an account for indexing or only for searching."""
    index = {"names": [f"{prefix}-*"], "privileges": [*_PRIVILEGES[purpose]]}
    return {"cluster": ["monitor"], "indices": [index]}


def check_elasticsearch(
    connection: ElasticsearchConnection,
    prefix: str,
    purposes: Collection[Purpose] = ("indexing", "searching"),
) -> ElasticsearchCheck:
    """Check a server, and the account of a connection, without changing anything.

    Raises:
        ServiceUnavailable: no node answers, or the account is refused.
        IndexUnavailable: the server is not Elasticsearch.
    """
    options = connection.client_options()
    with Elasticsearch(**options, request_timeout=_CHECK_SECONDS, max_retries=1) as client:
        found = _Checker(client, connection, prefix, purposes).check()
    with translated_errors():
        asyncio.run(_connect_as_searches(connection))
    return found


async def _connect_as_searches(connection: ElasticsearchConnection) -> None:
    """Connect with the asynchronous client that searches use, which has a separate transport."""
    options = connection.client_options(is_async=True)
    async with AsyncElasticsearch(
        **options, request_timeout=_CHECK_SECONDS, max_retries=1
    ) as client:
        # The other client has already checked that the server accepts the account.
        with suppress(ApiError):
            await client.perform_request("GET", "/", headers={"accept": "application/json"})


class _Checker:
    """Checks a server step by step; a check that the account may not make becomes a warning."""

    def __init__(
        self,
        client: Elasticsearch,
        connection: ElasticsearchConnection,
        prefix: str,
        purposes: Collection[Purpose],
    ) -> None:
        self._client = client
        self._connection = connection
        self._prefix = prefix
        self._purposes = purposes
        self._problems: list[str] = []
        self._warnings: list[str] = []

    def check(self) -> ElasticsearchCheck:
        with translated_errors():
            server = Server(self._client)
            is_serverless, info = server.is_serverless, server.info()
            # This raises an error if no node answers, or if the account is refused.
            missing = self._find_missing_privileges()
        licence = self._find_licence()
        health = None
        if not is_serverless:
            self._check_version(info.version)
            health = self._try_reading("the health of the cluster", self._read_health)
            self._try_reading("the disks of the nodes", self._check_disks)
        return ElasticsearchCheck(
            nodes=self._connection.shown,
            version=info.version,
            flavor="serverless" if is_serverless else "default",
            licence=licence,
            health=health,
            missing=missing,
            problems=self._problems,
            warnings=self._warnings,
        )

    def _find_missing_privileges(self) -> dict[str, list[str]] | None:
        """Return the account's missing privileges, by purpose; None without security."""
        missing: dict[str, list[str]] = {}
        for purpose in self._purposes:
            role = build_role(purpose, self._prefix)
            try:
                answer = self._client.security.has_privileges(
                    cluster=role["cluster"], index=role["indices"]
                )
            except ApiError as error:
                if error.status_code in _NO_SECURITY_STATUSES:
                    self._warnings.append("the server has no security: the account is not checked")
                    return None
                raise
            granted = {**answer["cluster"]}
            for names, privileges in answer["index"].items():
                granted |= {f"{privilege} on {names}": has for privilege, has in privileges.items()}
            missing[purpose] = sorted(name for name, has in granted.items() if not has)
        for use, names in missing.items():
            if names:
                self._problems.append(
                    f"the account lacks privileges for {use}: {', '.join(names)};"
                    f" give it the role that `rag-assets elasticsearch role {use}` prints"
                )
        return missing

    def _check_version(self, version: str | None) -> None:
        if version is None:
            self._warnings.append("the server does not state its version")
        elif int(version.partition(".")[0]) < OLDEST_MAJOR:
            self._problems.append(
                f"Elasticsearch {version} is too old: upgrade it to {OLDEST_MAJOR} or later"
            )

    def _find_licence(self) -> str | None:
        """Return type and status of the licence; None if unknown. A Basic licence is sufficient."""
        try:
            licence = self._client.license.get()["license"]
        except (ApiError, TransportError, KeyError):
            return None
        if licence["status"] != "active":
            self._problems.append(
                f"the licence of Elasticsearch ({licence['type']}) is {licence['status']}:"
                " renew it, or go back to Basic, which has all features that are needed"
            )
        return f"{licence['type']}, {licence['status']}"

    def _read_health(self) -> str:
        health = self._client.cluster.health(
            index=f"{self._prefix}-*", expand_wildcards=["open", "closed"]
        )
        if health["status"] == "red":
            self._problems.append(
                "an index of the installation is red: see GET /_cluster/allocation/explain"
            )
        elif health["status"] == "yellow":
            self._warnings.append(
                "replicas of indexes are not assigned (yellow): a lost node loses their entries"
                " until the next sync; add a node, or set RAG_ASSETS_ELASTICSEARCH_REPLICAS=0"
            )
        return str(health["status"])

    def _check_disks(self) -> None:
        self._problems += [
            disk.error.advice for disk in list_node_disks(self._client) if disk.is_nearly_full
        ]

    def _try_reading(self, what: str, ask: Callable[[], str | None]) -> str | None:
        try:
            return ask()
        except (ApiError, TransportError) as error:
            self._warnings.append(f"{what} cannot be read ({type(error).__name__})")
            return None
