"""The door for applications: who comes in, what they get, and how they are refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.authentication import require_authentication
from rag_assets.api.backend import Backend
from rag_assets.api.rate_limits import Rate
from rag_assets.api.service_tokens import create_token
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.common.errors import (
    EmbedderUnavailable,
    IndexInconsistent,
    NoProviderKey,
    RagAssetsError,
)
from rag_assets.retrieval import AsyncRetriever
from rag_assets.retrieval.model import Caller, SearchRequest
from tests.integration.api.conftest import SECRET, Door


@contextmanager
def granted(door: Door, *principals: str) -> Iterator[None]:
    """The board's documents of acme may be read by these, meanwhile."""
    catalog = door.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    catalog.access.grant(ref, "board", principals)
    try:
        yield
    finally:
        catalog.access.revoke(ref, "board", principals)


def service_token(door: Door, *principals: str, **options: Any) -> tuple[str, str]:
    """A token of acme, and its id."""
    catalog = door.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    given: dict[str, Any] = {"role": "member", "lives": None, **options}
    token, kept = create_token(catalog, ref, principals=principals, **given)
    return token, kept.token_id


def assert_problem(response: Any, status: int, kind: str) -> None:
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (status, kind)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == status
    assert response.json()["request_id"] == response.headers["x-request-id"]


def test_the_answer_is_the_one_of_the_core(door: Door) -> None:
    answer = door.ask(door.token(), mode="hybrid").json()
    core = door.core("acme", SearchRequest(query="valve", top_k=50))
    assert [hit["chunk_id"] for hit in answer["hits"]] == [hit.chunk_id for hit in core.hits]
    assert answer["hits"][0]["text"] == core.hits[0].text
    assert (answer["disabled"], answer["needs_clarification"]) == (False, False)


def test_grants_to_subject_and_groups_hold_at_once(door: Door) -> None:
    ada, member = door.token("ada"), door.token("eve", groups=["directors"])
    assert door.uris(ada) == door.uris(member) == {"public/acme.md"}
    with granted(door, "ada", "group:directors"):
        assert door.uris(ada) == door.uris(member) == {"public/acme.md", "board/acme.md"}
        assert door.uris(door.token("directors")) == {"public/acme.md"}
        assert len(door.get(ada, "/rag/documents").json()["documents"]) == 2
    assert door.uris(ada) == door.uris(member) == {"public/acme.md"}
    assert len(door.get(ada, "/rag/documents").json()["documents"]) == 1


def test_a_caller_in_the_body_is_refused(door: Door) -> None:
    response = door.ask(door.token(), caller={"principals": ["ada"]})
    assert_problem(response, 422, "invalid-request")
    assert response.json()["errors"][0] == {"field": "*", "problem": "there is no such field"}


