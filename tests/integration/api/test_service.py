"""The interface for applications: authentication, responses and refusals."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from rag_assets.api.app import build_app
from rag_assets.api.authentication import require_authentication
from rag_assets.api.backend import Backend
from rag_assets.api.identity import create_token
from rag_assets.api.rate_limits import Rate
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.common.errors import (
    IndexInconsistent,
    NoProviderKey,
    ProviderUnavailable,
    RagAssetsError,
)
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog import tables
from rag_assets.storage.index.elasticsearch import queries
from tests.integration.api.conftest import SECRET, Api


@contextmanager
def granted(api: Api, *principals: str) -> Iterator[None]:
    """Let these principals read the board's documents of acme within the block."""
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    catalog.access.grant(ref, "board", principals)
    try:
        yield
    finally:
        catalog.access.revoke(ref, "board", principals)


def service_token(api: Api, *principals: str, **options: Any) -> tuple[str, str]:
    """Create a service token of acme; return it with its id."""
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    given: dict[str, Any] = {"role": "member", "lifetime": None, **options}
    token, kept = create_token(catalog, ref, principals=principals, **given)
    return token, kept.token_id


def assert_problem(response: Any, status: int, kind: str) -> None:
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (status, kind)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == status
    assert response.json()["request_id"] == response.headers["x-request-id"]


def test_the_answer_is_the_one_of_the_core(api: Api) -> None:
    answer = api.ask(api.token(), mode="hybrid").json()
    core = api.core("acme", SearchRequest(query="valve", top_k=50))
    assert [hit["chunk_id"] for hit in answer["hits"]] == [hit.chunk_id for hit in core.hits]
    assert answer["hits"][0]["text"] == core.hits[0].text
    assert (answer["disabled"], answer["needs_clarification"]) == (False, False)


def test_grants_to_subject_and_groups_hold_at_once(api: Api) -> None:
    ada, member = api.token("ada"), api.token("eve", groups=["directors"])
    assert api.uris(ada) == api.uris(member) == {"public/acme.md"}
    with granted(api, "ada", "group:directors"):
        assert api.uris(ada) == api.uris(member) == {"public/acme.md", "board/acme.md"}
        assert api.uris(api.token("directors")) == {"public/acme.md"}
        assert len(api.get(ada, "/rag/documents").json()["documents"]) == 2
    assert api.uris(ada) == api.uris(member) == {"public/acme.md"}
    assert len(api.get(ada, "/rag/documents").json()["documents"]) == 1


def test_a_caller_in_the_body_is_refused(api: Api) -> None:
    response = api.ask(api.token(), caller={"principals": ["ada"]})
    assert_problem(response, 422, "invalid-request")
    assert response.json()["errors"][0] == {"field": "*", "problem": "there is no such field"}


