"""mcp: serve one tenant to an agent over standard input and output."""

from __future__ import annotations

import asyncio

from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.mcp.knowledge import Knowledge, MessageContext
from rag_assets.mcp.messages import serve_stdio
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import DEFAULT_TOOLS
from rag_assets.plugins.registry import installed_systems
from rag_assets.privacy.masker import masker_of
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller


@with_reading_session
def serve(session: Session, tenant_id: str, caller: Caller) -> None:
    """Answer messages until the agent closes standard input.

    Raises:
        UnknownTenant: no tenant has that id.
        RestorePending: the catalog was restored; grants in it may have been revoked since.
    """
    from rag_assets.api.log_lines import logging_to_standard_error
    from rag_assets.api.restore_watch import RestoreWatch

    session.require_trusted_grants(caller.principals)
    watch = RestoreWatch(session.keeper)

    session.catalog.tenants.get(tenant_id)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    reader = DocumentReader(session.catalog, session.store, retriever.policy)
    systems = installed_systems()
    tools = [*DEFAULT_TOOLS, *systems.load("tools").values()]
    prompts = [*systems.load("prompts").values()]
    message = MessageContext(tenant_id, caller)

    server = build_server(
        Knowledge(
            retriever.search,
            reader,
            masker=retriever.masker,
            require_trust=watch.require_accepted if caller.principals else None,
            settings=session.settings,
        ),
        lambda _: message,
        tools,
        prompts,
    )

    async def run() -> None:
        try:
            await retriever.load()
            async with watch.watching():
                await serve_stdio(server)
        finally:
            await retriever.close()

    with logging_to_standard_error(masker_of(session.settings.local).text):
        asyncio.run(run())
