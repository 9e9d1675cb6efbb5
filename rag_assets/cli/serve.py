"""Commands for the HTTP service and links to its panel."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import tempfile
from contextlib import ExitStack
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, progress, say
from rag_assets.cli.session import Session, with_serving_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.principals import MEMBERS
from rag_assets.privacy.masker import get_masker
from rag_assets.search import AsyncRetriever
from rag_assets.storage.catalog.accounts.panel_sessions import TokenHolder

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.routing import BaseRoute

    from rag_assets.api.rate_limits import SharedLimits
    from rag_assets.api.settings import ServiceSettings
    from rag_assets.panel.settings import PanelSettings

_GC_THRESHOLD = 50_000
_CLOSING_SECONDS = 10
"""Seconds in which a stopping worker closes its connections and writes its counts."""
_OPERATOR = "operator"
"""Holder of sessions that this command opens; its user can access the catalog anyway."""

app = typer.Typer()


@app.command()
@with_serving_session
def serve(
    session: Session,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen at.")] = 8000,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=8,
            help="Worker processes, which share all limits.",
            show_default="RAG_ASSETS_SERVICE_WORKERS, or 1",
        ),
    ] = None,
) -> None:
    """Serve the HTTP API to callers with a token."""
    from rag_assets.api.authentication import require_authentication
    from rag_assets.api.server import find_cleartext_warning, open_sockets
    from rag_assets.api.settings import ServiceSettings
    from rag_assets.panel.settings import PanelSettings

    settings = ServiceSettings.from_environment(workers=workers)
    panel_settings = PanelSettings.from_environment()
    require_authentication(host, settings.jwt, session.catalog)
    warning = find_cleartext_warning(host, settings.cleartext)
    with ExitStack() as exit_stack:
        listeners = [[listener] for listener in open_sockets(host, port, settings.workers)]
        for [listener] in listeners:
            exit_stack.enter_context(listener)
        if settings.jwt is None:
            progress("only service tokens are accepted: create one with `rag-assets tokens create`")
        if warning is not None:
            progress(warning)
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        progress(address)
        panel = _prepare_panel(panel_settings, host, port, listeners, exit_stack)
        # Uvicorn raises the signal again after it has stopped; connections are then closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if settings.workers == 1:
            _serve_in_process(session, settings, panel, listeners[0])
        else:
            _supervise(session, settings, panel, listeners)


def _prepare_panel(
    panel: PanelSettings,
    host: str,
    port: int,
    listeners: list[list[socket.socket]],
    exit_stack: ExitStack,
) -> PanelSettings | None:
    """Return the settings of the panel; if it is off, print the reason and return None.

    Args:
        panel: settings from the environment.
        host, port: address at which the service listens.
        listeners: sockets of each worker; the sockets at the other loopback address are added.
        exit_stack: closes the added sockets at the end.
    """
    from rag_assets.api.server import open_other_loopback
    from rag_assets.panel.settings import OTHER_LOOPBACK, PATH, URL_VARIABLE

    if not panel.serves(host):
        progress(f"no panel: set {URL_VARIABLE} to the https address that browsers reach")
        return None
    if not panel.is_secure:
        other = OTHER_LOOPBACK[host]
        loopback = open_other_loopback(other, port, len(listeners))
        if loopback is None:
            progress(
                f"no panel: another program listens at {other}, port {port}, and would get the"
                f" panel's cookies; choose another --port, or set {URL_VARIABLE} to an https"
                " address"
            )
            return None
        for own, listener in zip(listeners, loopback, strict=False):
            own.append(exit_stack.enter_context(listener))
    shown_host = f"[{host}]" if ":" in host else host
    progress(f"panel: {panel.origin or f'http://{shown_host}:{port}'}{PATH}")
    return panel


def _serve_in_process(
    session: Session,
    settings: ServiceSettings,
    panel: PanelSettings | None,
    listeners: list[socket.socket],
) -> None:
    """Answer requests in this process."""
    import uvicorn

    from rag_assets.api.log_lines import log_to_standard_error
    from rag_assets.api.server import build_config

    app = _build_service(session, settings, panel)
    _exempt_imports_from_garbage_collection()
    with log_to_standard_error(get_masker(session.settings.local).text):
        uvicorn.Server(build_config(app, settings.keep_alive)).run(sockets=listeners)


def _supervise(
    session: Session,
    settings: ServiceSettings,
    panel: PanelSettings | None,
    listeners: list[list[socket.socket]],
) -> None:
    """Fork workers, each with its own listening sockets, and replace them if they die."""
    from rag_assets.api.settings import METRICS_FOLDER

    masker = get_masker(session.settings.local)
    with (
        tempfile.TemporaryDirectory(prefix="rag-assets-metrics-") as folder,
        tempfile.TemporaryFile() as lock,
    ):
        os.environ[METRICS_FOLDER] = folder
        from rag_assets.api.log_lines import log_to_standard_error, write_warning
        from rag_assets.api.rate_limits import SharedLimits
        from rag_assets.api.server import GRACE_SECONDS, build_config
        from rag_assets.api.supervisor import WorkerServer, WorkerSupervisor

        limits = SharedLimits.from_settings(settings)

        def work(number: int, channel: socket.socket) -> None:
            for other in chain(*listeners[:number], *listeners[number + 1 :]):
                other.close()
            with session, log_to_standard_error(masker.text, lock):
                app = _build_service(session, settings, panel, number, limits)
                _exempt_imports_from_garbage_collection()
                WorkerServer(build_config(app, settings.keep_alive), channel).run(
                    sockets=listeners[number]
                )

        def stopping() -> None:
            # Otherwise clients would wait in vain.
            for listener in chain(*listeners):
                listener.close()

        def report(number: int, reason: str) -> None:
            event = f"worker {number + 1} ended unexpectedly and is replaced"
            write_warning(event, reason, masker.text)

        # Workers share the memory of what is imported and loaded here.
        import_module("rag_assets.api.app")
        masker.load()
        _exempt_imports_from_garbage_collection()
        # A connection belongs to one process; workers open their own.
        session.catalog.close()
        WorkerSupervisor(
            settings.workers,
            work,
            stop_seconds=GRACE_SECONDS + _CLOSING_SECONDS,
            report=report,
            stopping=stopping,
        ).run()


def _build_service(
    session: Session,
    settings: ServiceSettings,
    panel_settings: PanelSettings | None,
    worker: int = 0,
    limits: SharedLimits | None = None,
) -> FastAPI:
    from rag_assets.api.admission import WorkerLimits
    from rag_assets.api.app import build_app
    from rag_assets.api.backend import Backend
    from rag_assets.billing.chat_models import ChatModels
    from rag_assets.plugins.registry import installed_systems
    from rag_assets.storage.blobs.store import open_blobs

    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    backend = Backend(
        session.catalog,
        session.store,
        retriever,
        settings,
        ChatModels(session.catalog, session.settings),
        blobs=open_blobs(session.settings),
        share=WorkerLimits.from_settings(settings, worker),
        limits=limits,
    )
    systems = installed_systems()
    routers = [*systems.load("routers").values()]
    pages: tuple[BaseRoute, ...] = ()
    if panel_settings is not None:
        from rag_assets.panel.application import build_panel

        panel = build_panel(backend, panel_settings, systems.load("panels").values())
        routers, pages = [*routers, panel.router], panel.routes
    return build_app(
        backend,
        routers=routers,
        tools=[*systems.load("tools").values()],
        prompts=[*systems.load("prompts").values()],
        pages=pages,
    )


def _exempt_imports_from_garbage_collection() -> None:
    """Exclude imported objects from garbage collection, and collect rarely.

    A search creates thousands of objects but few cycles. A pass over all modules would block all
    requests for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 100)


