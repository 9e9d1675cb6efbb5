"""A panel session ends while a user is typing: the text is kept, and can be saved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import text

from tests.browser import chromium
from tests.installation import Installation
from tests.panel_site import PanelSite, panel_site
from tests.watched_page import SHOTS, Watched

WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 760}
WRITTEN = "Write tests in TypeScript.\nUse no <b>fixed</b> waits."
ENDS = {
    "idle": "UPDATE rag_catalog.panel_sessions SET used_at = now() - interval '31 minutes'",
    "old": "UPDATE rag_catalog.panel_sessions SET expires_at = now()",
}


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
            yield site


def end_sessions(site: PanelSite, how: str = "idle") -> None:
    with site.driver.session.catalog.database.begin() as connection:
        connection.execute(text(ENDS[how]))


def enter(page: Page, site: PanelSite, project: str) -> str:
    tenant = site.project(project)
    page.goto(site.link(project))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/panel/guidelines")
    return tenant


def saved(site: PanelSite, tenant: str) -> str | None:
    with site.driver.session.catalog.database.begin() as connection:
        return connection.scalar(
            text("SELECT text FROM rag_catalog.guideline_texts WHERE tenant = :tenant"),
            {"tenant": tenant},
        )


def sign_in_again(page: Page, site: PanelSite, **claims: str) -> None:
    page.get_by_label("Token of an admin of the project").fill(site.token(**claims))
    page.get_by_role("button", name="Sign in again").click()


@pytest.mark.parametrize("how", ENDS)
def test_a_text_outlives_its_session_and_is_saved_after_signing_in_again(
    site: PanelSite, browser: Browser, how: str
) -> None:
    with browser.new_context(viewport=WIDE) as context:
        watched = Watched(context.new_page())
        page = watched.page
        tenant = enter(page, site, f"written-{how}")
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        expect(page.locator("#text-tokens")).not_to_have_text("0 tokens")
        end_sessions(site, how)
        page.get_by_role("button", name="Save text").click()
        expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible()
        expect(page.locator("#ended")).to_contain_text("after 30 minutes without use")
        expect(page.get_by_role("textbox", name="Plain text")).to_have_value(WRITTEN)
        assert saved(site, tenant) is None
        watched.shot("session-ended")
        page.set_viewport_size(NARROW)
        watched.shot("session-ended-390")
        page.set_viewport_size(WIDE)

        # Neither a second attempt nor the page's own requests change anything.
        page.get_by_role("button", name="Save text").click()
        page.evaluate("htmx.trigger('#list', 'refresh')")
        expect(page.get_by_role("textbox", name="Plain text")).to_have_value(WRITTEN)

        page.get_by_label("Token of an admin of the project").fill("not-a-token")
        page.get_by_role("button", name="Sign in again").click()
        expect(page.locator("#ended-problem")).to_contain_text("not valid here")
        site.project(f"other-{how}")
        page.locator("#ended input[name=project]").evaluate(f"e => e.value = 'other-{how}'")
        sign_in_again(page, site)
        expect(page.locator("#ended-problem")).to_contain_text("does not cover the project")
        page.locator("#ended input[name=project]").evaluate(f"e => e.value = 'written-{how}'")
        sign_in_again(page, site)
        expect(page.locator("#ended")).to_be_hidden()
        expect(page.locator("#said")).to_contain_text("Save your text now")
        expect(page.get_by_role("textbox", name="Plain text")).to_have_value(WRITTEN)
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#text")).to_contain_text("Saved.")
        assert saved(site, tenant) == WRITTEN
        # Forms without a script have the new token too.
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/panel/sign-in**")


def test_a_part_of_the_page_that_meets_the_end_first_leaves_the_text(
    site: PanelSite, browser: Browser
) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        enter(page, site, "polled")
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        expect(page.locator("#text-tokens")).not_to_have_text("0 tokens")
        end_sessions(site)
        page.evaluate("htmx.trigger('#list', 'refresh')")
        expect(page.locator("#ended")).to_be_visible()
        expect(page.get_by_role("textbox", name="Plain text")).to_have_value(WRITTEN)
        sign_in_again(page, site)
        expect(page.locator("#ended")).to_be_hidden()
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#text")).to_contain_text("Saved.")
        # Without a text, the page leads to the usual form.
        end_sessions(site)
        page.evaluate("htmx.trigger('#list', 'refresh')")
        page.wait_for_url("**/panel/sign-in")


@pytest.mark.parametrize("meets_the_end", [False, True])
def test_a_text_is_saved_after_another_tab_signed_in(
    site: PanelSite, browser: Browser, meets_the_end: bool
) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page, other = context.new_page(), context.new_page()
        tenant = enter(page, site, f"two-tabs-{meets_the_end}".lower())
        other.goto(page.url)
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        other.get_by_role("textbox", name="Plain text").fill("Other")
        end_sessions(site)
        if meets_the_end:
            page.evaluate("htmx.trigger('#list', 'refresh')")
            expect(page.locator("#ended")).to_be_visible()
        other.get_by_role("button", name="Save text").click()
        sign_in_again(other, site)
        expect(other.locator("#ended")).to_be_hidden()
        # The form has the former session's token.
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#said")).to_contain_text("Save your text now")
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#text")).to_contain_text("Saved.")
        assert saved(site, tenant) == WRITTEN


def test_no_refusal_takes_the_place_of_a_text(site: PanelSite, browser: Browser) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        tenant = enter(page, site, "refused")
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        page.route("**/guidelines/text", lambda route: route.abort())
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#refused")).to_contain_text("does not answer")
        page.unroute("**/guidelines/text")
        # This exceeds the size limit of a form.
        page.evaluate("document.getElementById('text-field').value = 'a'.repeat(1700000)")
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#refused")).to_be_visible(timeout=30_000)
        assert "Your text is not saved" in page.locator("#refused").inner_text()
        assert page.evaluate("document.getElementById('text-field').value.length") == 1_700_000
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        page.get_by_role("button", name="Save text").click()
        expect(page.locator("#text")).to_contain_text("Saved.")
        expect(page.locator("#refused")).to_be_hidden()
        assert saved(site, tenant) == WRITTEN


@pytest.mark.parametrize("how", ENDS)
def test_without_a_script_the_page_that_refuses_shows_the_text(
    site: PanelSite, browser: Browser, how: str
) -> None:
    with browser.new_context(viewport=NARROW, java_script_enabled=False) as context:
        page = context.new_page()
        tenant = enter(page, site, f"plain-{how}")
        page.get_by_role("textbox", name="Plain text").fill(WRITTEN)
        end_sessions(site, how)
        page.get_by_role("button", name="Save text").click()
        expect(page.get_by_role("heading")).to_have_text("Your session has ended")
        expect(page.locator("main")).to_contain_text("after 30 minutes without use")
        kept = page.get_by_label("Your text")
        expect(kept).to_have_value(WRITTEN)
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / "session-ended-without-script.png", full_page=True)
        assert saved(site, tenant) is None
