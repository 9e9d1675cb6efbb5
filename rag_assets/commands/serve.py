"""serve: the HTTP service."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from contextlib import closing

from rag_assets.commands.output import progress
from rag_assets.commands.session import Session, with_session
from rag_assets.errors import ConfigurationError
from rag_assets.privacy.masker import masker_of
from rag_assets.retrieval import AsyncRetriever

_BACKLOG = 1_000
_GRACE_SECONDS = 10
_YOUNG_OBJECTS = 50_000


@with_session
def serve(session: Session, host: str, port: int) -> None:
    """Answer requests until told to stop.

    Raises:
        ConfigurationError: no authentication is configured, and other machines can reach it; or
            the address cannot be listened at.
    """
    import uvicorn

    from rag_assets.accounts.chat_models import ChatModels
    from rag_assets.service.app import build_app
    from rag_assets.service.authentication import require_authentication
    from rag_assets.service.backend import Backend
    from rag_assets.service.connections import Connection
    from rag_assets.service.log_lines import logging_to_standard_error
    from rag_assets.service.settings import ServiceSettings

    settings = ServiceSettings.from_environment()
    require_authentication(host, settings.jwt, session.catalog)
    with closing(_listening(host, port)) as listener:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        chat_models = ChatModels(session.catalog, session.settings)
        backend = Backend(session.catalog, session.store, retriever, settings, chat_models)
        app = build_app(backend)
        if settings.jwt is None:
            progress("only service tokens are taken: `rag-assets tokens create` makes one")
        progress(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        # Uvicorn raises the signal again once it has stopped; what is open is then closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_config=None,
            http=Connection,
            ws="none",
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        _collect_less_garbage()
        with logging_to_standard_error(masker_of(session.settings.local).text):
            uvicorn.Server(config).run(sockets=[listener])


def _collect_less_garbage() -> None:
    """Look for cycles among what requests leave behind, and no more among what was imported.

    A search makes some thousand objects and hardly a cycle, so a collector that counts objects
    comes often; to look through all modules takes a tenth of a second, and nobody is answered then.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 100)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen at {host}, port {port}: {error.strerror or 'no such address'}",
            hint="choose another with --port or --host",
        ) from None
