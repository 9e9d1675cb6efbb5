"""Routers and settings that systems may add to the service."""

from __future__ import annotations

from typing import cast

import pytest
from fastapi import APIRouter

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.guard import Guarded
from rag_assets.common.errors import ConfigurationError

BACKEND = cast("Backend", None)


async def _tides() -> str:
    return "high"


def test_a_router_of_a_system_is_described_with_the_others() -> None:
    router = APIRouter(prefix="/rag/tides", route_class=Guarded)
    router.get("")(_tides)
    paths = build_app(BACKEND, routers=[router]).openapi()["paths"]
    assert {"/rag/tides", "/rag/query"} <= set(paths)


def test_an_endpoint_that_needs_no_token_is_refused() -> None:
    inner, outer = APIRouter(prefix="/inner"), APIRouter(prefix="/rag/tides", route_class=Guarded)
    inner.get("")(_tides)
    outer.include_router(inner)
    for router in (inner, outer):
        with pytest.raises(ConfigurationError, match="could be called without a token"):
            build_app(BACKEND, routers=[router])


def test_a_mounted_application_is_refused() -> None:
    router = APIRouter()
    router.mount("/rag/tides", lambda *_: None)
    with pytest.raises(ConfigurationError, match="could be called without a token"):
        build_app(BACKEND, routers=[router])


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/rag/query"), ("DELETE", "/rag/documents/{other}")]
)
def test_an_endpoint_that_hides_another_is_refused(method: str, path: str) -> None:
    router = APIRouter(route_class=Guarded)
    router.add_api_route(path, _tides, methods=[method])
    with pytest.raises(ConfigurationError, match=f"same method and path: {method} {path}"):
        build_app(BACKEND, routers=[router])
