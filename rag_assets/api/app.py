"""The ASGI application: routes, problem documents and middleware."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.routing import BaseRoute

from rag_assets.api.backend import Backend, BackendDependency
from rag_assets.api.description import Description
from rag_assets.api.guard import Guarded
from rag_assets.api.knowledge_routes import answers, journal, knowledge
from rag_assets.api.mcp_routes import agents, run_mcp_server
from rag_assets.api.middleware import RequestMetrics, RequestMiddleware
from rag_assets.api.problems import document_problems, handle_problems
from rag_assets.api.record_routes import records
from rag_assets.api.record_streams import contents, record_lines
from rag_assets.api.responses import Health
from rag_assets.api.upload_routes import streaming, uploading
from rag_assets.api.write_routes import reconciling, writing
from rag_assets.common.errors import ConfigurationError
from rag_assets.mcp.tools import Prompt, Tool

operation = APIRouter(tags=["operation"])


@operation.get("/health/live")
async def live() -> Health:
    """Check that the process answers."""
    return Health()


@operation.get("/health/ready", responses=document_problems(503))
async def ready(backend: BackendDependency) -> Health:
    """Check that the process, Postgres and Elasticsearch answer."""
    await backend.require_ready()
    return Health()


@operation.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Return metrics of requests for Prometheus, without a breakdown by tenant."""
    request_metrics: RequestMetrics = request.app.state.metrics
    return Response(request_metrics.render(), media_type=CONTENT_TYPE_LATEST)


_ABOUT = (
    "Answers from those documents of a tenant that the caller may read."
    " Failures are problem documents (RFC 9457)."
)


def build_app(
    backend: Backend,
    *,
    routers: Sequence[APIRouter] = (),
    tools: Sequence[Tool] = (),
    prompts: Sequence[Prompt] = (),
    pages: Sequence[BaseRoute] = (),
) -> FastAPI:
    """Build the service; its OpenAPI description is at /openapi.json.

    Args:
        backend: servers and limits; closed when the application ends.
        routers: additional endpoints; each must use the route class Guarded, which requires a valid
            token.
        tools: additional tools for agents.
        prompts: prompts for agents.
        pages: pages of the panel, which identifies its users by sessions instead of tokens.

    Raises:
        ConfigurationError: an additional endpoint does not require a token, or has the same method
            and path as another endpoint.
    """
    # FastAPI's documentation pages would load scripts from another site.
    app = FastAPI(
        title="rag-assets",
        version=version("rag-assets"),
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # A redirect would send the client to the host in its Host header, which may be forged.
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.backend = backend
    app.state.metrics = RequestMetrics()
    app.state.tools = tuple(tools)
    app.state.prompts = tuple(prompts)
    pushing = (contents, record_lines, records, reconciling, writing)
    core_routers = (knowledge, *pushing, streaming, uploading, journal, answers, operation, agents)
    for router in core_routers:
        app.include_router(router)
    _require_distinct([*core_routers, *routers])
    for router in routers:
        _require_guarded(router)
        app.include_router(router)
    app.router.routes.extend(pages)
    handle_problems(app)
    app.add_middleware(RequestMiddleware, metrics=app.state.metrics)
    app.state.description = description = Description(app)
    app.add_route("/openapi.json", description.respond, include_in_schema=False)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await app.state.backend.retriever.load()
    try:
        state = app.state
        async with (
            state.backend.restores.watching(),
            run_mcp_server(state.backend, state.tools, state.prompts) as state.mcp_server,
        ):
            yield
    finally:
        await app.state.backend.close()


def _require_distinct(routers: Sequence[APIRouter]) -> None:
    """Refuse two endpoints with the same method and path, because one would hide the other."""
    endpoints: set[tuple[str, str]] = set()
    for route in (route for router in routers for route in router.routes):
        path = re.sub(r"{[^}]*}", "{}", getattr(route, "path", ""))
        for method in getattr(route, "methods", None) or ():
            if (method, path) in endpoints:
                raise ConfigurationError(
                    f"two endpoints have the same method and path: {method} "
                    f"{getattr(route, 'path', '')}",
                    hint="choose a different path for the endpoint of the system",
                )
            endpoints.add((method, path))


def _require_guarded(router: APIRouter) -> None:
    for route in router.routes:
        if not isinstance(route, Guarded):
            path = getattr(route, "path", "of a nested router")
            raise ConfigurationError(
                f"router {router.prefix or '/'}: endpoint {path} could be called without a token",
                hint="create each router with route_class=rag_assets.api.guard.Guarded, and do not"
                " nest routers",
            )
