"""Commands for tenants: list, add, enable, disable, claim and remove them."""

from __future__ import annotations

import os
import re
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rag_assets.cli.arguments import Json, TenantArgument, YesOption
from rag_assets.cli.output import print_json, print_table, progress, say, warn
from rag_assets.cli.retention import print_proof
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.ingest.sources.files import FILES
from rag_assets.ingest.sources.records import RECORDS
from rag_assets.ingest.sources.uploads import UPLOADS
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.file import TenantsFile, format_path
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_configured_sources

_ORIGINS: Final = {"file": "tenants.yaml", "api": "API"}

app = typer.Typer()


@app.command("list")
@with_reading_session
def list_tenants(session: Session, *, as_json: Json = False) -> None:
    """List the tenants."""
    rows = []
    listed_ids = _read_listed_ids(session)
    records = session.catalog.tenants.all()
    checked = session.catalog.check_results.summaries([record.id for record in records])
    for record in records:
        checks = checked.get(record.id)
        counts = session.catalog.documents.count_by_status(record.id)
        rows.append(
            {
                "id": record.id,
                "state": record.state,
                "profile": record.config.get("profile", "documents"),
                "origin": record.origin,
                "organization": record.organization,
                "project": record.project,
                "sources": [
                    str(s.get("root", s.get("base", s.get("name"))))
                    for s in get_configured_sources(record.config)
                ],
                "documents": sum(n for status, n in counts.items() if status != "DELETED"),
                "failed": counts.get("FAILED", 0),
                "checked_at": checks.checked_at if checks else None,
                "failed_checks": checks.failed + checks.errors if checks else None,
            }
        )
    if as_json:
        print_json({"tenants": rows})
        return
    print_table(
        ["tenant", "state", "profile", "origin", "documents", "failed", "checked", "sources"],
        [
            (
                r["id"],
                r["state"],
                r["profile"],
                _ORIGINS.get(r["origin"], f"{r['origin']}.yaml"),
                r["documents"],
                r["failed"],
                _format_checks(r["checked_at"], r["failed_checks"]),
                ", ".join(r["sources"]),
            )
            for r in rows
        ],
    )
    if new := sorted(listed_ids - {row["id"] for row in rows}):
        say(f"\nListed in tenants.yaml and not synced yet: {', '.join(new)}")
    elif not rows:
        say("\nAdd a tenant with: rag-assets tenants add ID --source DIR")


def _read_listed_ids(session: Session) -> set[str]:
    """Return the ids in tenants.yaml and its lists, and warn about problems of the lists."""
    file = TenantsFile(session.settings.tenants_file, cache=session.settings.local / "cache")
    listed_ids = set(file.load())
    for others in file.load_lists().values():
        listed_ids.update(others.configs)
        for problem in others.problems:
            warn(problem.advice)
    return listed_ids


def _format_checks(at: datetime | None, failed: int | None) -> str:
    """Format the time of a tenant's last checks, and the number of failed checks, if any."""
    if at is None:
        return "never"
    when = f"{at:%Y-%m-%d %H:%M} UTC"
    return f"{when}, {failed} failed" if failed else when


