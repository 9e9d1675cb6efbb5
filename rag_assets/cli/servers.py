"""Commands that start, stop and show the local servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import print_json, print_table, progress, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.disk_space import measure_own_disks
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.formatting import duration, format_count
from rag_assets.runtime.stack import ServiceStatus

if TYPE_CHECKING:
    from rag_assets.storage.catalog.database import Database

_T = TypeVar("_T")

_COMPACTION_LIMIT = timedelta(days=8)
"""Time after which a missing compaction is reported: a week and a day of tolerance."""
_MAX_LISTED = 5

app = typer.Typer()


@app.command()
@with_session
def up(
    session: Session,
    *,
    as_json: Json = False,
    dagster: Annotated[
        bool, typer.Option(help="Also start Dagster's webserver and daemon.")
    ] = True,
) -> None:
    """Start Postgres, Elasticsearch, and Dagster's webserver and daemon."""
    session.stack.keep_private()
    session.prepare_home()
    session.stack.start_servers(for_dagster=dagster, progress=progress)
    session.stack.supervise(progress)
    # Opening the catalog migrates its tables and reconciles its tenants; if this fails, no
    # automatic process may use it.
    _ = session.catalog
    if dagster:
        session.stack.start_dagster(progress)
    _print_status(session, as_json=as_json)


@app.command()
@with_reading_session
def down(session: Session, *, as_json: Json = False) -> None:
    """Stop everything that `up` started."""
    session.stack.down()
    _print_status(session, as_json=as_json)


@app.command()
@with_reading_session
def status(session: Session, *, as_json: Json = False) -> bool:
    """Show the state and the address of every server, and problems that need attention.

    Exit code 1: the daemon runs, but its sensors do not tick.
    """
    return _print_status(session, as_json=as_json)


@app.command()
def roles() -> None:
    """Print the SQL that creates Postgres roles with fewer rights, for your own server."""
    from rag_assets.storage.catalog.installation.roles import build_roles_sql

    say(build_roles_sql())


def _print_status(session: Session, *, as_json: bool) -> bool:
    services, exposed = session.stack.status(), session.stack.list_exposed()
    available = {s.name for s in services if s.state in {"running", "external"}}
    warnings = [
        space.error.advice for space in measure_own_disks(session.settings) if space.is_nearly_full
    ]
    warnings += _list_warnings(services)
    doubt = _find_clock_warning(session) if "Postgres" in available else None
    if doubt is not None:
        warnings.append(doubt)
    if "Postgres" in available:
        warnings += _list_schema_warnings(session) + _list_superuser_warnings(session)
    if "Elasticsearch" in available:
        warnings += _list_index_warnings(session)
    if "Postgres" in available:
        warnings += _list_held_warnings(session) + _list_compaction_warnings(session)
    if as_json:
        print_json(
            {
                "services": [asdict(service) for service in services],
                "exposed": exposed,
                "warnings": warnings,
                "clock": doubt,
            }
        )
    else:
        _print_services(services)
        for path in exposed:
            say(f"\nWarning: other users of this machine can open {path}")
        if exposed:
            say("`rag-assets up` restricts the files in the installation's own folder")
        for warning in warnings:
            say(f"\nWarning: {warning}")
        if any(service.state == "stopped" for service in services):
            say("\nStart everything with: rag-assets up")
    return all(service.fault is None for service in services)


def _print_services(services: Sequence[ServiceStatus]) -> None:
    print_table(
        ["service", "state", "address", "pid", "log"],
        [(s.name, s.state, s.url, s.pid, s.log) for s in services],
    )
    for service in services:
        if service.last_tick is not None and service.fault is None:
            age = (datetime.now(UTC) - service.last_tick).total_seconds()
            say(f"\nThe daemon's sensors last ticked {duration(max(age, 0.0))} ago")


def _list_warnings(services: Sequence[ServiceStatus]) -> list[str]:
    warnings = [service.fault for service in services if service.fault is not None]
    if any(service.state == "unguarded" for service in services):
        warnings.append("Elasticsearch does not require a password; `rag-assets up` sets one")
    restarts = {s.name: s.restarts for s in services if s.restarts is not None}
    warnings += [line for name, of in restarts.items() if (line := of.describe(name)) is not None]
    elsewhere = [service.name for service in services if service.state == "elsewhere"]
    if elsewhere:
        warnings.append(
            f"{', '.join(elsewhere)}: running on this home folder in a different container "
            "or machine; run `rag-assets down` there before `rag-assets up` here"
        )
    return warnings


