"""The panel of code memory: an admin searches, opens chunks, and follows relations to files."""

from __future__ import annotations

import time
from collections.abc import Iterator

import jwt
import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.panel_site import ENVIRONMENT, SECRET
from tests.repositories import MadeRepository
from tests.security.service_process import started
from tests.watched_page import Watched, follow, sign_in, url_at_host

TENANT = "code-panel"
HOSTILE = "<script>alert(1)</script>"
SHOWN = {
    "composer.json": '{"require": {"laravel/framework": "^12.0"}}',
    "bootstrap/app.php": (
        "<?php\nuse Illuminate\\Foundation\\Application;\n"
        "return Application::configure(basePath: dirname(__DIR__))\n"
        "    ->withRouting(web: __DIR__ . '/../routes/web.php')->create();\n"
    ),
    "routes/web.php": (
        "<?php\nuse App\\Http\\Controllers\\BillController;\n"
        "use Illuminate\\Support\\Facades\\Route;\n"
        "Route::get('bills', [BillController::class, 'index'])->name('bills.index');\n"
    ),
    "app/Http/Controllers/BillController.php": (
        "<?php\nnamespace App\\Http\\Controllers;\nuse App\\Models\\Bill;\n"
        f"class BillController {{\n    // {HOSTILE}\n"
        "    public function index() { return Bill::all(); }\n}\n"
    ),
    "app/Models/Bill.php": (
        "<?php\nnamespace App\\Models;\nuse Illuminate\\Database\\Eloquent\\Model;\n"
        "class Bill extends Model {}\n"
    ),
}
HIDDEN = {
    "app/Secret.php": (
        "<?php\nnamespace Hidden;\nclass Secret { public function bill() { return 1; } }\n"
    ),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def origin(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve a project with two repositories, the second of which no caller may read."""
    roots = shared_installation.home.parent / "sources"
    sources = []
    for name, files, scope in (("repo", SHOWN, {}), ("hidden", HIDDEN, {"scope": "board"})):
        made = MadeRepository(roots / f"{TENANT}-{name}")
        made.commit(files)
        sources.append(
            {"name": name, "type": "git", "root": str(made.root), "ref": "HEAD", **scope}
        )
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=sources,
    )
    Driver(shared_installation).sync(TENANT)
    log = tmp_path_factory.mktemp("panel") / "log"
    with started(shared_installation, log, **ENVIRONMENT) as (_, port):
        yield f"http://127.0.0.1:{port}"


def enter(page: Page, origin: str) -> None:
    """Sign in with an admin's token."""
    claims = {"sub": "dana", "exp": int(time.time()) + 600, "role": "admin", "tenants": [TENANT]}
    sign_in(page, origin, jwt.encode(claims, SECRET))
    page.wait_for_url("**/panel/code")


@pytest.mark.ci
def test_an_admin_searches_opens_a_chunk_and_follows_a_relation(
    origin: str, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        enter(page, origin)
        question = "Which controller serves bills.index and which model does it use?"
        page.get_by_label("Question or name").fill(question)
        follow(page.get_by_role("button", name="Search"))
        chunks = page.locator(".chunks details")
        chunks.first.wait_for()
        assert page.locator(".figures dd").first.inner_text() == "walk"
        text = page.locator(".chunks").inner_html()
        assert "BillController::index" in text
        last = chunks.last
        assert not last.locator("pre").is_visible()
        last.locator("summary").click()
        assert last.locator("pre").is_visible()
        assert last.locator(".no").first.inner_text().isdigit()
        watched.shot("code-search")

        page.goto(url_at_host(page, "/panel/code/names?name=bills.index&direction=out&depth=3"))
        graph = page.get_by_role("region", name="Graph around bills.index")
        assert graph.locator("a.first").count() == 1
        told = page.get_by_role("region", name="Relations").inner_text()
        assert "routes to" in told
        assert "Route::get('bills'" in told
        assert "uses model" in told
        watched.shot("code-name")

        follow(graph.locator("a", has_text="BillController::index").first)
        page.get_by_role("heading", level=1, name="BillController::index").wait_for()
        follow(page.get_by_role("link", name="repo/app/Http/Controllers/BillController.php").first)
        page.get_by_role("heading", level=1, name="BillController.php").wait_for()
        assert "6–6" in page.get_by_role("region", name="Definitions").inner_text()
        watched.shot("code-file")
        page.set_viewport_size({"width": 320, "height": 700})
        for path in ("", "?q=bills.index", "/names?name=bills.index&depth=2"):
            page.goto(url_at_host(page, f"/panel/code{path}"))
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 320, path
        watched.shot("code-name-narrow")
        assert watched.errors == []


def test_what_nobody_may_read_is_neither_found_nor_told(origin: str, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        enter(page, origin)
        for path in ("?q=Hidden%5CSecret", "/names?name=Hidden%5CSecret&depth=3"):
            page.goto(url_at_host(page, f"/panel/code{path}"))
            assert "Secret.php" not in page.content()
        page.goto(url_at_host(page, "/panel/code/files?path=hidden%2Fapp%2FSecret.php"))
        assert page.get_by_text("It defines nothing that you may read.").is_visible()


@pytest.mark.parametrize(
    "query",
    [
        f"/names?name={HOSTILE}&direction=sideways&depth=99999",
        "/names?name=%00&depth=-1",
        f"/files?path={HOSTILE}",
        f"?q={HOSTILE}",
        f"?q={'x' * 5000}",
        "/names",
        "/files",
    ],
    ids=["name", "numbers", "path", "question", "long", "no name", "no path"],
)
def test_whatever_is_asked_for_is_shown_as_text(origin: str, browser: Browser, query: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        enter(page, origin)
        answer = page.goto(url_at_host(page, f"/panel/code{query}"))
        assert answer is not None
        assert answer.status == 200
        assert page.locator("main script").count() == 0
