"""The servers that all integration tests share: one of each per session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import elasticsearch_server, postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    with elasticsearch_server() as url:
        yield url
