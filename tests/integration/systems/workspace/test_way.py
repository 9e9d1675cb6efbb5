"""A page from push to answer, as docs/workspace.md describes it."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import KeyRing
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

PAGE = (Path(__file__).parents[4] / "docs" / "workspace.md").read_text()
CALL = re.compile(
    r"curl -s -X (?P<method>[A-Z]+) http://127.0.0.1:8000(?P<path>\S+) .*? -d '(?P<body>.*?)'", re.S
)
PRICES = {"input_per_million": 1.0, "output_per_million": 10.0}


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        with workspace(shared_installation, "way") as made:
            yield made


def test_the_commands_that_make_a_workspace_run_as_written(
    shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = PAGE.partition("\n## ")[0]
    lines = re.findall(r"^    (.+)$", block, re.MULTILINE)
    commands = [
        shlex.split(re.sub(r"^ADMIN_TOKEN=\$\((.*) \| jq .*\)$", r"\1", line), comments=True)
        for line in lines
    ]
    # No command works before the servers run, and a command in the foreground must be the last.
    assert commands.pop(0) == ["rag-assets", "up"]
    assert commands.pop() == ["rag-assets", "serve", "&"]
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-of-a-test-0123456789\n"))
    for program, *arguments in commands:
        assert program == "rag-assets"
        done = shared_installation.command(*arguments)
        assert done.code == 0, done.err
    assert json.loads(done.out)["token"]


def test_a_page_that_is_placed_and_pushed_is_cited_by_its_block(site: Site, llmock: LLMock) -> None:
    way = PAGE.partition("## The way of a page from push to citation")[2].partition("\n## ")[0]
    calls = [match.groupdict() for match in CALL.finditer(way)]
    assert [call["path"] for call in calls] == ["/rag/tree/7b2e", "/rag/records/page/7b2e"]
    answers = [site.send(call["method"], call["path"], json.loads(call["body"])) for call in calls]
    assert [answer.status_code for answer in answers] == [200, 202]
    assert answers[1].json()["outcome"] == "queued"
    site.sync()
    record_state: dict[str, Any] = site.send("GET", "/rag/records/page/7b2e").json()
    assert record_state["status"] == "indexed"
    [hit] = site.hits("duty manager")
    assert (hit["source_type"], hit["source_id"]) == ("page", "7b2e")
    assert (hit["page_uuid"], hit["block_id"]) == ("7b2e", "b1")

    chat = {"model": "gpt-4.1-mini", "provider": "openai", "prices": PRICES}
    chat |= {"base_url": llmock.base_url("openai")}
    site.installation.configure(site.id, chat_model=chat)
    session = site.driver.session
    session.reconcile()
    ref = session.catalog.tenants.get(site.id).ref
    KeyRing(session.catalog, session.settings).set(ref, "openai", SecretStr("sk-of-way-0123456789"))
    llmock.reply("A duty manager approves a rollback [1].")
    question = {"query": "who approves a rollback?", "mode": "text"}
    response = site.send("POST", "/rag/answer", question)
    assert response.status_code == 200, response.text
    answer = response.json()
    [citation] = answer["citations"]
    cited = re.search(r"here `(?P<url>https://\S+)`", way)
    assert cited is not None
    assert (citation["number"], citation["url"]) == (1, cited["url"])
