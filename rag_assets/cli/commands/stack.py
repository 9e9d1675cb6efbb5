"""up, down, status: the local servers."""

from __future__ import annotations

from dataclasses import asdict

from rag_assets.cli.commands.output import print_json, print_table, progress, say
from rag_assets.cli.commands.session import Session, with_session


@with_session
def up(session: Session, *, dagster: bool, as_json: bool) -> None:
    """Start what is not running and wait until it answers."""
    session.stack.keep_private()
    session.prepare_home()
    session.stack.up(dagster=dagster, progress=progress)
    # Opening the catalog brings its tables and its tenants up to date.
    _ = session.catalog
    _show(session, as_json=as_json)


@with_session
def down(session: Session, *, as_json: bool) -> None:
    """Stop every server that was started here."""
    session.stack.down()
    _show(session, as_json=as_json)


@with_session
def status(session: Session, *, as_json: bool) -> None:
    """Show every server, and warn of files that other users of the machine can get at."""
    _show(session, as_json=as_json)


def _show(session: Session, *, as_json: bool) -> None:
    services, exposed = session.stack.status(), session.stack.exposed()
    if as_json:
        print_json({"services": [asdict(service) for service in services], "exposed": exposed})
        return
    print_table(
        ["service", "state", "address", "pid", "log"],
        [(s.name, s.state, s.url, s.pid, s.log) for s in services],
    )
    if any(service.state == "unguarded" for service in services):
        say("\nWarning: Elasticsearch asks for no password; `rag-assets up` gives it one")
    for path in exposed:
        say(f"\nWarning: other users of this machine can open {path}")
    if exposed:
        say("`rag-assets up` closes what lies in the installation's own folder")
    if any(service.state == "stopped" for service in services):
        say("\nStart everything with: rag-assets up")
