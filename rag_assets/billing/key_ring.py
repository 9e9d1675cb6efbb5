"""Keys of tenants and organizations at their providers: stored encrypted, listed, rotated."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from rag_assets.billing.master_key import (
    PREVIOUS,
    VARIABLE,
    KeyFile,
    MasterKey,
    MasterKeys,
    get_key_file_path,
    read_environment_keys,
)
from rag_assets.common.errors import ConfigurationError, KeyUnreadable, NoProviderKey
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.registry import get_paths_by_field
from rag_assets.models.providers.registry import WITH_KEYS, find_chat_provider
from rag_assets.models.transport.settings import Credentials
from rag_assets.storage.catalog.accounts.credentials import KeyOwner, SealedKey, StoredKey
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.settings import OrganizationRef
from rag_assets.storage.lake.location import Location
from rag_assets.tenants.kinds import installed_kinds


def describe_owner(owner: KeyOwner) -> str:
    """Return the kind and the id of a key's owner, for messages."""
    kind = "organization" if isinstance(owner, OrganizationRef) else "tenant"
    return f"{kind} {owner.id!r}"


def build_set_command(owner: KeyOwner, provider: str) -> str:
    """Return the command that stores an owner's key for a provider."""
    return f"rag-assets keys set {_format_arguments(owner, provider)}"


def build_remove_command(owner: KeyOwner, provider: str) -> str:
    """Return the command that deletes an owner's key for a provider."""
    return f"rag-assets keys remove {_format_arguments(owner, provider)}"


def _format_arguments(owner: KeyOwner, provider: str) -> str:
    option = " --organization" if isinstance(owner, OrganizationRef) else ""
    return f"{shlex.quote(owner.id)} {provider}{option}"


_NONCE_BYTES = 12  # NIST SP 800-38D, 8.2.2: random, so keep far below 2^32 keys per master key


def seal(master: MasterKey, owner: KeyOwner, provider: str, secret: SecretStr) -> SealedKey:
    """Encrypt a provider key; a row moved to another owner or provider cannot be decrypted."""
    nonce = os.urandom(_NONCE_BYTES)
    plain = secret.get_secret_value().encode()
    ciphertext = AESGCM(master.secret).encrypt(nonce, plain, _encode_owner(owner, provider))
    return SealedKey(nonce, ciphertext, master.id)


def unseal(master: MasterKey, owner: KeyOwner, provider: str, sealed: SealedKey) -> SecretStr:
    """Decrypt a provider key; raise KeyUnreadable if it, its owner or its provider was changed."""
    bound = _encode_owner(owner, provider)
    try:
        plain = AESGCM(master.secret).decrypt(sealed.nonce, sealed.ciphertext, bound)
    except (InvalidTag, ValueError):
        raise KeyUnreadable(
            f"the stored key of {describe_owner(owner)} for {provider} is damaged",
            hint=f"set the key again: {build_set_command(owner, provider)}",
        ) from None
    return SecretStr(plain.decode())


def _encode_owner(owner: KeyOwner, provider: str) -> bytes:
    """Encode owner and provider as bytes that differ for each pair of them."""
    if isinstance(owner, OrganizationRef):
        parts: list[object] = ["rag-assets key of an organization", 1, owner.id, provider]
    else:
        parts = ["rag-assets provider key", 1, owner.id, owner.incarnation, provider]
    return json.dumps(parts).encode()


RERANK = "rerank"
"""The purpose of a rerank endpoint's key, in place of a provider's name."""

KeyState: TypeAlias = Literal["set", "not set", "unreadable", "missing"]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """The displayable part of a key."""

    tenant: str
    """The tenant that has the key; empty if an organization has it."""
    provider: str
    shown: str
    """The key's last four characters as "…abcd", or the variable that holds it as "$NAME"."""
    state: KeyState
    """State "not set": the variable is missing; "unreadable": the master key is missing; "missing":
    the tenant's provider requires a key, and the tenant has none."""
    set_at: datetime | None = None
    last_used_at: datetime | None = None
    worked: bool | None = None
    """Whether the provider accepted the key when it was last used."""
    organization: str | None = None
    """The organization that has the key, for all of its tenants without their own key."""


def build_key_entry(key: StoredKey, keys: MasterKeys | None) -> KeyEntry:
    """Return the displayable part of a stored key."""
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


