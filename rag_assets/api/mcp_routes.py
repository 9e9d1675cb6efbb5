"""MCP over HTTP: tools and resources for agents that send a valid token.

There are no sessions, so no data of a caller outlives its request.
See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from fastapi import APIRouter, Depends, Request, Response
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import MAX_BODY_BYTES, Guarded
from rag_assets.api.identity import ForeignOrigin
from rag_assets.api.middleware import replay_body
from rag_assets.api.problems import format_problem
from rag_assets.common.errors import UnknownTenant
from rag_assets.mcp.messages import find_rejection
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import DEFAULT_TOOLS, Knowledge, MessageContext, Prompt, Tool
from rag_assets.search.access import require_query_role
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.search.progress import NO_LIMITS, Patience
from rag_assets.storage.catalog.catalog import Catalog

_T = TypeVar("_T")

_BAD_REQUEST = 400


async def _require_allowed_origin(request: Request, backend: BackendDependency) -> None:
    """Refuse requests from web pages whose origin is not allowed; this prevents DNS rebinding."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in backend.settings.mcp_origins:
        raise ForeignOrigin(
            "web pages of this origin are not allowed",
            hint="add the origin to RAG_ASSETS_MCP_ORIGINS",
        )


agents = APIRouter(
    dependencies=[Depends(_require_allowed_origin)], include_in_schema=False, route_class=Guarded
)


class _McpResponse(Response):
    """A response that the MCP SDK creates for a message."""

    def __init__(self, server: MCPServer[None], message: bytes) -> None:
        super().__init__()
        self._server = server
        self._message = message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = replay_body(self._message, receive)
        await self._server.session_manager.handle_request(scope, message, send)


@asynccontextmanager
async def run_mcp_server(
    backend: Backend, tools: Sequence[Tool], prompts: Sequence[Prompt] = ()
) -> AsyncIterator[MCPServer[None]]:
    """Run an MCP server for the messages of all tenants until the context ends."""

    async def search(
        tenant_id: str, request: SearchRequest, *, patience: Patience = NO_LIMITS
    ) -> SearchAnswer:
        return await backend.retriever.search(tenant_id, request, patience=patience)

    async def run_blocking(message: MessageContext, work: Callable[[], _T]) -> _T:
        return await backend.run(message.tenant_id, message.caller.name, work)

    knowledge = Knowledge(
        search=search,
        reader=backend.reader,
        error_text=lambda error, message: format_problem(error, message.request_id),
        run_blocking=run_blocking,
        masker=backend.retriever.masker,
        settings=backend.embedders.settings,
    )
    server = build_server(
        knowledge, lambda request: request.state.message_context, [*DEFAULT_TOOLS, *tools], prompts
    )
    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=MAX_BODY_BYTES,
        # _require_allowed_origin() checks origins; any host name is allowed.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    async with server.session_manager.run():
        yield server


@agents.post("/mcp")
@agents.post("/mcp/{tenant}")
async def exchange(
    request: Request,
    identity: IdentityDependency,
    backend: BackendDependency,
    tenant: str | None = None,
) -> Response:
    """Answer one message of an agent.

    The path must name the tenant if the token covers several tenants.
    """
    tenant_id = request.state.tenant = identity.require_tenant(tenant)
    caller = identity.caller
    profile = await backend.run(
        tenant_id, identity.name, lambda: _find_profile(backend.catalog, tenant_id, caller)
    )
    request.state.message_context = MessageContext(
        tenant_id, caller, request.state.request_id, profile
    )
    message = await request.body()
    version = request.headers.get("mcp-protocol-version")
    if (rejected := find_rejection(message, version)) is not None:
        return Response(
            rejected.model_dump_json(by_alias=True, exclude_unset=True),
            status_code=_BAD_REQUEST,
            media_type="application/json",
        )
    return _McpResponse(request.app.state.mcp_server, message)


def _find_profile(catalog: Catalog, tenant_id: str, caller: Caller) -> str:
    """Return the profile of a tenant that the caller may use; "" if the tenant does not exist.

    The error about a missing tenant is left to the tool that the message calls.
    """
    with suppress(UnknownTenant):
        profile = catalog.tenants.get(tenant_id).profile
        require_query_role(profile, caller)
        return profile
    return ""
