"""Commands for the keys of tenants and organizations at model providers."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rag_assets.cli.arguments import (
    Json,
    NamedOwner,
    OrganizationOption,
    ProviderArgument,
    find_organization,
    owner_options,
)
from rag_assets.cli.output import format_time, print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count

if TYPE_CHECKING:
    from pydantic import SecretStr

    from rag_assets.billing.key_ring import KeyEntry, KeyRing
    from rag_assets.storage.catalog.accounts.credentials import KeyOwner

_MAX_INPUT_LENGTH = 65_536

app = typer.Typer()


@app.command("set", context_settings={"allow_extra_args": True})
@owner_options
@with_session
def set_key(
    session: Session,
    context: typer.Context,
    owner: NamedOwner,
    provider: ProviderArgument,
    *,
    as_json: Json = False,
) -> None:
    """Read a key from a prompt or from standard input, and store it encrypted."""
    if context.args:
        raise ConfigurationError(
            "a key must not be an argument: other users can see it, and the shell stores it",
            hint="type it at the prompt or pipe it in; if this was a key, replace it",
        )
    _require_provider(provider)
    key_owner = owner.find(session)
    _open_key_ring(session).set(
        key_owner, provider, _read_key(f"Key of {owner.id} for {provider}: ")
    )
    waiting = _request_retry(session, key_owner)
    if as_json:
        key_status = {owner.kind: owner.id, "provider": provider, "set": True, "waiting": waiting}
        print_json(key_status)
        return
    say(f"{owner.kind.capitalize()} {owner.id} has a key for {provider}.")
    if waiting:
        command = "rag-assets sync" if owner.is_organization else f"rag-assets sync {owner.id}"
        say(f"{format_count(waiting, 'document')} will be retried by: {command}")


@app.command("list")
@with_reading_session
def list_keys(
    session: Session,
    owner_id: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT]", help="Id of the tenant, or of the organization."),
    ] = None,
    *,
    organization: OrganizationOption = False,
    as_json: Json = False,
) -> None:
    """List keys with their last four characters, and the time and outcome of their last use."""
    entries: list[KeyEntry]
    if organization:
        if owner_id is None:
            raise ConfigurationError(
                "the id of the organization is missing",
                hint="add its id before the option --organization",
            )
        entries = _open_key_ring(session).entries_of_organization(
            find_organization(session, owner_id).id
        )
    else:
        if owner_id is not None:
            session.catalog.tenants.get(owner_id)
        entries = [*_open_key_ring(session).entries(owner_id), *_iter_missing(session, owner_id)]
    if as_json:
        print_json({"keys": entries})
        return
    print_table(
        ["tenant", "provider", "key", "state", "set", "last used", "worked"],
        [_build_row(entry) for entry in entries],
    )
    if not entries:
        say("\nSet a key with: rag-assets keys set TENANT PROVIDER")


@app.command("remove")
@owner_options
@with_session
def remove_key(
    session: Session, owner: NamedOwner, provider: ProviderArgument, *, as_json: Json = False
) -> None:
    """Delete a key."""
    _require_provider(provider)
    if not _open_key_ring(session).remove(owner.find(session), provider):
        raise ConfigurationError(
            f"{owner.kind} {owner.id!r} has no stored key for {provider}",
            hint=f"run `rag-assets keys list {owner.arguments}` to see its keys",
        )
    if as_json:
        print_json({owner.kind: owner.id, "provider": provider, "removed": True})
        return
    say(f"{owner.kind.capitalize()} {owner.id} no longer has a stored key for {provider}.")


@app.command("test")
@owner_options
@with_session
def try_key(
    session: Session, owner: NamedOwner, provider: ProviderArgument, *, as_json: Json = False
) -> None:
    """Test the key in use with one small call, which costs almost nothing."""
    from rag_assets.billing.key_tests import KeyTests

    _require_provider(provider)
    tests = KeyTests(session.catalog, session.settings)
    result = asyncio.run(tests.test(owner.find(session), provider))
    if as_json:
        print_json({owner.kind: owner.id, "provider": provider, **asdict(result)})
        return
    if result.worked:
        say(f"The key of {owner.kind} {owner.id} for {provider} works ({result.latency_ms:,} ms).")
        return
    raise ConfigurationError(
        f"the key of {owner.kind} {owner.id!r} for {provider} does not work: {result.reason}",
        hint="check the key at the provider, or set a different key",
    )


@app.command("rotate")
@with_session
def rotate(session: Session, *, as_json: Json = False) -> None:
    """Encrypt all stored keys with a new master key."""
    from rag_assets.runtime.elasticsearch_access import list_sealed_secrets, seal_secret

    secrets = list_sealed_secrets(session.settings)

    def report(count: int) -> None:
        sealed = {name: seal_secret(session.settings, secret) for name, secret in secrets.items()}
        if as_json:
            print_json({"rotated": count} | ({"sealed": sealed} if sealed else {}))
            return
        say(
            f"{format_count(count, 'key')} encrypted again; former master keys are no"
            " longer needed."
        )
        for name, text in sealed.items():
            place = f"the file that {name} names" if name.endswith("_FILE") else name
            say(f"\nReplace the content of {place}, which the new master key cannot decrypt, with:")
            say(text)

    _open_key_ring(session).rotate(report)


def _request_retry(session: Session, owner: KeyOwner) -> int:
    """Request a retry of the documents that waited for an owner's key; return their number."""
    from rag_assets.storage.catalog.database import TenantRef

    if isinstance(owner, TenantRef):
        return session.catalog.quarantine.retry_transient_failures(owner)
    records = session.catalog.tenants.list_of_organization(owner.id)
    return sum(
        session.catalog.quarantine.retry_transient_failures(record.ref)
        for record in records
        if record.state != "REMOVING"
    )


def _open_key_ring(session: Session) -> KeyRing:
    from rag_assets.billing.key_ring import KeyRing

    return KeyRing(session.catalog, session.settings)


def _iter_missing(session: Session, tenant_id: str | None) -> Iterator[KeyEntry]:
    """Yield an entry for each active tenant whose embedder needs a key that is missing.

    Args:
        tenant_id: only consider this tenant; None considers all tenants.
    """
    from rag_assets.billing.key_ring import KeyEntry

    for record in session.catalog.tenants.all():
        if record.state == "ACTIVE" and tenant_id in {None, record.id}:
            choice = session.embedders.choice(record)
            if choice.key == "missing":
                yield KeyEntry(record.id, choice.embedder.provider, "", "missing")


def _require_provider(name: str) -> None:
    """Reject an unknown name without repeating it, since it may be a misplaced key."""
    from rag_assets.billing.key_ring import PURPOSES

    if name not in PURPOSES:
        raise ConfigurationError(
            "no provider with this name uses keys", hint=f"choose one of: {', '.join(PURPOSES)}"
        )


def _read_key(prompt: str) -> SecretStr:
    """Read a key from a hidden prompt or from standard input."""
    from pydantic import SecretStr

    if sys.stdin.isatty():
        return SecretStr(getpass.getpass(prompt).strip())
    return SecretStr(sys.stdin.read(_MAX_INPUT_LENGTH).strip())


def _build_row(entry: KeyEntry) -> tuple[object, ...]:
    worked = {None: "", True: "yes", False: "no"}[entry.worked]
    times = (format_time(entry.set_at), format_time(entry.last_used_at))
    owner = entry.tenant or f"organization {entry.organization}"
    return (owner, entry.provider, entry.shown, entry.state, *times, worked)
