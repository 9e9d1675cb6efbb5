"""What tests share: one Postgres and one Elasticsearch per session, an installation per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installation import Installation, new_installation
from tests.servers import elasticsearch_server, postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    with elasticsearch_server() as url:
        yield url


@pytest.fixture
def installation(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path
) -> Iterator[Installation]:
    """An installation of its own on the shared servers, empty, removed afterwards."""
    with new_installation(tmp_path / "home", postgres_url, elasticsearch_url) as made:
        yield made


@pytest.fixture(scope="module")
def shared_installation(
    postgres_url: str, elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """An installation that the tests of one module share; each takes a tenant of its own."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with new_installation(home, postgres_url, elasticsearch_url) as made:
        yield made
