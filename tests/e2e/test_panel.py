"""The panel in a real Chromium with a real service: with and without its script, and by keyboard.

Screenshots of each state are stored in .local/screenshots/panel, or in
RAG_ASSETS_TEST_SCREENSHOTS.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from docx import Document
from playwright.sync_api import Browser, CDPSession, Page, expect
from playwright.sync_api import Error as PlaywrightError
from reportlab.pdfgen.canvas import Canvas
from sqlalchemy import text

from rag_assets.systems.team_guidelines.panel.documents import PASSAGES_PER_PAGE
from tests.browser import chromium
from tests.installation import Installation
from tests.panel_site import KEY, PanelSite, panel_site
from tests.watched_page import SHOTS, Watched, follow, url_at_host

pytestmark = pytest.mark.ci
ROOT = Path(__file__).parents[2]
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 320, "height": 720}
CREDENTIAL = "sk-proj-planted0123456789abcdefWXYZ"
SELECTORS = b"# Selectors\n\nUse data-testid selectors in every test of the checkout.\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(
    browser: Browser,
    shared_installation: Installation,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PanelSite]:
    log = tmp_path_factory.mktemp("panel") / "log"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        with panel_site(shared_installation, log) as site:
            # Only texts about selectors are near each other.
            site.server.cosine = lambda text: 0.9 if "selectors" in text.lower() else 0.2
            yield site


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    with browser.new_context(viewport=WIDE) as context:
        watched = Watched(context.new_page())
        yield watched


def pdf() -> bytes:
    stream = io.BytesIO()
    canvas = Canvas(stream)
    canvas.drawString(72, 720, "Tests of payments use a card that is always declined.")
    canvas.save()
    return stream.getvalue()


def docx() -> bytes:
    stream, document = io.BytesIO(), Document()
    document.add_heading("Waiting", 1)
    document.add_paragraph("No test waits for a fixed time; it waits for what it needs.")
    document.save(stream)
    return stream.getvalue()


def file(name: str, content: bytes, kind: str = "") -> Any:
    return {"name": name, "mimeType": kind, "buffer": content}


def row(page: Page, name: str) -> Any:
    return page.locator(".documents > li").filter(has_text=name)


def enter(page: Page, site: PanelSite, project: str) -> None:
    page.goto(site.link(project))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/panel/guidelines")


def test_a_team_sets_up_its_guidelines(  # noqa: PLR0915 - one visit, step by step
    site: PanelSite, watched: Watched
) -> None:
    tenant = site.project("checkout")
    page = watched.page
    page.goto(site.link("checkout"))
    watched.shot("01-link")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#files")).to_be_disabled()
    watched.shot("02-no-key")

    page.get_by_role("link", name="Set a key on the models page").click()
    page.get_by_label("Provider", exact=True).select_option("openai")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Store the key").click()
    expect(page.get_by_text("WXYZ")).to_be_visible()
    page.get_by_role("button", name="Test OpenAI").click()
    expect(page.locator("#said")).to_contain_text("The key works")
    assert KEY in site.server.keys
    watched.shot("03-models")

    page.get_by_role("link", name="Guidelines").click()
    page.locator("#files").set_input_files(
        [
            file("selectors.md", SELECTORS),
            file("payments.pdf", pdf()),
            file("waiting.docx", docx()),
            file("broken.pdf", b"%PDF-1.7\nnothing that could be read follows\n"),
        ]
    )
    for name in ("selectors.md", "payments.pdf", "waiting.docx", "broken.pdf"):
        expect(row(page, name)).to_contain_text("PROCESSING")
    watched.shot("04-processing")
    site.sync(tenant)
    for name in ("selectors.md", "payments.pdf", "waiting.docx"):
        expect(row(page, name)).to_contain_text("READY")
    expect(row(page, "broken.pdf")).to_contain_text("FAILED")
    # The same bytes would fail again.
    expect(row(page, "broken.pdf").get_by_role("button", name="Try again")).to_have_count(0)
    expect(page.locator("#said")).not_to_be_empty()
    expect(page.locator("#watch[hx-get]")).to_have_count(0)
    expect(page.locator("#summary")).to_have_text("4 documents, 1 failed")
    watched.shot("05-ready")

    page.get_by_role("textbox", name="Plain text").fill("Write tests in TypeScript.")
    page.get_by_role("button", name="Save text").click()
    expect(page.locator("#text")).to_contain_text("Saved.")

    page.get_by_role("link", name="selectors.md").click()
    expect(page.locator(".chunks")).to_contain_text("data-testid")
    watched.shot("06-document")

    page.get_by_role("link", name="Try it").click()
    page.get_by_label("Task").fill("Playwright test for login with selectors")
    page.get_by_role("button", name="Try").click()
    expect(page.locator("#result")).to_contain_text("from documents")
    expect(page.locator(".section")).to_contain_text("## Team Guidelines")
    watched.shot("07-try")
    page.get_by_label("Task").fill("Something about the weather")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator("#result")).to_contain_text("No passage is similar enough")
    expect(page.locator(".section")).to_contain_text("TypeScript")
    expect(page.locator("#earlier button")).to_have_count(2)
    watched.shot("08-try-text")

    page.get_by_role("link", name="Guidelines").click()
    changed = SELECTORS + b"\nNever select by selectors of style.\n"
    page.locator("#files").set_input_files([file("selectors.md", changed)])
    page.get_by_role("button", name="Replace: selectors.md").click()
    expect(row(page, "selectors.md")).to_contain_text("The former version answers meanwhile")
    watched.shot("09-replacing")
    site.sync(tenant)
    expect(row(page, "selectors.md")).to_contain_text("READY")

    page.get_by_role("link", name="Models").click()
    page.get_by_label("Provider", exact=True).select_option("gemini")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Store the key").click()
    page.get_by_label("Provider of embeddings").select_option("gemini")
    page.get_by_role("button", name="Show price and duration").click()
    expect(page.get_by_text("would embed 3 documents again")).to_be_visible()
    watched.shot("10-change")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#said")).to_contain_text("The provider is changed")
    site.sync(tenant)
    page.reload()
    expect(page.get_by_text("gemini-embedding").first).to_be_visible()

    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("table")).to_contain_text("openai")
    watched.shot("11-usage")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text().startswith("day,provider,model,")

    page.get_by_role("link", name="Guidelines").click()
    page.get_by_role("checkbox", name="Select broken.pdf").check()
    page.get_by_role("button", name="Delete selected").click()
    watched.shot("12-delete")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(row(page, "broken.pdf")).to_have_count(0)

    for path in ("", "/try", "/threshold", "/models", "/usage"):
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        page.goto(url_at_host(page, f"/panel/guidelines{path}"))
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, path
        watched.shot(f"13-narrow{path.replace('/', '-')}")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(url_at_host(page, "/panel/guidelines"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    watched.shot("14-signed-out")
    assert watched.errors == []


def test_a_listener_at_another_port_gets_no_cookie(site: PanelSite, watched: Watched) -> None:
    site.project("ports", key=True)
    page = watched.page
    enter(page, site, "ports")
    received: list[str | None] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers.get("Cookie"))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        other = page.context.new_page()
        own = urlsplit(page.url).hostname
        for name in ("127.0.0.1", "localhost", f"panel-{'0' * 32}.localhost", own):
            with suppress(PlaywrightError):  # there is no page to show
                other.goto(f"http://{name}:{server.server_port}/panel")
        server.shutdown()
    assert received[:3] == [None] * 3
    # Cookies are not separated by port, but by host name, which is secret.
    assert received[3] is not None


def test_sessions_are_listed_and_keys_ask_to_sign_in_again(
    site: PanelSite, watched: Watched
) -> None:
    site.project("sessions", key=True)
    page = watched.page
    enter(page, site, "sessions")
    other = page.context.new_page()
    enter(other, site, "sessions")
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_text("sessions", exact=True)).to_have_count(2)
    watched.shot("20-sessions")
    page.get_by_role("button", name="End my other sessions").click()
    expect(page.get_by_text("There are no others.")).to_be_visible()
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    watched.shot("21-no-other-sessions-narrow")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    other.reload()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    with site.driver.session.catalog.database.begin() as connection:
        connection.execute(
            text("UPDATE rag_catalog.panel_sessions SET created_at = now() - interval '11 min'")
        )
    page.get_by_role("link", name="Models").click()
    watched.shot("22-keys-after-ten-minutes")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("sign in again")
    expect(page.get_by_label("Project")).to_have_value("sessions")
    watched.shot("23-sign-in-again")
    page.get_by_label("Token", exact=True).fill(site.token())
    page.get_by_role("button", name="Sign in").click()
    watched.shot("24-continue")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name="Models").click()
    expect(page.get_by_role("button", name="Store the key")).to_be_visible()


def test_two_people_save_the_text_at_once(site: PanelSite, watched: Watched) -> None:
    site.project("twice")
    page = watched.page
    enter(page, site, "twice")
    other = page.context.new_page()
    other.goto(url_at_host(page, "/panel/guidelines"))
    for one, words in ((other, "theirs"), (page, "ours")):
        one.get_by_role("textbox", name="Plain text").fill(words)
        one.get_by_role("button", name="Save text").click()
        one.locator("#text .callout").wait_for()
    expect(page.locator("#text")).to_contain_text("Somebody else saved meanwhile")
    expect(page.get_by_role("textbox", name="Plain text")).to_have_value("ours")
    watched.shot("15-conflict")
    page.get_by_role("button", name="Save text").click()
    expect(page.locator("#text")).to_contain_text("Saved.")
    assert watched.errors == []


def test_a_refused_file_is_told_and_can_be_dismissed(site: PanelSite, watched: Watched) -> None:
    site.project("refused", key=True)
    page = watched.page
    enter(page, site, "refused")
    page.locator("#files").set_input_files([file("program.md", b"\x7fELF" + bytes(200))])
    dismiss = page.get_by_role("button", name="Dismiss: program.md")
    dismiss.wait_for()
    watched.shot("16-refused")
    dismiss.click()
    expect(page.locator("#queue > li")).to_have_count(0)
    assert [line for line in watched.errors if "415" not in line] == []


def test_text_upload_list_and_delete_work_without_script(site: PanelSite, browser: Browser) -> None:
    tenant = site.project("plain", key=True)
    with browser.new_context(viewport=WIDE, java_script_enabled=False) as context:  # type: ignore[arg-type]
        page = context.new_page()
        enter(page, site, "plain")
        page.get_by_role("textbox", name="Plain text").fill("Short tests.")
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#said")).to_have_text("The text is saved.")
        page.locator("#files").set_input_files(file("selectors.md", SELECTORS, "text/markdown"))
        page.get_by_role("button", name="Upload").click()
        expect(row(page, "selectors.md")).to_contain_text("PROCESSING")
        site.sync(tenant)
        page.reload()
        expect(row(page, "selectors.md")).to_contain_text("READY")
        page.screenshot(path=SHOTS / "17-without-script.png", full_page=True)
        page.get_by_role("checkbox", name="Select selectors.md").check()
        page.get_by_role("button", name="Delete selected").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_text("No documents yet.")).to_be_visible()


def test_everything_is_reached_by_keyboard(site: PanelSite, watched: Watched) -> None:
    site.project("keys", key=True)
    page = watched.page
    page.goto(site.link("keys"))
    expect(page.get_by_role("button", name="Continue")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/panel/guidelines")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name="Plain text")).to_be_focused()
    page.keyboard.type("By keyboard.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_contain_text("Saved.")
    page.locator("#files").set_input_files([file("selectors.md", SELECTORS)])
    expect(row(page, "selectors.md")).to_be_visible()
    box = page.get_by_role("checkbox", name="Select selectors.md")
    for _ in range(30):
        if box.evaluate("box => box === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("Space")
    expect(box).to_be_checked()
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Delete selected":
            break
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Delete 1 document?").wait_for()
    assert watched.errors == []


def throttle(session: CDPSession, bytes_a_second: int) -> None:
    """Limit the upload rate of a page; -1 removes the limit."""
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1}
    conditions["uploadThroughput"] = bytes_a_second
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", conditions)


def test_three_files_are_uploaded_at_a_time_and_each_can_be_cancelled(
    site: PanelSite, watched: Watched
) -> None:
    site.project("several", key=True)
    page = watched.page
    enter(page, site, "several")
    session = page.context.new_cdp_session(page)
    throttle(session, 5_000)
    names = [f"{number}.md" for number in range(6)]
    page.locator("#files").set_input_files(
        [file(name, f"# {name}\n\n".encode() + b"A rule. " * 25_000) for name in names]
    )
    under_way, queue = page.locator("#queue progress"), page.locator("#queue > li")
    expect(under_way).to_have_count(3)
    expect(queue.filter(has_text="Waiting")).to_have_count(3)
    watched.shot("18-several")
    cancelled = set()
    for one in (
        queue.filter(has_text="Waiting").first,
        queue.filter(has=page.locator("progress")).first,
    ):
        name = str(one.locator("b").text_content())
        page.get_by_role("button", name=f"Cancel: {name}").click()
        cancelled.add(name)
        expect(queue).to_have_count(len(names) - len(cancelled))
        expect(under_way).to_have_count(3)
    throttle(session, -1)
    for name in {*names} - cancelled:
        expect(row(page, name)).to_contain_text("PROCESSING")
    expect(queue).to_have_count(0)
    for name in cancelled:
        expect(row(page, name)).to_have_count(0)
    assert watched.errors == []


def test_an_upload_that_was_cut_off_can_be_tried_again(site: PanelSite, watched: Watched) -> None:
    site.project("cut", key=True)
    page = watched.page
    enter(page, site, "cut")
    page.route("**/upload", lambda route: route.abort())
    page.locator("#files").set_input_files([file("selectors.md", SELECTORS)])
    again = page.get_by_role("button", name="Try again: selectors.md")
    again.wait_for()
    expect(page.locator("#queue")).to_contain_text("The connection was lost.")
    page.unroute("**/upload")
    again.click()
    expect(row(page, "selectors.md")).to_contain_text("PROCESSING")
    expect(page.locator("#queue > li")).to_have_count(0)


def test_files_are_dropped_and_the_same_bytes_are_there_already(
    site: PanelSite, watched: Watched, tmp_path: Path
) -> None:
    site.project("dropped", key=True)
    page = watched.page
    enter(page, site, "dropped")
    for name, content in (("first.md", SELECTORS), ("second.md", b"# Second\n\nNo sleep.\n")):
        (tmp_path / name).write_bytes(content)
    drop(page, tmp_path / "first.md", tmp_path / "second.md")
    for name in ("first.md", "second.md"):
        expect(row(page, name)).to_contain_text("PROCESSING")
    page.locator("#files").set_input_files([file("copy.md", SELECTORS)])
    expect(page.locator("#said")).to_have_text("copy.md was already uploaded.")
    expect(page.locator(".documents > li")).to_have_count(2)
    drop(page, tmp_path / "first.md")
    page.get_by_role("button", name="Keep both: first.md").wait_for()
    page.get_by_role("button", name="Cancel: first.md").click()
    expect(page.locator("#queue > li")).to_have_count(0)
    assert watched.errors == []


def drop(page: Page, *paths: Path) -> None:
    """Drop local files on the upload zone with the browser's own drag events."""
    box = page.locator("#zone").bounding_box()
    assert box is not None
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    dragged = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": dragged})


