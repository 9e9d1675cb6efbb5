"""installation accept-restore: accept a catalog that was restored from an earlier dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_assets.cli.output import print_json, say
from rag_assets.cli.session import Session, operator, with_reading_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted

if TYPE_CHECKING:
    from rag_assets.pipeline.mark_keeper import Standing
    from rag_assets.pipeline.restores import LostChange

_FINDINGS = {
    "current": "The catalog has every security change that the stores have kept.",
    "set back": "The catalog was restored from an earlier dump. It lacks these security changes:",
    "unknown": "No store has kept the journal of security changes, so it is not known which ones"
    " this catalog lacks. Compare the lists of tokens, grants and holds with what they should be.",
}


@with_reading_session
def accept(session: Session, *, confirmed: bool, keep: bool, as_json: bool) -> bool:
    """Print the lost changes, and accept the catalog; return False if it is still not accepted."""
    from rag_assets.pipeline.restores import accept_restore, describe_lost_changes

    found = session.keeper.security()
    lost = describe_lost_changes(session.catalog, found, by=operator())
    is_pending = found.standing != "current"
    tenants = _tenants_set_back(session)
    if as_json:
        _print_as_json(found.standing, lost, tenants, keep=keep, accepted=confirmed and is_pending)
    else:
        _print_findings(found.standing, lost, tenants, keep=keep)
    if is_pending and confirmed:
        accept_restore(session.catalog, session.keeper, [] if keep else lost, found)
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


def _tenants_set_back(session: Session) -> dict[str, int]:
    """Return tenants with changes that the catalog lacks, each with its count of unknown files."""
    from rag_assets.pipeline.uploads import nobodys_blobs
    from rag_assets.storage.blobs.store import open_blobs

    catalog, blobs = session.catalog, open_blobs(session.settings)
    records = [record for record in catalog.tenants.all() if record.state != "REMOVING"]
    found = [r.ref for r in records if session.keeper.standing(r.ref) != "current"]
    files = {ref.id: len(nobodys_blobs(catalog, blobs, ref)) for ref in found}
    for ref in session.keeper.unknown_tenants():
        files[ref.id] = sum(1 for _ in blobs.tenant(ref.id, ref.incarnation).all())
    return files


def _print_findings(
    standing: Standing, lost: list[LostChange], tenants: dict[str, int], *, keep: bool
) -> None:
    say(_FINDINGS[standing])
    for one in lost:
        remedy = "" if one.remake is None or keep else "; this change is repeated"
        say(f"  {one.sentence}{remedy}")
    if not tenants:
        return
    say("\nNo documents of these tenants are deleted until their catalog is accepted as well:")
    for tenant_id, files in tenants.items():
        unknown = counted(files, "uploaded file")
        say(f"  {tenant_id}: {unknown} that this catalog does not know")
    say(
        "rag-assets sync TENANT --accept-catalog accepts it, and deletes the files that it "
        "does not know"
    )


def _print_as_json(
    standing: Standing,
    lost: list[LostChange],
    tenants: dict[str, int],
    *,
    keep: bool,
    accepted: bool,
) -> None:
    print_json(
        {
            "standing": standing,
            "accepted": accepted,
            "lost": [
                {
                    "kind": one.change.kind,
                    "tenant": one.change.tenant,
                    "at": one.change.at,
                    "what": one.sentence,
                    "made_again": accepted and not keep and one.remake is not None,
                }
                for one in lost
            ],
            "tenants": [{"tenant": id_, "unknown_files": files} for id_, files in tenants.items()],
        }
    )
