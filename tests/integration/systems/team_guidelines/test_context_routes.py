"""The endpoints for prompts, as applications and their clients see them."""

from __future__ import annotations

import asyncio
import json
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
from rag_assets.client import AsyncClient, Client
from rag_assets.client.errors import Conflict, Forbidden, Invalid, NotFound
from rag_assets.common.errors import ConfigurationError
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from tests.databases import as_service
from tests.integration.api.conftest import running
from tests.integration.systems.team_guidelines.conftest import KEY, Guidelines

SECRET = "an example secret of more than 32 bytes"
SETTINGS = ServiceSettings(
    jwt=JwtSettings(secret=SECRET),
    rate=Rate.parse("100000/minute"),
    attempts=Rate.parse("100000/minute"),
)
NEAR = "# Locators\n\nUse data-testid attributes, cosine 0.90.\n"
"""To the server of these tests near to every task."""


def token(organization: str, role: str = "admin", **claims: Any) -> str:
    given = {"sub": "ada", "exp": int(time.time()) + 600, "organization": organization}
    return jwt.encode({**given, "role": role, **claims}, SECRET)


def backend(guidelines: Guidelines) -> Backend:
    session = guidelines.driver.session
    catalog = as_service(session)
    return Backend(
        catalog,
        session.store,
        AsyncRetriever(catalog, session.store, session.embedders),
        SETTINGS,
        ChatModels(catalog, session.settings),
        blobs=open_blobs(session.settings),
    )


