"""Take screenshots of Dagster's UI and the project's pages in it, for the documentation.

    rag-assets up && rag-assets sync TENANT && rag-assets check TENANT
    python -m docs.tools.screenshots http://127.0.0.1:3000 TENANT --browser /usr/bin/chromium

The tenant of the pictures in docs/images is the example handbook with a few broken files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "images"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
_GROUP = "/locations/rag_assets/asset-groups/knowledge"
_SETTLE_MS = 2_000
_WAIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Screenshot:
    """One screenshot.

    Attributes:
        name: file name without suffix.
        path: path of the page.
        shows: text that appears once the page is complete.
        height, width: size in pixels.
    """

    name: str
    path: str
    shows: str
    height: int = 1000
    width: int = 1400


def list_screenshots(tenant: str) -> Iterator[Screenshot]:
    """Yield the screenshots of a tenant for the documentation."""
    yield Screenshot("asset-graph", _GROUP, "Asset checks", 560, 1900)
    partition = f"view=partitions&partition={tenant}"
    yield Screenshot("ui-search-index", f"/assets/search_index?{partition}", "failed documents")
    yield Screenshot("ui-parsed-text", f"/assets/parsed_text?{partition}", "by format", 1250)
    yield Screenshot("ui-chunks", f"/assets/chunks?{partition}", "first chunks", 1100)
    check = "/assets/search_index?view=checks&checkDetail=quarantine"
    yield Screenshot("ui-quarantine", check, "Latest execution", 850)
    yield Screenshot("ui-embedding-cost", f"/assets/embedding_cost?{partition}", "31 days", 1150)
    yield Screenshot("ui-documents", f"/documents/{tenant}?status=FAILED", "part of a name", 800)
    yield Screenshot("ui-tenants", "/documents", "Documents of all tenants", 420)


def take_screenshot(page: Page, base: str, shot: Screenshot) -> None:
    """Open a page, wait until it is complete, and save a screenshot."""
    page.set_viewport_size({"width": shot.width, "height": shot.height})
    page.goto(base + shot.path)
    page.wait_for_function(
        "text => document.body.innerHTML.includes(text)", arg=shot.shows, timeout=_WAIT_MS
    )
    page.wait_for_timeout(_SETTLE_MS)
    page.screenshot(path=IMAGES / f"{shot.name}.png")


def main() -> None:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(prog="docs.tools.screenshots")
    parser.add_argument("address", help="address of Dagster's UI")
    parser.add_argument("tenant")
    parser.add_argument("--browser", help="a Chromium to use instead of Playwright's own")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.browser, args=list(_FLAGS))
        page = browser.new_page()
        for shot in list_screenshots(arguments.tenant):
            take_screenshot(page, arguments.address.rstrip("/"), shot)
        browser.close()


if __name__ == "__main__":
    main()