def iter_referenced_entries(
    tenant_id: str, config: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[KeyEntry]:
    """Yield the entries of the keys that a tenant's configuration refers to."""
    for purpose, reference in _iter_key_references(config):
        name = reference.removeprefix("$")
        yield KeyEntry(tenant_id, purpose, f"${name}", "set" if environ.get(name) else "not set")


def _iter_key_references(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each key's purpose, such as a provider's name, and the $VARIABLE that contains it."""
    for user in (config.get("embedder"), config.get("chat_model")):
        # A chat model may be only a name.
        if isinstance(user, Mapping) and user.get("api_key"):
            provider = find_chat_provider(user.get("model"))
            name = provider.name if provider else ""
            yield user.get("provider") or name, user["api_key"]
    rerank = config.get("retrieval", {}).get("rerank") or {}
    if rerank.get("api_key"):
        yield rerank.get("provider") or RERANK, rerank["api_key"]


PURPOSES = (*WITH_KEYS, RERANK)
"""Providers and other purposes for which a tenant or an organization may store a key."""

_SHOWN_CHARACTERS = 4
_MIN_SHOWN_CHARACTERS = 16
"""A key shorter than this is displayed without any of its characters."""
_MAX_KEY_CHARACTERS = 4096


class KeyRing:
    """The keys of one installation's tenants and organizations."""

    def __init__(
        self, catalog: Catalog, settings: Settings, environ: Mapping[str, str] | None = None
    ) -> None:
        self._catalog = catalog
        self._table = catalog.provider_keys
        self._environ = os.environ if environ is None else environ
        self._settings = settings

    def set(self, owner: KeyOwner, provider: str, secret: SecretStr) -> None:
        """Store a tenant's or an organization's key for a provider, and replace its former key."""
        require_key(secret)
        value = secret.get_secret_value()
        self._table.put(
            owner,
            provider,
            lambda: seal(self._get_sealing_key(owner, provider), owner, provider, secret),
            last_four=value[-_SHOWN_CHARACTERS:] if len(value) >= _MIN_SHOWN_CHARACTERS else "",
        )

    def remove(self, owner: KeyOwner, provider: str) -> bool:
        """Delete an owner's key for a provider, and return whether there was a key."""
        return self._table.remove(owner, provider)

    def list_stored_providers(self, ref: TenantRef) -> frozenset[str]:
        """Return the providers for which the tenant or its organization has a stored key."""
        return frozenset(key.provider for key in self._table.list_usable(ref))

    def entries(self, tenant_id: str | None = None) -> list[KeyEntry]:
        """Return all keys, or those that a tenant may use, by owner and provider."""
        if tenant_id is None:
            records, stored = self._catalog.tenants.all(), self._table.all()
        else:
            records = self._catalog.tenants.find_many([tenant_id])
            stored = [key for record in records for key in self._table.list_usable(record.ref)]
        entries = self._build_entries(stored)
        for record in records:
            if record.state != "REMOVING":
                entries += iter_referenced_entries(record.id, record.config, self._environ)
        return sorted(entries, key=lambda e: (e.organization or "", e.tenant, e.provider, e.shown))

    def entries_of_organization(self, organization_id: str) -> list[KeyEntry]:
        """Return an organization's own keys in displayable form, by provider."""
        return self._build_entries(self._table.list_of_organization(organization_id))

    def credentials(
        self,
        owner: KeyOwner,
        provider: str,
        reference: str | None,
        *,
        setting: str = "embedder.api_key",
    ) -> Credentials:
        """Return a function that reads the key of a model: a stored key, or a variable $NAME."""
        if reference is not None:
            return partial(self._read_variable, owner, provider, reference, setting)
        return partial(self._read_stored_key, owner, provider, setting)

    def record_use(self, owner: KeyOwner, provider: str, *, worked: bool) -> None:
        """Record a use of an owner's key, and whether the provider accepted it."""
        key = self._table.find(owner, provider)
        if key is not None:
            self._table.record_use(key, worked=worked)

    def rotate(self, report: Callable[[int], None] = lambda _: None) -> int:
        """Encrypt every key with a new master key, and return the number of keys.

        A new master key is created in the file; if the environment has master keys, its current one
        is used. After an interruption at any point, every key can still be read. The number of keys
        is reported before former master keys are deleted from the file.
        """
        with self._table.rotation_lock():
            environment_keys = read_environment_keys(self._environ)
            if environment_keys is None:
                return self._rotate_file(report)
            count = self._reseal_all_keys(environment_keys)
            report(count)
            return count

    def _build_entries(self, stored_keys: Sequence[StoredKey]) -> list[KeyEntry]:
        keys = self._read_master_keys() if stored_keys else None
        return [build_key_entry(key, keys) for key in stored_keys]

    def _rotate_file(self, report: Callable[[int], None]) -> int:
        stored = self._table.all()
        file = self._get_writable_file()
        master_keys = file.read()
        for key in stored:
            self._find_master_key(key, master_keys)
        if master_keys is None:
            report(0)
            return 0
        keys = MasterKeys(MasterKey.random(), (master_keys.present, *master_keys.former))
        # The file is written before any key is encrypted with the new master key; former keys stay
        # in it until they are no longer needed.
        file.replace(keys)
        count = self._reseal_all_keys(keys)
        report(count)
        file.replace(MasterKeys(keys.present))
        return count

    def _reseal_all_keys(self, keys: MasterKeys) -> int:
        def reseal_key(key: StoredKey) -> SealedKey:
            master = self._find_master_key(key, keys)
            secret = unseal(master, key.owner, key.provider, key.sealed)
            return seal(keys.present, key.owner, key.provider, secret)

        return self._table.reseal_all(reseal_key)

    def _get_sealing_key(self, owner: KeyOwner, provider: str) -> MasterKey:
        keys = read_environment_keys(self._environ)
        if keys is None:
            file = self._get_writable_file()
            keys = file.read()
            if keys is None:
                # A new master key in place of a lost master key would hide the loss.
                for key in self._table.all():
                    if (key.owner, key.provider) != (owner, provider):
                        self._find_master_key(key, None)
                keys = file.create()
        return keys.present

    def _read_variable(
        self, owner: KeyOwner, provider: str, reference: str, setting: str
    ) -> SecretStr:
        name = reference.removeprefix("$")
        value = self._environ.get(name)
        if not value:
            raise NoProviderKey(
                f"{describe_owner(owner)} has no key for {provider}: {setting} refers to the"
                f" environment variable {name}, which is not set",
                hint="set the variable in the environment of rag-assets; for the daemon, set it"
                " before `rag-assets up`",
            )
        return SecretStr(value.strip())

    def _read_stored_key(self, owner: KeyOwner, provider: str, setting: str) -> SecretStr:
        try:
            return self._unseal_stored_key(owner, provider, setting)
        except KeyUnreadable:
            # A rotation may have ended between reading the key and reading the master key, so read
            # again.
            return self._unseal_stored_key(owner, provider, setting)

    def _unseal_stored_key(self, owner: KeyOwner, provider: str, setting: str) -> SecretStr:
        key = self._table.find(owner, provider)
        if key is None:
            raise NoProviderKey(
                f"{describe_owner(owner)} has no key for {provider}",
                hint=f"set a key: {build_set_command(owner, provider)}; or set {setting}: $NAME in"
                " tenants.yaml, where NAME is the environment variable with the key",
            )
        master = self._find_master_key(key, self._read_master_keys())
        return unseal(master, key.owner, provider, key.sealed)

    def _read_master_keys(self) -> MasterKeys | None:
        """Return the master keys; None if there are none yet."""
        return read_environment_keys(self._environ) or self._get_key_file().read()

    def _get_writable_file(self) -> KeyFile:
        """Return the key file for writing; no source, lake or state folder may contain it."""
        return self._get_key_file(self._iter_source_folders())

    def _find_master_key(self, key: StoredKey, keys: MasterKeys | None) -> MasterKey:
        """Return the master key of a stored key; raise KeyUnreadable if it is missing."""
        found = keys.find(key.sealed.master_key_id) if keys else None
        if found is None:
            path = get_key_file_path(self._settings, self._environ)
            place = f"the master key in {PREVIOUS}" if self._environ.get(VARIABLE) else path
            raise KeyUnreadable(
                f"the stored key of {describe_owner(key.owner)} for {key.provider} was encrypted"
                f" with the master key {key.sealed.master_key_id}, which is unavailable",
                hint=f"restore {place}, or set RAG_ASSETS_MASTER_KEY_FILE to its"
                f" file; if it is lost, run `{build_remove_command(key.owner, key.provider)}` and"
                " set the key again",
            )
        return found

    def _get_key_file(self, folders: Iterable[Path] = ()) -> KeyFile:
        lake = Location.parse(self._settings.lake_url).url if self._settings.lake_url else ""
        data = [Path(lake)] if lake.startswith("/") else []
        path = get_key_file_path(self._settings, self._environ)
        return KeyFile(path, (self._settings.local, *data, *folders))

    def _iter_source_folders(self) -> Iterator[Path]:
        """Yield the folders of all tenants' sources, which must not contain the key file."""
        kinds = installed_kinds().sources
        for record in self._catalog.tenants.all():
            for source in record.config.get("sources", ()):
                for path in get_paths_by_field(source, kinds).values():
                    yield self._settings.home / path


def require_key(secret: SecretStr) -> None:
    """Refuse a value that cannot be a provider's key, without quoting it."""
    value = secret.get_secret_value()
    if not value:
        raise ConfigurationError(
            "the key is empty", hint="paste the key at the prompt, or pipe it to the command"
        )
    if value.startswith("$"):
        raise ConfigurationError(
            "the value is a reference to an environment variable, not a key",
            hint="set the reference in tenants.yaml instead, for example embedder.api_key: $NAME",
        )
    if len(value) > _MAX_KEY_CHARACTERS or not all("!" <= character <= "~" for character in value):
        raise ConfigurationError(
            "the value cannot be a key: it is too long, or contains white space, control"
            " characters or characters that HTTP headers do not allow",
            hint="copy only the key, exactly as the provider shows it",
        )