def test_a_change_of_provider_shows_progress_while_the_former_build_answers(
    site: PanelSite, watched: Watched
) -> None:
    tenant = site.project("moving", key=True)
    page = watched.page
    enter(page, site, "moving")
    page.locator("#files").set_input_files(
        [file("selectors.md", SELECTORS), file("waiting.docx", docx())]
    )
    for name in ("selectors.md", "waiting.docx"):
        expect(row(page, name)).to_contain_text("PROCESSING")
    site.sync(tenant)
    key = site.ask("PUT", "/api/projects/moving/keys/gemini", {"key": KEY})
    assert key.status_code == 200, key.text
    page.get_by_role("link", name="Models").click()
    page.get_by_label("Provider of embeddings").select_option("gemini")
    page.get_by_role("button", name="Show price and duration").click()
    expect(page.get_by_text("would embed 2 documents again")).to_be_visible()
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#replacement")).to_contain_text("waits to be built: 0 of 2 documents")
    site.sync(tenant, slices=1)
    expect(page.locator("#replacement")).to_contain_text("is being built: 1 of 2 documents")
    progress = page.get_by_role("progressbar", name="Build")
    expect(progress).to_be_visible()
    expect(page.locator("#replacement")).to_contain_text("answers meanwhile")
    watched.shot("19-building")
    other = page.context.new_page()
    other.goto(url_at_host(page, "/panel/guidelines/try"))
    other.get_by_label("Task").fill("Playwright test for login with selectors")
    other.get_by_role("button", name="Try").click()
    expect(other.locator("#result")).to_contain_text("from documents")
    expect(other.locator("#result")).to_contain_text("text-embedding-3-small@1536,")
    site.sync(tenant)
    expect(progress).to_have_count(0)
    expect(page.get_by_text("gemini-embedding").first).to_be_visible()
    assert watched.errors == []


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_text_with_a_credential_is_refused_and_stays_in_the_form(
    site: PanelSite, browser: Browser, *, script: bool
) -> None:
    project = f"texts-{script}".lower()
    site.project(project)
    text = f"Be kind.\nOPENAI_API_KEY={CREDENTIAL}\n"
    with browser.new_context(viewport=WIDE, java_script_enabled=script) as context:  # type: ignore[arg-type]
        page = context.new_page()
        enter(page, site, project)
        page.get_by_role("textbox", name="Plain text").fill(text)
        page.get_by_role("button", name="Save text").click()
        expect(page.get_by_role("alert")).to_contain_text("Line 2: a credential (rule ")
        assert page.get_by_role("textbox", name="Plain text").input_value() == text
        page.get_by_role("textbox", name="Plain text").fill("x" * 100_001)
        page.get_by_role("button", name="Save text").click()
        expect(page.get_by_role("alert")).to_contain_text("It has 100,001 characters")
        assert len(page.get_by_role("textbox", name="Plain text").input_value()) == 100_001
        stored = site.ask("GET", f"/api/projects/{project}/guidelines/text").json()
        assert stored["text"] == ""
        page.get_by_role("textbox", name="Plain text").fill("Be kind.")
        page.get_by_role("button", name="Save text").click()
        expect(page.get_by_text("saved" if not script else "Saved.").first).to_be_visible()


