"""Implementation of the commands `rag-assets workspace`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from rag_assets.api.record_routes import describe_reason
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.common.formatting import format_count
from rag_assets.common.invalid_values import describe_problem
from rag_assets.ingest.sources.records import ROOT
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.records.states import RecordFilter, RecordState, RecordStatus
from rag_assets.systems.workspace.pulling.pull import Puller, get_pulled_sources
from rag_assets.systems.workspace.pulling.states import PullStates
from rag_assets.systems.workspace.tree import Page
from rag_assets.systems.workspace.tree_service import PageDraft, TreeService
from rag_assets.tenants.model import Tenant

_RECORDS_AT_ONCE: Final = 10_000


@with_reading_session
def show(session: Session, tenant: str, *, as_json: bool) -> None:
    """Print all pages as a tree, each with remarks such as its readers."""
    pages = _open_service(session).list_all_pages(tenant)
    if as_json:
        print_json({"tenant": tenant, "pages": [page for page, _ in pages]})
        return
    for page, depth in pages:
        say(f"{'  ' * depth}{page.uuid}{_format_remarks(page)}")


@with_session
def put(
    session: Session, tenant: str, page: str, values: Mapping[str, Any], *, as_json: bool
) -> None:
    """Create a page in the tree or replace it, and print how many documents moved with it."""
    try:
        draft = PageDraft.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(
            f"the page cannot be stored: {describe_problem(first)}", hint="correct this option"
        ) from None
    done = _open_service(session).put(tenant, page, draft)
    if as_json:
        print_json(done)
        return
    say(
        f"{page} has the scope {done.scope}; {format_count(done.documents, 'document')}"
        " moved with it."
    )


@with_session
def delete(session: Session, tenant: str, page: str, *, confirmed: bool, as_json: bool) -> None:
    """Delete a page, the pages below it, and their records."""
    if not confirmed:
        raise ConfigurationError(
            "this deletes the page, all pages below it, and the records on these pages",
            hint="add --yes",
        )
    done = _open_service(session).remove(tenant, page, operator())
    if as_json:
        print_json(done)
        return
    say(f"{page} is deleted, with {format_count(done.documents, 'document')}.")


@with_session
def access(
    session: Session, tenant: str, page: str, principals: Sequence[str], *, as_json: bool
) -> None:
    """Print whether any of these principals may read a page, and the reason."""
    found = _open_service(session).explain_access(tenant, page, tuple(principals))
    if as_json:
        print_json(found)
        return
    say(f"{'yes' if found.readable else 'no'}: {found.reason}")


@with_reading_session
def records(
    session: Session,
    tenant: str,
    *,
    status: RecordStatus | None,
    page: str | None,
    as_json: bool,
) -> None:
    """Print the status of records, without their titles and texts."""
    chosen, states = RecordFilter(status=status, page_uuid=page), list[RecordState]()
    session.catalog.tenants.get(tenant)
    while found := session.catalog.record_states.page(
        tenant, None, chosen, scopes={}, limit=_RECORDS_AT_ONCE
    ):
        states += found
        last = found[-1]
        chosen = replace(chosen, after=(last.source, last.source_type, last.source_id))
    rows = [
        (
            *(state.source_type, state.source_id, state.page_uuid, state.status),
            *(state.chunk_count, describe_reason(state)),
        )
        for state in states
    ]
    names = ("type", "id", "page", "status", "chunks", "reason")
    if as_json:
        shown = [dict(zip(names, row, strict=True)) for row in rows]
        print_json({"tenant": tenant, "records": shown})
        return
    print_table(names, rows)


def _open_service(session: Session) -> TreeService:
    settings = session.settings
    return TreeService(session.catalog, open_blobs(settings), get_masker(settings.local))


def _format_remarks(page: Page) -> str:
    return "".join(f"  {remark}" for remark in _list_notes(page))


def _list_notes(page: Page) -> Iterator[str]:
    if page.kind == "database":
        yield "(database)"
    if page.has_own_scope:
        readers = ", ".join(page.readers) or "nobody"
        only = "" if page.inherit or page.uuid == ROOT else " alone"
        yield f"read by {readers}{only}"
    if page.archived:
        yield "archived"
    if not page.ai:
        yield "ai off"


_SHOWN = 20


@with_session
def pull(
    session: Session,
    tenant: str,
    *,
    source: str | None,
    keys: bool,
    allow_deletes: bool,
    as_json: bool,
) -> None:
    """Pull changed records from the databases of a tenant's sources now, and print reports."""
    record = session.active(tenant)
    of_tenant = Tenant.from_config(record.config)
    puller = Puller(
        session.catalog,
        open_blobs(session.settings),
        get_masker(session.settings.local),
        record.ref,
        of_tenant,
    )
    scan = keys or allow_deletes
    reports = [
        puller.pull(pulled_source, scan=scan, allow_deletes=allow_deletes)
        for pulled_source in get_pulled_sources(of_tenant, source)
    ]
    if as_json:
        print_json({"tenant": tenant, "sources": reports})
        return
    for report in reports:
        say(report.format_line())
        if report.held:
            warn(
                f"{report.held:,} records of {report.source} no longer exist in its database but"
                " are kept here: run the command with --allow-deletes to remove them"
            )


@with_reading_session
def pulls(session: Session, tenant: str, *, as_json: bool) -> None:
    """Print the state of pulls, and rows that were set aside."""
    record = session.catalog.tenants.get(tenant)
    states = PullStates(session.catalog.database)
    known = states.read_for_tenant(tenant)
    sources = get_pulled_sources(Tenant.from_config(record.config))
    counts = states.count_set_aside(tenant)
    rows = states.list_set_aside_rows(tenant, _SHOWN)
    if as_json:
        found = [known[source.name] for source in sources if source.name in known]
        set_aside = {f"{name}.{type_}": count for (name, type_), count in counts.items()}
        print_json({"tenant": tenant, "sources": found, "set_aside": set_aside, "rows": rows})
        return
    table = []
    for source in sources:
        state = known.get(source.name)
        bad = sum(count for (name, _), count in counts.items() if name == source.name)
        at = state.pulled_at if state else None
        shown = at.strftime("%Y-%m-%d %H:%M:%S") if at else "never"
        held = state.held_deletions if state else 0
        table.append([source.name, shown, f"{bad:,}", f"{held:,}", (state and state.error) or ""])
    print_table(["source", "pulled", "set aside", "held", "last failure"], table)
    for row in rows:
        say(f"{row.source}: {row.source_type} {row.shown}: {row.field}: {row.problem}")
