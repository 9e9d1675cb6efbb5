"""serve: the HTTP service."""

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
    """Answer requests until told to stop.

    Raises:
        ConfigurationError: no authentication is configured, and other machines can reach it; they
            would in cleartext, which is not allowed; or the address cannot be listened at.
    """
    import uvicorn

    from rag_assets.api.app import build_app
    from rag_assets.api.authentication import require_authentication
    from rag_assets.api.backend import Backend
    from rag_assets.api.log_lines import logging_to_standard_error
    from rag_assets.api.server import cleartext_warning, config, listening
    from rag_assets.api.settings import ServiceSettings
    from rag_assets.billing.chat_models import ChatModels

    settings = ServiceSettings.from_environment()
    require_authentication(host, settings.jwt, session.catalog)
    warning = cleartext_warning(host, settings.cleartext)
    with closing(listening(host, port)) as listener:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        chat_models = ChatModels(session.catalog, session.settings)
        backend = Backend(session.catalog, session.store, retriever, settings, chat_models)
        app = build_app(backend)
        if settings.jwt is None:
            progress("only service tokens are taken: `rag-assets tokens create` makes one")
        if warning is not None:
            progress(warning)
        progress(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        # Uvicorn raises the signal again once it has stopped; what is open is then closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        _collect_less_garbage()
        with logging_to_standard_error(masker_of(session.settings.local).text):
            uvicorn.Server(config(app)).run(sockets=[listener])


def _collect_less_garbage() -> None:
    """Look for cycles among what requests leave behind, and no more among what was imported.

    A search makes some thousand objects and hardly a cycle, so a collector that counts objects
    comes often; to look through all modules takes a tenth of a second, and nobody is answered then.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)
