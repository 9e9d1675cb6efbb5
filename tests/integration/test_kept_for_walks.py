"""Questions to a service that keeps what walks met: what it answers is what a new one answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_assets.retrieval import Retriever
from rag_assets.retrieval.model import SearchAnswer, SearchRequest
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.test_code_memory import FILES

TENANT = "kept-for-walks"
ABOUT = "how is an invoice stored"
NAMED = "What controller serves route invoices.store and which model does it touch?"
MODEL = "app/Models/Invoice.php"


@dataclass(frozen=True, slots=True)
class Service:
    """A retriever that is asked again and again."""

    driver: Driver
    root: Path
    retriever: Retriever

    def asked(self, query: str) -> list[tuple[str, str]]:
        """The hits of the kept retriever, which are those of a new one."""
        answer = self.retriever.search(TENANT, SearchRequest(query=query))
        assert shown(answer) == shown(self.asked_anew(query))
        return shown(answer)

    def asked_anew(self, query: str) -> SearchAnswer:
        with_nothing_kept = new_retriever(self.driver)
        try:
            return with_nothing_kept.search(TENANT, SearchRequest(query=query))
        finally:
            with_nothing_kept.close()

    def state(self) -> str:
        return self.driver.session.catalog.relations.moment(TENANT, ()).state.changes


def shown(answer: SearchAnswer) -> list[tuple[str, str]]:
    return [(hit.uri, hit.text) for hit in answer.hits]


def new_retriever(driver: Driver) -> Retriever:
    session = driver.session
    return Retriever(session.catalog, session.store, session.embedders)


@pytest.fixture
def service(shared_installation: Installation, driver: Driver) -> Iterator[Service]:
    root = shared_installation.home.parent / "sources" / TENANT
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    source = {"name": "repo", "root": str(root), "include": ["**/*.php", "**/*.md"]}
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[source],
    )
    driver.sync(TENANT)
    retriever = new_retriever(driver)
    yield Service(driver, root, retriever)
    retriever.close()


def test_answers_follow_what_changes(service: Service) -> None:
    for _ in range(3):  # The third one has relations in memory.
        first = service.asked(ABOUT)
        named = service.asked(NAMED)
    assert any(uri.endswith(MODEL) for uri, _ in first)

    # Entries are written anew, and no relation is another one.
    state = service.state()
    path = service.root / MODEL
    os.utime(path, (1_700_000_000, 1_700_000_000))
    service.driver.sync(TENANT)
    assert service.state() == state
    assert service.asked(ABOUT) == first
    assert service.asked(NAMED) == named

    path.write_text(path.read_text().replace("{\n", "{\n    // Stored once a day.\n", 1))
    service.driver.sync(TENANT)
    assert service.state() != state
    assert any("Stored once a day" in text for _, text in service.asked(ABOUT))
    service.asked(NAMED)

    path.unlink()
    service.driver.sync(TENANT)
    assert not any(uri.endswith(MODEL) for uri, _ in service.asked(ABOUT))
    service.asked(NAMED)
