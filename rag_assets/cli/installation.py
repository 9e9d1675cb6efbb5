"""Commands for the installation: its identity, moves, copies and restores, and its clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from rag_assets.cli.arguments import Json, YesOption
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.formatting import format_count
from rag_assets.dagster_tables import DAGSTER_SCHEMA
from rag_assets.storage.catalog.installation.identity import Place, PlaceKind
from rag_assets.storage.index.model import Owner
from rag_assets.storage.installation.identity import (
    Difference,
    clone_installation,
    find_differences,
    forget_place,
    move_installation,
    present_places,
)
from rag_assets.storage.installation.markers import Home, open_roots

if TYPE_CHECKING:
    from rag_assets.pipeline.mark_keeper import Standing
    from rag_assets.pipeline.restores import LostChange
    from rag_assets.storage.catalog.catalog import Catalog
    from rag_assets.storage.catalog.tenants.table import TenantRecord

_EMPTY_STORES = {
    "lake": (
        "the lake is empty: every text will be embedded again; to avoid that, copy the lake of "
        "the original before the first sync"
    ),
    "blobs": "there are no uploaded files: copy the files of the original, or upload them again",
}
_FINDINGS = {
    "current": "The catalog has every security change that the stores have kept.",
    "set back": "The catalog was restored from an earlier dump. It lacks these security changes:",
    "unknown": "No store has kept the journal of security changes, so changes that this catalog"
    " lacks are unknown. Check the lists of tokens, grants and holds yourself.",
}

app = typer.Typer()


@app.command("show")
@with_reading_session
def show(session: Session, *, as_json: Json = False) -> bool:
    """Show the identity, the addresses of all stores, and differences from the catalog."""
    catalog, settings = session.unverified_catalog, session.settings
    state = catalog.installation.state()
    row, recorded = state.row, state.places or present_places(settings)
    differences = list(find_differences(catalog, settings, state, open_roots(settings)))
    if as_json:
        print_json(
            {
                "installation": str(row.id) if row else None,
                "database": row.database if row else None,
                "home": {"path": str(settings.home), "installation": Home(settings).installation},
                "places": recorded,
                "differences": [
                    {"part": d.part, "error": d.error.message, "hint": d.error.hint}
                    for d in differences
                ],
            }
        )
        return not differences
    say(f"Installation {row.id if row else 'not created yet: `rag-assets up` creates it'}")
    say(f"Home folder  {settings.home}")
    if row is not None:
        say(f"Catalog      database {row.database}\n")
    print_table(
        ["store", "address", "left on"],
        [(p.kind, p.address, f"{p.left_at:%Y-%m-%d}" if p.left_at else "") for p in recorded],
    )
    for difference in differences:
        warn(difference.error.advice)
    return not differences


@app.command("move")
@with_reading_session
def move(
    session: Session,
    *,
    confirmed: YesOption = False,
    without_data: Annotated[
        list[str] | None,
        typer.Option(help="lake or blobs: continue with an empty store; repeat for both."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Confirm that the installation is at the current addresses from now on."""
    without_data = without_data or []
    catalog, settings = session.unverified_catalog, session.settings
    state = catalog.installation.state()
    differences = list(find_differences(catalog, settings, state, open_roots(settings)))
    differences += [] if differences else _list_cluster_differences(session)
    for difference in differences:
        if not difference.can_move:
            raise difference.error
    if not differences:
        say("Everything is where the catalog says: nothing has moved.")
        return
    _require_data(session, differences, without_data)
    if not confirmed:
        changes = "; ".join(difference.error.message for difference in differences)
        raise ConfigurationError(
            f"this would be recorded as a move: {changes}",
            hint=(
                "if the original stays in use, run `rag-assets installation clone`; to confirm "
                "the move: rag-assets installation move --yes"
            ),
        )
    identity = move_installation(catalog, settings)
    with Session(reconciles=False) as moved:
        published = _republish(moved)
    if as_json:
        print_json({"installation": identity.id, "moved": [d.part for d in differences]})
        return
    say(f"Installation {identity.id} has moved: {', '.join(d.part for d in differences)}.")
    if not published:
        warn("Elasticsearch does not answer: the next sync publishes each tenant's alias")
    say("Next: rag-assets sync --all --repair")


