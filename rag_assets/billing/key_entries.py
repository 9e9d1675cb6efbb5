"""Tenants' keys in displayable form: stored keys, and keys in environment variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from rag_assets.billing.master_key import MasterKeys
from rag_assets.models.providers.registry import find_chat_provider
from rag_assets.storage.catalog.accounts.provider_keys import StoredKey
from rag_assets.storage.catalog.tenants.organizations import OrganizationRef

RERANK = "rerank"
"""The purpose of a rerank endpoint's key, in place of a provider's name."""

KeyState: TypeAlias = Literal["set", "not set", "unreadable", "missing"]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """The displayable part of a key.

    Attributes:
        tenant: the tenant that has the key; empty if an organization has it.
        shown: the key's last four characters as "…abcd", or the variable that holds it as "$NAME".
        state: "not set" if the variable is missing; "unreadable" if the master key is missing;
            "missing" if the tenant's provider requires a key, and the tenant has none.
        worked: whether the provider accepted the key when it was last used.
        organization: the organization that has the key, for all of its tenants without their own
            key.
    """

    tenant: str
    provider: str
    shown: str
    state: KeyState
    set_at: datetime | None = None
    last_used_at: datetime | None = None
    worked: bool | None = None
    organization: str | None = None


def build_key_entry(key: StoredKey, keys: MasterKeys | None) -> KeyEntry:
    """Return the entry of a stored key.

    Args:
        key: the stored key to display.
        keys: the master keys; None if there are none.
    """
    readable = keys is not None and keys.find(key.sealed.master_key_id) is not None
    of_organization = isinstance(key.owner, OrganizationRef)
    return KeyEntry(
        tenant="" if of_organization else key.owner.id,
        provider=key.provider,
        shown=f"…{key.last_four}",
        state="set" if readable else "unreadable",
        set_at=key.created_at,
        last_used_at=key.last_used_at,
        worked=key.worked,
        organization=key.owner.id if of_organization else None,
    )


def referenced_entries(
    tenant_id: str, config: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[KeyEntry]:
    """Yield the entries of the keys that a tenant's configuration refers to.

    Args:
        tenant_id: id of the tenant.
        config: the tenant's configuration as stored.
        environ: the environment with the keys.
    """
    for purpose, reference in _references(config):
        name = reference.removeprefix("$")
        yield KeyEntry(tenant_id, purpose, f"${name}", "set" if environ.get(name) else "not set")


def _references(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield purpose and variable of the keys that a tenant's configuration refers to."""
    for user in (config.get("embedder"), config.get("chat_model")):
        # A chat model may be only a name.
        if isinstance(user, Mapping) and user.get("api_key"):
            yield user.get("provider") or _chat_provider(user.get("model")), user["api_key"]
    rerank = config.get("retrieval", {}).get("rerank") or {}
    if rerank.get("api_key"):
        yield rerank.get("provider") or RERANK, rerank["api_key"]


def _chat_provider(model: str | None) -> str:
    provider = find_chat_provider(model)
    return provider.name if provider else ""
