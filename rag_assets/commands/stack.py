"""up, down, status: the local servers."""

from __future__ import annotations

from dataclasses import asdict

from rag_assets.commands.output import print_json, print_table, progress, say
from rag_assets.commands.session import Session, with_session
from rag_assets.local_stack.stack import ServiceStatus


@with_session
def up(session: Session, *, dagster: bool, as_json: bool) -> None:
    """Start what is not running and wait until it answers."""
    session.prepare_home()
    session.stack.up(dagster=dagster, progress=progress)
    # Opening the catalog brings its tables and its tenants up to date.
    _ = session.catalog
    _show(session.stack.status(), as_json=as_json)


@with_session
def down(session: Session, *, as_json: bool) -> None:
    """Stop every server that was started here."""
    session.stack.down()
    _show(session.stack.status(), as_json=as_json)


@with_session
def status(session: Session, *, as_json: bool) -> None:
    """Show every server."""
    _show(session.stack.status(), as_json=as_json)


def _show(services: list[ServiceStatus], *, as_json: bool) -> None:
    if as_json:
        print_json({"services": [asdict(service) for service in services]})
        return
    print_table(
        ["service", "state", "address", "pid", "log"],
        [(s.name, s.state, s.url, s.pid, s.log) for s in services],
    )
    if any(service.state == "stopped" for service in services):
        say("\nStart everything with: rag-assets up")
