"""The application: routes, problems, and what surrounds every request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from rag_assets.api.answer_routes import answers
from rag_assets.api.backend import Backend
from rag_assets.api.event_routes import journal
from rag_assets.api.knowledge_routes import knowledge, operation
from rag_assets.api.mcp_routes import agents, serving_agents
from rag_assets.api.middleware import Figures, Surrounded
from rag_assets.api.openapi import Description
from rag_assets.api.problems import handle_problems
from rag_assets.api.write_routes import writing

_ABOUT = (
    "Answers from a tenant's documents, only what the caller may read."
    " Failures are problem documents (RFC 9457)."
)


def build_app(backend: Backend) -> FastAPI:
    """The service over these servers; its description is at /openapi.json.

    Args:
        backend: what requests are answered from; closed when the application ends.
    """
    # Its pages of documentation would load scripts from another site.
    app = FastAPI(
        title="rag-assets",
        version=version("rag-assets"),
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # They would send clients to whatever their Host header says.
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.backend = backend
    app.state.figures = Figures()
    app.include_router(knowledge)
    app.include_router(writing)
    app.include_router(journal)
    app.include_router(answers)
    app.include_router(operation)
    app.include_router(agents)
    handle_problems(app)
    app.add_middleware(Surrounded, figures=app.state.figures)
    app.state.description = described = Description(app.openapi())
    app.add_route("/openapi.json", described.response, include_in_schema=False)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await app.state.backend.retriever.load()
    try:
        async with serving_agents(app.state.backend) as app.state.agents:
            yield
    finally:
        await app.state.backend.close()
