"""Take the screenshots in docs/images: Dagster's UI, the project's pages in it, and the panel.

    make screenshots

An installation in a temporary folder indexes the example handbook with a few broken files, and a
project's guidelines. Its spending is made up, because the shipped model costs nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from unittest.mock import patch

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from rag_assets.cli.output import progress
from rag_assets.cli.session import Session
from rag_assets.cli.sync import sync_tenant
from rag_assets.pipeline.context import SliceLimits
from rag_assets.runtime.program_processes import build_dagster_environment
from rag_assets.storage.catalog.accounts.usage import Usage, today

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
COMMAND = str(Path(sys.executable).with_name("rag-assets"))
TENANT = "handbook"
ORGANIZATION, PROJECT = "harbour", "checkout"
TASK = "Write an integration test for a migration of the database"
PLAIN_TEXT = "Write tests in TypeScript.\nUse data-testid selectors. No fixed waits.\n"
GUIDELINES = (
    "engineering/testing-policy.md",
    "engineering/code-review.md",
    "policies/supplier-maps-and-geocoding.docx",
)
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
_GROUP = "/locations/rag_assets/asset-groups/knowledge"
_DOLLARS_PER_TOKEN = 0.02e-6
_SPENDING_DAYS = 32
_RUN_SECONDS = 600.0
_START_SECONDS = 120
_SETTLE_MS = 2_000
_WAIT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Screenshot:
    """One screenshot of a page of Dagster's UI.

    Attributes:
        name: file name without suffix.
        path: path of the page.
        shows: text that appears once the page is complete.
        height, width: size in pixels.
        at_end: whether to show the end of the page.
    """

    name: str
    path: str
    shows: str
    height: int = 1000
    width: int = 1400
    at_end: bool = False


def list_screenshots(tenant: str) -> Iterator[Screenshot]:
    """Yield the screenshots of Dagster's UI."""
    yield Screenshot("asset-graph", _GROUP, "Passed", 560, 1900)
    partition = f"view=partitions&partition={tenant}"
    yield Screenshot("ui-search-index", f"/assets/search_index?{partition}", "failed documents")
    yield Screenshot("ui-parsed-text", f"/assets/parsed_text?{partition}", "by format", 1720)
    yield Screenshot("ui-chunks", f"/assets/chunks?{partition}", "first chunks", 1100)
    check = "/assets/search_index?view=checks&checkDetail=quarantine"
    yield Screenshot("ui-quarantine", check, "Latest execution", 850)
    yield Screenshot("ui-embedding-cost", f"/assets/embedding_cost?{partition}", "31 days", 1150)
    failed = f"/documents/{tenant}?status=FAILED"
    yield Screenshot("ui-documents", failed, "part of a name", 450, at_end=True)
    yield Screenshot("ui-tenants", "/documents", "Documents of all tenants", 350)


