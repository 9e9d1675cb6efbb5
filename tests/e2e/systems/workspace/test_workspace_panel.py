"""The panel of a workspace: waiting, failed and excluded records, and the readers of each page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import jwt
import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.panel_site import ENVIRONMENT, SECRET
from tests.security.service_process import started
from tests.watched_page import Watched, follow, sign_in, url_at_host

TENANT = "wiki-panel"
HOSTILE = "<script>alert(1)</script>"
HIDDEN = "Severance"
KEY = "sk-" + "a1B2c3D4e5" * 4
PAGES = 60


@dataclass
class Wiki:
    """A workspace behind a service."""

    origin: str
    driver: Driver
    client: httpx.Client

    def token(self, **changes: Any) -> str:
        claims = {"sub": "dana", "exp": int(time.time()) + 3_000, "role": "admin"}
        return jwt.encode({**claims, "tenants": [TENANT], **changes}, SECRET)

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token()}"}
        answer = self.client.request(method, path, json=body, headers=headers, **more)
        assert answer.is_success, answer.text
        return answer

    def put(self, kind: str, id_: str, body: Mapping[str, Any]) -> None:
        self.send("PUT", f"/rag/records/{kind}/{id_}", body)

    def page(self, uuid: str, **tree: Any) -> None:
        self.send("PUT", f"/rag/tree/{uuid}", tree)

    def sync(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.driver.sync, TENANT).result()

    def enter(self, page: Page) -> None:
        """Sign in with an admin's token."""
        sign_in(page, self.origin, self.token())
        page.wait_for_url("**/panel/workspace")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def wiki(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wiki]:
    """Serve a tree of pages, one of which dana may not read, with records in all states."""
    fast = {name: value for name, value in FAST.items() if name != "chunker"}
    sources = [{"name": "pushed", "type": "records"}]
    shared_installation.add_tenant(TENANT, **fast, profile="workspace", sources=sources)
    driver = Driver(shared_installation)
    driver.sync(TENANT)
    log = tmp_path_factory.mktemp("panel") / "log"
    with (
        started(shared_installation, log, **ENVIRONMENT) as (_, port),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        made = Wiki(f"http://127.0.0.1:{port}", driver, client)
        fill(made)
        yield made


def fill(wiki: Wiki) -> None:
    wiki.page("handbook", read=["group:ops"])
    wiki.page("rollbacks", parent="handbook")
    wiki.page("board", parent="handbook", inherit=False, read=["bob"])
    wiki.page("hostile", parent="handbook", read=[HOSTILE])
    wiki.page("lost", parent="nowhere")
    wiki.page("cities", kind="database", archived=True)
    text = "A duty manager approves a rollback of the valve. " * 30
    blocks = [{"block_id": f"b{n}", "type": "paragraph", "text": f"{n}. {text}"} for n in range(6)]
    wiki.put("page", "rollbacks", {"title": "Rollbacks", "blocks": blocks})
    wiki.put("page", "handbook", {"title": "Handbook", "blocks": [block("Read this first.")]})
    wiki.put("page", "hostile", {"title": HOSTILE, "blocks": [block(f"Say {HOSTILE} aloud.")]})
    wiki.put("page", "board", {"title": HIDDEN, "blocks": [block(f"{HIDDEN}: {KEY} it is")]})
    wiki.put("template", "standup", {"name": "Standup", "payload": {"ask": f"token {KEY} here"}})
    wiki.put("db_row", "r1", {"database_uuid": "cities", "values": [value("City", "Tallinn")]})
    long_ago = (datetime.now(UTC) - timedelta(days=45)).isoformat()
    old = {"page_uuid": "rollbacks", "text": "Done long ago.", "resolved_at": long_ago}
    wiki.put("comment", "c1", old)
    wiki.put("file", "f1", {"page_uuid": "rollbacks", "name": "broken.pdf"})
    headers = {"Authorization": f"Bearer {wiki.token()}"}
    content = b"%PDF-1.7\nno more than that"
    wiki.client.put("/rag/records/file/f1/content", content=content, headers=headers)
    wiki.sync()


def block(text: str) -> dict[str, str]:
    return {"block_id": "b", "type": "paragraph", "text": text}


def value(name: str, text: str) -> dict[str, str]:
    return {"name": name, "value_text": text}


def figures(page: Page) -> dict[str, str]:
    """Return the figures of the first page."""
    rows = page.locator(".figures > div").all()
    return {row.locator("dt").inner_text(): row.locator("dd").inner_text() for row in rows}


@pytest.mark.ci
def test_an_admin_sees_the_status_and_has_things_indexed_again(
    wiki: Wiki, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        told = wiki.send("GET", "/rag/status").json()
        shown = figures(page)
        assert shown["Chunks"] == f"{told['chunks']:,}"
        assert (shown["Queue"], shown["Left out"], shown["Failed"]) == ("0", "2", "1")
        warnings = page.get_by_role("region", name="Warnings").inner_text()
        assert "template standup" in warnings
        link = page.get_by_role("region", name="Warnings").get_by_role("link", name="standup")
        follow(link.first)
        assert "source=pushed" in page.url
        assert page.locator("h1").inner_text() == "Standup"
        page.go_back()
        assert HIDDEN not in page.content()
        watched.shot("workspace")

        page.get_by_label("Its id").fill("rollbacks")
        follow(page.get_by_role("button", name="Index it again"))
        page.get_by_text("2 documents will be indexed again.").wait_for()
        assert int(figures(page)["Queue"]) == 2
        watched.shot("workspace-waits")
        # The page updates itself.
        wiki.sync()
        page.locator(".figures dd").nth(1).get_by_text("0", exact=True).wait_for()

        page.get_by_label("Its id").fill("no-such-page")
        follow(page.get_by_role("button", name="Index it again"))
        assert "no such page" in page.get_by_role("alert").inner_text()
        assert [error for error in watched.errors if "404" not in error] == []


def test_switching_off_is_asked_first_and_on_again_indexes_all(
    wiki: Wiki, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        follow(page.get_by_role("button", name="Switch it off"))
        page.get_by_role("heading", name="Switch the knowledge base off?").wait_for()
        watched.shot("workspace-switch")
        assert wiki.send("GET", "/rag/settings").json()["enabled"]
        follow(page.get_by_role("button", name="Switch it off"))
        page.get_by_text("What is pushed is kept, and is indexed when it is on again.").wait_for()
        watched.shot("workspace-off")
        found = wiki.send("POST", "/rag/query", {"query": "rollback", "mode": "text"}).json()
        assert (found["disabled"], found["hits"]) == (True, [])
        wiki.put("page", "handbook", {"title": "Handbook", "blocks": [block("Read it twice.")]})
        follow(page.get_by_role("button", name="Switch it on"))
        page.get_by_text("All of it is indexed again.").wait_for()
        assert int(figures(page)["Queue"]) > 3
        wiki.sync()
        found = wiki.send("POST", "/rag/query", {"query": "twice", "mode": "text"}).json()
        assert found["hits"][0]["title"] == "Handbook"
        assert watched.errors == []


def test_records_are_listed_with_reasons_and_nothing_unreadable(
    wiki: Wiki, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        follow(page.get_by_role("link", name="Records", exact=True))
        page.get_by_role("heading", level=1, name="Records").wait_for()
        rows = page.locator(".documents > li")
        text = rows.all_inner_texts()
        assert any("The comment was resolved too long ago." in one for one in text)
        assert any("damaged" in one and "failed" in one for one in text)
        assert any("1 chunk with a credential was dropped." in one for one in text)
        assert any(HOSTILE in one for one in text)
        assert any("r1" in one and "Its page is archived." in one for one in text)
        assert not any("board" in one or HIDDEN in one for one in text)
        watched.shot("workspace-records")

        page.get_by_label("State").select_option("failed")
        follow(page.get_by_role("button", name="Filter"))
        assert rows.count() == 1
        follow(page.get_by_role("link", name="f1"))
        page.get_by_role("heading", level=1).wait_for()
        assert "damaged" in page.locator(".callout.bad:visible").inner_text()
        watched.shot("workspace-failed")

        page.goto(url_at_host(page, "/panel/workspace/record?source=pushed&type=page&id=rollbacks"))
        chunks = page.locator(".chunks > li")
        assert chunks.count() > 6, "blocks of a long page are chunks as well"
        assert "b0" in page.locator(".chunks .head").first.inner_text()
        watched.shot("workspace-record")
        follow(page.get_by_role("button", name="Index it again"))
        page.get_by_text("1 document will be indexed again.").wait_for()
        wiki.sync()
        assert watched.errors == []
        page.goto(url_at_host(page, "/panel/workspace/record?source=pushed&type=db_row&id=r1"))
        assert "Its page is archived." in page.content()
        assert "Tallinn" not in page.content()
        for hidden in ("type=page&id=board", "type=page&id=none"):
            answer = page.goto(url_at_host(page, f"/panel/workspace/record?source=pushed&{hidden}"))
            assert answer is not None
            assert answer.status == 404
            assert HIDDEN not in page.content()


def test_lists_come_page_by_page(wiki: Wiki, browser: Browser) -> None:
    lines = [
        f'{{"op": "put", "type": "comment", "id": "k{n:03}", "page_uuid": "many", "text": "{n}"}}'
        for n in range(PAGES)
    ]
    headers = {"Authorization": f"Bearer {wiki.token()}", "Content-Type": "application/x-ndjson"}
    wiki.client.post("/rag/records", content="\n".join(lines), headers=headers).raise_for_status()
    wiki.page("many")
    for n in range(PAGES):
        wiki.page(f"many-{n:03}", parent="many")
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        page.goto(
            url_at_host(page, "/panel/workspace/records?type=comment&page=many&status=queued")
        )
        seen = page.locator(".documents .name").all_inner_texts()
        follow(page.get_by_role("link", name="Next page"))
        page.wait_for_url("**after_id=**")
        seen += page.locator(".documents .name").all_inner_texts()
        assert seen == [f"k{n:03}" for n in range(PAGES)]
        assert page.get_by_label("State").input_value() == "queued"
        assert page.get_by_role("link", name="Next page").count() == 0

        page.goto(url_at_host(page, "/panel/workspace/tree?page=many"))
        pages = page.locator("tbody").last.locator("a")
        listed = pages.all_inner_texts()
        follow(page.get_by_role("link", name="Next page"))
        page.wait_for_url("**after=**")
        listed += pages.all_inner_texts()
        assert listed == [f"many-{n:03}" for n in range(PAGES)]
    wiki.send("DELETE", "/rag/tree/many")
    wiki.sync()


def test_the_tree_tells_who_reads_and_by_what(wiki: Wiki, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        follow(page.get_by_role("link", name="Tree"))
        page.get_by_role("heading", level=1, name="All pages").wait_for()
        assert "members" in page.get_by_role("region", name="Readers").inner_text()
        assert "archived" in page.get_by_role("region", name="Pages", exact=True).inner_text()
        watched.shot("workspace-tree")

        follow(page.get_by_role("link", name="Handbook"))
        page.get_by_role("heading", level=1, name="Handbook").wait_for()
        readers = page.get_by_role("region", name="Readers").locator("tbody tr").all_inner_texts()
        assert [" ".join(reader.split()) for reader in readers] == [
            "group:ops Handbook",
            "members All pages",
        ]
        below = page.get_by_role("region", name="Pages", exact=True)
        assert "Rollbacks" in below.inner_text()
        assert HOSTILE in below.inner_text()
        # The application may know its id and readers, but not its title.
        assert "bob" in below.inner_text()
        assert HIDDEN not in page.content()
        page.get_by_label("Names that they ask by").fill("eve, group:ops")
        follow(page.get_by_role("button", name="Ask"))
        page.get_by_text("page handbook is granted to group:ops").wait_for()
        watched.shot("workspace-page")

        follow(page.get_by_role("link", name="board"))
        page.get_by_label("Names that they ask by").fill("members")
        follow(page.get_by_role("button", name="Ask"))
        page.get_by_text("none of the pages that decide is granted").wait_for()
        assert HIDDEN not in page.content()
        for uuid, said in (
            ("cities", "it is out of the knowledge"),
            ("lost", "A page above it, nowhere, is not known."),
            ("never-put", "This page is not known."),
        ):
            page.goto(url_at_host(page, f"/panel/workspace/tree?page={uuid}"))
            assert page.get_by_text(said).is_visible()
        page.goto(url_at_host(page, "/panel/workspace/tree"))
        follow(page.get_by_role("link", name="Pages below one that is not known"))
        assert "lost" in page.get_by_role("region", name="Pages", exact=True).inner_text()
        assert watched.errors == []


def test_settings_are_saved_and_another_model_waits(wiki: Wiki, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        follow(page.get_by_role("link", name="Settings"))
        assert page.get_by_text("multilingual-e5-small (about a hundred languages").is_visible()
        page.get_by_label("Server").fill("http://10.9.8.7:1/v1")
        page.get_by_label("Provider").select_option("ollama")
        follow(page.get_by_role("button", name="Save"))
        assert (
            "Server: the operator does not allow this server"
            in page.get_by_role("alert").inner_text()
        )
        assert page.get_by_label("Server").input_value() == "http://10.9.8.7:1/v1"
        watched.shot("workspace-settings-refused")
        assert wiki.send("GET", "/rag/settings").json()["own"] == ["enabled"]

        page.get_by_label("Server").fill("")
        page.get_by_label("Provider").select_option("local")
        page.get_by_label("Days for which").fill("14")
        page.get_by_label("Vectors are searched in").select_option("pgvector")
        follow(page.get_by_role("button", name="Save"))
        page.get_by_text("The settings are saved.").wait_for()
        watched.shot("workspace-settings")
        settings = wiki.send("GET", "/rag/settings").json()
        assert (settings["vector_backend"], settings["resolved_comment_days"]) == ("pgvector", 14)
        assert settings["pending_model"]["provider"] == "local"

        follow(page.get_by_role("link", name="Index it on the first page"))
        page.get_by_text("Vectors are copied to pgvector.").wait_for()
        watched.shot("workspace-pending")
        follow(page.get_by_role("button", name="The whole workspace"))
        page.get_by_role("heading", name="Index with").wait_for()
        watched.shot("workspace-new-model")
        assert wiki.send("GET", "/rag/status").json()["pending_model"]
        follow(page.get_by_role("button", name="Index the whole workspace"))
        page.get_by_text("documents will be indexed again.").wait_for()
        wiki.sync()
        status = wiki.send("GET", "/rag/status").json()
        assert (status["pending_model"], status["queue_depth"]) == (None, 0)
        page.reload()
        assert "vectors are searched in pgvector" in page.locator("#watch").inner_text()
        refused = [error for error in watched.errors if "422" not in error]
        assert refused == []


def test_pages_are_usable_on_a_narrow_screen(wiki: Wiki, browser: Browser) -> None:
    with browser.new_context(viewport={"width": 320, "height": 720}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        wiki.enter(page)
        for name, path in (
            ("status", ""),
            ("records", "/records"),
            ("record", "/record?source=pushed&type=page&id=rollbacks"),
            ("tree", "/tree"),
            ("page", "/tree?page=handbook&who=members"),
            ("warnings", "/warnings"),
            ("settings", "/settings"),
        ):
            page.goto(url_at_host(page, f"/panel/workspace{path}"))
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path
            watched.shot(f"workspace-narrow-{name}")
        assert watched.errors == []


@pytest.mark.parametrize(
    "path",
    [
        f"/tree?page={quote(HOSTILE)}&who={quote(HOSTILE)}",
        "/tree?page=%00&after=%00",
        f"/tree/unplaced?after={quote(HOSTILE)}",
        f"/records?status={quote(HOSTILE)}&type={quote(HOSTILE)}&page={quote(HOSTILE)}",
        f"/records?after_source={quote(HOSTILE)}&after_type=x&after_id=%00",
        f"/warnings?after={quote(HOSTILE)}",
        "/warnings?after=99999999999999999999999",
        f"?done={quote(HOSTILE)}&again={quote(HOSTILE)}",
        f"/settings?done={quote(HOSTILE)}",
        f"/records?page={'x' * 5000}",
    ],
)
def test_whatever_is_asked_for_is_shown_as_text(wiki: Wiki, browser: Browser, path: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        wiki.enter(page)
        answer = page.goto(url_at_host(page, f"/panel/workspace{path}"))
        assert answer is not None
        assert answer.status == 200
        assert page.locator("main script").count() == 0


def test_an_application_opens_it_for_its_user(wiki: Wiki, browser: Browser) -> None:
    url = wiki.send("POST", "/panel/links", {}).json()["url"]
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        assert TENANT in page.content()
        follow(page.get_by_role("button", name="Continue"))
        page.wait_for_url("**/panel/workspace")


def test_forms_need_the_token_of_their_session_and_members_get_no_panel(
    wiki: Wiki, browser: Browser
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        wiki.enter(page)
        before = wiki.send("GET", "/rag/settings").json()
        for path, form in (
            ("switch", {"enabled": "no", "confirmed": "yes"}),
            ("reindex", {"scope": "workspace", "confirmed": "yes"}),
            ("settings", {"resolved_comment_days": "1"}),
        ):
            # Only the browser resolves names below .localhost.
            own = url_at_host(page, "")
            [cookie] = page.context.cookies()
            headers = {"Origin": own, "Host": urlsplit(own).netloc}
            headers["Cookie"] = f"{cookie['name']}={cookie['value']}"
            for token in ({}, {"token": "0" * 64}):
                sent = wiki.client.post(
                    f"/panel/workspace/{path}", data={**form, **token}, headers=headers
                )
                assert sent.status_code == 403, path
                assert "a different session" in sent.text
        assert wiki.send("GET", "/rag/settings").json() == before
        page.goto(url_at_host(page, "/panel/sign-in"))
        page.get_by_label("Token", exact=True).fill(wiki.token(role="member"))
        follow(page.get_by_role("button", name="Sign in"))
        page.get_by_role("alert").wait_for()
