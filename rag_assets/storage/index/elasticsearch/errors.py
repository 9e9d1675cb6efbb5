"""Translation of Elasticsearch's errors into the project's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from elastic_transport import ConnectionError as TransportConnectionError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError

from rag_assets.common.errors import IndexInconsistent, ServiceUnavailable

TRANSIENT = (429, 502, 503, 504)
"""Statuses of transient failures."""

_UNAUTHORIZED = (401, 403)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the client's errors of an unavailable Elasticsearch into the project's.

    Raises:
        ServiceUnavailable: it does not answer, is overloaded, or rejects the account.
    """
    try:
        yield
    except (TransportConnectionError, ConnectionTimeout) as error:
        raise _unavailable(type(error).__name__) from None
    except ApiError as error:
        if error.status_code in TRANSIENT:
            raise _unavailable(f"status {error.status_code}") from None
        if error.status_code in _UNAUTHORIZED:
            raise ServiceUnavailable(
                f"Elasticsearch refuses the account (status {error.status_code})",
                hint="start it with `rag-assets up`, or check the account in ELASTICSEARCH_URL",
            ) from None
        raise
    except TransportError as error:
        raise _unavailable(type(error).__name__) from None


def _unavailable(reason: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"Elasticsearch does not answer ({reason})",
        hint="start it with `rag-assets up`, or check ELASTICSEARCH_URL",
    )


def bulk_item_error(result: Mapping[str, Any]) -> IndexInconsistent | ServiceUnavailable:
    """The error for a failed item of a bulk request."""
    status = int(result.get("status", 0))
    error = result.get("error")
    kind = error.get("type", "unknown") if isinstance(error, Mapping) else "unknown"
    if status in TRANSIENT:
        return _unavailable(f"status {status} on a bulk item")
    # The reason may quote the document, so only the error's type is passed on.
    return IndexInconsistent(
        f"Elasticsearch refused an entry of index {result.get('_index')!r}: {kind}",
        hint="the index's mapping may have been altered; `rag-assets check` compares it",
    )