def _read_database(session: Session, read: Callable[[Database], _T]) -> _T | None:
    """Return the result of `read`; None if Postgres or the catalog cannot be read.

    The session's catalog is not used: showing the status must not upgrade or reconcile the catalog.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from rag_assets.storage.catalog.database import Database

    try:
        with closing(Database(session.endpoints.database_url)) as database:
            return read(database)
    except (RagAssetsError, SQLAlchemyError):
        return None


def _list_compaction_warnings(session: Session) -> list[str]:
    """Return a warning about tenants whose last compaction is too long ago."""
    from rag_assets.storage.catalog.tenants.overview import Overview

    since = datetime.now(UTC) - _COMPACTION_LIMIT
    tenants = _read_database(session, lambda db: Overview(db).list_not_compacted_since(since))
    if not tenants:
        return []
    count = (
        f"{format_count(len(tenants), 'tenant')} not compacted for {_COMPACTION_LIMIT.days} days"
    )
    named_tenants = _join_first(tenants, ", ")
    remedy = "`rag-assets compact` removes it"
    return [f"{count}: deleted text stays in files of lake and index: {named_tenants}; {remedy}"]


def _list_schema_warnings(session: Session) -> list[str]:
    """Return warnings about programs, including this one, that need another schema revision."""
    from rag_assets.storage.catalog.migrate import list_other_programs, require_present_schema

    def list_warnings(database: Database) -> list[str]:
        try:
            require_present_schema(database)
            others = list_other_programs(database)
        except RagAssetsError as error:
            return [error.advice]
        remedy = (
            "`rag-assets up` replaces processes of this home folder; restart any other yourself"
        )
        return [f"{other}; {remedy}" for other in others]

    return _read_database(session, list_warnings) or []


def _list_held_warnings(session: Session) -> list[str]:
    """Return warnings about deletions that are held back."""
    from rag_assets.storage.catalog.builds.syncs import DepartureTable

    held_deletions = _read_database(session, lambda db: DepartureTable(db).list_held()) or []
    shown_warnings = [held_deletion.warning for held_deletion in held_deletions[:_MAX_LISTED]]
    if len(held_deletions) > _MAX_LISTED:
        shown_warnings.append(
            f"deletions of {len(held_deletions) - _MAX_LISTED:,} more sources are held back"
        )
    return shown_warnings


def _list_superuser_warnings(session: Session) -> list[str]:
    """Return a warning if a configured Postgres account is a superuser."""
    import psycopg

    from rag_assets.runtime.program_processes import strip_driver
    from rag_assets.storage.catalog.installation.roles import is_superuser

    try:
        endpoints = session.endpoints
    except RagAssetsError:
        return []
    users = {
        "commands": endpoints.database_url,
        "service": endpoints.service_url,
        "Dagster": endpoints.dagster_url,
    }
    superusers = []
    for user, url in users.items():
        with suppress(psycopg.Error):
            if is_superuser(strip_driver(url)):
                superusers.append(user)
    if not superusers:
        return []
    warning = (
        f"the account of Postgres is a superuser ({', '.join(superusers)}), so a fault could affect"
        " everything on that server; `rag-assets roles` prints the SQL for roles with fewer rights"
    )
    return [warning]


def _list_index_warnings(session: Session) -> list[str]:
    """Return warnings about indexes that are unusable, or differ from the configured layout."""
    from rag_assets.storage.index.store import StoreConfig, open_store

    settings = session.settings
    try:
        # The session's store is not used, because opening it needs the catalog.
        store = open_store(
            StoreConfig(
                session.stack.elasticsearch_connection(),
                prefix=settings.index_prefix,
                layout=settings.elasticsearch.layout,
            )
        )
        with closing(store):
            warnings = [error.advice for error in store.indexes.conditions()]
            return warnings + _list_layout_warnings(store.indexes.list_layout_differences())
    except RagAssetsError as error:
        return [error.advice]


def _list_layout_warnings(differences: Sequence[str]) -> list[str]:
    """Return a warning about indexes with a different layout than new indexes."""
    if not differences:
        return []
    warning = (
        f"{format_count(len(differences), 'index', 'indexes')} with a layout that differs from "
        f"the settings RAG_ASSETS_ELASTICSEARCH_…: {_join_first(differences, '; ')}. New builds "
        "follow the settings; to change replicas, refresh interval and tier of an existing index, "
        "send PUT /INDEX/_settings to Elasticsearch"
    )
    return [warning]


def _join_first(texts: Sequence[str], separator: str) -> str:
    """Join the first texts, with an ellipsis for the others."""
    return separator.join([*texts[:_MAX_LISTED], *(["…"] if len(texts) > _MAX_LISTED else [])])


def _find_clock_warning(session: Session) -> str | None:
    """Return why deletion by age is suspended; None if it is active or cannot be checked."""
    from rag_assets.common.clock import Clock
    from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
    from rag_assets.storage.catalog.catalog import Catalog

    trusted = _read_database(session, lambda db: get_deletion_time(Catalog(db), Clock()))
    return trusted.message_with_hint if isinstance(trusted, ClockDoubt) else None
