"""A browser page whose console and accessibility are checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[1]
AXE = (ROOT / "tests" / "vendor" / "axe.min.js").read_text()
SHOTS = Path(
    os.environ.get("RAG_ASSETS_TEST_SCREENSHOTS") or ROOT / ".local" / "screenshots" / "panel"
)
WAIT_MS = 60_000


def follow(link: Locator) -> None:
    """Click a link and wait until the next page is loaded.

    A click does not wait, and neither do counts and lists: they describe what has arrived so far.
    """
    with link.page.expect_navigation():
        link.click()


def url_at_host(page: Page, path: str) -> str:
    """Return a URL with the same host as a page."""
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}{path}"


def sign_in(page: Page, origin: str, token: str) -> None:
    """Sign in by the form for a token, which leads to the host name of the new session."""
    page.goto(f"{origin}/panel")
    page.get_by_label("Token", exact=True).fill(token)
    follow(page.get_by_role("button", name="Sign in"))
    follow(page.get_by_role("button", name="Continue"))


class Watched:
    """A page and the errors in its console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, line: Any) -> None:
        if line.type in {"error", "warning"}:
            self.errors.append(line.text)

    def shot(self, name: str) -> None:
        """Save screenshots in both color schemes, after checking accessibility in each."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            self.page.screenshot(
                path=SHOTS / f"{name}-{scheme}.png", full_page=True, caret="initial"
            )
            self.accessible(f"{name} {scheme}")

    def accessible(self, name: str) -> None:
        # Axe tries styles that the page's policy forbids, which is not an error of the page.
        said = list(self.errors)
        self.page.evaluate(AXE)
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found = self.page.evaluate("rules => axe.run({runOnly: rules})", rules)
        self.errors[:] = said
        wrong = {
            rule["id"]: [node["html"][:200] for node in rule["nodes"]]
            for rule in found["violations"]
        }
        assert wrong == {}, f"{name}: {wrong}"