def test_no_token_opens_another_tenant(door: Door) -> None:
    acme, both, none = door.token(), door.token("eve", "acme", "other"), door.token(tenants=[])
    for tenant in ("other", "missing", "acme*", "../other", "ACME", "acme,other", "%"):
        assert_problem(door.ask(acme, tenant=tenant), 403, "forbidden")
        assert_problem(door.get(acme, "/rag/documents", tenant=tenant), 403, "forbidden")
        assert_problem(door.get(acme, "/rag/status", tenant=tenant), 403, "forbidden")
    assert door.uris(acme, filters={"paths": ["public/other.md"]}) == set()
    assert door.uris(both, tenant="other") == {"public/other.md"}
    assert_problem(door.ask(both), 403, "forbidden")
    assert_problem(door.ask(none), 403, "forbidden")
    assert_problem(door.ask(door.token("eve", "gone")), 404, "unknown-tenant")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic ZXZlOg==", "Bearer rag_guessed", "Bearer a.b.c"],
)
def test_without_a_token_that_counts_nothing_is_answered(door: Door, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for method, path in (
        ("POST", "/rag/query"),
        ("GET", "/rag/documents"),
        ("GET", "/rag/status"),
    ):
        response = door.client.request(method, path, headers=headers)
        assert_problem(response, 401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_bad_jwts_stay_outside(door: Door) -> None:
    claims = {"sub": "eve", "tenants": ["acme"], "exp": 4_000_000_000}
    bad = [
        door.token(exp=1_000),
        door.token(nbf=4_000_000_000),
        door.token(iss="https://evil.example"),
        jwt.encode({**claims, "iss": "https://sign.example"}, "x" * 40),
        jwt.encode(claims, SECRET),
        jwt.encode(claims, None, algorithm="none"),  # type: ignore[arg-type]
    ]
    for token in bad:
        assert_problem(door.ask(token), 401, "unauthenticated")


def test_service_tokens_ask_in_their_name_until_they_are_revoked(door: Door) -> None:
    token, token_id = service_token(door, "bot")
    with granted(door, "bot"):
        assert door.uris(token) == {"public/acme.md", "board/acme.md"}
        assert_problem(door.ask(token, tenant="other"), 403, "forbidden")
        catalog = door.driver.session.catalog
        [kept] = [t for t in catalog.service_tokens.all("acme") if t.token_id == token_id]
        assert kept.last_used_at is not None
        assert token not in repr(kept)
        assert catalog.service_tokens.revoke(catalog.tenants.get("acme").ref, token_id)
        assert_problem(door.ask(token), 401, "unauthenticated")


def test_a_service_token_ends_by_itself(door: Door) -> None:
    token, _ = service_token(door, lives=timedelta(seconds=-1))
    assert_problem(door.ask(token), 401, "unauthenticated")


def test_without_a_key_only_service_tokens_count(door: Door) -> None:
    with TestClient(build_app(door.another(ServiceSettings()))) as client:
        other = replace(door, client=client)
        assert_problem(other.ask(door.token()), 401, "unauthenticated")
        assert other.ask(service_token(door)[0]).status_code == 200


def test_other_machines_are_let_near_only_with_authentication(door: Door) -> None:
    catalog = door.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    for token in catalog.service_tokens.all("acme"):
        catalog.service_tokens.revoke(ref, token.token_id)
    require_authentication("127.0.0.1", None, catalog)
    require_authentication("0.0.0.0", JwtSettings(secret=SECRET), catalog)
    with pytest.raises(RagAssetsError, match="no authentication is configured"):
        require_authentication("0.0.0.0", None, catalog)
    service_token(door)
    require_authentication("0.0.0.0", None, catalog)


def test_a_disabled_tenant_says_so(door: Door) -> None:
    response = door.ask(door.token("eve", "asleep"))
    assert response.status_code == 200
    assert (response.json()["disabled"], response.json()["hits"]) == (True, [])
    for path, disabled in (("/rag/documents", True), ("/rag/status", True)):
        assert door.get(door.token("eve", "asleep"), path).json()["disabled"] is disabled
        assert door.get(door.token("eve", "acme"), path).json()["disabled"] is not disabled


@pytest.mark.parametrize(
    ("error", "status", "kind", "told"),
    [
        (NoProviderKey("no key", hint="set one"), 402, "no-provider-key", True),
        (
            EmbedderUnavailable("host z is off", retry_after=7.2),
            503,
            "embedder-unavailable",
            False,
        ),
        (IndexInconsistent("index x of host y"), 503, "index-inconsistent", False),
        (ValueError("the text of a document"), 500, "internal", False),
    ],
)
def test_failures_are_problems_that_tell_what_to_do_and_nothing_of_our_servers(
    door: Door,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    kind: str,
    told: bool,
) -> None:
    class Failing(AsyncRetriever):
        async def search(self, tenant_id: str, request: SearchRequest) -> Any:
            raise error

    session = door.driver.session
    failing = Failing(session.catalog, session.store, session.embedders)
    settings = ServiceSettings(jwt=JwtSettings(secret=SECRET))
    chat_models = ChatModels(session.catalog, session.settings)
    backend = Backend(session.catalog, session.store, failing, settings, chat_models)
    with TestClient(build_app(backend)) as client, caplog.at_level(logging.INFO):
        response = replace(door, client=client, backend=backend).ask(door.token())
    assert_problem(response, status, kind)
    assert (str(error) in response.text) == told
    assert ("set one" in response.text) == told
    assert "the text of a document" not in caplog.text
    if isinstance(error, EmbedderUnavailable):
        assert response.headers["retry-after"] == "8"


def test_documents_are_listed_page_by_page(door: Door) -> None:
    with granted(door, "ada"):
        first = door.get(door.token("ada"), "/rag/documents", limit=1).json()
        second = door.get(door.token("ada"), "/rag/documents", limit=1, after=first["next"]).json()
    assert [d["uri"] for d in first["documents"]] == ["board/acme.md"]
    assert [d["uri"] for d in second["documents"]] == ["public/acme.md"]
    assert second["next"] is None


def test_status_tells_what_waits(door: Door) -> None:
    before = door.get(door.token("eve", "other"), "/rag/status").json()
    assert (before["chunks"], before["stale"], before["queue_depth"]) == (2, 0, 0)
    assert before["last_indexed_at"] is not None
    session = door.driver.session
    source = session.settings.home.parent / "sources" / "other" / "public" / "other.md"
    former = source.read_text()
    from rag_assets.pipeline.listing import list_documents

    source.write_text("# Valves\n\nAnother valve altogether.\n")
    with door.driver.locked("other") as ctx:
        list_documents(ctx, door.driver._scanner)
    now = door.get(door.token("eve", "other"), "/rag/status").json()
    assert (now["chunks"], now["stale"], now["queue_depth"]) == (2, 1, 1)
    source.write_text(former)
    door.driver.sync("other")
    after = door.get(door.token("eve", "other"), "/rag/status").json()
    assert (after["stale"], after["queue_depth"]) == (0, 0)


def test_a_token_has_a_rate_of_its_own(door: Door) -> None:
    settings = ServiceSettings(jwt=JwtSettings(secret=SECRET), rate=Rate.parse("2/minute"))
    slow = door.another(settings)
    with TestClient(build_app(slow)) as client:
        other = replace(door, client=client, backend=slow)
        codes = [other.ask(door.token()).status_code for _ in range(3)]
        refused = other.ask(door.token())
        assert codes == [200, 200, 429]
        assert_problem(refused, 429, "too-many-requests")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert other.ask(door.token("ada")).status_code == 200


def test_large_requests_are_not_read(door: Door) -> None:
    headers = {"Authorization": f"Bearer {door.token()}", "Content-Type": "application/json"}
    whole = door.client.post("/rag/query", content=b"x" * 1_100_000, headers=headers)
    assert_problem(whole, 413, "too-large")
    parts = (b"x" * 100_000 for _ in range(11))
    assert_problem(door.client.post("/rag/query", content=parts, headers=headers), 413, "too-large")


def test_what_is_logged_tells_who_and_not_what(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    token = door.token("ada")
    with caplog.at_level(logging.INFO, logger="rag_assets.api"):
        response = door.client.post(
            "/rag/query",
            json={"query": "my password is hunter2"},
            headers={"Authorization": f"Bearer {token}", "X-Request-ID": "order-66"},
        )
    assert response.headers["x-request-id"] == "order-66"
    [record] = caplog.records
    said = json.dumps(vars(record), default=str)
    assert '"request_id": "order-66"' in said
    assert '"caller": "jwt:ada"' in said
    assert '"tenant": "acme"' in said
    assert "hunter2" not in said
    assert token not in said


def test_health_and_figures_need_no_token(door: Door) -> None:
    assert door.client.get("/health/live").json() == {"status": "ok"}
    assert door.client.get("/health/ready").json() == {"status": "ok"}
    figures = door.client.get("/metrics").text
    assert 'rag_assets_http_requests_total{method="GET",route="/health/ready",status="200"}' in (
        figures
    )
    assert "acme" not in figures


def test_a_server_that_is_away_makes_the_service_not_ready(door: Door) -> None:
    from rag_assets.storage.index.store import StoreConfig, open_store

    store = open_store(StoreConfig("http://127.0.0.1:9"))
    session = door.driver.session
    retriever = AsyncRetriever(session.catalog, store, session.embedders)
    chat_models = ChatModels(session.catalog, session.settings)
    backend = Backend(session.catalog, store, retriever, ServiceSettings(), chat_models)
    with TestClient(build_app(backend)) as client:
        response = client.get("/health/ready")
        assert_problem(response, 503, "unavailable")
        assert "127.0.0.1" not in response.text
        assert client.get("/health/live").status_code == 200
    store.close()


def test_principals_of_a_request_are_the_tokens_alone(door: Door) -> None:
    with granted(door, "ada"):
        caller = Caller(principals=("ada",))
        found = door.core("acme", SearchRequest(query="valve", caller=caller))
        assert {hit.uri for hit in found.hits} == {"public/acme.md", "board/acme.md"}
        for body in ({"principals": ["ada"]}, {"as": "ada"}, {"filters": {"caller": "ada"}}):
            assert_problem(door.ask(door.token(), **body), 422, "invalid-request")


def test_a_very_long_question_with_many_filters_is_answered(door: Door) -> None:
    question = " ".join(f"a{number:x}_B{number:x}" for number in range(1_400))
    paths = ["public/", *("\U0001f600" * 498 + f"{number:03}" for number in range(99))]
    filters = {"paths": paths, "tags": [f"t{number}" for number in range(100)]}
    for asked in (question, "".join(chr(0x4E00 + number) for number in range(9_990))):
        assert door.ask(door.token(), query=asked, mode="text", filters=filters).status_code == 200


def test_what_is_more_than_the_index_takes_is_no_reason_to_repair_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assets.storage.index.elasticsearch.query_limits.MOST_WORDS", 20_000)
    question = "".join(chr(0x4E00 + number) for number in range(19_990))
    assert_problem(door.ask(door.token(), query=question, mode="text"), 422, "search-rejected")
