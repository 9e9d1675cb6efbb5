"""serve: the HTTP service."""

from __future__ import annotations

from contextlib import closing

from rag_assets.commands.output import progress
from rag_assets.commands.session import Session, with_session
from rag_assets.retrieval.search import Retriever

_MOST_CONNECTIONS = 1_000
_GRACE_SECONDS = 10


@with_session
def serve(session: Session, host: str, port: int) -> None:
    """Answer requests until told to stop.

    Raises:
        ConfigurationError: no authentication is configured, and other machines can reach it.
    """
    import uvicorn

    from rag_assets.service.app import build_app
    from rag_assets.service.authentication import require_authentication
    from rag_assets.service.backend import Backend
    from rag_assets.service.requests import log_to_standard_error
    from rag_assets.service.settings import ServiceSettings

    settings = ServiceSettings.from_environment()
    require_authentication(host, settings.jwt, session.catalog)
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        app = build_app(Backend(session.catalog, session.store, retriever, settings))
        if settings.jwt is None:
            progress("only service tokens are taken: `rag-assets tokens create` makes one")
        progress(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        log_to_standard_error()
        uvicorn.run(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
