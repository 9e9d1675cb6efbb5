"""Our pages next to Dagster's UI, requested like a browser, with a real catalog."""

from __future__ import annotations

import asyncio
import re

import pytest
from starlette.applications import Starlette

from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.web.pages import PAGE_ROWS, build_routes
from tests.driving import Driver
from tests.installation import FAST, Installation

HOSTILE = "<b>x<b>.md"


def get(app: Starlette, target: str) -> tuple[int, str, dict[str, str]]:
    """Send a GET request; return status, body and headers."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "root_path": "",
        "query_string": query.encode(),
        "headers": [],
    }
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()  # a browser that stays
        raise AssertionError

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start, *bodies = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], b"".join(part["body"] for part in bodies).decode(), headers


@pytest.fixture(scope="module")
def app(driver: Driver, shared_installation: Installation) -> Starlette:
    folder = shared_installation.add_tenant("team", **FAST)
    (folder / "good.md").write_text("# Good\n\nIt can be read.\n")
    (folder / "empty.md").write_text("")
    (folder / HOSTILE).write_text("")
    driver.sync("team")
    (folder / "good.md").write_bytes(b"# Good\n\n\xff\xfe now it cannot.\n")
    driver.sync("team")
    return Starlette(routes=build_routes(lambda: driver.session.catalog))


def id_of(driver: Driver, uri: str) -> str:
    [document] = [d for d in driver.session.catalog.documents.all("team") if d.uri == uri]
    return document.document_id


def record_check(driver: Driver, tenant_id: str, *, passed: bool) -> None:
    catalog = driver.session.catalog
    outcome = CheckResult("chunks", "secrets", passed, "ERROR", "as the test says")
    catalog.check_results.record(catalog.tenants.get(tenant_id).ref, [outcome])


def test_the_page_of_tenants_shows_indexed_and_failed_documents(app: Starlette) -> None:
    status, page, _ = get(app, "/documents")
    assert status == 200
    assert '<a href="/documents/team">team</a>' in page
    assert '<a class="FAILED" href="/documents/team?status=FAILED">3</a>' in page


def test_tenants_are_narrowed_down(
    app: Starlette, driver: Driver, shared_installation: Installation
) -> None:
    for path in ("/documents?name=TEA", "/documents?trouble=1", "/documents?trouble=1&name=team"):
        assert '<a href="/documents/team">team</a>' in get(app, path)[1], path
    for path in ("/documents?name=t%25m", "/documents?page=9", "/documents?name=no%00such"):
        assert "/documents/team" not in get(app, path)[1], path
    folder = shared_installation.add_tenant("untroubled", **FAST)
    (folder / "fine.md").write_text("# Fine\n\nNothing is wrong here.\n")
    shared_installation.sync("untroubled")
    assert "never checked" in get(app, "/documents?name=untroubled")[1]
    assert "untroubled" in get(app, "/documents?trouble=1")[1]
    record_check(driver, "untroubled", passed=True)
    assert "never checked" not in get(app, "/documents?name=untroubled")[1]
    assert "untroubled" not in get(app, "/documents?trouble=1")[1]


def test_a_tenants_checks_are_shown_with_the_time_of_each(app: Starlette, driver: Driver) -> None:
    assert "never evaluated" in get(app, "/documents/team")[1]
    record_check(driver, "team", passed=False)
    page = get(app, "/documents/team")[1]
    assert "as the test says" in page
    assert re.search(r">secrets</a></td>\s*<td[^>]*>failed</td>\s*<td[^>]*>20\d\d-", page)
    assert "1 check failed" in get(app, "/documents?name=team")[1]


def test_many_tenants_come_page_by_page(app: Starlette, driver: Driver) -> None:
    overview = driver.session.catalog.overview
    everyone = overview.tenants()
    assert [overview.tenants(limit=1, offset=n)[0] for n in range(len(everyone))] == everyone
    assert [overview.tenant(tenant.tenant_id) for tenant in everyone] == everyone


def test_a_tenants_documents_are_narrowed_down(app: Starlette, driver: Driver) -> None:
    page = get(app, "/documents/team?status=FAILED&name=EMPTY")[1]
    assert f'<a href="/documents/team/{id_of(driver, "files/empty.md")}">files/empty.md</a>' in page
    assert "the document is empty" in page
    assert "good.md" not in page
    assert "None." in get(app, "/documents/team?status=PROCESSING")[1]
    assert "None." in get(app, "/documents/team?name=100%25_sure")[1], "a name is no pattern"
    assert "None." in get(app, "/documents/team?page=2")[1]
    assert "None." in get(app, "/documents/team?name=no%00such")[1]
    for page in ("0", "-1", "x", "9" * 5_000):
        assert "empty.md" in get(app, f"/documents/team?page={page}")[1]


def test_a_failed_document_has_its_reason_and_what_is_still_served(
    app: Starlette, driver: Driver
) -> None:
    status, page, _ = get(app, f"/documents/team/{id_of(driver, 'files/good.md')}")
    assert status == 200
    assert "the document is not UTF-8 text" in page
    assert "tried again as soon as the file or a setting changes" in page
    assert "The last good version" in page
    assert "a former version" in page
    empty = get(app, f"/documents/team/{id_of(driver, 'files/empty.md')}")[1]
    assert "No version is searchable" in empty


def test_names_of_files_are_text_and_nothing_else(app: Starlette) -> None:
    status, page, headers = get(app, "/documents/team?name=%3Cscript%3E")
    assert status == 200
    assert "<script>" not in page
    assert "<b>x" not in get(app, "/documents/team")[1]
    assert headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("target", ["nobody", "nobody/0", "no\0body"])
def test_the_page_of_an_unknown_tenant_reports_it(app: Starlette, target: str) -> None:
    status, page, _ = get(app, f"/documents/{target}")
    assert status == 404
    assert "<title>Not found" in page
    assert "no tenant" in page


@pytest.mark.parametrize("document_id", ["0", "\0", "f" * 32])
def test_the_page_of_an_unknown_document_links_to_those_of_the_tenant(
    app: Starlette, document_id: str
) -> None:
    status, page, _ = get(app, f"/documents/team/{document_id}")
    assert status == 404
    assert "<title>Not found" in page
    assert "tenant &#39;team&#39; has no document" in page
    assert '<a href="/documents/team">' in page


def test_an_unknown_document_is_an_error_of_its_own(driver: Driver, app: Starlette) -> None:
    from starlette.requests import Request

    from rag_assets.common.errors import UnknownDocument, UnknownTenant
    from rag_assets.web.pages import DocumentPages

    pages = DocumentPages(lambda: driver.session.catalog)

    def page(**names: str) -> str:
        return pages.document_page(Request({"type": "http", "path_params": names}))

    with pytest.raises(UnknownDocument, match="tenant 'team' has no document '0'"):
        page(tenant="team", document_id="0")
    with pytest.raises(UnknownTenant):
        page(tenant="nobody", document_id="0")


def test_pages_of_systems_are_served_beside_the_others(driver: Driver) -> None:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from rag_assets.storage.catalog.catalog import Catalog

    def made(catalog: Callable[[], Catalog]) -> list[Route]:
        def names(_: Request) -> PlainTextResponse:
            found = catalog().overview.tenants()
            return PlainTextResponse(" ".join(tenant.tenant_id for tenant in found))

        return [Route("/tide-tables", names)]

    app = Starlette(routes=build_routes(lambda: driver.session.catalog, pages=[made]))
    assert "team" in get(app, "/tide-tables")[1]
    assert get(app, "/documents")[0] == 200


def test_data_docs_are_served_in_a_sandbox(
    app: Starlette, shared_installation: Installation
) -> None:
    docs = shared_installation.home / ".local" / "data_docs"
    (docs / "team").mkdir(parents=True)
    (docs / "team" / "index.html").write_text("<p>docs</p>")
    (docs.parent / "secret.html").write_text("not to be served")
    status, page, headers = get(app, "/data-docs/team/index.html")
    assert (status, page) == (200, "<p>docs</p>")
    assert headers["content-security-policy"].startswith("sandbox")
    assert get(app, "/data-docs/../secret.html")[0] == 404


def test_many_documents_come_page_by_page(app: Starlette, driver: Driver) -> None:
    found = driver.session.catalog.overview.page("team", limit=2)
    rest = driver.session.catalog.overview.page("team", limit=PAGE_ROWS, offset=2)
    everything = driver.session.catalog.documents.all("team")
    assert [d.uri for d in (*found, *rest)] == [d.uri for d in everything]
    assert len(found) == 2
