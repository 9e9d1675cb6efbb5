"""Serve Dagster's UI and the project's own pages until stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence

from rag_assets.plugins.registry import installed_systems
from rag_assets.web.middleware import LOOPBACK_NAMES, FramePolicy, LoopbackGuard
from rag_assets.web.pages import PageFactory, build_routes

_STATEMENT_TIMEOUT_MS = 15_000
_POOL_RECYCLE_SECONDS = 3_600
_POOL_OVERFLOW = 20
_POLL_MS = 2_000


def main() -> None:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(prog="rag_assets.web")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--descriptor", type=int, required=True, help="descriptor of a listening socket"
    )
    parser.add_argument("--workspace", required=True, help="path of workspace.yaml")
    args = parser.parse_args()
    pages = installed_systems().load("pages")
    with socket.socket(fileno=args.descriptor) as listener:
        serve(args.host, listener, args.workspace, [*pages.values()])


def serve(
    host: str, listener: socket.socket, workspace_file: str, pages: Sequence[PageFactory] = ()
) -> None:
    """Serve Dagster's application, with the project's routes before Dagster's catch-all route.

    Args:
        host: host of the listener; on loopback, requests from pages of other sites are refused.
        listener: listening socket from the parent process, which reserved the port.
    """
    import uvicorn
    from dagster import DagsterInstance

    from rag_assets.dagster_compat import web_application

    with DagsterInstance.get() as instance:
        instance.optimize_for_webserver(
            _STATEMENT_TIMEOUT_MS, _POOL_RECYCLE_SECONDS, _POOL_OVERFLOW
        )
        with web_application(
            instance, workspace_file, live_data_poll_rate=_POLL_MS, lifespan=_lifespan
        ) as app:
            app.router.routes[:0] = build_routes(pages=pages)
            if host in LOOPBACK_NAMES:
                app.add_middleware(LoopbackGuard)
            config = uvicorn.Config(FramePolicy(app), log_level="warning")
            uvicorn.Server(config).run(sockets=[listener])


@contextlib.asynccontextmanager
async def _lifespan(_app: object) -> AsyncIterator[None]:
    # Being stopped is not an error.
    with contextlib.suppress(asyncio.CancelledError):
        yield


if __name__ == "__main__":
    main()
