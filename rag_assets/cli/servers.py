"""Commands that start, stop and show the local servers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import print_json, print_table, progress, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.disk_space import own_disks
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.formatting import duration, format_count
from rag_assets.runtime.stack import ServiceStatus

_COMPACTION_LIMIT = timedelta(days=8)
"""Time after which a missing compaction is reported: a week and a day of tolerance."""
_MAX_NAMED = 5

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
def down(
    session: Session,
    *,
    as_json: Json = False,
) -> None:
    """Stop everything that `up` started."""
    session.stack.down()
    _print_status(session, as_json=as_json)


@app.command()
@with_reading_session
def status(
    session: Session,
    *,
    as_json: Json = False,
) -> bool:
    """Show the state and the address of every server, and problems that need attention.

    Exit code 1: the daemon runs, but its sensors do not tick.
    """
    return _print_status(session, as_json=as_json)


@app.command()
def roles() -> None:
    """Print the SQL that creates Postgres roles with fewer rights, for your own server."""
    from rag_assets.storage.catalog.installation.roles import roles_sql

    say(roles_sql())


def _print_status(session: Session, *, as_json: bool) -> bool:
    services, exposed = session.stack.status(), session.stack.list_exposed()
    warnings = [space.error.advice for space in own_disks(session.settings) if space.is_nearly_full]
    warnings += _list_warnings(services)
    postgres = next(service for service in services if service.name == "Postgres")
    doubt = _find_clock_warning(session) if postgres.state in {"running", "external"} else None
    if doubt is not None:
        warnings.append(doubt)
    if postgres.state in {"running", "external"}:
        warnings += _list_schema_warnings(session) + _list_superuser_warnings(session)
    warnings += _list_index_warnings(session, services)
    if postgres.state in {"running", "external"}:
        warnings += _list_held_warnings(session)
    if compaction := _find_compaction_warning(session, services):
        warnings.append(compaction)
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
    found = [service.fault for service in services if service.fault is not None]
    if any(service.state == "unguarded" for service in services):
        found.append("Elasticsearch does not require a password; `rag-assets up` sets one")
    restarts = {s.name: s.restarts for s in services if s.restarts is not None}
    found += [line for name, of in restarts.items() if (line := of.describe(name)) is not None]
    elsewhere = [service.name for service in services if service.state == "elsewhere"]
    if elsewhere:
        found.append(
            f"{', '.join(elsewhere)}: running on this home folder in a different container "
            "or machine; run `rag-assets down` there before `rag-assets up` here"
        )
    return found


def _find_compaction_warning(session: Session, services: Sequence[ServiceStatus]) -> str | None:
    """Return a warning about tenants whose last compaction is too long ago.

    Return None without such tenants, or if the catalog cannot be read.
    """
    if services[0].state not in {"running", "external"}:
        return None
    from sqlalchemy.exc import SQLAlchemyError

    from rag_assets.storage.catalog.database import Database
    from rag_assets.storage.catalog.tenants.overview import Overview

    since = datetime.now(UTC) - _COMPACTION_LIMIT
    try:
        # The session's catalog is not used: showing the status must not change the catalog.
        with closing(
            Database(session.settings.database_url or session.stack.postgres.url)
        ) as database:
            tenants = Overview(database).list_not_compacted_since(since)
    except (RagAssetsError, SQLAlchemyError):
        return None
    if not tenants:
        return None
    named = ", ".join(tenants[:_MAX_NAMED]) + (", …" if len(tenants) > _MAX_NAMED else "")
    return (
        f"{format_count(len(tenants), 'tenant')} not compacted for {_COMPACTION_LIMIT.days} days:"
        f" deleted text stays in files of lake and index: {named}; `rag-assets compact` removes it"
    )


def _list_schema_warnings(session: Session) -> list[str]:
    """Return warnings about programs, including this one, that need another schema revision."""
    from sqlalchemy.exc import SQLAlchemyError

    from rag_assets.storage.catalog.database import Database
    from rag_assets.storage.catalog.migrate import other_programs, require_present_schema

    try:
        with closing(Database(session.endpoints.database_url)) as database:
            require_present_schema(database)
            others = other_programs(database)
    except RagAssetsError as error:
        return [error.advice]
    except SQLAlchemyError:
        return []
    remedy = "`rag-assets up` replaces processes of this home folder; restart any other yourself"
    return [f"{other}; {remedy}" for other in others]


def _list_held_warnings(session: Session) -> list[str]:
    """Return warnings about deletions that are held back."""
    from sqlalchemy.exc import SQLAlchemyError

    from rag_assets.storage.catalog.builds.syncs import DepartureTable
    from rag_assets.storage.catalog.database import Database

    try:
        with closing(Database(session.endpoints.database_url)) as database:
            held = DepartureTable(database).list_held()
    except (RagAssetsError, SQLAlchemyError):
        return []
    shown = [each.line for each in held[:_MAX_NAMED]]
    if len(held) > _MAX_NAMED:
        shown.append(f"deletions of {len(held) - _MAX_NAMED:,} more sources are held back")
    return shown


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
    found = []
    for user, url in users.items():
        with suppress(psycopg.Error):
            if is_superuser(strip_driver(url)):
                found.append(user)
    if not found:
        return []
    warning = (
        f"the account of Postgres is a superuser ({', '.join(found)}), so a fault could affect"
        " everything on that server; `rag-assets roles` prints the SQL for roles with fewer rights"
    )
    return [warning]


def _list_index_warnings(session: Session, services: Sequence[ServiceStatus]) -> list[str]:
    """Return warnings about indexes that are unusable, or differ from the configured layout."""
    elasticsearch = next(service for service in services if service.name == "Elasticsearch")
    if elasticsearch.state not in {"running", "external"}:
        return []
    from rag_assets.storage.index.store import StoreConfig, open_store

    settings = session.settings
    try:
        connection = session.stack.elasticsearch_connection()
        # The session's store is not used, because opening it needs the catalog.
        config = StoreConfig(
            connection, prefix=settings.index_prefix, layout=settings.elasticsearch.layout
        )
        store = open_store(config)
        try:
            warnings = [error.advice for error in store.indexes.conditions()]
            return warnings + _list_layout_warnings(store.indexes.layout_differences())
        finally:
            store.close()
    except RagAssetsError as error:
        return [error.advice]


def _list_layout_warnings(differences: Sequence[str]) -> list[str]:
    """Return a warning about indexes with a different layout than new indexes."""
    if not differences:
        return []
    shown = "; ".join(differences[:_MAX_NAMED]) + ("; …" if len(differences) > _MAX_NAMED else "")
    warning = (
        f"{format_count(len(differences), 'index', 'indexes')} with a layout that differs from "
        f"the settings RAG_ASSETS_ELASTICSEARCH_…: {shown}. New builds follow the "
        "settings; to change replicas, refresh interval and tier of an existing index, "
        "send PUT /INDEX/_settings to Elasticsearch"
    )
    return [warning]


def _find_clock_warning(session: Session) -> str | None:
    """Return why deletion by age is suspended; None if the clock is trusted or cannot be checked.

    This neither upgrades nor reconciles the catalog.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from rag_assets.common.clock import Clock
    from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
    from rag_assets.storage.catalog.catalog import Catalog
    from rag_assets.storage.catalog.database import Database

    try:
        with closing(Catalog(Database(session.endpoints.database_url))) as catalog:
            trusted = get_deletion_time(catalog, Clock())
    except (RagAssetsError, SQLAlchemyError):
        return None
    return trusted.line if isinstance(trusted, ClockDoubt) else None
