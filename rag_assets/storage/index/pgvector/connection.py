"""Connections to the server of vectors, and its failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from rag_assets.common.errors import VectorsUnavailable

_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
SECONDS = 5.0
"""Timeout for a connection, or for a statement of a search."""
OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 3,
    "autocommit": True,
    "application_name": "rag-assets vectors",
    # The extension accepts these settings from its first use. With strict order, a scan continues
    # until enough rows pass the filters.
    "options": "-c hnsw.iterative_scan=strict_order -c hnsw.ef_search=200",
}
OF_A_BUILD = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)
"""Errors for a build whose tables were lost or have the columns of an earlier version."""
FAILURES = (psycopg.OperationalError, psycopg.InterfaceError, *OF_A_BUILD)
"""Errors that also occur when the server is not available."""


def driver_url(url: str) -> str:
    """Return the address in the driver's format."""
    return _SCHEME.sub("postgresql://", url)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Convert failures of the server to VectorsUnavailable."""
    try:
        yield
    except FAILURES as error:
        raise unavailable(error) from None


def unavailable(error: Exception) -> VectorsUnavailable:
    """Return the error for a server that does not answer, without the server's own message."""
    return VectorsUnavailable(
        f"the server of vectors does not answer: {type(error).__name__}",
        hint="check that Postgres is running, at RAG_ASSETS_PGVECTOR_URL if that is set",
    )
