"""Runs of agents: their events, the documents made of them, and searches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.common.errors import InvalidRequest, UnknownRun
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.removals import seal_tombstones
from rag_assets.storage.catalog.erasure.retention import Cutoffs
from rag_assets.storage.catalog.journal.events import Event
from rag_assets.systems.code_memory.service import CodeMemory
from tests.databases import as_service
from tests.driving import Driver
from tests.installation import FAST, Installation

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
CONTROLLER = "app/Http/Controllers/InvoiceController.php"
FILES = {
    "app/Models/Invoice.php": "<?php\nnamespace App\\Models;\n"
    "class Invoice extends \\Illuminate\\Database\\Eloquent\\Model\n{\n}\n",
    CONTROLLER: "<?php\nnamespace App\\Http\\Controllers;\n"
    "use App\\Models\\Invoice;\nclass InvoiceController\n{\n"
    "    public function show(Invoice $invoice) { return $invoice; }\n}\n",
    "app/Providers/RouteServiceProvider.php": "<?php\nnamespace App\\Providers;\n"
    "class RouteServiceProvider extends \\Illuminate\\Support\\ServiceProvider\n{\n"
    "    public function boot() { $this->loadRoutesFrom(base_path('routes/web.php')); }\n}\n",
    "routes/web.php": "<?php\nuse App\\Http\\Controllers\\InvoiceController;\n"
    "use Illuminate\\Support\\Facades\\Route;\n"
    "Route::get('/invoices/{invoice}', [InvoiceController::class, 'show']);\n",
    "composer.json": '{"require": {"laravel/framework": "^11.0", "vendor/vue": "1"}}',
}
TENANT = "agents"
ON: dict[str, Any] = {"metadata_json": {"rag_enabled": True}, "model": "gpt-4o"}
CHANGE = {
    "id": "e1",
    "kind": "file_updated",
    "path": CONTROLLER,
    "action": "round totals",
    "summary": "Totals of an invoice are rounded to whole cents now.",
    "at": "2026-11-24T01:00:00Z",
}
SUMMARY = {"id": "e2", "kind": "final_summary", "summary": "Invoices are rounded everywhere."}


class Door:
    """Requests to the service with one token."""

    def __init__(self, client: TestClient, *tenants: str, **claims: Any) -> None:
        claims |= {"tenants": list(tenants), "sub": "ann", "exp": int(time.time()) + 3_000}
        self._client = client
        self.headers = {"Authorization": f"Bearer {jwt.encode(claims, SECRET)}"}

    def __call__(self, method: str, address: str, **given: Any) -> Any:
        url = f"/api/projects/{address}"
        return self._client.request(method, url, headers=self.headers, **given)

    def run(self, name: str, **body: Any) -> None:
        assert self("PUT", f"shop/runs/{name}", json=body or ON).status_code == 200

    def events(self, run: str, *events: Any) -> Any:
        lines = "\n".join(json.dumps(event) for event in events)
        return self("POST", f"shop/runs/{run}/events", content=lines.encode())

    def retrieve(self, query: str, run: str, **options: Any) -> Any:
        body = {"query": query, "run": run, "options": options}
        return self("POST", "shop/retrieve", json=body)


@pytest.fixture(scope="module")
def client(shared_installation: Installation, driver: Driver) -> Iterator[TestClient]:
    folder = shared_installation.home.parent / "sources" / TENANT
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = {"name": "repo", "root": str(folder), "include": ["**/*.php", "composer.json"]}
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


@pytest.fixture
def door(client: TestClient) -> Door:
    return Door(client, TENANT)


def journal(installation: Installation, kind: str, expected: int) -> list[Event]:
    """Wait for the expected number of events of a kind, which are written in the background."""
    catalog = installation.session().catalog
    deadline = time.monotonic() + 10
    while True:
        found = catalog.events.latest(TENANT, kind=kind)
        if len(found) >= expected or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_a_run_is_made_once_and_keeps_what_it_was_told_last(door: Door) -> None:
    answer = door("PUT", "shop/runs/first", json=ON)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"project": "shop", "run": "first", **ON}
    assert door("PUT", "shop/runs/first", json=ON).json() == answer.json()
    off = door("PUT", "shop/runs/first", json={"metadata_json": {"rag_enabled": False}})
    assert off.json()["metadata_json"] == {"rag_enabled": False}
    assert off.json()["model"] is None
    assert door("PUT", "shop/runs/plain", json={}).json()["metadata_json"] == {"rag_enabled": True}


def test_a_chunk_is_told_with_what_is_related_to_it(door: Door) -> None:
    door.run("related")
    types = ["model", "controller_method", "route"]
    answer = door.retrieve("show an invoice", "related", source_types=types).json()
    metadata_by_symbol = {one["symbol"]: one["metadata_json"] for one in answer["chunks"]}
    show, model = "App\\Http\\Controllers\\InvoiceController::show", "App\\Models\\Invoice"
    route = "route:GET /invoices/{invoice}"
    assert metadata_by_symbol[show] == {
        "framework": "laravel",
        "file_path": CONTROLLER,
        "line_range": [6, 7],
        "language": "php",
        "related_symbols": [model],
        "related_routes": [route],
        "related_tables": [],
        "paths": [f"repo/{CONTROLLER}"],
    }
    assert metadata_by_symbol[model]["related_tables"] == ["table:invoices"]
    assert show in metadata_by_symbol[model]["related_symbols"]
    assert (metadata_by_symbol[route]["framework"], metadata_by_symbol[route]["language"]) == (
        "laravel",
        None,
    )
    assert metadata_by_symbol[route]["related_symbols"] == [show]


def test_what_much_is_related_to_leaves_the_other_chunks_theirs(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.run("crowded")

    def crowded_answer() -> dict[str, Any]:
        types = ["model", "controller_method", "route"]
        chunks = door.retrieve("show an invoice", "crowded", source_types=types).json()["chunks"]
        return {chunk["symbol"]: chunk["metadata_json"] for chunk in chunks}

    whole = crowded_answer()
    assert len(whole) > 2
    monkeypatch.setattr("rag_assets.systems.code_memory.retrieval.view.MAX_EDGES", 3)
    assert crowded_answer() == whole


BAD_RUNS: dict[str, tuple[dict[str, Any], str]] = {
    "a text for whether": ({"metadata_json": {"rag_enabled": "yes"}}, "metadata_json.rag_enabled"),
    "an unknown field": ({"metadata_json": {"path": 1}}, "metadata_json.path"),
    "another field": ({"query": 1}, "query"),
    "no model": ({"model": ""}, "model"),
}


@pytest.mark.parametrize(("body", "field"), BAD_RUNS.values(), ids=list(BAD_RUNS))
def test_a_bad_run_names_the_field(door: Door, body: dict[str, Any], field: str) -> None:
    answer = door("PUT", "shop/runs/bad", json=body)
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_events_become_documents_that_say_which_run_changed_what(
    door: Door, client: TestClient, driver: Driver, shared_installation: Installation
) -> None:
    door.run("seven")
    assert door.events("seven", CHANGE, SUMMARY).json() == {"accepted": 2, "known": 0}
    again = {**CHANGE, "summary": "Something else."}
    more = {**CHANGE, "id": "e3", "path": "repo/app/Models/Invoice.php", "kind": "file_created"}
    answer = door.events("seven", again, SUMMARY, more, more)
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "known": 3})
    driver.sync(TENANT)

    found = door.retrieve("totals rounded to whole cents", "seven", source_types=["file_change"])
    chunks = found.json()["chunks"]
    first = next(chunk for chunk in chunks if chunk["title"].startswith("file_updated"))
    assert first["path"] == "repo.runs/file_change/seven/e1"
    assert first["repository"] == "repo"
    assert (first["symbol"], first["source_type"]) == ("run:seven", "file_change")
    assert "round totals" in first["text"]
    assert "Something else" not in first["text"]
    summaries = door.retrieve("invoices rounded", "seven", source_types=["run_summary"]).json()
    assert [one["path"] for one in summaries["chunks"]] == ["repo.runs/run_summary/seven/e2"]
    without = door.retrieve("totals rounded", "seven", include_run_summaries=False).json()
    assert without["chunks"]
    types = {one["source_type"] for one in without["chunks"]}
    assert types.isdisjoint({"file_change", "run_summary"})

    with shared_installation.session().catalog.database.begin() as connection:
        rows = connection.exec_driver_sql(
            "SELECT kind, stated_of, target FROM rag_catalog.edges"
            " WHERE tenant = %s AND kind = 'changed_by' ORDER BY stated_of",
            (TENANT,),
        ).all()
    assert [tuple(row) for row in rows] == [
        ("changed_by", f"file:{CONTROLLER}", "run:seven"),
        ("changed_by", "file:app/Models/Invoice.php", "run:seven"),
    ]
    asked = door.retrieve("What did previous runs change about InvoiceController?", "seven").json()
    assert asked["debug"]["strategy"] == "walk"
    paths = [one["path"] for one in asked["chunks"]]
    assert "repo.runs/file_change/seven/e1" in paths
    told_by = door("GET", "shop/relations", params={"name": "InvoiceController"}).json()
    [changed] = [one for one in told_by["edges"] if one["kind"] == "changed_by"]
    name = "App\\Http\\Controllers\\InvoiceController"
    assert (changed["source"], changed["target"]) == (name, "run:seven")
    assert changed["path"] == "repo.runs/file_change/seven/e1"

    indexed = journal(shared_installation, "rag_chunk_indexed", 5)
    payload_by_uri = {event.payload["uri"]: event.payload for event in indexed}
    assert payload_by_uri["repo.runs/file_change/seven/e1"]["chunks"] == [0]


def test_a_bad_line_leaves_nothing_behind(door: Door) -> None:
    door.run("half")
    answer = door.events("half", CHANGE, {**CHANGE, "id": "e2", "kind": "file_moved"})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["field"] == "2.kind"
    assert error["problem"].startswith("line 2: ")
    assert door.events("half", CHANGE).json() == {"accepted": 1, "known": 0}
    assert door("POST", "shop/runs/half/events", content=b"x" * (5 << 20)).status_code == 413


def test_ids_hold_no_credentials(door: Door) -> None:
    key = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    assert door("PUT", f"shop/runs/{key}", json=ON).status_code == 422
    door.run("clean")
    answer = door.events("clean", SUMMARY, {**CHANGE, "id": key})
    assert [one["field"] for one in answer.json()["errors"]] == ["2.id"]


def test_a_run_without_rag_searches_nothing(door: Door, shared_installation: Installation) -> None:
    door.run("off", metadata_json={"rag_enabled": False})
    loaded = len(journal(shared_installation, "ai_context_loaded", 0))
    answer = door.retrieve("which controller shows invoices?", "off").json()
    assert answer["rag"] is False
    assert answer["chunks"] == []
    assert answer["notice"] == "RAG is OFF for this run"
    newest = journal(shared_installation, "ai_context_loaded", loaded + 1)[0]
    assert newest.payload == {"run": "off", "caller": "jwt:ann", "rag": False}
    searched = journal(shared_installation, "rag_search_started", 0)
    assert "which controller shows invoices?" not in {one.payload["query"] for one in searched}


def test_what_a_run_was_given_is_recorded(door: Door, shared_installation: Installation) -> None:
    door.run("recorded")
    answer = door.retrieve("the model of invoices", "recorded", top_k=2, min_score=-1).json()
    assert 0 < len(answer["chunks"]) <= 2
    chunk = answer["chunks"][0]
    assert chunk["line_start"] >= 1
    assert chunk["text"]
    debug = answer["debug"]
    assert debug["total_candidates"] >= len(answer["chunks"])
    assert debug["scores"] == {one["id"]: one["score"] for one in answer["chunks"]}
    assert debug["latency_ms"] > 0
    assert debug["strategy"]

    def newest(kind: str) -> Any:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for event in journal(shared_installation, kind, 1):
                if event.payload.get("query") == "the model of invoices":
                    return event.payload
            time.sleep(0.05)
        raise AssertionError(kind)

    context = newest("ai_context_loaded")
    assert (context["rag"], context["run"], context["caller"]) == (True, "recorded", "jwt:ann")
    assert context["ids"] == [one["id"] for one in answer["chunks"]]
    assert context["scores"] == [one["score"] for one in answer["chunks"]]
    assert newest("rag_search_started")["search_id"] == newest("rag_search_completed")["search_id"]


def test_nothing_near_enough_asks_the_user(door: Door, shared_installation: Installation) -> None:
    door.run("asking")
    answer = door.retrieve("wholly unrelated matters of cooking", "asking", min_score=1.0).json()
    assert (answer["outcome"], answer["chunks"]) == ("clarify", [])
    [event] = journal(shared_installation, "paused_for_input", 1)[:1]
    assert event.payload["query"] == "wholly unrelated matters of cooking"
    assert event.payload["question"] == answer["question"]


def test_paths_of_a_question_rank_higher(door: Door) -> None:
    door.run("paths")
    for path in (CONTROLLER, f"repo/{CONTROLLER}"):
        answer = door.retrieve(
            "class", "paths", must_include_paths=[path], source_types=["model", "controller"]
        ).json()
        assert answer["chunks"][0]["path"] == f"repo/{CONTROLLER}"


BAD_QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no query": ({"run": "paths"}, "query"),
    "an empty query": ({"run": "paths", "query": " "}, "query"),
    "too many": ({"run": "paths", "query": "x", "options": {"top_k": 99}}, "options.top_k"),
    "a cosine": ({"run": "paths", "query": "x", "options": {"min_score": 2}}, "options.min_score"),
    "an unknown field": ({"run": "paths", "query": "x", "options": {"kind": 1}}, "options.kind"),
}


@pytest.mark.parametrize(("body", "field"), BAD_QUESTIONS.values(), ids=list(BAD_QUESTIONS))
def test_a_bad_question_names_the_field(door: Door, body: dict[str, Any], field: str) -> None:
    answer = door("POST", "shop/retrieve", json=body)
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_a_guest_writes_nothing_and_reads_nothing_for_its_being_public(
    door: Door, client: TestClient, driver: Driver
) -> None:
    driver.sync(TENANT)
    guest = Door(client, TENANT, role="guest")
    assert guest("PUT", "shop/runs/r", json=ON).status_code == 403
    assert guest.events("r", CHANGE).status_code == 403
    assert door("GET", "shop/symbols", params={"name": "InvoiceController"}).json()["symbols"]
    assert not guest("GET", "shop/symbols", params={"name": "InvoiceController"}).json()["symbols"]


def test_what_is_not_there_is_told(door: Door, client: TestClient) -> None:
    assert door.retrieve("x", "nobody").status_code == 404
    assert door.retrieve("x", "nobody").json()["type"].endswith("unknown-run")
    assert door.events("nobody", CHANGE).status_code == 404
    assert door("PUT", "unknown/runs/r", json=ON).status_code == 404
    both = Door(client, TENANT, f"{TENANT}-other")
    assert both("PUT", "plain/runs/r", json=ON).status_code == 409
    assert client.put("/api/projects/shop/runs/r", json=ON).status_code == 401


def test_a_project_is_indexed_again_without_paying_a_vector_twice(
    door: Door, client: TestClient, driver: Driver
) -> None:
    driver.sync(TENANT)
    assert door("POST", "shop/index-rag").status_code == 403
    admin = Door(client, TENANT, role="admin")
    answer = admin("POST", "shop/index-rag")
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert (body["tenant"], body["commit"], body["commits"]) == (TENANT, None, {})
    assert body["documents"] >= len(FILES)
    done = driver.sync(TENANT)
    assert done["parsed"] >= len(FILES)
    assert done["embedded"] == 0


def test_one_file_is_indexed_again_or_taken_out(
    door: Door, client: TestClient, driver: Driver
) -> None:
    driver.sync(TENANT)
    admin = Door(client, TENANT, role="admin")
    again = admin("POST", "shop/index-rag", json={"paths": [f"repo/{CONTROLLER}", "no/such.php"]})
    assert again.json()["documents"] == 1
    done = driver.sync(TENANT)
    assert (done["parsed"], done["embedded"]) == (1, 0)

    named = {"paths": ["app/Models/Invoice.php"]}
    assert door("POST", "shop/invalidate", json=named).status_code == 403
    gone = admin("POST", "shop/invalidate", json=named)
    assert (gone.status_code, gone.json()) == (202, {"tenant": TENANT, "documents": 1})
    door.run("after")
    found = door.retrieve("invoice", "after", source_types=["model"], min_score=-1).json()
    assert found["chunks"] == []
    empty = admin("POST", "shop/invalidate", json={"paths": []})
    assert [one["field"] for one in empty.json()["errors"]] == ["paths"]


@pytest.mark.parametrize("body", [{"paths": ["app/Models/Invoice.php"]}, None])
@pytest.mark.parametrize("synced_between", [True, False])
def test_index_rag_after_invalidate_reads_the_file_again(
    door: Door, client: TestClient, driver: Driver, body: Any, synced_between: bool
) -> None:
    admin = Door(client, TENANT, role="admin")
    admin("POST", "shop/index-rag", json={"paths": ["app/Models/Invoice.php"]})
    driver.sync(TENANT)
    gone = admin("POST", "shop/invalidate", json={"paths": ["app/Models/Invoice.php"]})
    assert gone.json()["documents"] == 1
    if synced_between:
        driver.sync(TENANT)
    again = admin("POST", "shop/index-rag", json=body)
    assert again.json()["documents"] >= 1
    driver.sync(TENANT)
    door.run("readmitted")
    found = door.retrieve("invoice", "readmitted", source_types=["model"], min_score=-1).json()
    assert [one["path"] for one in found["chunks"]] == ["repo/app/Models/Invoice.php"]


def project_of_files(
    installation: Installation, name: str, files: tuple[str, ...]
) -> tuple[str, Path]:
    """Add a project with files of these names; returns its tenant and its folder."""
    tenant = f"{TENANT}-{name}"
    folder = installation.home.parent / "sources" / tenant
    for file in files:
        write_model(folder, file)
    source = {"name": "repo", "root": str(folder), "include": ["**/*.php"]}
    installation.add_tenant(
        tenant, **FAST, profile="code-memory", organization="acme", project=name, sources=[source]
    )
    return tenant, folder


def write_model(folder: Path, file: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"<?php\nclass {Path(file).stem}\n{{\n}}\n")


def living_files(catalog: Catalog, tenant: str) -> dict[str, str]:
    """Return the ids of the documents of a project's source, by the names of their files."""
    return {
        document.uri.rpartition("/")[2]: document.document_id
        for document in catalog.documents.all(tenant)
        if document.source == "repo" and document.status != "DELETED"
    }


