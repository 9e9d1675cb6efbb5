"""Commands for permanent deletion, legal holds, and archives for auditors."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rag_assets.cli.arguments import Json, TenantArgument, YesOption, expand_parameter
from rag_assets.cli.output import print_json, print_table, progress, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.common.formatting import format_count
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.storage.catalog.erasure.receipts import Receipt

if TYPE_CHECKING:
    from rag_assets.storage.catalog.tenants.table import TenantRecord

_LOCK_SECONDS = 60.0

app = typer.Typer()
holds_app = typer.Typer()
audit_app = typer.Typer()


@app.command()
@with_session
def prune(
    session: Session,
    tenant_id: TenantArgument,
    *,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Prune a source even if most of it is due, unless the clock is doubted.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete documents that are past the tenant's retention, from every store."""
    from rag_assets.pipeline.retention import prune_tenant
    from rag_assets.pipeline.upkeep import expunge_pruned

    session.get_active_tenant(tenant_id)
    with session.writer(tenant_id, "pruning") as ctx:
        report = prune_tenant(ctx, by=operator(), confirm=confirm)
    expunge_pruned(ctx.catalog, ctx.store, ctx.ref, progress)
    if confirm and report.doubt is not None:
        raise report.doubt.build_error()
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "documents": report.documents,
                "entries": report.entries,
                "events": report.events,
                "held": report.held,
                "warnings": report.warnings(tenant_id),
                "receipts": [_to_json(receipt) for receipt in report.receipts],
            }
        )
        return
    for warning in report.warnings(tenant_id):
        warn(warning)
    documents, entries = (
        format_count(report.documents, "document"),
        format_count(report.entries, "entry", "entries"),
    )
    say(f"{tenant_id}: {documents} pruned, {entries} deleted.")
    for receipt in report.receipts:
        say(f"Receipt {receipt.number}: {_format_counts(receipt.counts)}")


@app.command()
@with_session
def purge(
    session: Session,
    tenant_id: TenantArgument,
    document_ids: Annotated[
        list[str], typer.Option("--document", help="Id of a document; repeat for several.")
    ],
    *,
    confirmed: YesOption = False,
    as_json: Json = False,
) -> bool:
    """Delete documents from every store and every file, and prove it."""
    from rag_assets.pipeline.erasure import purge_documents

    session.get_active_tenant(tenant_id)
    if not confirmed:
        command = " ".join(f"--document {id_}" for id_ in document_ids)
        raise ConfigurationError(
            f"a purge permanently deletes {format_count(len(document_ids), 'document')} of "
            f"tenant {tenant_id!r}",
            hint=f"to confirm: rag-assets purge {tenant_id} {command} --yes",
        )
    with session.writer(tenant_id, "a purge") as ctx:
        receipt = purge_documents(ctx, document_ids, by=operator())
    complete = bool(receipt.proof["complete"])
    if as_json:
        print_json({"tenant": tenant_id, "complete": complete, "receipt": _to_json(receipt)})
        return complete
    say(f"{tenant_id}: {format_count(len(receipt.documents), 'document')} purged.")
    say(f"Receipt {receipt.number}: {_format_counts(receipt.counts)}")
    print_proof(receipt.proof, tenant_id)
    return complete


def print_proof(proof: Mapping[str, Any], tenant_id: str) -> None:
    """Print the proof of an erasure: data that was left, and copies that are out of reach."""
    from rag_assets.pipeline.proof import LEFT_IN_FILES

    if proof["complete"]:
        say("The index, the lake and Postgres no longer contain any of the data.")
    else:
        remaining_places = ", ".join(
            f"{place}: {proof[place]}" for place in LEFT_IN_FILES if proof[place]
        )
        if remaining_places:
            hint = f"`rag-assets receipts {tenant_id} --json` shows more"
            warn(f"some of the data is left in files: {remaining_places}; {hint}")
        for place in proof.get("places not seen", ()):
            warn(f"not searched: {place}; if it was destroyed: {_build_forget_command(place)}")
    if "Dagster instance" in proof:
        say(f"Dagster's records of it were deleted in the instance {proof['Dagster instance']}.")
    for copy, until in proof["out of reach"].items():
        say(f"Out of reach: {copy} ({until})")


def _build_forget_command(place: str) -> str:
    """Return the command by which a person confirms that the data at an address is destroyed.

    Args:
        place: the address as a receipt describes it.
    """
    kind_and_address = place.removeprefix("the ").rpartition(", left on ")[0]
    kind, _, address = kind_and_address.partition(" at ")
    return f"rag-assets installation forget {kind} {shlex.quote(address)} --yes"


