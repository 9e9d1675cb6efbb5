"""The endpoints of code memory: who may ask what about which project."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
FILES = {
    "Invoice.php": "<?php\nnamespace App\\Models;\n"
    "class Invoice extends \\Illuminate\\Database\\Eloquent\\Model\n{\n}\n",
    "Http/Controllers/InvoiceController.php": "<?php\nnamespace App\\Http\\Controllers;\n"
    "use App\\Models\\Invoice;\nclass InvoiceController\n{\n"
    "    public function show(Invoice $invoice) { return $invoice; }\n}\n",
}
SHOW = "App\\Http\\Controllers\\InvoiceController::show"
TENANT = "doors"


class Door:
    """Requests to the service with one token."""

    def __init__(self, client: TestClient, *tenants: str, **claims: Any) -> None:
        claims |= {"tenants": list(tenants), "sub": "ann", "exp": int(time.time()) + 3_000}
        self._client = client
        self._headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}

    def get(self, address: str, **parameters: Any) -> Any:
        url = f"/api/projects/{address}"
        return self._client.get(url, params=parameters, headers=self._headers)


@pytest.fixture(scope="module")
def client(shared_installation: Installation, driver: Driver) -> Iterator[TestClient]:
    folder = shared_installation.home.parent / "sources" / TENANT
    (folder / "Http" / "Controllers").mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    source = {"name": "repo", "root": str(folder), "include": ["**/*.php"]}
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project="shop",
        sources=[source],
    )
    shared_installation.add_tenant(
        f"{TENANT}-other", **FAST, profile="team-guidelines", organization="acme", project="plain"
    )
    driver.sync(TENANT)
    session = shared_installation.session()
    catalog = as_service(session)
    retriever = AsyncRetriever(catalog, session.store, session.embedders)
    chat_models = ChatModels(catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(catalog, session.store, retriever, SETTINGS, chat_models, blobs=blobs)
    routers = [*installed_systems().load("routers").values()]
    with TestClient(build_app(backend, routers=routers)) as made:
        yield made


def test_relations_are_answered_with_their_evidence(client: TestClient) -> None:
    answer = Door(client, TENANT).get("shop/relations", name=SHOW, direction="out")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["complete"] is True
    assert [node["source_type"] for node in body["nodes"]] == ["controller_method", "model"]
    [edge] = body["edges"]
    assert (edge["kind"], edge["source"], edge["target"]) == (
        "uses_model",
        SHOW,
        "App\\Models\\Invoice",
    )
    assert (edge["path"], edge["line_start"]) == ("repo/Http/Controllers/InvoiceController.php", 6)
    assert edge["evidence"].startswith("public function show(Invoice $invoice)")


def test_symbols_are_answered_with_lines_and_hashes(client: TestClient) -> None:
    door = Door(client, TENANT)
    [found] = door.get("shop/symbols", name="InvoiceController@show").json()["symbols"]
    assert (found["name"], found["path"], found["line_start"]) == (
        SHOW,
        "repo/Http/Controllers/InvoiceController.php",
        6,
    )
    assert len(found["content_hash"]) == 64
    outline = door.get("shop/symbols", path="repo/Invoice.php").json()["symbols"]
    assert [node["name"] for node in outline] == ["App\\Models\\Invoice"]
    both = door.get(
        "shop/symbols", name="Invoice", path="repo/Http/Controllers/InvoiceController.php"
    )
    assert both.json() == {"symbols": []}


ANSWERS = {
    "what-touches": ({"symbol": "Invoice"}, "Http/Controllers/InvoiceController.php:6"),
    "impact-of": ({"symbol": "Invoice"}, "Http/Controllers/InvoiceController.php:6"),
    "tests-of": ({"path": "Invoice.php"}, "No test is found"),
    "who-serves": ({"route": "invoices.show"}, "Nothing that you may read has this name."),
    "outline": ({"path": "Invoice.php"}, "Invoice.php:3-5  model  App\\Models\\Invoice"),
    "history-of": ({"path": "Invoice.php"}, "its source is not a Git repository"),
    "rules-for": ({"path": "Invoice.php"}, "No rule, decision or document names these files."),
}


@pytest.mark.parametrize("path", ANSWERS)
def test_answers_for_agents_are_given_over_http(client: TestClient, path: str) -> None:
    parameters, expected = ANSWERS[path]
    answer = Door(client, TENANT).get(f"shop/{path}", **parameters)
    assert answer.status_code == 200, answer.text
    assert expected in answer.json()["answer"]
    assert Door(client, "elsewhere").get(f"shop/{path}", **parameters).status_code == 404


def test_projects_that_a_token_does_not_cover_are_unknown(client: TestClient) -> None:
    assert Door(client, "elsewhere").get("shop/relations", name="x").status_code == 404
    assert Door(client, TENANT).get("unknown/symbols", name="x").status_code == 404
    other = Door(client, TENANT, f"{TENANT}-other").get("plain/relations", name="x")
    assert other.status_code == 409
    assert other.json()["type"].endswith("no-code-memory")
    assert client.get("/api/projects/shop/relations", params={"name": "x"}).status_code == 401


REFUSED = {
    "no name": ("relations", {}),
    "an empty name": ("relations", {"name": ""}),
    "a zero byte": ("relations", {"name": "a\0b"}),
    "too deep": ("relations", {"name": "x", "depth": 9}),
    "no such direction": ("relations", {"name": "x", "direction": "up"}),
    "another parameter": ("relations", {"name": "x", "deep": 1}),
    "neither name nor path": ("symbols", {}),
    "nothing that is used": ("what-touches", {}),
    "nothing that is depended on": ("impact-of", {}),
    "nothing that is tested": ("tests-of", {}),
    "nothing that has a history": ("history-of", {}),
    "no route": ("who-serves", {"route": ""}),
    "no file": ("rules-for", {}),
    "an unknown parameter": ("outline", {"path": "x", "depth": 1}),
}


@pytest.mark.parametrize(("path", "parameters"), REFUSED.values(), ids=list(REFUSED))
def test_bad_questions_name_the_field(
    client: TestClient, path: str, parameters: dict[str, Any]
) -> None:
    answer = Door(client, TENANT).get(f"shop/{path}", **parameters)
    assert answer.status_code == 422, answer.text


def test_a_disabled_tenant_tells_nothing(
    client: TestClient, shared_installation: Installation
) -> None:
    door, catalog = Door(client, TENANT), shared_installation.session().catalog
    catalog.tenants.set_state(TENANT, "DISABLED")
    try:
        assert door.get("shop/relations", name=SHOW).json()["nodes"] == []
        assert door.get("shop/symbols", name="Invoice").json() == {"symbols": []}
    finally:
        catalog.tenants.set_state(TENANT, "ACTIVE")
    assert door.get("shop/relations", name=SHOW).json()["nodes"]
