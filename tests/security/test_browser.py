"""Pages of other sites in a real browser on the machine of an installation."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from playwright.sync_api import Browser, Page

from rag_assets.common.settings import Settings
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import Access
from rag_assets.runtime.net import find_free_port
from rag_assets.runtime.processes import ignore_progress
from rag_assets.runtime.stack import LocalStack
from tests.browser import REBOUND, OtherSite, chromium, other_site
from tests.guarded_server import INDEX, access_to, guarded_server, require_untouched

DEFINITIONS = """
import dagster as dg

@dg.asset
def greeting() -> None: ...

defs = dg.Definitions(assets=[greeting])
"""
INSTANCE = """
storage: {postgres: {postgres_url: {env: DAGSTER_POSTGRES_URL}}}
telemetry: {enabled: false}
nux: {enabled: false}
"""
_SETTLE_MS = 1_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture(scope="module")
def site() -> Iterator[OtherSite]:
    with other_site() as site:
        yield site


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[EmbeddedElasticsearch]:
    with guarded_server() as server:
        yield server


@pytest.fixture(scope="module")
def access(server: EmbeddedElasticsearch) -> Access:
    return access_to(server)


@pytest.fixture(scope="module")
def ui(
    browser: Browser, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve Dagster's UI with a workspace of one asset; yield its address."""
    home = tmp_path_factory.mktemp("ui")
    database = f"ui_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    (folder := home / ".local" / "dagster").mkdir(parents=True)
    (folder / "workspace.yaml").write_text("load_from: [{python_file: definitions.py}]\n")
    (folder / "definitions.py").write_text(DEFINITIONS)
    (folder / "dagster.yaml").write_text(INSTANCE)
    settings = Settings(
        home=home,
        database_url=urlsplit(postgres_url)._replace(path=f"/{database}").geturl(),
        elasticsearch_url="http://127.0.0.1:9",
        dagster_port=find_free_port(),
    )
    stack = LocalStack(settings)
    try:
        stack.prepare_run_storage(ignore_progress)
        yield stack.dagster.start(settings.database_url or "")
    finally:
        stack.down()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())


def form(action: str, body: str = "") -> str:
    """Return a form that submits itself into a frame as soon as the page is open."""
    return f"""
      <iframe name="answer"></iframe>
      <form method="post" enctype="text/plain" target="answer" action="{action}">
        <input name='{{"query": "{body}", "x": "' value='"}}'>
      </form>
      <script>document.forms[0].submit()</script>"""


def fetched(page: Page, url: str, **options: object) -> list[object]:
    """Return the status and text that a page's script receives, or the name of the error."""
    answer: list[object] = page.evaluate(
        """async ([url, options]) => {
            try {
                const answer = await fetch(url, options);
                return [answer.status, await answer.text()];
            } catch (error) { return [0, error.name]; }
        }""",
        [url, options],
    )
    return answer


def test_a_form_on_another_site_closes_no_index(
    page: Page, site: OtherSite, server: EmbeddedElasticsearch, access: Access
) -> None:
    with page.expect_response(lambda answer: "_close" in answer.url) as answered:
        page.goto(site.page(form(f"http://127.0.0.1:{access.port}/{INDEX}/_close")))
    assert answered.value.status == 401
    require_untouched(server)


def test_a_form_is_refused_even_where_the_browser_knows_the_password(
    browser: Browser, site: OtherSite, server: EmbeddedElasticsearch, access: Access
) -> None:
    # As if the user had opened the server's address with the password.
    with browser.new_context(
        extra_http_headers={"Authorization": access.get_authorization_header()}
    ) as context:
        page = context.new_page()
        with page.expect_response(lambda answer: "_close" in answer.url) as answered:
            page.goto(site.page(form(f"http://127.0.0.1:{access.port}/{INDEX}/_close")))
        assert answered.value.status == 403
    require_untouched(server)


