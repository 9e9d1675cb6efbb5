"""serve: run the HTTP service."""

from __future__ import annotations

import gc
import signal
import sys
from contextlib import closing

from rag_assets.cli.commands.output import progress
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.privacy.masker import masker_of
from rag_assets.retrieval import AsyncRetriever

_YOUNG_OBJECTS = 50_000


@with_session
def serve(session: Session, host: str, port: int) -> None:
    """Answer requests until the process is stopped.

    Raises:
        ConfigurationError: other machines could reach the service without authentication or in
            cleartext, which is not allowed; or the address cannot be bound.
    """
    import uvicorn

    from rag_assets.api.app import build_app
    from rag_assets.api.authentication import require_authentication
    from rag_assets.api.backend import Backend
    from rag_assets.api.log_lines import logging_to_standard_error
    from rag_assets.api.server import cleartext_warning, config, listening
    from rag_assets.api.settings import ServiceSettings
    from rag_assets.billing.chat_models import ChatModels
    from rag_assets.mcp.tools import tool_names
    from rag_assets.systems.registry import installed_systems

    settings = ServiceSettings.from_environment()
    require_authentication(host, settings.jwt, session.catalog)
    warning = cleartext_warning(host, settings.cleartext)
    with closing(listening(host, port)) as listener:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        chat_models = ChatModels(session.catalog, session.settings)
        backend = Backend(session.catalog, session.store, retriever, settings, chat_models)
        systems = installed_systems()
        app = build_app(
            backend,
            routers=[*systems.load("routers").values()],
            tools=[*systems.load("tools", reserved=tool_names()).values()],
        )
        if settings.jwt is None:
            progress("only service tokens are accepted: create one with `rag-assets tokens create`")
        if warning is not None:
            progress(warning)
        progress(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        # Uvicorn raises the signal again once it has stopped; connections are then closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        _exempt_imports_from_collection()
        with logging_to_standard_error(masker_of(session.settings.local).text):
            uvicorn.Server(config(app)).run(sockets=[listener])


def _exempt_imports_from_collection() -> None:
    """Collect garbage of requests only, and rarely.

    A search makes some thousand objects and hardly a cycle, so a collector that counts objects
    runs often; to go through all modules takes a tenth of a second in which no request proceeds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)
