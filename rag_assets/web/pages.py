"""The pages next to Dagster's UI: tenants, documents, one document, and the data docs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, get_args

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from rag_assets.common.errors import (
    ConfigurationError,
    RagAssetsError,
    UnknownDocument,
    UnknownTenant,
)
from rag_assets.common.settings import Settings
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.stores import PostgresResource
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.status import Status
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.tenants.overview import TenantSummary
from rag_assets.web.renderer import render

PAGE_ROWS = 200
_OVERDUE = timedelta(hours=30)
_MAX_DIGITS = 9
_HEADERS = {
    # Even if a file name were rendered as markup, it could not run or load anything.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SANDBOX = "sandbox allow-scripts allow-popups"
"""Policy for pages of other software, which isolates their scripts from Dagster's origin."""


class DataDocs(StaticFiles):
    """Great Expectations' pages, isolated from Dagster's origin."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """Return a file, with the header that sandboxes it."""
        response: Response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Content-Security-Policy"] = _SANDBOX
        return response


PageFactory: TypeAlias = Callable[[Callable[[], Catalog]], Sequence[BaseRoute]]
"""Returns the routes of further pages; its argument opens the catalog."""


def build_routes(
    catalog: Callable[[], Catalog] | None = None, *, pages: Sequence[PageFactory] = ()
) -> list[BaseRoute]:
    """Return the routes that are served next to Dagster's UI.

    Args:
        catalog: opens the catalog for a request; by default, the catalog of the installation.
        pages: factories of further pages, which must be plain routes and get the same headers.
    """
    open_catalog = catalog or PostgresResource(installation=InstallationResource()).catalog
    documents = DocumentPages(open_catalog)
    folder = Settings.from_environment().data_docs
    folder.mkdir(parents=True, exist_ok=True)
    docs = DataDocs(directory=folder, html=True)
    return [
        Route("/documents", _build_endpoint(documents.tenants_page)),
        Route("/documents/{tenant}", _build_endpoint(documents.documents_page)),
        Route("/documents/{tenant}/{document_id}", _build_endpoint(documents.document_page)),
        Mount("/data-docs", docs),
        *(add_security_headers(route) for factory in pages for route in factory(open_catalog)),
    ]


def add_security_headers(route: BaseRoute) -> BaseRoute:
    """Add the security headers of our pages to a route of a system's page.

    Raises:
        ConfigurationError: the route is not a plain route.
    """
    if not isinstance(route, Route):
        raise ConfigurationError(
            f"the route of a page is of type {type(route).__name__}, whose responses could lack "
            "security headers",
            hint="use a starlette.routing.Route",
        )
    app = route.app

    async def send_securely(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await app(scope, receive, send_secured)

    route.app = send_securely
    return route


class DocumentPages:
    """Renders the pages, which only read the catalog."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def tenants_page(self, request: Request) -> str:
        """Render the tenants with the states of their documents, serving build and last errors."""
        query = request.query_params
        number = _parse_page_number(query.get("page", ""))
        name, in_trouble = _remove_zero_bytes(query.get("name", "")), query.get("trouble") == "1"
        summaries = self._catalog().overview.tenants(
            containing=name,
            in_trouble=in_trouble,
            limit=PAGE_ROWS + 1,
            offset=(number - 1) * PAGE_ROWS,
        )
        return render(
            "tenants.html",
            summaries=self._catalog().check_results.summaries([t.tenant_id for t in summaries]),
            overdue=datetime.now(UTC) - _OVERDUE,
            tenants=summaries[:PAGE_ROWS],
            more=len(summaries) > PAGE_ROWS,
            name=name,
            trouble=in_trouble,
            page=number,
        )

    def documents_page(self, request: Request) -> str:
        """Render a tenant's documents, filtered by status and name."""
        tenant = self._find_tenant(request)
        query = request.query_params
        status: Status | None = next(
            (s for s in get_args(Status) if s == query.get("status")), None
        )
        number = _parse_page_number(query.get("page", ""))
        name = _remove_zero_bytes(query.get("name", ""))
        rows = self._catalog().overview.page(
            tenant.tenant_id,
            status=status,
            containing=name,
            limit=PAGE_ROWS + 1,
            offset=(number - 1) * PAGE_ROWS,
        )
        return render(
            "documents.html",
            checks=self._list_checks(tenant.tenant_id),
            tenant=tenant,
            held=self._catalog().syncs.list_held(tenant.tenant_id),
            formats=self._catalog().overview.formats(tenant.tenant_id),
            documents=rows[:PAGE_ROWS],
            more=len(rows) > PAGE_ROWS,
            status=status,
            name=name,
            page=number,
        )

    def document_page(self, request: Request) -> str:
        """Render a document with its row in the catalog and its entries in the index."""
        tenant = self._find_tenant(request)
        document_id = _remove_zero_bytes(request.path_params["document_id"])
        documents = self._catalog().documents.find(tenant.tenant_id, [document_id])
        if not documents:
            raise UnknownDocument(
                f"tenant {tenant.tenant_id!r} has no document {document_id!r}",
                hint=(
                    "it was deleted, or the link is from a different installation: find it in the "
                    f"list of documents, or run `rag-assets sync {tenant.tenant_id}`"
                ),
            )
        held_entries = self._catalog().overview.list_held_entries(tenant.tenant_id, document_id)
        return render("document.html", tenant=tenant, document=documents[0], held=held_entries)

    def _list_checks(self, tenant_id: str) -> list[CheckResult]:
        """Return the last result of every check, including checks that were never evaluated."""
        from rag_assets.checks.registry import collect_tenant_checks

        results = {(c.asset, c.name): c for c in self._catalog().check_results.list(tenant_id)}
        for check in collect_tenant_checks():
            key = (check.asset, check.name)
            results.setdefault(key, CheckResult(*key, None, None, None, None, None))
        return [results[key] for key in sorted(results)]

    def _find_tenant(self, request: Request) -> TenantSummary:
        return self._catalog().overview.tenant(_remove_zero_bytes(request.path_params["tenant"]))


def _remove_zero_bytes(text: str) -> str:
    """Remove zero bytes, which Postgres rejects."""
    return text.replace("\0", "")


def _parse_page_number(text: str) -> int:
    """Return the number of a page, from 1; 1 if the text is not a number or is too long."""
    is_number = text.isdecimal() and len(text) <= _MAX_DIGITS
    return max(int(text), 1) if is_number else 1


def _build_endpoint(page: Callable[[Request], str]) -> Callable[[Request], Response]:
    """Return an endpoint that responds with a page, or with an error page if the page fails."""

    def endpoint(request: Request) -> Response:
        try:
            return HTMLResponse(page(request), headers=_HEADERS)
        except UnknownDocument as error:
            return _build_error_page(error, 404, _remove_zero_bytes(request.path_params["tenant"]))
        except UnknownTenant as error:
            return _build_error_page(error, 404)
        except RagAssetsError as error:
            return _build_error_page(error, 503)

    return endpoint


def _build_error_page(error: RagAssetsError, code: int, tenant: str | None = None) -> Response:
    title = "Not found" if code == 404 else "Unavailable"  # noqa: PLR2004
    page = render("error.html", error=error, title=title, tenant=tenant)
    return HTMLResponse(page, code, headers=_HEADERS)