@app.command()
@with_session
def panel(
    session: Session,
    tenant_id: TenantArgument,
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65_535, help="Port of `serve`; not used if RAG_ASSETS_PANEL_URL is set."
        ),
    ] = 8000,
    *,
    as_json: Json = False,
) -> None:
    """Print a link that signs in to a tenant's panel once, within a minute."""
    from rag_assets.panel.sessions import create_link
    from rag_assets.panel.settings import PanelSettings
    from rag_assets.plugins.registry import installed_systems

    settings = PanelSettings.from_environment()
    record = session.catalog.tenants.get(tenant_id)
    profile = record.config["profile"]
    profiles = {part.owner.name for part in installed_systems().parts("panels").values()}
    if profile not in profiles:
        raise ConfigurationError(
            f"tenant {tenant_id!r} has the profile {profile!r}, which has no panel",
            hint=f"these profiles have a panel: {', '.join(sorted(profiles))}",
        )
    origin = settings.create_session_origin(port)
    link = create_link(session.catalog, record.ref, TokenHolder(_OPERATOR, (MEMBERS,)), origin)
    if as_json:
        print_json({"tenant": tenant_id, "url": link.url, "expires_at": link.expires_at})
        return
    say(link.url)
    say("\nThe link signs in once, within a minute.")