def test_index_rag_does_not_bring_back_a_purged_file(
    door: Door, client: TestClient, driver: Driver, shared_installation: Installation
) -> None:
    tenant, _ = project_of_files(shared_installation, "purged", ("Invoice.php",))
    driver.sync(tenant)
    catalog = shared_installation.session().catalog
    [known] = living_files(catalog, tenant).values()
    purged = shared_installation.command("purge", tenant, "--document", known, "--yes")
    assert purged.code == 0, purged.err
    Door(client, tenant, role="admin")("POST", "purged/index-rag")
    driver.sync(tenant)
    assert living_files(catalog, tenant) == {}


def test_index_rag_brings_back_only_what_was_invalidated(
    door: Door, client: TestClient, driver: Driver, shared_installation: Installation
) -> None:
    tenant, folder = project_of_files(shared_installation, "mixed", ("Pruned.php",))
    driver.sync(tenant)
    catalog = shared_installation.session().catalog
    ref, now = catalog.tenants.get(tenant).ref, datetime.now(UTC)
    due = Cutoffs({}, now + timedelta(days=1))
    assert catalog.erasures.begin_prune(ref, due, (), rule="age", by="a test", at=now) is not None
    driver.sync(tenant)
    for file in ("Deleted.php", "Both.php", "Restored.php", "Invalid.php"):
        write_model(folder, file)
    driver.sync(tenant)
    ids = living_files(catalog, tenant)
    assert ids.keys() == {"Deleted.php", "Both.php", "Restored.php", "Invalid.php"}

    admin = Door(client, tenant, role="admin")
    gone = admin("POST", "mixed/invalidate", json={"paths": [*ids.keys() - {"Deleted.php"}]})
    assert gone.json()["documents"] == 3
    for file in ("Deleted.php", "Both.php"):
        answer = client.delete(f"/rag/documents/{ids[file]}?tenant={tenant}", headers=admin.headers)
        assert answer.is_success, answer.text
    # The journal records a purge after the dump of the restored catalog.
    with catalog.database.begin() as connection:
        sealed = seal_tombstones(connection, ref, [ids["Restored.php"]])
    catalog.erasures.restore_tombstones(ref, sealed)
    admin("POST", "mixed/index-rag")
    driver.sync(tenant)
    assert living_files(catalog, tenant).keys() == {"Invalid.php"}