def test_no_token_opens_another_tenant(api: Api) -> None:
    acme, both, none = api.token(), api.token("eve", "acme", "other"), api.token(tenants=[])
    for tenant in ("other", "missing", "acme*", "../other", "ACME", "acme,other", "%"):
        assert_problem(api.ask(acme, tenant=tenant), 403, "forbidden")
        assert_problem(api.get(acme, "/rag/documents", tenant=tenant), 403, "forbidden")
        assert_problem(api.get(acme, "/rag/status", tenant=tenant), 403, "forbidden")
    assert api.uris(acme, filters={"paths": ["public/other.md"]}) == set()
    assert api.uris(both, tenant="other") == {"public/other.md"}
    assert_problem(api.ask(both), 403, "forbidden")
    assert_problem(api.ask(none), 403, "forbidden")
    assert_problem(api.ask(api.token("eve", "gone")), 404, "unknown-tenant")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic ZXZlOg==", "Bearer rag_guessed", "Bearer a.b.c"],
)
def test_without_a_token_that_counts_nothing_is_answered(api: Api, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for method, path in (
        ("POST", "/rag/query"),
        ("GET", "/rag/documents"),
        ("GET", "/rag/status"),
    ):
        response = api.client.request(method, path, headers=headers)
        assert_problem(response, 401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_bad_jwts_stay_outside(api: Api) -> None:
    claims = {"sub": "eve", "tenants": ["acme"], "exp": 4_000_000_000}
    bad = [
        api.token(exp=1_000),
        api.token(nbf=4_000_000_000),
        api.token(iss="https://evil.example"),
        jwt.encode({**claims, "iss": "https://sign.example"}, "x" * 40),
        jwt.encode(claims, SECRET),
        jwt.encode(claims, None, algorithm="none"),  # type: ignore[arg-type]
    ]
    for token in bad:
        assert_problem(api.ask(token), 401, "unauthenticated")


def test_service_tokens_search_as_their_principal_until_they_are_revoked(api: Api) -> None:
    token, token_id = service_token(api, "bot")
    with granted(api, "bot"):
        assert api.uris(token) == {"public/acme.md", "board/acme.md"}
        assert_problem(api.ask(token, tenant="other"), 403, "forbidden")
        catalog = api.driver.session.catalog
        [kept] = [t for t in catalog.service_tokens.all("acme") if t.token_id == token_id]
        assert kept.last_used_at is not None
        assert token not in repr(kept)
        assert catalog.service_tokens.revoke(catalog.tenants.get("acme").ref, token_id)
        assert_problem(api.ask(token), 401, "unauthenticated")


def test_a_service_token_ends_by_itself(api: Api) -> None:
    token, _ = service_token(api, lifetime=timedelta(seconds=-1))
    assert_problem(api.ask(token), 401, "unauthenticated")


def test_without_a_key_only_service_tokens_count(api: Api) -> None:
    with TestClient(build_app(api.another(ServiceSettings()))) as client:
        other = replace(api, client=client)
        assert_problem(other.ask(api.token()), 401, "unauthenticated")
        assert other.ask(service_token(api)[0]).status_code == 200


def test_other_machines_are_let_near_only_with_authentication(api: Api) -> None:
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    for token in catalog.service_tokens.all("acme"):
        catalog.service_tokens.revoke(ref, token.token_id)
    require_authentication("127.0.0.1", None, catalog)
    require_authentication("0.0.0.0", JwtSettings(secret=SECRET), catalog)
    with pytest.raises(RagAssetsError, match="no authentication is configured"):
        require_authentication("0.0.0.0", None, catalog)
    service_token(api)
    require_authentication("0.0.0.0", None, catalog)


def test_a_disabled_tenant_is_reported(api: Api) -> None:
    response = api.ask(api.token("eve", "asleep"))
    assert response.status_code == 200
    assert (response.json()["disabled"], response.json()["hits"]) == (True, [])
    for path, disabled in (("/rag/documents", True), ("/rag/status", True)):
        assert api.get(api.token("eve", "asleep"), path).json()["disabled"] is disabled
        assert api.get(api.token("eve", "acme"), path).json()["disabled"] is not disabled


@pytest.mark.parametrize(
    ("error", "status", "kind", "is_reported"),
    [
        (NoProviderKey("no key", hint="set one"), 402, "no-provider-key", True),
        (
            ProviderUnavailable("host z is off", retry_after=7.2),
            503,
            "embedder-unavailable",
            False,
        ),
        (IndexInconsistent("index x of host y"), 503, "index-inconsistent", False),
        (ValueError("the text of a document"), 500, "internal", False),
    ],
)
def test_failures_are_problems_that_tell_what_to_do_and_nothing_of_our_servers(
    api: Api,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: int,
    kind: str,
    is_reported: bool,
) -> None:
    class Failing(AsyncRetriever):
        async def search(self, *_: Any, **__: Any) -> Any:
            raise error

    session = api.driver.session
    failing = Failing(session.catalog, session.store, session.embedders)
    settings = ServiceSettings(jwt=JwtSettings(secret=SECRET))
    chat_models = ChatModels(session.catalog, session.settings)
    backend = Backend(
        session.catalog,
        session.store,
        failing,
        settings,
        chat_models,
        blobs=open_blobs(session.settings),
    )
    with TestClient(build_app(backend)) as client, caplog.at_level(logging.INFO):
        response = replace(api, client=client, backend=backend).ask(api.token())
    assert_problem(response, status, kind)
    assert (str(error) in response.text) == is_reported
    assert ("set one" in response.text) == is_reported
    assert "the text of a document" not in caplog.text
    if isinstance(error, ProviderUnavailable):
        assert response.headers["retry-after"] == "8"


def test_documents_are_listed_page_by_page(api: Api) -> None:
    with granted(api, "ada"):
        first = api.get(api.token("ada"), "/rag/documents", limit=1).json()
        second = api.get(api.token("ada"), "/rag/documents", limit=1, after=first["next"]).json()
    assert [d["uri"] for d in first["documents"]] == ["board/acme.md"]
    assert [d["uri"] for d in second["documents"]] == ["public/acme.md"]
    assert second["next"] is None


def test_status_counts_what_waits_of_readable_documents(api: Api) -> None:
    def counts(**claims: Any) -> tuple[int, int, int]:
        said = api.get(api.token("eve", "other", **claims), "/rag/status").json()
        assert said["last_indexed_at"] is not None
        return said["chunks"], said["stale"], said["queue_depth"]

    assert (counts(), counts(role="admin")) == ((1, 0, 0), (2, 0, 0))
    session = api.driver.session
    folder = session.settings.home.parent / "sources" / "other"
    from rag_assets.pipeline.listing import list_documents

    for scope, shown in (("board", (1, 0, 0)), ("public", (1, 1, 1))):
        source = folder / scope / "other.md"
        former = source.read_text()
        source.write_text("# Valves\n\nAnother valve altogether.\n")
        with api.driver.locked("other") as ctx:
            list_documents(ctx, api.driver.scanner)
        assert (counts(), counts(role="admin")) == (shown, (2, 1, 1))
        source.write_text(former)
        api.driver.sync("other")
    assert (counts(), counts(role="admin")) == ((1, 0, 0), (2, 0, 0))


def test_a_credential_in_the_subject_of_a_token_is_recorded_nowhere(api: Api) -> None:
    secrets = [f"sk-proj-planted{letter}0123456789abcdefWXYZ" for letter in "AB"]
    shown = []
    for secret in secrets:
        assert api.ask(api.token(secret), query="A question of its own").status_code == 200
        until = time.monotonic() + 10
        while not (events := api.get(api.token(secret), "/rag/events").json()["events"]):
            assert time.monotonic() < until
        [caller] = {event["payload"]["caller"] for event in events}
        assert caller not in shown, "the searches of the other"
        shown.append(caller)
    admin = api.get(api.token("chief", role="admin"), "/rag/events", limit=1_000).text
    with api.backend.catalog.database.begin() as connection:
        stored = str(connection.execute(select(tables.events.c.payload)).all())
    for secret in secrets:
        assert not any(secret in one for one in (*shown, admin, stored))


def test_a_token_has_a_rate_of_its_own(api: Api) -> None:
    settings = ServiceSettings(jwt=JwtSettings(secret=SECRET), rate=Rate.parse("2/minute"))
    slow = api.another(settings)
    with TestClient(build_app(slow)) as client:
        other = replace(api, client=client, backend=slow)
        codes = [other.ask(api.token()).status_code for _ in range(3)]
        refused = other.ask(api.token())
        assert codes == [200, 200, 429]
        assert_problem(refused, 429, "too-many-requests")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert other.ask(api.token("ada")).status_code == 200


def test_large_requests_are_not_read(api: Api) -> None:
    headers = {"Authorization": f"Bearer {api.token()}", "Content-Type": "application/json"}
    whole = api.client.post("/rag/query", content=b"x" * 1_100_000, headers=headers)
    assert_problem(whole, 413, "too-large")
    parts = (b"x" * 100_000 for _ in range(11))
    assert_problem(api.client.post("/rag/query", content=parts, headers=headers), 413, "too-large")


def test_log_lines_name_the_caller_and_hold_no_content(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    token = api.token("ada")
    with caplog.at_level(logging.INFO, logger="rag_assets.api"):
        response = api.client.post(
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


def test_a_refusal_is_logged_with_its_caller(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"Authorization": f"Bearer {api.token('ada')}"}
    with caplog.at_level(logging.INFO, logger="rag_assets.api"):
        response = api.client.delete(f"/rag/documents/{'0' * 32}", headers=headers)
    assert response.status_code == 403
    [record] = caplog.records
    said = vars(record)
    assert (said["caller"], said["status"]) == ("jwt:ada", 403)
    assert str(said["route"]).endswith("/documents/{document_id}")


def test_health_and_figures_need_no_token(api: Api) -> None:
    assert api.client.get("/health/live").json() == {"status": "ok"}
    assert api.client.get("/health/ready").json() == {"status": "ok"}
    figures = api.client.get("/metrics").text
    assert 'rag_assets_http_requests_total{method="GET",route="/health/ready",status="200"}' in (
        figures
    )
    assert "acme" not in figures


def test_an_unavailable_server_makes_the_service_not_ready(api: Api) -> None:
    from rag_assets.storage.index.store import StoreConfig, open_store

    store = open_store(StoreConfig("http://127.0.0.1:9"))
    session = api.driver.session
    retriever = AsyncRetriever(session.catalog, store, session.embedders)
    chat_models = ChatModels(session.catalog, session.settings)
    backend = Backend(
        session.catalog,
        store,
        retriever,
        ServiceSettings(),
        chat_models,
        blobs=open_blobs(session.settings),
    )
    with TestClient(build_app(backend)) as client:
        response = client.get("/health/ready")
        assert_problem(response, 503, "unavailable")
        assert "127.0.0.1" not in response.text
        assert client.get("/health/live").status_code == 200
    store.close()


def test_principals_of_a_request_are_the_tokens_alone(api: Api) -> None:
    with granted(api, "ada"):
        caller = Caller(principals=("ada",))
        found = api.core("acme", SearchRequest(query="valve", caller=caller))
        assert {hit.uri for hit in found.hits} == {"public/acme.md", "board/acme.md"}
        for body in ({"principals": ["ada"]}, {"as": "ada"}, {"filters": {"caller": "ada"}}):
            assert_problem(api.ask(api.token(), **body), 422, "invalid-request")


def test_a_very_long_question_with_many_filters_is_answered(api: Api) -> None:
    question = " ".join(f"a{number:x}_B{number:x}" for number in range(1_400))
    paths = ["public/", *("\U0001f600" * 498 + f"{number:03}" for number in range(99))]
    filters = {"paths": paths, "tags": [f"t{number}" for number in range(100)]}
    for asked in (question, "".join(chr(0x4E00 + number) for number in range(9_990))):
        assert api.ask(api.token(), query=asked, mode="text", filters=filters).status_code == 200


def test_what_is_more_than_the_index_takes_is_no_reason_to_repair_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranking = queries.build_words_search

    def with_many_words(*arguments: Any) -> dict[str, Any]:
        search = ranking(*arguments)
        words = " ".join(f"{number:x}" for number in range(70_000))
        clause = {"query_string": {"query": words, "fields": ["text"]}}
        search["query"]["function_score"]["query"]["bool"]["should"].append(clause)
        return search

    monkeypatch.setattr(queries, "build_words_search", with_many_words)
    assert_problem(api.ask(api.token(), query="valve", mode="text"), 422, "search-rejected")
