"""The commands `rag-assets workspace`.

Commands import the system's services where they use them, so that help is printed quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from pydantic import ValidationError

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.common.formatting import format_count
from rag_assets.common.invalid_values import describe_first_problem

if TYPE_CHECKING:
    from rag_assets.storage.catalog.records.states import RecordState
    from rag_assets.systems.workspace.tree import Page
    from rag_assets.systems.workspace.tree_service import TreeService

_PAGE_RECORDS: Final = 10_000
_MAX_SHOWN_ROWS: Final = 20

app = typer.Typer(help="Pages of a workspace and their readers.", no_args_is_help=True)
tree = typer.Typer(help="The tree of pages, with their readers.", no_args_is_help=True)
app.add_typer(tree, name="tree")

PageArgument = Annotated[str, typer.Argument(metavar="PAGE", help="Id of the page or database.")]


@tree.command("show")
@with_reading_session
def show(session: Session, tenant: TenantArgument, as_json: Json = False) -> None:
    """Show the tree with the readers of each page."""
    pages = _open_service(session).list_all_pages(tenant)
    if as_json:
        print_json({"tenant": tenant, "pages": [page for page, _ in pages]})
        return
    for page, depth in pages:
        say(f"{'  ' * depth}{page.uuid}{''.join(_list_remarks(page))}")


@tree.command("put")
@with_session
def put(
    session: Session,
    tenant: TenantArgument,
    page: PageArgument,
    kind: Annotated[Literal["page", "database"], typer.Option(help="Kind of the page.")] = "page",
    parent: Annotated[
        str | None,
        typer.Option(metavar="PAGE", help="Id of the page above it; by default the root."),
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRINCIPAL", help="A reader: a name, group:NAME, or members; repeatable."
        ),
    ] = None,
    inherit: Annotated[
        bool, typer.Option(help="Whether readers of the page above also read it.")
    ] = True,
    archived: Annotated[
        bool, typer.Option("--archived", help="Exclude it and all pages below from searches.")
    ] = False,
    ai: Annotated[
        Literal["on", "off"],
        typer.Option(help="off excludes it and all pages below from searches."),
    ] = "on",
    as_json: Json = False,
) -> None:
    """Create a page in the tree, or replace it."""
    from rag_assets.systems.workspace.tree_service import PageDraft

    values = {"kind": kind, "parent": parent, "read": read or [], "inherit": inherit}
    values |= {"archived": archived, "ai": ai}
    try:
        draft = PageDraft.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(
            f"the page cannot be stored: {describe_first_problem(error)}",
            hint="correct this option",
        ) from None
    done = _open_service(session).put(tenant, page, draft)
    if as_json:
        print_json(done)
        return
    say(
        f"{page} has the scope {done.scope}; {format_count(done.documents, 'document')}"
        " moved with it."
    )


@tree.command("delete")
@with_session
def delete(
    session: Session,
    tenant: TenantArgument,
    page: PageArgument,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Confirm the deletion of the page, all pages below and their records."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete a page, the pages below it, and their records."""
    if not yes:
        raise ConfigurationError(
            "this deletes the page, all pages below it, and the records on these pages",
            hint="add --yes",
        )
    done = _open_service(session).remove(tenant, page, operator())
    if as_json:
        print_json(done)
        return
    say(f"{page} is deleted, with {format_count(done.documents, 'document')}.")


@app.command("access")
@with_session
def access(
    session: Session,
    tenant: TenantArgument,
    page: PageArgument,
    principals: Annotated[
        list[str],
        typer.Argument(metavar="PRINCIPAL...", help="A name, group:NAME, or members."),
    ],
    as_json: Json = False,
) -> None:
    """Show whether one of the principals may read a page, and by which grant."""
    access_answer = _open_service(session).explain_access(tenant, page, tuple(principals))
    if as_json:
        print_json(access_answer)
        return
    say(f"{'yes' if access_answer.readable else 'no'}: {access_answer.reason}")


