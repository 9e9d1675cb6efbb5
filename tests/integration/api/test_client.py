"""Both clients with the running service."""

from __future__ import annotations

import ast
import re
import socket
import zipfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from rag_assets.api.rate_limits import Rate
from rag_assets.api.responses import Written
from rag_assets.api.settings import JwtSettings, ServiceSettings
from rag_assets.client import AsyncClient, Client, Filters, Question
from rag_assets.client.errors import Forbidden, Invalid, NotFound, NotReached, Unauthenticated
from rag_assets.search.model import SearchRequest
from rag_assets.storage.catalog.journal.events import SEARCHES
from tests.distributions import build_wheel
from tests.integration.api.conftest import ISSUER, SECRET, Api, running
from tests.integration.api.test_service import granted


class PortalClient:
    """A client of either kind, used from a thread without an event loop."""

    def __init__(self, client: Client | AsyncClient, portal: BlockingPortal) -> None:
        self.client = client
        self._portal = portal

    def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        return self._portal.call(self._ask, name, arguments, options)

    async def _ask(self, name: str, arguments: Any, options: Any) -> Any:
        answer = getattr(self.client, name)(*arguments, **options)
        if isinstance(answer, AsyncIterator):
            return [item async for item in answer]
        if isinstance(answer, Iterator):
            return list(answer)
        return await answer if isinstance(answer, Awaitable) else answer


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(params=[Client, AsyncClient])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def admin(api: Api, address: str, kind: Any, portal: BlockingPortal) -> Iterator[PortalClient]:
    opened = PortalClient(kind(address, api.token("chief", role="admin")), portal)
    yield opened
    opened("close")


@pytest.fixture
def ada(api: Api, address: str, kind: Any, portal: BlockingPortal) -> Iterator[PortalClient]:
    opened = PortalClient(
        kind(address, lambda: api.token("ada", "acme", "other"), tenant="acme"), portal
    )
    yield opened
    opened("close")


def test_a_question_gets_the_answer_of_the_core(api: Api, ada: PortalClient) -> None:
    answer = ada("query", Question(query="valve", filters=Filters(paths=("public/",))))
    core = api.core("acme", SearchRequest(query="valve"))
    assert answer.hits == core.hits
    assert ada("query", "valve", tenant="other").hits[0].uri == "public/other.md"


def test_lists_are_read_page_by_page(api: Api, ada: PortalClient) -> None:
    with granted(api, "ada"):
        first = ada("documents", limit=1)
        assert (len(first.documents), first.next is None) == (1, False)
        found = ada("all_documents", page=1)
    assert [document.uri for document in found] == ["board/acme.md", "public/acme.md"]


def test_status_of_the_service_and_of_a_tenant(ada: PortalClient) -> None:
    status = ada("status")
    assert (status.chunks, status.last_indexed_at.tzinfo is not None) == (1, True)
    assert ada("live") == ada("ready")
    assert 'route="/health/live"' in ada("metrics")


def test_a_record_is_pushed_and_removed(api: Api, ada: PortalClient, admin: PortalClient) -> None:
    record = ("page", "a/../b?c#d e", "The governor turns clockwise.")
    with pytest.raises(Forbidden):
        ada("put_record", *record)
    before = admin("status").queue_depth
    said = {"title": "Governors", "tags": ["mill"], "metadata": {"floor": 3}}
    made = admin("put_record", *record, **said, updated_at=datetime.now(UTC))
    assert made.outcome == "queued"
    again = admin("put_record", *record, **said, updated_at=datetime.now(UTC))
    assert again == Written(made.document_id, "unchanged", etag=made.etag)
    assert admin("status").queue_depth == before + 1
    gone = admin("delete_record", *record[:2])
    assert gone == Written(made.document_id, "removed")
    with pytest.raises(NotFound):
        admin("delete_document", "0" * 32)
    api.driver.sync("acme")


def test_reindexing_is_recorded_with_its_caller(
    api: Api, ada: PortalClient, admin: PortalClient
) -> None:
    assert admin("reindex", source="public").documents >= 1
    api.driver.sync("acme")
    found = admin("all_events", kind="reindex_requested", page=1)
    assert found[0].payload["by"] == "jwt:chief"
    assert [event.id for event in found] == sorted({event.id for event in found}, reverse=True)
    ada("query", "governor")
    assert {event.kind for event in ada("events").events} <= {*SEARCHES}


def test_problems_are_raised_as_what_they_are(
    api: Api, address: str, kind: Any, portal: BlockingPortal, ada: PortalClient
) -> None:
    with pytest.raises(Forbidden) as forbidden:
        ada("query", "valve", tenant="missing")
    assert forbidden.value.kind == "forbidden"
    assert forbidden.value.request_id
    with pytest.raises(Invalid, match=r"422 .*limit: "):
        ada("documents", limit=0)
    guessing = PortalClient(kind(address, "rag_guessed"), portal)
    with pytest.raises(Unauthenticated):
        guessing("status")
    guessing("close")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
    lost = PortalClient(kind(nowhere, "t", retries=0), portal)
    with pytest.raises(NotReached):
        lost("live")
    lost("close")


def test_the_examples_of_the_documentation_run(
    api: Api,
    address: str,
    portal: BlockingPortal,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path, "client")) as wheel:
        wheel.extractall(tmp_path / "installed")
    monkeypatch.syspath_prepend(tmp_path / "installed")
    text = (Path(__file__).parents[3] / "docs" / "client.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.setenv("RAG_ASSETS_URL", address)
    monkeypatch.setenv("RAG_ASSETS_TOKEN", api.token())

    async def run(code: str) -> None:
        with Client(address, api.token()) as rag:
            compiled = compile(code, "client.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            outcome = eval(compiled, {"rag": rag, "token": api.token()})  # noqa: S307
            if outcome is not None:
                await outcome

    assert len(blocks) == 3
    for block in blocks:
        portal.call(run, block.replace("https://rag.example", address))


def test_a_client_over_its_rate_waits_and_retries(
    api: Api, kind: Any, portal: BlockingPortal
) -> None:
    jwt = JwtSettings(secret=SECRET, issuer=ISSUER)
    with running(api.another(ServiceSettings(jwt=jwt, rate=Rate.parse("1/second")))) as address:
        retrying = PortalClient(kind(address, api.token), portal)
        assert [retrying("status").chunks for _ in range(3)] == [1, 1, 1]
        retrying("close")
