"""mcp: one tenant's knowledge for an agent, over standard input and output."""

from __future__ import annotations

from rag_assets.commands.session import Session, with_session
from rag_assets.mcp_server import build_server
from rag_assets.retrieval.model import Caller
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
    caller = Caller(principals=tuple(principals))
    build_server(retriever, reader, tenant_id, caller).run("stdio")
