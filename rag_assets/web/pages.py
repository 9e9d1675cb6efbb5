"""The routes: all tenants, one tenant's documents, one document, and the data docs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import get_args

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rag_assets.common.errors import RagAssetsError, UnknownTenant
from rag_assets.common.settings import Settings
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.check_results import CheckResult
from rag_assets.storage.catalog.document_rows import Status
from rag_assets.storage.catalog.overview import TenantSummary
from rag_assets.web.renderer import render
from resources.stores import PostgresResource

PAGE_ROWS = 200
_OVERDUE = timedelta(hours=30)
_LONGEST_NUMBER = 9
_HEADERS = {
    # Names of files are anybody's; were one to slip through as markup, it could do nothing.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SANDBOX = "sandbox allow-scripts allow-popups"
"""For pages of another make: their scripts run, but not as part of Dagster's own origin."""


class DataDocs(StaticFiles):
    """Great Expectations' pages, kept from acting in Dagster's name."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """A file, with the header that sandboxes it."""
        response: Response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Content-Security-Policy"] = _SANDBOX
        return response


def routes(catalog: Callable[[], Catalog] | None = None) -> list[BaseRoute]:
    """What is served beside Dagster's UI.

    Args:
        catalog: opens the catalog when a page is asked for; the installation's own by default.
    """
    pages = Pages(catalog or PostgresResource().catalog)
    folder = Settings.from_environment().data_docs
    folder.mkdir(parents=True, exist_ok=True)
    docs = DataDocs(directory=folder, html=True)
    return [
        Route("/documents", pages.tenants),
        Route("/documents/{tenant}", pages.documents),
        Route("/documents/{tenant}/{document_id}", pages.document),
        Mount("/data-docs", docs),
    ]


class Pages:
    """The endpoints; each reads the catalog and nothing else.

    Args:
        catalog: opens the catalog, or gives the one that is open.
    """

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def tenants(self, request: Request) -> Response:
        """The tenants: how their documents stand, what answers, and what went wrong last."""
        return _answer(lambda: self._tenants(request))

    def documents(self, request: Request) -> Response:
        """A tenant's documents, narrowed down by status and name."""
        return _answer(lambda: self._documents(request))

    def document(self, request: Request) -> Response:
        """One document: its row, and what the index holds of it."""
        return _answer(lambda: self._document(request))

    def _tenants(self, request: Request) -> str:
        asked = request.query_params
        number = _page_number(asked.get("page", ""))
        name, in_trouble = _name(asked.get("name", "")), asked.get("trouble") == "1"
        found = self._catalog().overview.tenants(
            containing=name,
            in_trouble=in_trouble,
            limit=PAGE_ROWS + 1,
            offset=(number - 1) * PAGE_ROWS,
        )
        return render(
            "tenants.html",
            summaries=self._catalog().check_results.summaries([t.tenant_id for t in found]),
            overdue=datetime.now(UTC) - _OVERDUE,
            tenants=found[:PAGE_ROWS],
            more=len(found) > PAGE_ROWS,
            name=name,
            trouble=in_trouble,
            page=number,
        )

    def _documents(self, request: Request) -> str:
        tenant = self._tenant(request)
        asked = request.query_params
        status: Status | None = next(
            (s for s in get_args(Status) if s == asked.get("status")), None
        )
        number = _page_number(asked.get("page", ""))
        name = _name(asked.get("name", ""))
        found = self._catalog().overview.page(
            tenant.tenant_id,
            status=status,
            containing=name,
            limit=PAGE_ROWS + 1,
            offset=(number - 1) * PAGE_ROWS,
        )
        return render(
            "documents.html",
            checks=self._checks(tenant.tenant_id),
            tenant=tenant,
            formats=self._catalog().overview.formats(tenant.tenant_id),
            documents=found[:PAGE_ROWS],
            more=len(found) > PAGE_ROWS,
            status=status,
            name=name,
            page=number,
        )

    def _document(self, request: Request) -> str:
        tenant = self._tenant(request)
        document_id = _name(request.path_params["document_id"])
        found = self._catalog().documents.find(tenant.tenant_id, [document_id])
        if not found:
            raise UnknownTenant(
                f"tenant {tenant.tenant_id!r} has no such document",
                hint="it was deleted a while ago, or the link is of another installation",
            )
        held = self._catalog().overview.held(tenant.tenant_id, document_id)
        return render("document.html", tenant=tenant, document=found[0], held=held)

    def _checks(self, tenant_id: str) -> list[CheckResult]:
        """The last result of every check, those included that were never evaluated."""
        from checks.registry import tenant_checks

        found = {(c.asset, c.name): c for c in self._catalog().check_results.of(tenant_id)}
        for check in tenant_checks():
            key = (check.asset, check.name)
            found.setdefault(key, CheckResult(*key, None, None, None, None, None))
        return [found[key] for key in sorted(found)]

    def _tenant(self, request: Request) -> TenantSummary:
        return self._catalog().overview.tenant(_name(request.path_params["tenant"]))


def _name(asked: str) -> str:
    """Part of a name, without the zero bytes that Postgres takes for an error."""
    return asked.replace("\0", "")


def _page_number(asked: str) -> int:
    """Which page is asked for, from 1; what is none, or a number of absurd length, is the first."""
    is_number = asked.isdecimal() and len(asked) <= _LONGEST_NUMBER
    return max(int(asked), 1) if is_number else 1


def _answer(page: Callable[[], str]) -> Response:
    try:
        return HTMLResponse(page(), headers=_HEADERS)
    except RagAssetsError as error:
        code = 404 if isinstance(error, UnknownTenant) else 503
        return HTMLResponse(render("error.html", error=error), code, headers=_HEADERS)
