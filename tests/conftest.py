"""Shared fixtures: one Postgres and one Elasticsearch per session, one installation per test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from tests.back_ends import BackEnd
from tests.databases import drop_template
from tests.installation import Installation, new_installation
from tests.installed_systems import hide_as_asked
from tests.rules import SHARED_RULES
from tests.servers import (
    SHARED_ELASTICSEARCH,
    SHARED_POSTGRES,
    elasticsearch_server,
    postgres_server,
    server_directory,
)


def pytest_configure(config: pytest.Config) -> None:
    """Give the workers of a session one Postgres, one Elasticsearch, and one set of rules."""
    hide_as_asked()
    gc.disable()  # The results of collection outlive all tests; see pytest_collection_finish.
    heed_signals()
    # A deadline per example would measure the machine's load. Examples are the same in each run, so
    # that a change is not blamed for unrelated ones; `make fuzz` takes others each time.
    explore = "RAG_ASSETS_FUZZ_EXAMPLES" in os.environ
    examples = 100 if explore else 40
    settings.register_profile(
        "project", deadline=None, derandomize=not explore, max_examples=examples
    )
    settings.load_profile("project")
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        servers = ExitStack()
        config.add_cleanup(servers.close)
        os.environ[SHARED_RULES] = servers.enter_context(TemporaryDirectory(prefix="rag-assets-"))
        for variable in (SHARED_POSTGRES, SHARED_ELASTICSEARCH):
            os.environ[variable] = str(servers.enter_context(server_directory()))


def pytest_collection_finish() -> None:
    """Exclude the results of collection from garbage collection: tests take a seventh less time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def heed_signals() -> None:
    """Restore the default handlers of the signals that stop servers, if our parent ignores them.

    Processes inherit ignored signals: each server of each test would run until it is killed, half a
    minute later.
    """
    usual = {signal.SIGINT: signal.default_int_handler}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual.get(number, signal.SIG_DFL))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url
        drop_template(url)


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    with elasticsearch_server() as url:
        yield url


@pytest.fixture
def installation(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path
) -> Iterator[Installation]:
    """Return a new, empty installation on the shared servers; it is removed afterwards."""
    with new_installation(tmp_path / "home", postgres_url, elasticsearch_url) as made:
        yield made


@pytest.fixture(scope="module")
def back_end(request: pytest.FixtureRequest) -> BackEnd:
    """Return the vector back end of the shared installation; see tests.back_ends."""
    chosen: BackEnd = getattr(request, "param", "elasticsearch")
    return chosen


@pytest.fixture(scope="module")
def shared_installation(
    postgres_url: str,
    elasticsearch_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    back_end: BackEnd,
) -> Iterator[Installation]:
    """Return an installation that the tests of one module share; each test uses its own tenant."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with new_installation(home, postgres_url, elasticsearch_url, back_end) as made:
        yield made
