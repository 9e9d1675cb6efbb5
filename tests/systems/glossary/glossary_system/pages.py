"""`/glossary`: the terms that were looked up."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from glossary_system.tables import lookups
from rag_assets.storage.catalog.catalog import Catalog


def routes(catalog: Callable[[], Catalog]) -> list[BaseRoute]:
    """Return the page's route."""

    def page(_: Request) -> Response:
        counts = lookups(catalog().database)
        rows = "".join(f"<li>{escape(term)}: {count}</li>" for term, count in counts.items())
        return HTMLResponse(f"<h1>Glossary</h1><ul>{rows}</ul>")

    return [Route("/glossary", page)]