@app.command()
@with_reading_session
def receipts(
    session: Session,
    tenant_id: Annotated[
        str | None, typer.Argument(metavar="TENANT", help="By default all tenants.")
    ] = None,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify that no receipt was altered or left out.")
    ] = False,
    as_json: Json = False,
) -> bool:
    """List permanent deletions with their time, person and rule."""
    receipts_of_tenant = session.catalog.receipts.all(tenant_id)
    chain = session.catalog.receipts.verify() if verify else None
    if as_json:
        shown_receipts: dict[str, Any] = {
            "receipts": [_to_json(receipt) for receipt in receipts_of_tenant]
        }
        if chain is not None:
            shown_receipts["chain"] = chain
        print_json(shown_receipts)
    else:
        print_table(
            ["receipt", "tenant", "kind", "when", "by", "rule", "deleted"],
            [
                (
                    r.number,
                    r.tenant,
                    r.kind,
                    f"{r.at:%Y-%m-%d %H:%M:%S} UTC",
                    r.by,
                    r.rule,
                    _format_counts(r.counts),
                )
                for r in receipts_of_tenant
            ],
        )
    if chain is None:
        return True
    if not as_json:
        _print_chain(chain.receipts, chain.broken, chain.last)
    return not chain.broken


def _print_chain(count: int, broken: tuple[int, ...], last: str) -> None:
    if broken:
        numbers = ", ".join(map(str, broken))
        say(
            f"\nReceipts that were altered, or whose predecessor is missing: {numbers}"
            f" of {count:,}."
        )
    else:
        say(
            f"\n{format_count(count, 'receipt')}, none altered or missing. Hash of the last: {last}"
        )


def _format_counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    # An altered receipt, which `--verify` reports, may have any shape.
    parts = [
        f"{number:,} {kind}"
        for of_store in counts.values()
        if isinstance(of_store, Mapping)
        for kind, number in of_store.items()
        if number and isinstance(number, int)
    ]
    return ", ".join(parts) or "nothing"


def _to_json(receipt: Receipt) -> dict[str, Any]:
    fields = {**asdict(receipt), "hash": receipt.hash}
    del fields["incarnation"]
    return fields


