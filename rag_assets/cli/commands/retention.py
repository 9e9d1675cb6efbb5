"""prune, receipts: delete documents that are past their retention, and show past deletions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from rag_assets.cli.commands.operator import operator
from rag_assets.cli.commands.output import print_json, print_table, progress, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.storage.catalog.erasure.receipts import Receipt


@with_session
def prune(session: Session, tenant_id: str, *, confirm: bool, as_json: bool) -> None:
    """Prune a tenant's documents; print the counts, and the prunes that a person must confirm."""
    from rag_assets.pipeline.retention import prune as prune_tenant
    from rag_assets.pipeline.upkeep import expunge_pruned

    session.active(tenant_id)
    with session.writer(tenant_id, "pruning") as ctx:
        report = prune_tenant(ctx, by=operator(), confirm=confirm)
    expunge_pruned(ctx.catalog, ctx.store, ctx.ref, progress)
    if confirm and report.doubt is not None:
        raise report.doubt.error()
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "documents": report.documents,
                "entries": report.entries,
                "events": report.events,
                "held": report.held,
                "warnings": report.warnings(tenant_id),
                "receipts": [_as_json(receipt) for receipt in report.receipts],
            }
        )
        return
    for warning in report.warnings(tenant_id):
        warn(warning)
    documents, entries = (
        counted(report.documents, "document"),
        counted(report.entries, "entry", "entries"),
    )
    say(f"{tenant_id}: {documents} pruned, {entries} deleted.")
    for receipt in report.receipts:
        say(f"Receipt {receipt.number}: {_counts(receipt.counts)}")


@with_session
def purge(
    session: Session, tenant_id: str, document_ids: list[str], *, confirmed: bool, as_json: bool
) -> bool:
    """Purge documents, print the receipt, and return whether no data of them was found later."""
    from rag_assets.pipeline.erasure import purge as purge_documents

    session.active(tenant_id)
    if not confirmed:
        command = " ".join(f"--document {id_}" for id_ in document_ids)
        raise ConfigurationError(
            f"a purge permanently deletes {counted(len(document_ids), 'document')} of "
            f"tenant {tenant_id!r}",
            hint=f"to confirm: rag-assets purge {tenant_id} {command} --yes",
        )
    with session.writer(tenant_id, "a purge") as ctx:
        receipt = purge_documents(ctx, document_ids, by=operator())
    complete = bool(receipt.proof["complete"])
    if as_json:
        print_json({"tenant": tenant_id, "complete": complete, "receipt": _as_json(receipt)})
        return complete
    say(f"{tenant_id}: {counted(len(receipt.documents), 'document')} purged.")
    say(f"Receipt {receipt.number}: {_counts(receipt.counts)}")
    say_proof(receipt.proof, tenant_id)
    return complete


def say_proof(proof: Mapping[str, Any], tenant_id: str) -> None:
    """Print data that was found after an erasure, and copies that the program cannot reach."""
    from rag_assets.pipeline.proof import LEFT_IN_FILES

    if proof["complete"]:
        say("None of the data is found in the index, the lake or Postgres.")
    else:
        left = ", ".join(f"{place}: {proof[place]}" for place in LEFT_IN_FILES if proof[place])
        if left:
            shown = f"`rag-assets receipts {tenant_id} --json` shows more"
            warn(f"some of the data is left in files: {left}; {shown}")
        for place in proof.get("places not seen", ()):
            warn(f"not searched: {place}; if it was destroyed: {_forget_command(place)}")
    if "Dagster instance" in proof:
        say(f"Dagster's records of it were deleted in the instance {proof['Dagster instance']}.")
    for what, until in proof["out of reach"].items():
        say(f"Out of reach: {what} ({until})")


def _forget_command(place: str) -> str:
    """Return the command that forgets an address; `place` is the text from a receipt."""
    kind_and_address = place.removeprefix("the ").rpartition(", left on ")[0]
    kind, _, address = kind_and_address.partition(" at ")
    return f"rag-assets installation forget {kind} {shlex.quote(address)} --yes"


@with_reading_session
def receipts(session: Session, tenant_id: str | None, *, verify: bool, as_json: bool) -> bool:
    """Print receipts; return False if a receipt was altered, or its predecessor is missing."""
    found = session.catalog.receipts.all(tenant_id)
    chain = session.catalog.receipts.verify() if verify else None
    if as_json:
        shown: dict[str, Any] = {"receipts": [_as_json(receipt) for receipt in found]}
        if chain is not None:
            shown["chain"] = chain
        print_json(shown)
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
                    _counts(r.counts),
                )
                for r in found
            ],
        )
    if chain is None:
        return True
    if not as_json:
        _say_whether_intact(chain.receipts, chain.broken, chain.last)
    return not chain.broken


def _say_whether_intact(count: int, broken: tuple[int, ...], last: str) -> None:
    if broken:
        numbers = ", ".join(map(str, broken))
        say(
            f"\nReceipts that were altered, or whose predecessor is missing: {numbers}"
            f" of {count:,}."
        )
    else:
        say(f"\n{counted(count, 'receipt')}, none altered or missing. Hash of the last: {last}")


def _counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    # A receipt that was altered may have any shape; `--verify` names it.
    found = [
        f"{number:,} {what}"
        for of_store in counts.values()
        if isinstance(of_store, Mapping)
        for what, number in of_store.items()
        if number and isinstance(number, int)
    ]
    return ", ".join(found) or "nothing"


def _as_json(receipt: Receipt) -> dict[str, Any]:
    return {
        "number": receipt.number,
        "id": str(receipt.id),
        "tenant": receipt.tenant,
        "kind": receipt.kind,
        "rule": receipt.rule,
        "by": receipt.by,
        "at": receipt.at,
        "counts": receipt.counts,
        "documents": receipt.documents,
        "proof": receipt.proof,
        "previous": receipt.previous,
        "hash": receipt.hash,
    }
