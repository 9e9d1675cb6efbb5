"""A long-running retriever, which caches data of walks, answers like a new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_assets.search import Retriever
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.systems.code_memory.test_searches import FILES

ABOUT = "how is an invoice stored"
NAMED = "What controller serves route invoices.store and which model does it touch?"
MODEL = "app/Models/Invoice.php"
HIDDEN = "inner/app/Services/Salaries.php"
SECRET = """<?php
namespace App\\Services;
use App\\Models\\Invoice;
class Salaries
{
    public function stored(Invoice $invoice): Invoice { return Invoice::create([]); }
}
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A retriever that is used for many searches."""

    driver: Driver
    tenant: str
    root: Path
    retriever: Retriever

    def asked(self, query: str, *principals: str) -> list[tuple[str, str]]:
        """Return the hits of the long-running retriever, which must equal those of a new one."""
        request = SearchRequest(query=query, caller=Caller(principals=principals))
        answer = self.retriever.search(self.tenant, request)
        with_nothing_kept = new_retriever(self.driver)
        try:
            assert shown(answer) == shown(with_nothing_kept.search(self.tenant, request))
        finally:
            with_nothing_kept.close()
        return shown(answer)

    def state(self) -> str:
        return (
            get_code_catalog(self.driver.session.catalog)
            .relations.read_readable_state(self.tenant, ())
            .state.changes
        )


def shown(answer: SearchAnswer) -> list[tuple[str, str]]:
    return [(hit.uri, hit.text) for hit in answer.hits]


def new_retriever(driver: Driver) -> Retriever:
    session = driver.session
    return Retriever(session.catalog, session.store, session.embedders)


@pytest.fixture
def service(
    shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest
) -> Iterator[Service]:
    tenant = request.node.name.removeprefix("test_").replace("_", "-")
    root = shared_installation.home.parent / "sources" / tenant
    for name, text in (FILES | {HIDDEN: SECRET}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    patterns = {"include": ["**/*.php", "**/*.md"]}
    sources = [
        {"name": "repo", "root": str(root), "exclude": ["inner/**"], **patterns},
        {"name": "inner", "root": str(root / "inner"), "scope": "inner", **patterns},
    ]
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=sources,
    )
    driver.sync(tenant)
    retriever = new_retriever(driver)
    yield Service(driver, tenant, root, retriever)
    retriever.close()


def test_answers_follow_what_changes(service: Service) -> None:
    for _ in range(3):  # the third one uses relations in memory
        first = service.asked(ABOUT)
        named = service.asked(NAMED)
    assert any(uri.endswith(MODEL) for uri, _ in first)

    # Entries are rewritten, but no relation changes.
    state = service.state()
    path = service.root / MODEL
    os.utime(path, (1_700_000_000, 1_700_000_000))
    service.driver.sync(service.tenant)
    assert service.state() == state
    assert service.asked(ABOUT) == first
    assert service.asked(NAMED) == named

    path.write_text(path.read_text().replace("{\n", "{\n    // Stored once a day.\n", 1))
    service.driver.sync(service.tenant)
    assert service.state() != state
    assert any("Stored once a day" in text for _, text in service.asked(ABOUT))
    service.asked(NAMED)

    path.unlink()
    service.driver.sync(service.tenant)
    assert not any(uri.endswith(MODEL) for uri, _ in service.asked(ABOUT))
    service.asked(NAMED)


def test_nobody_is_shown_what_was_kept_for_others(service: Service) -> None:
    catalog = service.driver.session.catalog
    with service.driver.locked(service.tenant) as ctx:
        catalog.access.grant(ctx.ref, "inner", ["board"])

    def sees(*principals: str) -> bool:
        told = [uri for about in (ABOUT, NAMED) for uri, _ in service.asked(about, *principals)]
        return any(uri.startswith("inner/") for uri in told)

    for _ in range(3):
        assert sees("board")
        assert not sees()
        assert not sees("staff")
    with service.driver.locked(service.tenant) as ctx:
        catalog.access.revoke(ctx.ref, "inner", ["board"])
    assert not sees("board")