def run_command(*arguments: str, text: str | None = None) -> str:
    """Run a command of rag-assets, and return what it prints."""
    progress(f"rag-assets {' '.join(arguments)}")
    done = subprocess.run(  # noqa: S603
        [COMMAND, *arguments], input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def find_free_port() -> int:
    """Return a port that no program uses."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def write_handbook(folder: Path) -> None:
    """Copy the example handbook, and add files that cannot be parsed."""
    shutil.copytree(ROOT / "examples" / "handbook", folder)
    (folder / "policies" / "empty.md").write_bytes(b"")
    (folder / "policies" / "latin1.md").write_text("# Café\n", encoding="latin-1")
    whole = (folder / "policies" / "courier-location-memo.pdf").read_bytes()
    (folder / "policies" / "truncated.pdf").write_bytes(whole[: len(whole) // 2])


def sync_in_one_run(tenant: str) -> None:
    """Sync a tenant in a single run, so that the pages of its latest run show all documents.

    On a slow machine, the usual time limits of a run would divide the documents among several runs.
    """
    limits = (2_000, 64, *repeat(_RUN_SECONDS, 4))
    with patch.object(SliceLimits.__init__, "__defaults__", limits), Session() as session:
        result = sync_tenant(session, tenant)
    if result.error is not None:
        raise result.error


def report_made_up_costs() -> None:
    """Record spending for each of the last days, and run Dagster's job that reports it."""
    amounts = random.Random(1)  # noqa: S311 - not for security
    with Session() as session:
        ref = session.catalog.tenants.get(TENANT).ref
        for back in range(_SPENDING_DAYS):
            tokens = amounts.randrange(20_000, 900_000)
            used = Usage(requests=tokens // 500, texts=tokens // 100, tokens=tokens)
            used += Usage(cost=tokens * _DOLLARS_PER_TOKEN)
            day = today() - timedelta(days=back)
            session.catalog.usage.add(ref, "openai", "text-embedding-3-small", used, day=day)
        dagster = build_dagster_environment(session.settings, session.endpoints.database_url)
    module, job = "rag_assets.definitions", "report_costs"
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", module, "-j", job]
    subprocess.run(  # noqa: S603
        command, env=os.environ | dagster, check=True, capture_output=True
    )


def fill_installation(handbook: Path) -> None:
    """Index the handbook and the guidelines of a project, and check them."""
    write_handbook(handbook)
    run_command("tenants", "add", TENANT, "--source", str(handbook))
    run_command("projects", "put", ORGANIZATION, PROJECT, "--provider", "local")
    run_command("organizations", "put", ORGANIZATION, "--guidelines")
    project = (ORGANIZATION, PROJECT)
    run_command("guidelines", "text", *project, "--file", "-", text=PLAIN_TEXT)
    documents = [str(handbook / path) for path in (*GUIDELINES, "policies/truncated.pdf")]
    run_command("guidelines", "upload", *project, *documents)
    sync_in_one_run(TENANT)
    run_command("sync", f"{ORGANIZATION}.{PROJECT}")
    for tenant in (f"{ORGANIZATION}.{PROJECT}", TENANT):
        run_command("check", tenant)
    report_made_up_costs()


@contextmanager
def run_installation(home: Path) -> Iterator[int]:
    """Fill an installation and run it until the block ends; yield the port of Dagster's UI."""
    port = find_free_port()
    os.environ |= {"RAG_ASSETS_HOME": str(home), "RAG_ASSETS_DAGSTER_PORT": str(port)}
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        # Dagster's daemon would sync the tenants at the same time.
        run_command("up", "--no-dagster")
        fill_installation(home / "handbook")
        run_command("up")
        yield port
    finally:
        run_command("down")


@contextmanager
def serve() -> Iterator[int]:
    """Run the service until the block ends; yield its port once it responds."""
    port = find_free_port()
    with subprocess.Popen([COMMAND, "serve", "--port", str(port)]) as process:  # noqa: S603
        try:
            wait_for_port(port)
            yield port
        finally:
            process.terminate()


def wait_for_port(port: int) -> None:
    """Wait until a program accepts connections at a port."""
    deadline = monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if monotonic() > deadline:
                raise
            sleep(0.2)
        else:
            return


def save_screenshot(page: Page, name: str, *, full_page: bool = False) -> None:
    """Save a screenshot among the images of the documentation, with 256 colors to keep it small."""
    page.wait_for_timeout(_SETTLE_MS)
    with Image.open(BytesIO(page.screenshot(full_page=full_page))) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(IMAGES / f"{name}.png", optimize=True)
    progress(f"{name}.png")


def photograph_dagster(browser: Browser, origin: str) -> None:
    """Save the screenshots of Dagster's UI."""
    page = browser.new_page()
    for shot in list_screenshots(TENANT):
        page.set_viewport_size({"width": shot.width, "height": shot.height})
        page.goto(origin + shot.path)
        page.wait_for_function(
            "text => document.body.innerHTML.includes(text)"
            " && !document.body.innerText.includes('Loading')",
            arg=shot.shows,
            timeout=_WAIT_MS,
        )
        if shot.at_end:
            page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        save_screenshot(page, shot.name)


def photograph_panel(browser: Browser, port: int) -> None:
    """Sign in to the panel of the project, and save its screenshots."""
    tenant = f"{ORGANIZATION}.{PROJECT}"
    link = run_command("panel", tenant, "--port", str(port)).split()[0]
    page = browser.new_page(viewport={"width": 1280, "height": 780})
    page.set_default_timeout(_WAIT_MS)
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/panel/guidelines")
    save_screenshot(page, "panel", full_page=True)
    page.get_by_role("link", name="Try it").click()
    page.get_by_label("Task").fill(TASK)
    page.get_by_role("button", name="Try", exact=True).click()
    page.get_by_text("What the prompt gets").wait_for()
    save_screenshot(page, "panel-try", full_page=True)


def find_browser() -> str | None:
    """Return the path of an installed Chromium; None for the one that Playwright installs."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def take_screenshots(browser_path: str | None) -> None:
    """Take all screenshots of a new installation."""
    with (
        TemporaryDirectory(prefix="screenshots-") as folder,
        run_installation(Path(folder)) as dagster_port,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=browser_path, args=_FLAGS)
        photograph_dagster(browser, f"http://127.0.0.1:{dagster_port}")
        with serve() as port:
            photograph_panel(browser, port)
        browser.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(prog="docs.tools.screenshots")
    parser.add_argument("--browser", default=find_browser(), help="path of a Chromium")
    take_screenshots(parser.parse_args(arguments).browser)


if __name__ == "__main__":
    main()