@app.command("records")
@with_reading_session
def records(
    session: Session,
    tenant: TenantArgument,
    status: Annotated[
        Literal["queued", "indexed", "excluded", "failed"] | None,
        typer.Option(help="Only records with this status."),
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="PAGE", help="Only records of this page or database.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the status of records and its reason, without titles and texts."""
    from rag_assets.api.record_routes import describe_reason
    from rag_assets.storage.catalog.records.states import RecordFilter

    record_filter, states = RecordFilter(status=status, page_uuid=page), list["RecordState"]()
    session.catalog.tenants.get(tenant)
    while state_page := session.catalog.record_states.page(
        tenant, None, record_filter, scopes={}, limit=_PAGE_RECORDS
    ):
        states += state_page
        last = state_page[-1]
        record_filter = replace(
            record_filter, after=(last.source, last.source_type, last.source_id)
        )
    rows = [
        (
            *(state.source_type, state.source_id, state.page_uuid, state.status),
            *(state.chunk_count, describe_reason(state)),
        )
        for state in states
    ]
    names = ("type", "id", "page", "status", "chunks", "reason")
    if as_json:
        shown_rows = [dict(zip(names, row, strict=True)) for row in rows]
        print_json({"tenant": tenant, "records": shown_rows})
        return
    print_table(names, rows)


@app.command("pull")
@with_session
def pull(
    session: Session,
    tenant: TenantArgument,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this source of the type sql.")
    ] = None,
    keys: Annotated[
        bool,
        typer.Option("--keys", help="Also compare all keys, and remove records without a row."),
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Like --keys, but remove any number of records.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Pull records from the databases of a workspace's sources now."""
    from rag_assets.privacy.masker import get_masker
    from rag_assets.storage.blobs.store import open_blobs
    from rag_assets.systems.workspace.pulling.pull import Puller, get_pulled_sources
    from rag_assets.tenants.model import Tenant

    record = session.get_active_tenant(tenant)
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


@app.command("pulls")
@with_reading_session
def pulls(session: Session, tenant: TenantArgument, as_json: Json = False) -> None:
    """Show the state of pulls from databases, and rows that were set aside."""
    from rag_assets.systems.workspace.pulling.pull import get_pulled_sources
    from rag_assets.systems.workspace.pulling.states import PullStates
    from rag_assets.tenants.model import Tenant

    record = session.catalog.tenants.get(tenant)
    states = PullStates(session.catalog.database)
    known = states.read_for_tenant(tenant)
    sources = get_pulled_sources(Tenant.from_config(record.config))
    counts = states.count_set_aside(tenant)
    rows = states.list_set_aside_rows(tenant, _MAX_SHOWN_ROWS)
    if as_json:
        source_states = [known[source.name] for source in sources if source.name in known]
        set_aside = {f"{name}.{type_}": count for (name, type_), count in counts.items()}
        print_json(
            {"tenant": tenant, "sources": source_states, "set_aside": set_aside, "rows": rows}
        )
        return
    table = []
    for source in sources:
        state = known.get(source.name)
        bad = sum(count for (name, _), count in counts.items() if name == source.name)
        at = state.pulled_at if state else None
        shown_time = at.strftime("%Y-%m-%d %H:%M:%S") if at else "never"
        held_deletions = state.held_deletions if state else 0
        table.append(
            [
                source.name,
                shown_time,
                f"{bad:,}",
                f"{held_deletions:,}",
                (state and state.error) or "",
            ]
        )
    print_table(["source", "pulled", "set aside", "held", "last failure"], table)
    for row in rows:
        say(f"{row.source}: {row.source_type} {row.shown}: {row.field}: {row.problem}")


def _open_service(session: Session) -> TreeService:
    from rag_assets.privacy.masker import get_masker
    from rag_assets.storage.blobs.store import open_blobs
    from rag_assets.systems.workspace.tree_service import TreeService

    settings = session.settings
    return TreeService(session.catalog, open_blobs(settings), get_masker(settings.local))


def _list_remarks(page: Page) -> Iterator[str]:
    """Yield remarks about a page, each after two blanks."""
    from rag_assets.ingest.sources.records import ROOT

    if page.kind == "database":
        yield "  (database)"
    if page.has_own_scope:
        readers = ", ".join(page.readers) or "nobody"
        only = "" if page.inherit or page.uuid == ROOT else " alone"
        yield f"  read by {readers}{only}"
    if page.archived:
        yield "  archived"
    if not page.ai:
        yield "  ai off"
