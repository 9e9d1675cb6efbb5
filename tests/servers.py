"""Real servers for tests: those named in the environment, or embedded ones of this session's own.

    with postgres_server(folder) as url: ...

With TEST_DATABASE_URL or TEST_ELASTICSEARCH_URL set, that server is used and left running.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_assets.local_stack.elasticsearch import EmbeddedElasticsearch
from rag_assets.local_stack.postgres import EmbeddedPostgres


@contextmanager
def postgres_server(directory: Path) -> Iterator[str]:
    """A Postgres to test against, as a ``postgresql://`` URL."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = EmbeddedPostgres(directory)
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def elasticsearch_server(directory: Path, *, heap: str = "1g") -> Iterator[str]:
    """An Elasticsearch to test against, as an ``http://`` URL."""
    given = os.environ.get("TEST_ELASTICSEARCH_URL")
    if given:
        yield given
        return
    server = EmbeddedElasticsearch(directory, heap=heap)
    try:
        yield server.start()
    finally:
        server.stop()