class Service:
    """A service, and its callers."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def send(
        self, method: str, path: str, organization: str, role: str = "admin", **options: Any
    ) -> Any:
        headers = {"Authorization": f"Bearer {token(organization, role)}"}
        headers |= options.pop("headers", {})
        address = f"/api/projects/{path}"
        return self.client.request(method, address, headers=headers, **options)


@pytest.fixture(scope="module")
def service(guidelines: Guidelines) -> Iterator[Service]:
    systems = installed_systems()
    app = build_app(
        backend(guidelines),
        routers=[*systems.load("routers").values()],
        prompts=[*systems.load("prompts").values()],
    )
    with TestClient(app) as client:
        yield Service(client)


@pytest.fixture(scope="module")
def project(guidelines: Guidelines) -> str:
    guidelines.project("served", "web", a=NEAR)
    return "web"


def test_a_member_gets_the_context_of_a_task(service: Service, project: str) -> None:
    said = service.send(
        "POST", f"{project}/guidelines/context", "served", "member", json={"task": "locators"}
    )
    assert said.status_code == 200, said.text
    body = said.json()
    assert set(body) == {
        *("source", "section", "tokens", "chunks", "omitted", "threshold", "nearest"),
        *("embedder", "generation", "reason", "detail", "nearMisses", "latencyMs"),
    }
    assert body["section"].startswith("## Team Guidelines\n\n--- Passage [1] (source: a.md")
    [chunk] = body["chunks"]
    assert set(chunk) == {
        *("number", "documentId", "fileName", "chunkIndex", "chunkIndexes", "score", "page"),
        *("headingPath", "tokens", "trimmed", "rule"),
    }
    assert (chunk["fileName"], chunk["chunkIndex"]) == ("a.md", 0)
    assert (body["source"], body["reason"], body["nearMisses"]) == ("documents", None, None)


@pytest.mark.parametrize(
    ("role", "path", "body", "status", "kind"),
    [
        ("member", "web", {"task": "x", "explain": True}, 403, "forbidden"),
        ("admin", "web", {"task": "x", "explain": True}, 200, None),
        ("admin", "unknown", {"task": "x"}, 404, "unknown-project"),
        ("admin", "elsewhere", {"task": "x"}, 404, "unknown-project"),
        ("admin", "web", {"task": " "}, 422, "invalid-request"),
        ("admin", "web", {"task": "x", "topK": 6}, 422, "invalid-request"),
        ("admin", "web", {"task": "x", "tokenBudget": 2_001}, 422, "invalid-request"),
        ("admin", "web", {"task": "x" * 20_001}, 422, "invalid-request"),
        ("admin", "web", {"task": "x", "more": 1}, 422, "invalid-request"),
    ],
)
def test_only_what_the_caller_does_wrong_is_refused(
    guidelines: Guidelines,
    service: Service,
    project: str,
    role: str,
    path: str,
    body: dict[str, Any],
    status: int,
    kind: str | None,
) -> None:
    guidelines.put("others", "elsewhere")
    said = service.send("POST", f"{path}/guidelines/context", "served", role, json=body)
    assert said.status_code == status, said.text
    if kind is not None:
        assert said.json()["type"].endswith(f":{kind}")
    unsigned = service.client.post(f"/api/projects/{path}/guidelines/context", json=body)
    assert unsigned.status_code == 401


def test_a_search_of_any_kind_is_refused_while_guidelines_are_off(
    guidelines: Guidelines, service: Service
) -> None:
    record = guidelines.project("off", "web", a=NEAR)
    guidelines.switch("off", on=False)
    asked = len(guidelines.server.requests)
    headers = {"Authorization": f"Bearer {token('off')}"}
    question = {"tenant": record.id, "query": "locators"}
    said = service.client.post("/rag/query", json=question, headers=headers)
    assert (said.status_code, said.json()["type"]) == (403, "urn:rag-assets:problem:feature-off")
    context = service.send("POST", "web/guidelines/context", "off", json={"task": "locators"})
    assert context.json()["reason"] == "feature-off"
    assert len(guidelines.server.requests) == asked


def test_a_text_is_set_read_and_replaced_by_its_etag(
    guidelines: Guidelines, service: Service
) -> None:
    guidelines.put("worded", "web")

    def put(text: str, **headers: str) -> Any:
        return service.send(
            "PUT", "web/guidelines/text", "worded", json={"text": text}, headers=headers
        )

    none = service.send("GET", "web/guidelines/text", "worded")
    assert none.json() == {"text": "", "updatedBy": None, "updatedAt": None, "etag": None}
    assert "etag" not in none.headers
    assert put("one", **{"If-Match": "*"}).status_code == 412
    first = put("one")
    assert first.status_code == 200, first.text
    assert first.json()["updatedBy"] == "jwt:ada"
    etag = first.headers["etag"]
    read = service.send("GET", "web/guidelines/text", "worded")
    assert (read.json(), read.headers["etag"]) == (first.json(), etag)
    assert put("two").status_code == 428
    for stale in ('"another"', f"W/{etag}", "", "*, *"):
        assert put("two", **{"If-Match": stale}).status_code == 412
    second = put("two", **{"If-Match": f'"another", {etag}'})
    assert second.json()["text"] == "two"
    assert put("three", **{"If-Match": etag}).status_code == 412
    assert put("three", **{"If-Match": "*"}).status_code == 200
    context = service.send("POST", "web/guidelines/context", "worded", json={"task": "x"})
    assert context.json()["section"] == "## Team Guidelines\n\nthree"
    for method in ("GET", "PUT"):
        options = {"json": {"text": "x"}} if method == "PUT" else {}
        said = service.send(method, "web/guidelines/text", "worded", "member", **options)
        assert said.status_code == 403


def test_a_text_that_cannot_be_kept_is_refused(guidelines: Guidelines, service: Service) -> None:
    guidelines.put("refused", "web")
    for text, problem in (
        ("x" * 100_001, "it has 100,001 characters"),
        (f"one\nOPENAI_API_KEY={KEY}\n", "line 2: a credential (rule "),
        ("a\x00", "it contains a NUL character"),
    ):
        said = service.send("PUT", "web/guidelines/text", "refused", json={"text": text})
        assert said.status_code == 422
        [error] = said.json()["errors"]
        assert (error["field"], error["problem"].startswith(problem)) == ("text", True), error
        assert KEY not in said.text


def test_the_longest_text_may_come_as_escapes(guidelines: Guidelines, service: Service) -> None:
    guidelines.put("escaped", "web")
    headers = {"Content-Type": "application/json"}
    for characters, status in ((100_000, 200), (100_001, 422), (300_000, 413)):
        body = json.dumps({"text": "\N{SEAL}" * characters})
        said = service.send("PUT", "web/guidelines/text", "escaped", content=body, headers=headers)
        assert said.status_code == status, said.text[:500]
    kept = service.send("GET", "web/guidelines/text", "escaped").json()["text"]
    assert kept == "\N{SEAL}" * 100_000


def test_both_clients_put_guidelines_into_a_prompt(guidelines: Guidelines, project: str) -> None:
    guidelines.put("plain", "web")
    with running(backend(guidelines)) as address:
        member = Client(address, token("served", "member"), project=project)
        prompt = member.with_guidelines("You write tests.", "locators")
        assert prompt.startswith("You write tests.\n\n## Team Guidelines\n\n--- Passage [1]")
        context = member.guideline_context("locators", top_k=1, token_budget=100)
        assert context.chunks[0].file_name == "a.md"
        assert context.tokens <= 100
        with pytest.raises(Forbidden):
            member.guideline_context("locators", explain=True)
        with pytest.raises(Invalid):
            member.guideline_context("locators", top_k=6)
        with pytest.raises(NotFound):
            member.with_guidelines("You write tests.", "locators", project="unknown")
        with pytest.raises(Forbidden):
            member.guideline_text()
        member.close()
        with Client(address, token("plain")) as admin:
            with pytest.raises(ConfigurationError, match="needs a project"):
                admin.guideline_text()
            assert admin.with_guidelines("You write.", "x", project="web") == "You write."
            assert admin.guideline_text(project="web").etag is None
            first = admin.put_guideline_text("Be kind.", project="web")
            with pytest.raises(Conflict) as missing:
                admin.put_guideline_text("Be short.", project="web")
            assert missing.value.status == 428
            admin.put_guideline_text("Be short.", etag=first.etag, project="web")
            with pytest.raises(Conflict):
                admin.put_guideline_text("Be long.", etag=first.etag, project="web")

            guidelines.switch("plain", on=True)
            guidelines.give_key("plain")
            sent = admin.upload_guideline("a.md", NEAR.encode(), project="web")
            assert (sent.document.status, sent.duplicate) == ("PROCESSING", False)
            assert admin.upload_guideline("a.md", NEAR.encode(), project="web").duplicate
            id_ = sent.document.id
            assert [guideline.id for guideline in admin.all_guidelines(project="web", page=1)] == [
                id_
            ]
            assert admin.guidelines(project="web").key.source == "organization"
            assert admin.guideline(id_, project="web").file_name == "a.md"
            assert admin.delete_guideline(id_, project="web").outcome == "removed"
            assert not admin.guidelines(project="web", status="READY").documents
            guidelines.switch("plain", on=False)

        async def prompted() -> str:
            async with AsyncClient(address, token("plain", "member"), project="web") as client:
                return await client.with_guidelines("", "x")

        assert asyncio.run(prompted()) == "## Team Guidelines\n\nBe short."


def test_an_agent_is_offered_the_prompt(guidelines: Guidelines, service: Service) -> None:
    record = guidelines.project("agents", "web", a=NEAR)
    guidelines.put("agents", "bare")

    def call(tenant: str, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token('agents', 'member', tenants=['other'])}",
        }
        return service.client.post(f"/mcp/{tenant}", json=message, headers=headers).json()

    [listed] = call(record.id, "prompts/list")["result"]["prompts"]
    assert listed["name"] == "team_guidelines"
    assert [(a["name"], a["required"]) for a in listed["arguments"]] == [("task", True)]
    got = call(record.id, "prompts/get", name="team_guidelines", arguments={"task": "locators"})
    [message] = got["result"]["messages"]
    assert message["content"]["text"].startswith("## Team Guidelines\n\n--- Passage [1]")
    nothing = call("agents.bare", "prompts/get", name="team_guidelines", arguments={"task": "x"})
    assert nothing["result"]["messages"][0]["content"]["text"].startswith("The team has no")
    for wrong in (
        {"name": "team_guidelines", "arguments": {}},
        {"name": "team_guidelines", "arguments": {"task": " "}},
        {"name": "no-such-prompt-4711"},
    ):
        error = call(record.id, "prompts/get", **wrong)["error"]
        assert error["code"] == -32602
        assert "4711" not in error["message"]
    guidelines.installation.add_tenant("other", embedder={"provider": "deterministic"})
    guidelines.driver.sync("other")
    stranger = call("other", "prompts/get", name="team_guidelines", arguments={"task": "x"})
    assert "not a project with team guidelines" in stranger["error"]["message"]