def test_pages_fit_a_phone_and_long_documents_are_paged(site: PanelSite, browser: Browser) -> None:
    tenant = site.project("phone", key=True)
    long = "".join(f"# Part {n}\n\n{f'Word {n} of a long handbook. ' * 90}\n\n" for n in range(60))
    for name, content in (
        ("a-very-long-name-of-a-scanned-handbook-that-is-protected.pdf", b"%PDF-1.7\nnothing\n"),
        ("handbook.md", long.encode()),
        ("selectors.md", SELECTORS),
    ):
        site.upload("phone", name, content)
    site.sync(tenant)
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, site, "phone")
        failed = row(page, "scanned-handbook")
        expect(failed).to_contain_text("save it again, and upload the new copy")
        # The same file would fail again.
        expect(failed.get_by_role("button", name="Try again")).to_have_count(0)
        fits(watched, "30-phone-list")
        follow(page.get_by_role("link", name="handbook.md", exact=True))
        first = page.locator(".chunks > li")
        assert first.count() == PASSAGES_PER_PAGE
        assert len(page.content()) < 150_000
        fits(watched, "31-phone-document")
        follow(page.get_by_role("link", name="Later"))
        expect(first.first).to_have_id(f"passage-{PASSAGES_PER_PAGE}")
        page.goto(url_at_host(page, "/panel/guidelines/try"))
        page.get_by_label("Task").fill("Which selectors does the checkout use?")
        page.get_by_role("button", name="Try").click()
        misses = page.locator(".chunks .excerpt")
        expect(misses.first).to_contain_text("Word")
        fits(watched, "32-phone-try")
        page.goto(url_at_host(page, "/panel/guidelines/usage"))
        expect(page.get_by_role("table")).to_be_visible()
        fits(watched, "33-phone-usage")


def fits(watched: Watched, name: str) -> None:
    """Fail if anything is wider than the page, or a table cell is outside of it."""
    watched.shot(name)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    outside = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.offsetParent &&"
        " e.getBoundingClientRect().right > 391).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == [], outside
