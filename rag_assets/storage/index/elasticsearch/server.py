"""What an Elasticsearch says of itself: version, distribution, and whether it is Serverless.

Elastic Serverless manages nodes, shards and files by itself: it answers no request about them, and
refuses the settings of an index that concern them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError

_JSON: Final = {"accept": "application/json"}
_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The answer to `GET /`.

    Attributes:
        version: of the server; None if it does not state it.
        is_serverless: whether it is Elastic Serverless.
        cluster_id: the id of the cluster; None if it does not state it.
    """

    version: str | None = None
    is_serverless: bool = False
    cluster_id: str | None = None


class Server:
    """Asks a server once what it is.

    Args:
        client: of the server.
    """

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client.options(request_timeout=_SECONDS, max_retries=0)
        self._info: ServerInfo | None = None

    def info(self) -> ServerInfo:
        """Return what the server says of itself; nothing where it does not answer or may not.

        The embedded server has no `GET /`.

        Raises:
            UnsupportedProductError: it is another product; see errors.translated_errors.
        """
        if self._info is None:
            try:
                answer = self._client.perform_request("GET", "/", headers=_JSON).body
            except UnsupportedProductError:
                raise
            except ApiError as error:
                if error.status_code in _UNDECIDED:
                    return ServerInfo()
                answer = {}
            except TransportError:
                return ServerInfo()
            self._info = _info_of(answer)
        return self._info

    @property
    def is_serverless(self) -> bool:
        """Whether the server is Elastic Serverless."""
        return self.info().is_serverless


_UNDECIDED: Final = (401, 403, 429, 502, 503, 504)
"""Statuses after which the server may answer the next time."""


def distribution_of(body: object) -> str | None:
    """Return the name of another product than Elasticsearch, from its answer to `GET /`."""
    version = body.get("version") if isinstance(body, Mapping) else None
    named = version.get("distribution") if isinstance(version, Mapping) else None
    return named if isinstance(named, str) and named.isalnum() else None


def _info_of(body: object) -> ServerInfo:
    answer: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    version = answer.get("version", {})
    return ServerInfo(
        version.get("number"),
        version.get("build_flavor") == "serverless",
        answer.get("cluster_uuid"),
    )
