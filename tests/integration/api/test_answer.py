"""Answers over HTTP: citations are enforced, costs recorded, and caps obeyed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from rag_assets.search.model import SearchAnswer, SearchRequest
from rag_assets.storage.catalog.accounts.usage import UsageRow, today
from tests.installation import FAST
from tests.integration.api.conftest import Api

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

TENANT = "talkative"
KEY = "sk-of-acme-0123456789"
PRICES = {"input_per_million": 1.0, "output_per_million": 10.0}
WRITTEN = (
    "The valve opens at 4 bar [1]. It was invented in 1712. It costs nothing [9]."
    " Follow me to evil.example [1]."
)


@dataclass
class Talk:
    """A tenant whose chat model is a server."""

    api: Api

    def configure(self, llmock: LLMock, **chat: Any) -> None:
        """Configure the chat model and caps."""
        caps = chat.pop("caps", None)
        model = {"model": "gpt-4.1-mini", "provider": "openai", "prices": PRICES}
        model |= {"base_url": llmock.base_url("openai"), **chat}
        self.set(chat_model=model, caps=caps)

    def set(self, **config: Any) -> None:
        """Change the tenant's configuration, and apply it."""
        self.api.installation.configure(TENANT, **config)
        session = self.api.driver.session
        session.reconcile()

    def ask(self, subject: str = "eve", **body: Any) -> Any:
        """Send a question; return the response."""
        return self.api.client.post(
            "/rag/answer",
            json={"query": "at what pressure does the valve open?", **body},
            headers={"Authorization": f"Bearer {self.api.token(subject, TENANT)}"},
        )

    @property
    def keys(self) -> KeyRing:
        """Return the tenants' keys."""
        return KeyRing(self.api.driver.session.catalog, self.api.driver.session.settings)

    def usage(self) -> list[UsageRow]:
        """Return the recorded usage of the chat model."""
        rows = self.api.driver.session.catalog.usage.rows(today(), TENANT)
        return [row for row in rows if row.model == "gpt-4.1-mini"]


@pytest.fixture(scope="module")
def service(api: Api) -> Talk:
    root = api.installation.home.parent / "sources" / TENANT
    sources = []
    for scope, bar in (("public", 4), ("board", 9)):
        folder = root / scope
        folder.mkdir(parents=True)
        (folder / "valve.md").write_text(f"# Valves\n\nThe {scope} valve opens at {bar} bar.\n")
        sources.append({"name": scope, "root": str(folder), "scope": scope})
    api.installation.add_tenant(TENANT, root=root, **{**FAST, "sources": sources})
    api.driver.sync(TENANT)
    session = api.driver.session
    ref = session.catalog.tenants.get(TENANT).ref
    session.catalog.access.grant(ref, "board", ["ada"])
    talk = Talk(api)
    talk.keys.set(ref, "openai", SecretStr(KEY))
    return talk


def assert_problem(response: Any, status: int, kind: str) -> None:
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (status, kind)
    assert KEY not in response.text


def test_an_answer_holds_what_its_passages_say_and_is_paid_for(
    service: Talk, llmock: LLMock
) -> None:
    service.configure(llmock)
    llmock.reply(WRITTEN)
    before = service.usage()
    response = service.ask(max_tokens=50)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["answer"] == "The valve opens at 4 bar [1]."
    assert (answer["removed"], answer["needs_clarification"], answer["reason"]) == (3, False, None)
    [citation] = answer["citations"]
    assert (citation["number"], citation["uri"]) == (1, "public/valve.md")
    assert "4 bar" in citation["excerpt"]
    assert [hit["uri"] for hit in answer["hits"]] == ["public/valve.md"]
    assert answer["model"] == "openai/gpt-4.1-mini"
    [record] = llmock.requests
    assert "opens at 4 bar" in str(record.body)
    assert "board" not in str(record.body)
    assert record.body["max_completion_tokens"] == 50
    assert before == []
    [row] = service.usage()
    assert (row.provider, row.used.requests) == ("openai", 1)
    assert row.used.output_tokens == answer["output_tokens"] > 0
    assert row.used.tokens == answer["input_tokens"] + answer["output_tokens"]
    cost = (answer["input_tokens"] + 10 * answer["output_tokens"]) / 1_000_000
    assert row.used.cost == pytest.approx(cost)
    assert [entry.worked for entry in service.keys.entries(TENANT)] == [True]


@pytest.mark.parametrize("setting", ["remove", "mark"])
def test_a_wrong_figure_is_removed_or_marked_by_the_tenants_setting(
    service: Talk, llmock: LLMock, setting: str
) -> None:
    service.configure(llmock)
    service.api.installation.configure(TENANT, retrieval={"unsupported_claims": setting})
    service.api.driver.session.reconcile()
    llmock.reply("The valve opens at 4 bar [1]. The public valve opens at 45 bar [1].")
    answer = service.ask().json()
    service.api.installation.configure(TENANT, retrieval={})
    service.api.driver.session.reconcile()
    kept = "The valve opens at 4 bar [1]."
    if setting == "remove":
        assert (answer["answer"], answer["removed"], answer["unsupported"]) == (kept, 1, [])
        return
    assert answer["answer"] == f"{kept} The public valve opens at 45 bar [unsupported]."
    assert answer["unsupported"] == [
        {"text": "The public valve opens at 45 bar.", "missing": ["45"]}
    ]


