"""The questions of the description of code memory, without the embedding provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.billing.embedders import Embedders
from rag_assets.common.errors import ProviderUnavailable
from rag_assets.common.tokens import count_text
from rag_assets.models.chat import find_context_window
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.search import Retriever
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.code_memory.retrieval.walk import MAX_STEPS, Walker
from rag_assets.systems.code_memory.runs import Run, Runs, parse_events
from rag_assets.tenants.model import Tenant
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.unit.systems.code_memory.derived.test_documents import LARAVEL

TENANT = "asked-away"
LINKS = 12
CONTROLLER = "app/Http/Controllers/InvoiceController.php"
FILES = {
    **LARAVEL,
    CONTROLLER: """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Invoice;
class InvoiceController
{
    public function store(): Invoice
    {
        return Invoice::create([]);
    }
}
""",
    **{
        f"app/Chain/Link{number}.php": f"<?php\nnamespace App\\Chain;\nclass Link{number}\n{{\n"
        f"    public function go() {{ return (new Link{number + 1}())->go(); }}\n}}\n"
        for number in range(LINKS)
    },
}


class Away(Embedders):
    """An installation whose embedders cannot be reached, and must not be used."""

    asked = 0

    def get_embedder(self, ref: TenantRef, config: object) -> Embedder:
        return self._away()

    def get_generation_embedder(
        self, ref: TenantRef, tenant: Tenant, generation: Generation
    ) -> Embedder:
        return self._away()

    @staticmethod
    def _away() -> Embedder:
        Away.asked += 1
        raise ProviderUnavailable("the provider is away")


@pytest.fixture(scope="module")
def indexed(shared_installation: Installation, driver: Driver) -> Path:
    folder = shared_installation.home.parent / "sources" / TENANT
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = {"name": "repo", "root": str(folder), "include": ["**/*.php"]}
    shared_installation.add_tenant(
        TENANT, **FAST, profile="code-memory", organization="acme", project=TENANT, sources=[source]
    )
    driver.sync(TENANT)
    return folder


@pytest.fixture
def retriever(indexed: Path, shared_installation: Installation) -> Iterator[Retriever]:
    session = shared_installation.session()
    Away.asked = 0
    made = Retriever(session.catalog, session.store, Away(session.catalog, session.settings))
    yield made
    made.close()


def asked(retriever: Retriever, query: str, **given: object) -> SearchAnswer:
    answer = retriever.search(TENANT, SearchRequest.of(query=query, **given))
    assert Away.asked == 0, "no embedder is asked for"
    assert answer.debug is not None
    assert answer.debug.strategy == "walk"
    return answer


def test_what_serves_a_route_is_walked_to(retriever: Retriever) -> None:
    answer = asked(
        retriever,
        "What controller serves route invoices.store and which model and table does it touch?",
    )
    assert {
        ("route", "route:POST /invoices"),
        ("controller_method", "App\\Http\\Controllers\\InvoiceController::store"),
        ("model", "App\\Models\\Invoice"),
        ("table", "table:invoices"),
    } <= {(hit.source_type, hit.symbol) for hit in answer.hits}


def test_what_made_a_table_is_walked_to(retriever: Retriever) -> None:
    answer = asked(retriever, "Which migrations created or altered table invoices?")
    assert {hit.source_type for hit in answer.hits} == {"table", "migration"}


def test_what_runs_changed_is_walked_to(retriever: Retriever, driver: Driver) -> None:
    catalog = driver.session.catalog
    record, runs = catalog.tenants.get(TENANT), Runs(catalog.database)
    runs.put(record.ref, Run("r7", rag_enabled=True, model="gpt-4o"), by="ann")
    change = {"id": "e1", "kind": "file_updated", "path": CONTROLLER, "summary": "Totals rounded."}
    events = parse_events(json.dumps(change).encode())
    assert runs.receive(record.ref, Tenant.from_config(record.config), "r7", events) == 1
    driver.sync(TENANT)
    answer = asked(retriever, "What did previous runs change about InvoiceController?")
    told = [(hit.source_type, hit.text) for hit in answer.hits]
    assert any(kind == "file_change" and "Totals rounded." in text for kind, text in told), told


def test_a_question_for_anything_else_needs_the_provider(retriever: Retriever) -> None:
    """Without this, the other tests would prove nothing."""
    with pytest.raises(ProviderUnavailable):
        retriever.search(TENANT, SearchRequest(query="how is anything saved here"))
    assert Away.asked


@pytest.mark.parametrize("depth", [MAX_STEPS, MAX_STEPS + 1, 1_000])
def test_no_walk_goes_further_than_eight_steps(indexed: Path, driver: Driver, depth: int) -> None:
    start = "App\\Chain\\Link0::go"
    walk = Walker(driver.session.catalog).walk_from_name(
        TENANT, Caller(), start, direction="out", depth=depth
    )
    called = {relation.target for relation in walk.relations if relation.kind == "calls"}
    assert called == {f"App\\Chain\\Link{number}::go" for number in range(1, MAX_STEPS + 1)}


def test_hits_are_kept_to_the_share_of_the_models_window_with_whole_chains(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "What controller serves route invoices.store and which model does it touch?"
    whole = asked(retriever, question, model="gpt-4")
    assert whole.omitted == 0
    sizes = [count_text(hit.text) for hit in whole.hits]
    assert sum(sizes) < 0.4 * (find_context_window("gpt-4") or 0)
    for left_out in range(1, len(sizes)):
        window = int(sum(sizes[:-left_out]) / 0.4) + 1
        monkeypatch.setattr("rag_assets.search.progress.find_context_window", {"gpt-4": window}.get)
        narrow = asked(retriever, question, model="gpt-4")
        assert narrow.debug is not None
        assert sum(count_text(hit.text) for hit in narrow.hits) <= 0.4 * window
        assert narrow.omitted == len(sizes) - len(narrow.hits) > 0
        held = {hit.symbol for hit in narrow.hits}
        there = {hit.symbol for hit in whole.hits}
        for path in narrow.debug.paths:
            if path[-1] in held:
                assert set(path) & there <= held, "what leads to a hit is there with it"
