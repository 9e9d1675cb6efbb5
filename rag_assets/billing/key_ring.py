"""Keys of tenants and organizations at their providers: stored, read, rotated."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pydantic import SecretStr

from rag_assets.billing.cipher import seal, unseal
from rag_assets.billing.installation_keys import InstallationKeys
from rag_assets.billing.key_entries import RERANK, KeyEntry, build_key_entry, referenced_entries
from rag_assets.billing.key_owners import describe_owner, set_command
from rag_assets.billing.master_key import MasterKey, MasterKeys
from rag_assets.common.errors import ConfigurationError, KeyUnreadable, NoProviderKey
from rag_assets.common.settings import Settings
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.models.transport.settings import Credentials
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner, SealedKey, StoredKey
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef

PURPOSES = (*WITH_KEYS, RERANK)
"""Providers and other purposes for which a tenant or an organization may store a key."""

_SHOWN_CHARACTERS = 4
_LEAST_SHOWN = 16
"""A key shorter than this is displayed without any of its characters."""
_LONGEST = 4096


class KeyRing:
    """The keys of one installation's tenants and organizations.

    Args:
        catalog: stores them encrypted.
        settings: have the path of the master key's file.
        environ: has master keys, and the keys that configurations refer to.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, environ: Mapping[str, str] | None = None
    ) -> None:
        self._catalog = catalog
        self._table = catalog.provider_keys
        self._environ = os.environ if environ is None else environ
        self._master_keys = InstallationKeys(catalog, settings, self._environ)

    def set(self, owner: KeyOwner, provider: str, secret: SecretStr) -> None:
        """Store a tenant's or an organization's key for a provider, and replace its former key.

        Raises:
            ConfigurationError: the secret cannot be a key, or the master key's file cannot be used.
            KeyUnreadable: the master key of other keys is lost.
            TenantGone: the tenant was removed.
        """
        require_key(secret)
        self._table.put(
            owner,
            provider,
            lambda: seal(self._sealing_key(owner, provider), owner, provider, secret),
            last_four=_last_four(secret),
        )

    def remove(self, owner: KeyOwner, provider: str) -> bool:
        """Delete an owner's key for a provider, and return whether there was a key."""
        return self._table.remove(owner, provider)

    def stored(self, ref: TenantRef) -> frozenset[str]:
        """Return the providers for which the tenant or its organization has a stored key."""
        return frozenset(key.provider for key in self._table.list_usable(ref))

    def entries(self, tenant_id: str | None = None) -> list[KeyEntry]:
        """Return all keys, or the keys that a tenant may use, in displayable form.

        They are sorted by tenant and provider; a tenant's own keys come before its organization's.
        """
        if tenant_id is None:
            records, stored = self._catalog.tenants.all(), self._table.all()
        else:
            records = self._catalog.tenants.find_many([tenant_id])
            stored = [key for record in records for key in self._table.list_usable(record.ref)]
        entries = self._build_entries(stored)
        for record in records:
            if record.state != "REMOVING":
                entries += referenced_entries(record.id, record.config, self._environ)
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
        """Return a function that reads the key of a model.

        Args:
            owner: the tenant that uses the key, or the organization that owns it.
            provider: the provider that the key is for.
            reference: the environment variable used instead of a stored key, as $NAME.
            setting: the setting that names the variable, for messages.
        """
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
        is used. After an interruption at any point, every key can still be read.

        Args:
            report: called with the number of keys, before former master keys are deleted from the
                file.

        Raises:
            KeyUnreadable: a key cannot be decrypted; no key was changed.
            ConfigurationError: the master key's file cannot be used.
        """
        with self._table.rotation_lock():
            given = self._master_keys.of_environment()
            if given is None:
                return self._rotate_file(report)
            count = self._reseal(given)
            report(count)
            return count

    def _build_entries(self, stored: Sequence[StoredKey]) -> list[KeyEntry]:
        keys = self._master_keys.read() if stored else None
        return [build_key_entry(key, keys) for key in stored]

    def _rotate_file(self, report: Callable[[int], None]) -> int:
        stored = self._table.all()
        file = self._master_keys.writable_file()
        held = file.read()
        for key in stored:
            self._master_keys.find(key, held)
        if held is None:
            report(0)
            return 0
        keys = MasterKeys(MasterKey.random(), (held.present, *held.former))
        # The file is written before any key is encrypted with the new master key; former keys stay
        # in it until they are no longer needed.
        file.replace(keys)
        count = self._reseal(keys)
        report(count)
        file.replace(MasterKeys(keys.present))
        return count

    def _reseal(self, keys: MasterKeys) -> int:
        def reseal_key(key: StoredKey) -> SealedKey:
            master = self._master_keys.find(key, keys)
            secret = unseal(master, key.owner, key.provider, key.sealed)
            return seal(keys.present, key.owner, key.provider, secret)

        return self._table.reseal_all(reseal_key)

    def _sealing_key(self, owner: KeyOwner, provider: str) -> MasterKey:
        keys = self._master_keys.of_environment()
        if keys is None:
            file = self._master_keys.writable_file()
            keys = file.read()
            if keys is None:
                # Creating a new master key in place of a lost one would hide the loss.
                for key in self._table.all():
                    if (key.owner, key.provider) != (owner, provider):
                        self._master_keys.find(key, None)
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
                hint=f"set a key: {set_command(owner, provider)}; or set {setting}: $NAME in"
                " tenants.yaml, where NAME is the environment variable with the key",
            )
        master = self._master_keys.find(key, self._master_keys.read())
        return unseal(master, key.owner, provider, key.sealed)


def require_key(secret: SecretStr) -> None:
    """Refuse a value that cannot be a provider's key.

    Raises:
        ConfigurationError: the value cannot be a key; the message gives the reason without quoting
            it.
    """
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
    if len(value) > _LONGEST or not all("!" <= character <= "~" for character in value):
        raise ConfigurationError(
            "the value cannot be a key: it is too long, or contains white space, control"
            " characters or characters that HTTP headers do not allow",
            hint="copy only the key, exactly as the provider shows it",
        )


def _last_four(secret: SecretStr) -> str:
    value = secret.get_secret_value()
    return value[-_SHOWN_CHARACTERS:] if len(value) >= _LEAST_SHOWN else ""