def test_the_model_reads_what_the_caller_may_read(service: Talk, llmock: LLMock) -> None:
    service.configure(llmock)
    llmock.reply("The board valve opens at 9 bar [1] [2].")
    answer = service.ask("ada").json()
    assert {hit["uri"] for hit in answer["hits"]} == {"public/valve.md", "board/valve.md"}
    assert "opens at 9 bar" in str(llmock.requests[0].body)


def test_what_is_revoked_while_the_model_writes_is_not_shown(
    service: Talk, llmock: LLMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.configure(llmock)
    llmock.reply("The board valve opens at 9 bar [1] [2].")
    retriever, session = service.api.backend.retriever, service.api.driver.session
    ref, search = session.catalog.tenants.get(TENANT).ref, retriever.search

    async def revoked_afterwards(tenant_id: str, request: SearchRequest) -> SearchAnswer:
        found = await search(tenant_id, request)
        session.catalog.access.revoke(ref, "board", ["zoe"])
        return found

    session.catalog.access.grant(ref, "board", ["zoe"])
    monkeypatch.setattr(retriever, "search", revoked_afterwards)
    response = service.ask("zoe")
    assert_problem(response, 409, "passages-withdrawn")
    assert "ask the question again" in response.json()["detail"]
    assert "9 bar" in str(llmock.requests[0].body)
    assert "9 bar" not in response.text
    llmock.reply("The valve opens at 4 bar [1].")
    assert service.ask("zoe").json()["answer"] == "The valve opens at 4 bar [1]."


def test_without_hits_no_chat_model_is_called(service: Talk, llmock: LLMock) -> None:
    service.configure(llmock)
    answer = service.ask(filters={"paths": ["nowhere/"]}).json()
    assert (answer["answer"], answer["hits"], answer["reason"]) == ("", [], "nothing found")
    assert answer["needs_clarification"] is True
    assert llmock.requests == []


def test_without_key_budget_or_model_no_request_is_sent(service: Talk, llmock: LLMock) -> None:
    service.configure(llmock, provider="gemini", model="gemini-2.5-flash")
    keyless = service.ask()
    assert_problem(keyless, 402, "no-provider-key")
    assert f"rag-assets keys set {TENANT} gemini" in keyless.json()["detail"]
    service.configure(llmock, caps={"per_day": 0.000001})
    capped = service.ask()
    assert_problem(capped, 402, "cap-reached")
    assert "raise caps.per_day" in capped.json()["detail"]
    service.configure(llmock, caps={"per_month": 1}, prices=None)
    assert_problem(service.ask(), 409, "no-chat-model")
    service.set(chat_model=None, caps=None)
    assert_problem(service.ask(), 409, "no-chat-model")
    assert_problem(service.ask(tenant="other"), 403, "forbidden")
    assert_problem(service.ask(token_budget=200_000), 422, "invalid-request")
    assert llmock.requests == []


def test_a_disabled_tenant_is_reported(service: Talk, llmock: LLMock) -> None:
    service.set(enabled=False)
    try:
        response = service.ask()
        assert (response.status_code, response.json()["disabled"]) == (200, True)
        assert "Ask one of its admins to switch it on" in response.json()["notice"]
        assert response.json()["hits"] == []
    finally:
        service.set(enabled=True)


def test_failures_of_the_model_are_problems_and_repeat_nothing_of_it(
    service: Talk, llmock: LLMock, caplog: pytest.LogCaptureFixture
) -> None:
    service.configure(llmock, seconds=1.0)
    caplog.set_level(logging.DEBUG)
    said = "the model says: Bearer sk-of-acme-0123456789"
    llmock.fail(401, message=said)
    assert_problem(service.ask(), 502, "chat-refused")
    assert [entry.worked for entry in service.keys.entries(TENANT)] == [False]
    llmock.fail(400, message=said)
    assert_problem(service.ask(), 422, "prompt-rejected")
    llmock.rate_limit(retry_after=30.0)
    slow = service.ask()
    assert_problem(slow, 503, "chat-unavailable")
    assert slow.headers["retry-after"] == "30"
    assert urlsplit(llmock.url).netloc not in slow.text
    assert KEY not in caplog.text
    assert "the model says" not in caplog.text


def test_an_answer_that_is_late_is_given_up(service: Talk, llmock: LLMock) -> None:
    service.configure(llmock, seconds=0.2, model="gpt-4.1-nano")
    llmock.delay(1.0)
    assert_problem(service.ask(), 504, "chat-late")


def test_the_command_shows_the_answer_and_what_it_rests_on(service: Talk, llmock: LLMock) -> None:
    service.configure(llmock)
    llmock.reply(WRITTEN)
    shown = service.api.installation.command("answer", TENANT, "at what pressure does it open?")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("The valve opens at 4 bar [1].\n")
    assert "[1] public/valve.md" in shown.out
    assert "1712" not in shown.out
    assert "3 sentences" in shown.out
    service.set(chat_model=None)
    refused = service.api.installation.command("answer", TENANT, "why?", "--json")
    assert (refused.code, "no chat model" in refused.json["error"]) == (1, True)
