"""Endpoints for operating the service: health and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from rag_assets.api.dependencies import BackendDependency
from rag_assets.api.metrics import RequestMetrics
from rag_assets.api.problems import documented
from rag_assets.api.responses import Health

operation = APIRouter(tags=["operation"])


@operation.get("/health/live")
async def live() -> Health:
    """Check that the process answers."""
    return Health()


@operation.get("/health/ready", responses=documented(503))
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
    measured: RequestMetrics = request.app.state.metrics
    return Response(measured.text(), media_type=CONTENT_TYPE_LATEST)
