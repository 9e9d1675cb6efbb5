"""The owners of keys, and commands for their keys, in messages."""

from __future__ import annotations

import shlex

from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.tenants.organizations import OrganizationRef


def describe_owner(owner: KeyOwner) -> str:
    """Return the owner of a key, as messages name it."""
    kind = "organization" if isinstance(owner, OrganizationRef) else "tenant"
    return f"{kind} {owner.id!r}"


def set_command(owner: KeyOwner, provider: str) -> str:
    """Return the command that stores an owner's key for a provider."""
    return f"rag-assets keys set {_arguments(owner, provider)}"


def remove_command(owner: KeyOwner, provider: str) -> str:
    """Return the command that deletes an owner's key for a provider."""
    return f"rag-assets keys remove {_arguments(owner, provider)}"


def _arguments(owner: KeyOwner, provider: str) -> str:
    option = " --organization" if isinstance(owner, OrganizationRef) else ""
    return f"{shlex.quote(owner.id)} {provider}{option}"