def test_a_script_on_another_site_changes_and_reads_nothing(
    page: Page, site: OtherSite, server: EmbeddedElasticsearch, access: Access
) -> None:
    page.goto(site.page("a page"))
    base = f"http://127.0.0.1:{access.port}"
    simple = {"method": "POST", "body": "{}", "mode": "no-cors"}
    assert fetched(page, f"{base}/{INDEX}/_close", **simple) == [0, ""], "opaque, and refused"
    assert fetched(page, f"{base}/{INDEX}/_search") == [0, "TypeError"], "not readable"
    assert fetched(page, f"{base}/{INDEX}", method="DELETE") == [0, "TypeError"]
    known = {"headers": {"Authorization": access.get_authorization_header()}}
    assert fetched(page, f"{base}/{INDEX}/_search", **known) == [0, "TypeError"]
    require_untouched(server)


def test_a_name_that_comes_to_mean_this_machine_reads_nothing(
    page: Page, server: EmbeddedElasticsearch, access: Access
) -> None:
    rebound = f"http://{REBOUND}:{access.port}"
    opened = page.goto(f"{rebound}/{INDEX}/_search")
    assert opened is not None
    assert opened.status == 401
    # For the browser, the page's scripts now belong to that site.
    status, text = fetched(page, f"{rebound}/{INDEX}/_search")
    assert (status, "acquisition" in str(text)) == (401, False)
    known = {"headers": {"Authorization": access.get_authorization_header()}}
    status, text = fetched(page, f"{rebound}/{INDEX}/_search", **known)
    assert (status, "acquisition" in str(text)) == (403, False)
    assert fetched(page, f"{rebound}/{INDEX}/_close", method="POST", **known)[0] == 403
    require_untouched(server)


def test_the_owner_reads_in_the_browser_at_the_loopback(
    page: Page, access: Access, server: EmbeddedElasticsearch
) -> None:
    """Prove that the requests above are refused because of their origin."""
    base = f"http://127.0.0.1:{access.port}"
    page.goto(base)
    known = {"headers": {"Authorization": access.get_authorization_header()}}
    status, text = fetched(page, f"{base}/{INDEX}/_search", **known)
    assert (status, "acquisition" in str(text)) == (200, True)


# Dagster's UI


@pytest.mark.parametrize("path", ["/", "/assets", "/graphql", "/documents", "/data-docs/x", "/no"])
def test_no_page_of_the_ui_can_be_framed(page: Page, site: OtherSite, ui: str, path: str) -> None:
    address = site.page(f'<iframe src="{ui}{path}"></iframe>')
    with page.expect_response(lambda answer: answer.url == ui + path) as answered:
        page.goto(address)
    page.wait_for_timeout(_SETTLE_MS)
    headers = answered.value.headers
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    [frame] = page.main_frame.child_frames
    assert frame.url == "chrome-error://chromewebdata/", "the browser shows none of it"


def test_the_ui_works_as_before(page: Page, ui: str) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto(f"{ui}/assets")
    page.get_by_text("greeting").first.wait_for(timeout=60_000)
    assert errors == []
    for _ in range(10):  # a busy Postgres refuses the first pages
        errors.clear()
        page.goto(f"{ui}/documents", timeout=60_000)
        text = page.inner_text("body")
        if "no tenant yet" in text:
            break
        page.wait_for_timeout(3_000)
    assert "no tenant yet" in text
    assert errors == []


def test_another_sites_page_takes_no_action_in_the_ui(page: Page, site: OtherSite, ui: str) -> None:
    query = "{version}"
    with page.expect_response(lambda answer: "/graphql" in answer.url) as answered:
        page.goto(site.page(form(f"{ui}/graphql", query)))
    assert answered.value.status == 403
    opened = page.goto(f"http://{REBOUND}:{urlsplit(ui).port}/graphql?query={query}")
    assert opened is not None
    assert opened.status == 403
    page.goto(f"{ui}/runs")
    own = fetched(
        page,
        f"{ui}/graphql",
        method="POST",
        body=json.dumps({"query": query}),
        headers={"Content-Type": "application/json"},
    )
    assert own[0] == 200