@app.command("add")
@with_session
def add(
    session: Session,
    tenant_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the tenant: lower-case letters, digits, . _ -"),
    ],
    source: Annotated[
        list[Path] | None, typer.Option(help="Folder to index; repeat for several.")
    ] = None,
    *,
    records: Annotated[
        bool, typer.Option("--records", help="Accept records that applications push.")
    ] = False,
    uploads: Annotated[bool, typer.Option("--uploads", help="Accept uploaded files.")] = False,
    profile: Annotated[
        str, typer.Option(help="Profile with the defaults of a system.")
    ] = "documents",
    organization: Annotated[str | None, typer.Option(help="Organization of the tenant.")] = None,
    project: Annotated[str | None, typer.Option(help="Project of the organization.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="Embedding model on this machine, such as multilingual-e5-small."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a tenant to tenants.yaml."""
    from rag_assets.pipeline.tenancy import require_usable

    options = {
        "organization": organization,
        "project": project,
        "embedder": {"model": embedder} if embedder else None,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    folders = source or []
    config: dict[str, Any] = {"id": tenant_id, "profile": profile, **settings}
    if folders or records or uploads or not get_configured_sources(config):
        home = session.settings.home
        config["sources"] = _build_sources(folders, home, has_records=records, has_uploads=uploads)
    file = TenantsFile(session.settings.tenants_file)
    _require_unused_name(session, file, tenant_id)
    _require_sources(file.make_paths_absolute(config), session)
    require_usable(file.make_paths_absolute(config))
    file.add(config)
    session.reconcile()
    advice = _find_embedder_advice(session, file.make_paths_absolute(config))
    if as_json:
        shown_tenant = {"tenant": session.catalog.tenants.get(tenant_id).config}
        print_json({**shown_tenant, "advice": advice} if advice else shown_tenant)
        return
    say(f"Tenant {tenant_id} added to {file.path.name}. Index it with: rag-assets sync {tenant_id}")
    if advice:
        say(f"\n{advice}")


@app.command("disable")
@with_session
def disable(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """Stop indexing a tenant and answering its searches; keep its data."""
    _set_enabled(session, tenant_id, enabled=False, as_json=as_json)


@app.command("enable")
@with_session
def enable(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """Index a tenant and answer its searches again."""
    _set_enabled(session, tenant_id, enabled=True, as_json=as_json)


def _set_enabled(session: Session, tenant_id: str, *, enabled: bool, as_json: bool) -> None:
    """Enable or disable a tenant; after enabling, the next sync reads everything again."""
    record = session.catalog.tenants.get(tenant_id)
    if record.state == "REMOVING":
        raise ConfigurationError(
            f"tenant {tenant_id!r} is being removed",
            hint=f"finish the removal with `rag-assets tenants remove {tenant_id} --yes`",
        )
    if record.origin not in _ORIGINS:
        raise ConfigurationError(
            f"tenant {tenant_id!r} is declared in a file that tenants.yaml lists under"
            f" `{record.origin}`, and stays enabled as long as it is declared there",
            hint="remove it from that file to disable it, or add it again to enable it",
        )
    if enabled:
        from rag_assets.pipeline.tenancy import require_usable

        require_usable(record.config, record)
    if record.origin == "file":
        TenantsFile(session.settings.tenants_file).set_enabled(tenant_id, enabled=enabled)
    session.catalog.tenants.set_state(tenant_id, "ACTIVE" if enabled else "DISABLED")
    current = session.catalog.tenants.get(tenant_id)
    if enabled:
        session.catalog.syncs.reset(record.ref)
        session.catalog.events.write(record.ref, "reindex_requested", [{"scope": "tenant"}])
    if as_json:
        print_json({"id": tenant_id, "state": current.state})
        return
    if current.is_switched_off:
        say(
            f"Tenant {tenant_id} is enabled, but stays off: its application has switched it off."
            f" Switch it on in the panel; `rag-assets panel {tenant_id}` prints a link."
        )
        return
    outcome = "enabled; its next sync reads every document again" if enabled else "disabled"
    say(f"Tenant {tenant_id} is {outcome}.")


def _require_unused_name(session: Session, file: TenantsFile, tenant_id: str) -> None:
    """Reject the id of an existing tenant, unless tenants.yaml no longer lists that tenant."""
    record = session.catalog.tenants.find(tenant_id)
    if record is None:
        return
    if record.state == "REMOVING":
        raise ConfigurationError(
            f"tenant {tenant_id!r} is being removed",
            hint=f"finish the removal first: rag-assets tenants remove {tenant_id} --yes",
        )
    if record.origin != "file" or tenant_id in file.load():
        raise ConfigurationError(
            f"tenant {tenant_id!r} already exists",
            hint=(
                f"run `rag-assets tenants enable {tenant_id}` if it is disabled, or choose a "
                "different id"
            ),
        )


def _require_undeclared(session: Session, record: TenantRecord) -> None:
    """Refuse to remove a tenant that a list declares, because the next sync would add it again."""
    file = TenantsFile(session.settings.tenants_file, cache=session.settings.local / "cache")
    declaration = file.load_lists().get(record.origin)
    if declaration is None or (declaration.complete and record.id not in declaration.places):
        return
    place = declaration.places.get(record.id, record.origin)
    raise ConfigurationError(
        f"the next sync would add tenant {record.id!r} again, because it is declared at {place}",
        hint="remove it from there first",
    )


@app.command("claim")
@with_reading_session
def claim(
    session: Session,
    tenant_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Tenants to claim.")],
    *,
    as_json: Json = False,
) -> None:
    """Assign these tenants to this home folder, whose tenants.yaml must list them."""
    listed_ids = _read_listed_ids(session)
    if missing := sorted(set(tenant_ids) - listed_ids):
        raise ConfigurationError(
            f"tenants.yaml of this home folder does not list {', '.join(missing)}",
            hint=(
                "add them to tenants.yaml first; claiming a tenant that is not listed would "
                "disable it"
            ),
        )
    claimed = session.catalog.tenants.claim(tenant_ids, session.identity.home)
    session.reconcile()
    if as_json:
        print_json({"claimed": claimed})
        return
    say(f"Claimed for this home folder: {', '.join(claimed) or 'none'}.")


@app.command("remove")
@with_session
def remove(
    session: Session,
    tenant_id: TenantArgument,
    *,
    confirmed: YesOption = False,
    as_json: Json = False,
) -> None:
    """Delete a tenant and everything indexed for it."""
    from rag_assets.jobs.run_history import delete_tenant
    from rag_assets.pipeline.removal import purge_tenant
    from rag_assets.storage.catalog.erasure.holds import require_no_hold
    from rag_assets.storage.catalog.lock import Holder

    record = session.catalog.tenants.get(tenant_id)
    _require_undeclared(session, record)
    if not confirmed:
        raise ConfigurationError(
            f"removing tenant {tenant_id!r} deletes everything that was indexed for it",
            hint=f"to confirm: rag-assets tenants remove {tenant_id} --yes",
        )
    store, lake = session.store, session.lake
    # Dagster's instance is opened before the first deletion, because this may fail.
    instance, own_runs = session.instance, session.own_runs
    lock = session.catalog.lock
    with lock.hold(
        tenant_id,
        Holder.here("removal"),
        wait_seconds=60.0,
        on_wait=lambda holder: progress(f"waiting for {holder}"),
    ):
        require_no_hold(session.catalog.holds.all(tenant_id), tenant_id, "removing the tenant")
        TenantsFile(session.settings.tenants_file).remove(tenant_id)
        receipt = purge_tenant(
            session.catalog,
            lake,
            store,
            record,
            session.settings,
            by=operator(),
            delete_history=lambda: delete_tenant(instance, own_runs, tenant_id),
        )
    entries = receipt.counts["index"]["entries"]
    complete = bool(receipt.proof["complete"])
    if as_json:
        result = {"id": tenant_id, "removed": True, "entries": entries, "receipt": receipt.number}
        print_json({**result, "complete": complete})
        return
    say(f"Tenant {tenant_id} is removed: {entries} entries, its lake and its catalog rows.")
    say(f"Receipt {receipt.number}: rag-assets receipts {tenant_id}")
    print_proof(receipt.proof, tenant_id)
    if tenant_id in {ref.id for ref in session.keeper.list_unknown_tenants()}:
        warn(
            f"data of a later tenant {tenant_id!r}, which this restored catalog lacks, are "
            "kept; to allow their deletion: rag-assets sync --all --accept-catalog"
        )


def _build_sources(
    folders: list[Path], home: Path, *, has_records: bool, has_uploads: bool
) -> list[dict[str, Any]]:
    if not (folders or has_records or has_uploads):
        raise ConfigurationError(
            "the tenant has no source",
            hint="add --source DIR, --records for pushed records, or --uploads for uploaded files",
        )
    sources: list[dict[str, Any]] = []
    names: set[str] = set()
    for folder in folders:
        root = folder.expanduser().resolve()
        stem = re.sub("[^a-z0-9]+", "-", root.name.lower())[:40].strip("-")
        name = _find_unused_name(stem or "files", names)
        names.add(name)
        sources.append({"name": name, "type": FILES.name, "root": format_path(root, home)})
    if has_records:
        sources.append({"name": _find_unused_name("pushed", names), "type": RECORDS.name})
        names.add(sources[-1]["name"])
    if has_uploads:
        sources.append({"name": _find_unused_name("uploads", names), "type": UPLOADS.name})
    return sources


def _find_unused_name(stem: str, names: set[str]) -> str:
    numbered = (f"{stem}-{number}" for number in count(2))
    return next(name for name in chain([stem], numbered) if name not in names)


def _require_sources(config: dict[str, Any], session: Session) -> None:
    """Reject a configuration with sources that cannot be opened, or roots that are not folders."""
    from rag_assets.pipeline.source_listing import open_sources

    tenant = Tenant.from_config(config)
    open_sources(tenant, session.settings, session.catalog)
    for source in tenant.sources:
        folder = tenant.source_kind(source).get_folder(source)
        if folder is not None and not os.path.isdir(folder):  # noqa: PTH112 - Path's may raise
            raise ConfigurationError(
                f"source {source.name!r}: {folder} is not a folder",
                hint="set --source to a folder that exists",
            )


def _find_embedder_advice(session: Session, config: dict[str, Any]) -> str | None:
    """Suggest a different embedder if the languages of the documents need it.

    Failures are ignored here, because the next sync reports unreadable documents.
    """
    from rag_assets.pipeline.languages import (
        advise_embedder,
        sample_languages,
        uses_shipped_embedder,
    )

    tenant = Tenant.from_config(config)
    if not uses_shipped_embedder(tenant):
        return None
    try:
        languages = sample_languages(tenant, session.settings, session.catalog)
    except (RagAssetsError, OSError):
        return None
    return advise_embedder(tenant, languages)
