"""Properties that an Elasticsearch server reports: version, distribution, Serverless or not.

Elastic Serverless manages nodes, shards and files itself. It answers no request about them, and
refuses index settings that concern them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError

_JSON: Final = {"accept": "application/json"}
_SECONDS: Final = 5
_RETRIES: Final = 1
_TRANSIENT: Final = (429, 502, 503, 504)
"""HTTP statuses after which a later request may be answered."""
_FORBIDDEN: Final = (401, 403)
_WITHOUT_MASTER: Final = "_na_"
"""The cluster id that a node reports before it has found a master."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The answer to `GET /`.

    Attributes:
        version: version of the server; None if the server does not state it.
        is_serverless: whether the server is Elastic Serverless.
        cluster_id: the id of the cluster; None if the server does not state it.
    """

    version: str | None = None
    is_serverless: bool = False
    cluster_id: str | None = None


class Server:
    """Asks a server for information about itself, and caches the answer.

    Args:
        client: a client of the server.
    """

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client.options(
            request_timeout=_SECONDS,
            max_retries=_RETRIES,
            retry_on_status=_TRANSIENT,
            retry_on_timeout=True,
        )
        self._info: ServerInfo | None = None

    def info(self) -> ServerInfo:
        """Return the server's answer; empty if it does not answer or this account may not ask.

        The embedded server has no `GET /`.

        Raises:
            UnsupportedProductError: the server is another product; see errors.translated_errors.
        """
        try:
            return self._fetch_info()
        except UnsupportedProductError:
            raise
        except (ApiError, TransportError):
            return ServerInfo()

    @property
    def is_serverless(self) -> bool:
        """Return whether the server is Elastic Serverless, which restricts what may be sent to it.

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
        info = _parse_info(answer)
        has_master = answer.get("cluster_uuid") != _WITHOUT_MASTER
        self._info = info if has_master else None
        return info


def read_distribution(body: object) -> str | None:
    """Return the product's name from the answer to `GET /`, if it is not Elasticsearch."""
    version = body.get("version") if isinstance(body, Mapping) else None
    named = version.get("distribution") if isinstance(version, Mapping) else None
    return named if isinstance(named, str) and named.isalnum() else None


def stated_cluster_id(text: str | None) -> str | None:
    """Return the id of a cluster; None if the node does not know it yet."""
    return None if text == _WITHOUT_MASTER else text


def _parse_info(answer: Mapping[str, Any]) -> ServerInfo:
    version = answer.get("version", {})
    return ServerInfo(
        version.get("number"),
        version.get("build_flavor") == "serverless",
        stated_cluster_id(answer.get("cluster_uuid")),
    )