def test_a_program_asks_the_same_without_http(
    door: Door, driver: Driver, shared_installation: Installation
) -> None:
    door.run("silent", metadata_json={"rag_enabled": False})
    driver.sync(TENANT)
    session = shared_installation.session()

    async def ask() -> None:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        memory = CodeMemory(session.catalog, session.settings, retriever, TENANT)
        try:
            found = await memory.retrieve("show an invoice", {"top_k": 1, "min_score": -1})
            assert len(found.chunks) == 1
            assert (await memory.retrieve("x", run="silent")).notice == "RAG is OFF for this run"
            with pytest.raises(InvalidRequest, match="top_k"):
                await memory.retrieve("x", {"top_k": 0})
            with pytest.raises(UnknownRun):
                await memory.retrieve("x", run="nobody")
            assert memory.index_file(CONTROLLER).documents == 1
            assert memory.reindex().documents > 1
            assert memory.invalidate("no/such.php").documents == 0
        finally:
            await retriever.close()

    asyncio.run(ask())


def test_what_runs_did_to_files_is_read_by_who_may_read_them(
    client: TestClient, driver: Driver, shared_installation: Installation
) -> None:
    tenant = f"{TENANT}-scoped"
    folders = {name: shared_installation.home.parent / "sources" / name for name in ("hid", "pub")}
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.php").write_text(f"<?php\nclass {name.title()} {{}}\n")
    sources = [
        {"name": name, "root": str(folder), "include": ["**/*.php"]}
        | ({"scope": "finance"} if name == "hid" else {})
        for name, folder in folders.items()
    ]
    shared_installation.add_tenant(
        tenant, **FAST, profile="code-memory", organization="acme", project="vault", sources=sources
    )
    driver.sync(tenant)
    catalog = shared_installation.session().catalog
    catalog.access.grant(catalog.tenants.get(tenant).ref, "finance", ["group:bo"])
    change = {"kind": "file_updated", "summary": "Rates were changed."}
    events = [{**change, "id": name, "path": f"{name}.php"} for name in folders]
    ann, bo = Door(client, tenant), Door(client, tenant, groups=["bo"])
    assert ann("PUT", "vault/runs/r", json=ON).status_code == 200
    lines = "\n".join(map(json.dumps, events)).encode()
    assert ann("POST", "vault/runs/r/events", content=lines).json()["accepted"] == 2
    driver.sync(tenant)
    body = {"query": "rates changed", "run": "r", "options": {"source_types": ["file_change"]}}
    seen = {
        door: {one["path"] for one in door("POST", "vault/retrieve", json=body).json()["chunks"]}
        for door in (ann, bo)
    }
    assert seen[ann] == {"pub.runs/file_change/r/pub"}
    assert seen[bo] == {"pub.runs/file_change/r/pub", "hid.runs/file_change/r/hid"}
