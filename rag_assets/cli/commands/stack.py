"""up, down, status: start, stop and show the local servers."""

from __future__ import annotations

from dataclasses import asdict

from rag_assets.cli.commands.output import print_json, print_table, progress, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session


@with_session
def up(session: Session, *, dagster: bool, as_json: bool) -> None:
    """Start every stopped server and wait until it answers."""
    session.stack.keep_private()
    session.prepare_home()
    session.stack.up(dagster=dagster, progress=progress)
    # Opening the catalog migrates its tables and reconciles its tenants.
    _ = session.catalog
    _print_status(session, as_json=as_json)


@with_reading_session
def down(session: Session, *, as_json: bool) -> None:
    """Stop every server that `up` started."""
    session.stack.down()
    _print_status(session, as_json=as_json)


@with_reading_session
def status(session: Session, *, as_json: bool) -> None:
    """Print every server, and warn of files that other users can open."""
    _print_status(session, as_json=as_json)


def _print_status(session: Session, *, as_json: bool) -> None:
    services, exposed = session.stack.status(), session.stack.exposed()
    if as_json:
        print_json({"services": [asdict(service) for service in services], "exposed": exposed})
        return
    print_table(
        ["service", "state", "address", "pid", "log"],
        [(s.name, s.state, s.url, s.pid, s.log) for s in services],
    )
    if any(service.state == "unguarded" for service in services):
        say("\nWarning: Elasticsearch requires no password; `rag-assets up` sets one")
    for path in exposed:
        say(f"\nWarning: other users of this machine can open {path}")
    if exposed:
        say("`rag-assets up` restricts the files in the installation's own folder")
    if any(service.state == "stopped" for service in services):
        say("\nStart everything with: rag-assets up")
