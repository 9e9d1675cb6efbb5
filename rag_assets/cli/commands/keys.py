"""keys set, list, remove, rotate."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted

if TYPE_CHECKING:
    from pydantic import SecretStr

    from rag_assets.billing.key_entries import KeyEntry
    from rag_assets.billing.key_ring import KeyRing

_LONGEST_INPUT = 65_536


def require_no_argument(extra: Sequence[str]) -> None:
    """Reject a key among the arguments, without repeating it.

    Raises:
        ConfigurationError: there are more arguments than a tenant and a provider.
    """
    if extra:
        raise ConfigurationError(
            "a key must not be an argument: other users can see it, and the shell keeps it",
            hint="type it at the prompt or pipe it in; if this was a key, replace it",
        )


@with_session
def set_key(session: Session, tenant_id: str, provider: str, *, as_json: bool) -> None:
    """Store a tenant's key, and retry the documents that waited for it."""
    _require_provider(provider)
    ref = session.catalog.tenants.get(tenant_id).ref
    ring = _ring(session)
    ring.set(ref, provider, _read_key(f"Key of {tenant_id} for {provider}: "))
    waiting = session.catalog.quarantine.retry_transient_failures(ref)
    if as_json:
        print_json({"tenant": tenant_id, "provider": provider, "set": True, "waiting": waiting})
        return
    say(f"Tenant {tenant_id} has a key for {provider}.")
    if waiting:
        say(f"{counted(waiting, 'document')} will be retried by: rag-assets sync {tenant_id}")


@with_session
def list_keys(session: Session, tenant_id: str | None, *, as_json: bool) -> None:
    """Print every key without its secret part."""
    if tenant_id is not None:
        session.catalog.tenants.get(tenant_id)
    entries = [*_ring(session).entries(tenant_id), *_missing(session, tenant_id)]
    if as_json:
        print_json({"keys": entries})
        return
    print_table(
        ["tenant", "provider", "key", "state", "set", "last used", "worked"],
        [_row(entry) for entry in entries],
    )
    if not entries:
        say("\nSet one with: rag-assets keys set TENANT PROVIDER")


@with_session
def remove_key(session: Session, tenant_id: str, provider: str, *, as_json: bool) -> None:
    """Delete a tenant's key."""
    _require_provider(provider)
    ref = session.catalog.tenants.get(tenant_id).ref
    if not _ring(session).remove(ref, provider):
        raise ConfigurationError(
            f"tenant {tenant_id!r} has no stored key for {provider}",
            hint=f"`rag-assets keys list {tenant_id}` shows its keys",
        )
    if as_json:
        print_json({"tenant": tenant_id, "provider": provider, "removed": True})
        return
    say(f"Tenant {tenant_id} no longer has a stored key for {provider}.")


@with_session
def rotate(session: Session, *, as_json: bool) -> None:
    """Encrypt every key with another master key."""
    count = _ring(session).rotate()
    if as_json:
        print_json({"rotated": count})
        return
    say(f"{counted(count, 'key')} encrypted again; former master keys are no longer needed.")


def _ring(session: Session) -> KeyRing:
    from rag_assets.billing.key_ring import KeyRing

    return KeyRing(session.catalog, session.settings)


def _missing(session: Session, tenant_id: str | None) -> Iterator[KeyEntry]:
    """The missing keys of tenants whose embedder needs one."""
    from rag_assets.billing.key_entries import KeyEntry

    for record in session.catalog.tenants.all():
        if record.state == "ACTIVE" and tenant_id in {None, record.id}:
            choice = session.embedders.choice(record)
            if choice.key == "missing":
                yield KeyEntry(record.id, choice.embedder.provider, "", "missing")


def _require_provider(name: str) -> None:
    """Reject an unknown name, without repeating it: it may be a key in the wrong place."""
    from rag_assets.billing.key_ring import PURPOSES

    if name not in PURPOSES:
        raise ConfigurationError(
            "no provider that takes keys has this name",
            hint=f"choose one of: {', '.join(PURPOSES)}",
        )


def _read_key(prompt: str) -> SecretStr:
    """Read a key from a hidden prompt or from standard input."""
    from pydantic import SecretStr

    if sys.stdin.isatty():
        return SecretStr(getpass.getpass(prompt).strip())
    return SecretStr(sys.stdin.read(_LONGEST_INPUT).strip())


def _row(entry: KeyEntry) -> tuple[object, ...]:
    worked = {None: "", True: "yes", False: "no"}[entry.worked]
    times = (_time(entry.set_at), _time(entry.last_used_at))
    return (entry.tenant, entry.provider, entry.shown, entry.state, *times, worked)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
