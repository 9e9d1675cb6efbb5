"""mcp: one tenant's knowledge for an agent, over standard input and output."""

from __future__ import annotations

from anyio.to_thread import run_sync

from rag_assets.commands.session import Session, with_session
from rag_assets.mcp_server import Asking, Knowledge, build_server
from rag_assets.retrieval.model import Caller, SearchAnswer, SearchRequest
from rag_assets.retrieval.reading import DocumentReader
from rag_assets.retrieval.search import Retriever


@with_session
def serve(session: Session, tenant_id: str, principals: list[str]) -> None:
    """Answer an agent until it closes standard input.

    Raises:
        UnknownTenant: there is none of that id.
    """
    session.active(tenant_id)
    retriever = Retriever(session.catalog, session.store, session.embedders)
    reader = DocumentReader(session.catalog, session.store)
    asking = Asking(tenant_id, Caller(principals=tuple(principals)))

    async def search(tenant_id: str, request: SearchRequest) -> SearchAnswer:
        return await run_sync(lambda: retriever.search(tenant_id, request), abandon_on_cancel=True)

    build_server(Knowledge(search, reader), lambda _: asking).run("stdio")
