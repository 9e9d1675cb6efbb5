"""A real Chromium, and a second site whose pages it opens.

Debian's package is called `chromium`. RAG_ASSETS_TEST_BROWSER names a program with another name.
Without a browser, the tests that need one are skipped.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, sync_playwright

OTHER_SITE = "other-site.example"
REBOUND = "rebound.example"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Both names resolve to this machine, as after their owner has changed their address.
    f"--host-resolver-rules=MAP {OTHER_SITE} 127.0.0.1, MAP {REBOUND} 127.0.0.1",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with a new profile."""
    named = os.environ.get("RAG_ASSETS_TEST_BROWSER")
    program = named or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium is installed: name one in RAG_ASSETS_TEST_BROWSER")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield browser
        browser.close()


class OtherSite:
    """A site with another origin, whose pages are written by the test."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path, "")
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def page(self, html: str) -> str:
        """Publish a page; return its address."""
        path = f"/{len(self.pages)}"
        self.pages[path] = f"<!doctype html><title>other site</title>{html}"
        return f"http://{OTHER_SITE}:{self.server.server_port}{path}"


@contextmanager
def other_site() -> Iterator[OtherSite]:
    """Serve the site within the block."""
    site = OtherSite()
    thread = threading.Thread(target=site.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()