@app.command()
@with_session
def compact(
    session: Session,
    tenants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TENANT...", help="By default all tenants, and leftovers of removed tenants."
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> bool:
    """Remove deleted text from the files of lake and index, as the daemon does weekly."""
    from rag_assets.pipeline.upkeep import delete_leftovers, expunge_indexes
    from rag_assets.storage.blobs.store import open_blobs

    for tenant_id in tenants or ():
        session.get_active_tenant(tenant_id)
    records = session.catalog.tenants.all()
    tenant_ids = tenants or [record.id for record in records if record.state == "ACTIVE"]
    results = [_compact_one(session, tenant_id) for tenant_id in tenant_ids]
    swept = 0
    if tenants:
        live = session.catalog.generations.list_live_by_tenant(tenant_ids)
        index_names = {build.index_name for builds in live.values() for build in builds}
        expunge_indexes(session.store, sorted(index_names), progress)
    else:
        blobs = open_blobs(session.settings)
        swept = delete_leftovers(session.catalog, session.lake, session.store, blobs, progress)
    session.warn_of_clock()
    succeeded = all(result["error"] is None for result in results)
    if as_json:
        print_json({"succeeded": succeeded, "tenants": results, "leftovers": swept})
        return succeeded
    for result in results:
        for line in result["lines"]:
            say(f"{result['tenant']}: {line}")
    if swept:
        removed = format_count(swept, "entry or folder", "entries and folders")
        say(f"{removed} of removed tenants deleted")
    return succeeded


def _compact_one(session: Session, tenant_id: str) -> dict[str, Any]:
    """Compact the stores of one tenant.

    Returns:
        The tenant's id, lines that describe the result, and the error (None after a success).
    """
    from rag_assets.pipeline.upkeep import compact_tenant

    progress(f"{tenant_id}: compacting")
    try:
        with session.writer(tenant_id, "compaction") as ctx:
            return {"tenant": tenant_id, "lines": compact_tenant(ctx), "error": None}
    except RagAssetsError as error:
        warn(f"{tenant_id}: {error.advice}")
        return {"tenant": tenant_id, "lines": [], "error": error.message}


@holds_app.command("list")
@with_reading_session
def list_holds(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """List the holds of a tenant."""
    session.catalog.tenants.get(tenant_id)
    holds = session.catalog.holds.all(tenant_id)
    if as_json:
        print_json({"tenant": tenant_id, "holds": holds})
        return
    print_table(
        ["held", "since", "by", "reason"],
        [(h.scope, f"{h.at:%Y-%m-%d %H:%M} UTC", h.by, h.reason) for h in holds],
    )


class _HoldOptions(NamedTuple):
    """The options of a hold: the held documents, and the reason."""

    scope: HoldScope
    reason: str


def _build_hold(
    reason: Annotated[str, typer.Option("--reason", help="Reason, which is stored.")],
    source: Annotated[
        str | None, typer.Option("--source", help="All documents of one source.")
    ] = None,
    document: Annotated[
        str | None, typer.Option("--document", help="One document, by its id.")
    ] = None,
) -> _HoldOptions:
    if source is not None and document is not None:
        raise ConfigurationError(
            "--source and --document cannot be combined", hint="use only one of them"
        )
    if not reason.strip():
        raise ConfigurationError("a hold needs a reason", hint="add the reason with --reason")
    return _HoldOptions(HoldScope(source, document), reason)


_hold_options = expand_parameter(_build_hold, "hold")


@holds_app.command("set")
@_hold_options
@with_session
def set_hold(
    session: Session, tenant_id: TenantArgument, hold: _HoldOptions, *, as_json: Json = False
) -> None:
    """Hold all documents of a tenant or of one source, or a single document."""
    with _lock_tenant(session, tenant_id) as record:
        if session.catalog.erasures.list_open(tenant_id):
            raise ConfigurationError(
                f"documents of tenant {tenant_id!r} are being deleted permanently",
                hint=(
                    f"finish the deletion with `rag-assets prune {tenant_id}`, then set the "
                    "hold again"
                ),
            )
        session.catalog.holds.set(
            record.ref, hold.scope, reason=_mask_reason(session, hold.reason), by=operator()
        )
    if as_json:
        print_json({"tenant": tenant_id, "held": hold.scope})
        return
    say(f"{tenant_id}: {hold.scope} on hold. `rag-assets hold lift` lifts the hold.")


@holds_app.command("lift")
@_hold_options
@with_session
def lift_hold(
    session: Session, tenant_id: TenantArgument, hold: _HoldOptions, *, as_json: Json = False
) -> None:
    """Lift a hold; documents that were deleted during the hold are then removed from the stores."""
    with _lock_tenant(session, tenant_id) as record:
        lifted = session.catalog.holds.lift(
            record.ref, hold.scope, reason=_mask_reason(session, hold.reason), by=operator()
        )
    if not lifted:
        raise ConfigurationError(
            f"there is no hold on {hold.scope} of tenant {tenant_id!r}",
            hint=f"run `rag-assets hold list {tenant_id}` to see its holds",
        )
    if as_json:
        print_json({"tenant": tenant_id, "lifted": hold.scope})
        return
    say(
        f"{tenant_id}: {hold.scope} no longer on hold. The next compaction removes documents that"
        " were deleted meanwhile from the lake."
    )


@contextmanager
def _lock_tenant(session: Session, tenant_id: str) -> Iterator[TenantRecord]:
    from rag_assets.storage.catalog.lock import Holder

    record = session.catalog.tenants.get(tenant_id)
    with session.catalog.lock.hold(
        tenant_id,
        Holder.here("a hold"),
        wait_seconds=_LOCK_SECONDS,
        on_wait=lambda holder: progress(f"waiting for {holder}"),
    ):
        yield record


def _mask_reason(session: Session, reason: str) -> str:
    from rag_assets.privacy.masker import get_masker

    return get_masker(session.settings.local).text(reason)


@audit_app.command("export")
@with_reading_session
def export(
    session: Session,
    tenant_id: TenantArgument,
    path: Annotated[
        Path, typer.Option("--out", metavar="FILE.zip", help="The archive; it must not exist yet.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Write one archive of a tenant's sources, policies, receipts, accesses, builds and checks."""
    from rag_assets.pipeline.audit_export import export_audit
    from rag_assets.privacy.masker import get_masker

    report = export_audit(
        session.catalog.database,
        tenant_id,
        path,
        installation=session.identity.id,
        by=operator(),
        masker=get_masker(session.settings.local),
    )
    broken = report.chain.broken
    if broken:
        numbers = ", ".join(map(str, broken))
        warn(
            f"receipts were altered, or their predecessor is missing: {numbers}; the archive "
            "records this"
        )
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "file": str(path),
                "manifest_sha256": report.sha256,
                "records": report.records,
                "broken_receipts": broken,
            }
        )
        return
    print_table(["file", "records"], [(name, f"{n:,}") for name, n in report.records.items()])
    say(f"\n{path}: SHA-256 of its manifest.json: {report.sha256}")