@app.command("move-runs")
@with_reading_session
def move_runs(session: Session, *, confirmed: YesOption = False, as_json: Json = False) -> None:
    """Move Dagster's tables of an earlier version from the schema `public` to our own."""
    former_tables = session.stack.find_former_runs()
    if former_tables is None:
        say("Dagster has no runs in the schema public, so there is nothing to move.")
        return
    place = f"the schema public of the database {former_tables.database}"
    if former_tables.is_shared:
        raise ConfigurationError(
            f"Dagster's tables in {place} contain runs or sensors of other code, so ours "
            "cannot be moved",
            hint="our earlier runs remain there; delete them in the Dagster that uses these tables",
        )
    if not confirmed:
        raise ConfigurationError(
            f"this would move {format_count(former_tables.runs, 'run')} from {place} to the schema"
            f" {DAGSTER_SCHEMA}, and"
            f" delete the {format_count(former_tables.present_runs, 'run')} already in"
            f" {DAGSTER_SCHEMA}",
            hint="first run `rag-assets down`, then confirm with `rag-assets installation move-runs"
            " --yes`",
        )
    moved = session.stack.move_runs()
    if as_json:
        print_json(moved)
        return
    say(
        f"{format_count(moved.runs if moved else 0, 'run')} moved from {place} to {DAGSTER_SCHEMA}."
    )


@app.command("clone")
@with_reading_session
def clone(
    session: Session,
    *,
    confirmed: YesOption = False,
    is_snapshot: Annotated[
        bool, typer.Option("--snapshot", help="The catalog is a snapshot of its whole server.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Give a copied catalog or home folder its own identity."""
    catalog, settings = session.unverified_catalog, session.settings
    row = catalog.installation.read()
    if not confirmed:
        raise ConfigurationError(
            "the clone would get its own id and new indexes; its service tokens and panel "
            "sessions would end",
            hint=(
                "if the original no longer exists, run `rag-assets installation move`; to "
                "confirm: rag-assets installation clone --yes"
            ),
        )
    lacking = [root.kind for root in open_roots(settings) if not root.has_data()]
    # The embedded server's folder was copied together with the home folder.
    has_index = settings.has_own_elasticsearch
    identity = clone_installation(
        catalog, settings, keeps_builds=has_index, is_snapshot=is_snapshot
    )
    if row is not None and has_index:
        session.store.indexes.take_over(row.id)
    if row is not None and settings.vectors_url is None and session.store.vectors is not None:
        session.store.vectors.take_over(row.id)
    if as_json:
        print_json({"installation": identity.id, "original": row.id if row else None})
        return
    origin = f"a clone of {row.id}" if row else "with a new catalog"
    say(f"This is installation {identity.id} now, {origin}.")
    for kind in lacking:
        warn(_EMPTY_STORES[kind])
    say("Next: rag-assets sync --all")


@app.command("accept-restore")
@with_reading_session
def accept(
    session: Session,
    *,
    confirmed: YesOption = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Do not repeat lost revocations, purges and holds."),
    ] = False,
    as_json: Json = False,
) -> bool:
    """Show which tokens, grants, holds and purges a restored catalog lacks, and accept it."""
    from rag_assets.pipeline.restores import accept_restore, describe_lost_changes

    standing = session.keeper.compare_security_changes()
    lost = describe_lost_changes(session.catalog, standing, by=operator())
    is_pending = standing.standing != "current"
    tenants = _count_unknown_files(session)
    if as_json:
        _print_findings_as_json(
            standing.standing, lost, tenants, keep=keep, is_accepted=confirmed and is_pending
        )
    else:
        _print_findings(standing.standing, lost, tenants, keep=keep)
    if is_pending and confirmed:
        accept_restore(session.catalog, session.keeper, [] if keep else lost, standing)
        if not as_json:
            say(
                "The catalog is accepted: tokens and grants count again, panel sessions have ended."
            )
    elif is_pending and not as_json:
        raise ConfigurationError(
            "until this catalog is accepted, no token is accepted and nothing is deleted",
            hint=(
                "to accept it and repeat these changes: rag-assets installation accept-restore "
                "--yes; to accept it without them, add --keep"
            ),
        )
    return confirmed or not is_pending


@app.command("forget")
@with_reading_session
def forget(
    session: Session,
    kind: Annotated[str, typer.Argument(help="lake, blobs, index, vectors or cluster.")],
    address: Annotated[str, typer.Argument(help="As `installation show` prints it.")],
    *,
    confirmed: YesOption = False,
    as_json: Json = False,
) -> None:
    """Forget a former address with destroyed data, so that receipts no longer name it."""
    if kind not in get_args(PlaceKind):
        raise ConfigurationError(
            f"{kind!r} is not a kind of store",
            hint=f"choose one of {', '.join(get_args(PlaceKind))}",
        )
    if not confirmed:
        raise ConfigurationError(
            f"receipts would no longer list the former {kind} at {address}",
            hint="destroy the data there first; to confirm: rag-assets installation forget"
            f" {kind} {address} --yes",
        )
    place = Place(cast("PlaceKind", kind), address)
    if not forget_place(session.catalog, session.settings, place):
        raise ConfigurationError(
            f"there is no former {kind} at {address}",
            hint="`rag-assets installation show` lists them",
        )
    if as_json:
        print_json({"forgotten": place})
        return
    say(f"The {kind} at {address} is forgotten.")


@app.command("accept-clock")
@with_reading_session
def accept_clock(session: Session, *, confirmed: YesOption = False, as_json: Json = False) -> bool:
    """Confirm that the current time is right, so that deletions by age continue."""
    from rag_assets.common.clock import Clock
    from rag_assets.pipeline.clock_guard import (
        ACCEPT,
        ClockDoubt,
        accept_time,
        format_time,
        get_deletion_time,
    )

    catalog, clock = session.catalog, Clock()
    trusted = catalog.clock.read()
    doubt = get_deletion_time(catalog, clock)
    if not isinstance(doubt, ClockDoubt):
        if as_json:
            print_json({"now": doubt, "trusted": trusted.at, "accepted": False, "doubt": None})
        else:
            say(f"The clock is trusted ({format_time(doubt)}): there is nothing to accept.")
        return True
    if doubt.kind == "skewed":
        raise doubt.build_error()
    consequences = [
        _count_consequences(catalog, record, doubt.now) for record in catalog.tenants.all()
    ]
    if confirmed:
        accept_time(catalog, clock, by=operator())
    if as_json:
        print_json(
            {
                "now": doubt.now,
                "trusted": trusted.at,
                "accepted": confirmed,
                "doubt": doubt.kind,
                "tenants": consequences,
            }
        )
        return confirmed
    say(f"This machine's clock  {format_time(doubt.now)}")
    say(f"Postgres's clock      {format_time(trusted.server_at)}")
    say(f"Last trusted time     {format_time(trusted.at)}\n")
    print_table(
        ["tenant", "documents due", "deleted by the next run", "rows with later times"],
        [tuple(counts.values()) for counts in consequences],
    )
    if confirmed:
        say("\nThe present time is trusted from now on.")
    else:
        say(f"\nNothing was accepted. If the present time is right: {ACCEPT} --yes")
    return confirmed


def _count_consequences(catalog: Catalog, record: TenantRecord, now: datetime) -> dict[str, object]:
    """Count what would change for a tenant if the time `now` is trusted.

    Returns:
        The tenant's id (tenant); the number of documents that are due for deletion (due), and how
        many of them the next run deletes (unconfirmed); the number of rows with a later time
        (later_times).
    """
    from rag_assets.pipeline.retention import compute_cutoffs, find_held_prunes
    from rag_assets.tenants.model import Tenant

    tenant = Tenant.from_config(record.config)
    cutoffs = compute_cutoffs(tenant, now)
    due = None if cutoffs is None else catalog.retention.list_due(record.id, cutoffs)
    held_prunes = () if due is None else find_held_prunes(due, tenant.prune_share)
    count = 0 if due is None else len(due.documents)
    return {
        "tenant": record.id,
        "due": count,
        "unconfirmed": count - sum(source.due for source in held_prunes),
        "later_times": catalog.clock.count_future_times(record.id, now),
    }


def _list_cluster_differences(session: Session) -> list[Difference]:
    """Return a difference if Elasticsearch is not the recorded cluster, else an empty list."""
    from rag_assets.common.errors import PlaceChanged

    try:
        _ = session.store
    except PlaceChanged as error:
        return [Difference("cluster", error)]
    except (ConfigurationError, ServiceUnavailable):
        return []
    return []


def _require_data(
    session: Session, differences: Sequence[Difference], without_data: Collection[str]
) -> None:
    """Require that a new address of the lake or the blobs contains data, if the catalog needs it.

    Args:
        without_data: kinds of store (lake, blobs) that may be empty.
    """
    changed = {difference.part for difference in differences}
    lost = {"lake": bool(session.unverified_catalog.generations.tenants()), "blobs": True}
    lost["blobs"] = session.unverified_catalog.uploads.has_any()
    for root in open_roots(session.settings):
        needs_data = root.kind in changed and root.kind not in without_data and lost[root.kind]
        if needs_data and not root.has_data():
            raise ConfigurationError(
                f"the {root.kind} at {root.url} is empty",
                hint=(
                    f"copy the data of the former {root.kind} there first; or, to continue "
                    "without them: rag-assets installation move --yes --without-data "
                    f"{root.kind}"
                ),
            )


def _republish(session: Session) -> bool:
    """Publish the serving build of each tenant under the installation's current prefix.

    Returns:
        False if Elasticsearch does not answer.
    """
    with suppress(ServiceUnavailable):
        names = session.store.indexes.names()
        for record in session.catalog.tenants.all():
            serving = session.catalog.generations.serving(record.id)
            if serving is not None and serving.index_name in names:
                owner = Owner(record.id, record.incarnation, serving.number)
                session.store.indexes.publish(serving.index_name, owner)
        return True
    return False


def _count_unknown_files(session: Session) -> dict[str, int]:
    """Count the uploaded files that a restored catalog does not know, by tenant id.

    The result covers tenants whose rows were set back, and tenants that the catalog lacks.
    """
    from rag_assets.pipeline.uploads import list_unreferenced_blobs
    from rag_assets.storage.blobs.store import open_blobs

    catalog, blobs = session.catalog, open_blobs(session.settings)
    records = [record for record in catalog.tenants.all() if record.state != "REMOVING"]
    refs_set_back = [r.ref for r in records if session.keeper.compare_marks(r.ref) != "current"]
    files = {ref.id: len(list_unreferenced_blobs(catalog, blobs, ref)) for ref in refs_set_back}
    for ref in session.keeper.list_unknown_tenants():
        files[ref.id] = sum(1 for _ in blobs.tenant(ref.id, ref.incarnation).all())
    return files


def _print_findings(
    standing: Standing, lost: list[LostChange], tenants: dict[str, int], *, keep: bool
) -> None:
    say(_FINDINGS[standing])
    for lost_change in lost:
        remedy = "" if lost_change.repeat is None or keep else "; this change is repeated"
        say(f"  {lost_change.sentence}{remedy}")
    if not tenants:
        return
    say("\nNo documents of these tenants are deleted until their catalog is accepted as well:")
    for tenant_id, files in tenants.items():
        unknown = format_count(files, "uploaded file")
        say(f"  {tenant_id}: {unknown} that this catalog does not know")
    say(
        "rag-assets sync TENANT --accept-catalog accepts it, and deletes the files that it "
        "does not know"
    )


def _print_findings_as_json(
    standing: Standing,
    lost: list[LostChange],
    tenants: dict[str, int],
    *,
    keep: bool,
    is_accepted: bool,
) -> None:
    print_json(
        {
            "standing": standing,
            "accepted": is_accepted,
            "lost": [
                {
                    "kind": lost_change.change.kind,
                    "tenant": lost_change.change.tenant,
                    "at": lost_change.change.at,
                    "what": lost_change.sentence,
                    "made_again": is_accepted and not keep and lost_change.repeat is not None,
                }
                for lost_change in lost
            ],
            "tenants": [{"tenant": id_, "unknown_files": files} for id_, files in tenants.items()],
        }
    )
