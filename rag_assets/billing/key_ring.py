"""Tenants' keys at their providers: stored, read, rotated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr

from rag_assets.billing.cipher import seal, unseal
from rag_assets.billing.key_file import KeyFile, key_file_path
from rag_assets.billing.master_key import (
    PREVIOUS,
    VARIABLE,
    MasterKey,
    MasterKeys,
    keys_of_environment,
)
from rag_assets.common.errors import ConfigurationError, KeyUnreadable, NoProviderKey
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.registry import paths_of
from rag_assets.models.providers.registry import WITH_KEYS, provider_of_chat_model
from rag_assets.models.transport.credentials import Credentials
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.provider_keys import SealedKey, StoredKey
from rag_assets.storage.lake.location import Location
from rag_assets.tenants.kinds import installed_kinds

RERANK = "rerank"
"""The purpose of a rerank endpoint's key, in place of a provider's name."""

PURPOSES = (*WITH_KEYS, RERANK)
"""What a tenant may have a stored key for."""

KeyState = Literal["set", "not set", "unreadable", "missing"]

_SHOWN_CHARACTERS = 4
_LEAST_SHOWN = 16
"""Of a shorter key, no characters are shown."""
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """The displayable part of a key.

    Attributes:
        shown: its last four characters as "…abcd", or the variable that holds it as "$NAME".
        state: "not set": the variable; "unreadable": its master key is missing; "missing": the
            tenant's provider requires a key, and there is none.
        worked: whether the provider accepted it when it was last used.
    """

    tenant: str
    provider: str
    shown: str
    state: KeyState
    set_at: datetime | None = None
    last_used_at: datetime | None = None
    worked: bool | None = None


class KeyRing:
    """The keys of one installation's tenants.

    Args:
        catalog: stores them encrypted.
        settings: have the path of the master key's file.
        environ: has master keys, and keys by reference.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, environ: Mapping[str, str] | None = None
    ) -> None:
        self._catalog = catalog
        self._table = catalog.provider_keys
        self._settings = settings
        self._environ = os.environ if environ is None else environ

    def set(self, ref: TenantRef, provider: str, secret: SecretStr) -> None:
        """Store a tenant's key for a provider, in place of its former one.

        Raises:
            ConfigurationError: it cannot be a key, or the master key's file cannot be used.
            KeyUnreadable: the master key of other keys is lost.
            TenantGone: the tenant was removed.
        """
        require_key(secret)
        self._table.put(
            ref,
            provider,
            lambda: seal(self._sealing_key(ref, provider), ref, provider, secret),
            last_four=_last_four(secret),
        )

    def remove(self, ref: TenantRef, provider: str) -> bool:
        """Delete a tenant's key for a provider; returns whether there was one."""
        return self._table.remove(ref, provider)

    def stored(self, ref: TenantRef) -> frozenset[str]:
        """The providers that a tenant has a stored key for."""
        return frozenset(key.provider for key in self._table.all(ref.id) if key.ref == ref)

    def entries(self, tenant_id: str | None = None) -> list[KeyEntry]:
        """All keys in displayable form, or a tenant's, by tenant and provider."""
        stored = self._table.all(tenant_id)
        keys = self._master_keys() if stored else None
        entries = [_entry(key, keys) for key in stored]
        return sorted(
            [*entries, *self._references(tenant_id)], key=lambda e: (e.tenant, e.provider, e.shown)
        )

    def credentials(
        self,
        ref: TenantRef,
        provider: str,
        reference: str | None,
        *,
        setting: str = "embedder.api_key",
    ) -> Credentials:
        """The credentials of a tenant's model; the key is read when they are called.

        Args:
            ref: of the tenant.
            provider: whose key it is.
            reference: the environment variable that is named instead of a stored key, as $NAME.
            setting: the setting that names it, for messages.
        """
        if reference is not None:
            return partial(self._of_variable, ref, provider, reference, setting)
        return partial(self._of_catalog, ref, provider, setting)

    def record_use(self, ref: TenantRef, provider: str, *, worked: bool) -> None:
        """Record that the stored key was used, and whether the provider accepted it."""
        key = self._table.find(ref, provider)
        if key is not None:
            self._table.record_use(key, worked=worked)

    def rotate(self) -> int:
        """Encrypt every key with another master key; returns how many there are.

        A new one is created in the file; if the environment has master keys, its present one is
        used. After an interruption at any point every key can still be read.

        Raises:
            KeyUnreadable: a key cannot be decrypted; nothing was changed.
            ConfigurationError: the master key's file cannot be used.
        """
        with self._table.rotation_lock():
            given = keys_of_environment(self._environ)
            return self._rotate_file() if given is None else self._reseal(given)

    def _rotate_file(self) -> int:
        stored = self._table.all()
        file = self._key_file(self._roots())
        held = file.read()
        for key in stored:
            self._master_of(key, held)
        if held is None:
            return 0
        keys = MasterKeys(MasterKey.random(), (held.present, *held.former))
        # Written before any key is encrypted with it; former ones stay until none is needed.
        file.replace(keys)
        count = self._reseal(keys)
        file.replace(MasterKeys(keys.present))
        return count

    def _reseal(self, keys: MasterKeys) -> int:
        def resealed(key: StoredKey) -> SealedKey:
            secret = unseal(self._master_of(key, keys), key.ref, key.provider, key.sealed)
            return seal(keys.present, key.ref, key.provider, secret)

        return self._table.reseal_all(resealed)

    def _sealing_key(self, ref: TenantRef, provider: str) -> MasterKey:
        keys = keys_of_environment(self._environ)
        if keys is None:
            file = self._key_file(self._roots())
            keys = file.read()
            if keys is None:
                # A new master key in place of a lost one would hide the loss.
                for key in self._table.all():
                    if (key.ref, key.provider) != (ref, provider):
                        self._master_of(key, None)
                keys = file.create()
        return keys.present

    def _master_keys(self) -> MasterKeys | None:
        return keys_of_environment(self._environ) or self._key_file().read()

    def _key_file(self, roots: Iterable[Path] = ()) -> KeyFile:
        lake = Location.parse(self._settings.lake_url).url if self._settings.lake_url else ""
        data = [Path(lake)] if lake.startswith("/") else []
        path = key_file_path(self._settings, self._environ)
        return KeyFile(path, (self._settings.local, *data, *roots))

    def _roots(self) -> Iterator[Path]:
        """Folders of all tenants' sources. Sources themselves refuse to contain the file."""
        kinds = installed_kinds().sources
        for record in self._catalog.tenants.all():
            for source in record.config.get("sources", ()):
                for path in paths_of(source, kinds).values():
                    yield self._settings.home / Path(path).expanduser()

    def _master_of(self, key: StoredKey, keys: MasterKeys | None) -> MasterKey:
        found = keys.find(key.sealed.master_key_id) if keys else None
        if found is None:
            raise KeyUnreadable(
                f"the stored key of tenant {key.ref.id!r} for {key.provider} was encrypted with"
                f" the master key {key.sealed.master_key_id}, which is unavailable",
                hint=f"restore {self._key_location()}; or, if it is lost, `rag-assets keys remove"
                f" {key.ref.id} {key.provider}`, and set the key again",
            )
        return found

    def _key_location(self) -> str:
        if self._environ.get(VARIABLE):
            return f"it as {PREVIOUS}"
        return str(key_file_path(self._settings, self._environ))

    def _of_variable(
        self, ref: TenantRef, provider: str, reference: str, setting: str
    ) -> SecretStr:
        name = reference.removeprefix("$")
        value = self._environ.get(name)
        if not value:
            raise NoProviderKey(
                f"tenant {ref.id!r} has no key for {provider}: the environment variable {name},"
                f" which {setting} names, is not set",
                hint="set it where rag-assets runs, before `rag-assets up` for the daemon as well",
            )
        return SecretStr(value.strip())

    def _of_catalog(self, ref: TenantRef, provider: str, setting: str) -> SecretStr:
        try:
            return self._unsealed(ref, provider, setting)
        except KeyUnreadable:
            # A rotation may have ended after the key was read and before the master key was.
            return self._unsealed(ref, provider, setting)

    def _unsealed(self, ref: TenantRef, provider: str, setting: str) -> SecretStr:
        key = self._table.find(ref, provider)
        if key is None:
            raise NoProviderKey(
                f"tenant {ref.id!r} has no key for {provider}",
                hint=f"give it one: rag-assets keys set {ref.id} {provider}; or name the"
                f" environment variable that holds it in tenants.yaml, {setting}: $NAME",
            )
        master = self._master_of(key, self._master_keys())
        return unseal(master, ref, provider, key.sealed)

    def _references(self, tenant_id: str | None) -> Iterator[KeyEntry]:
        for record in self._catalog.tenants.all():
            if record.state == "REMOVING" or tenant_id not in {None, record.id}:
                continue
            for provider, reference in _references_in(record.config):
                name = reference.removeprefix("$")
                state: KeyState = "set" if self._environ.get(name) else "not set"
                yield KeyEntry(record.id, provider, f"${name}", state)


def _references_in(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys by reference in a tenant's configuration: purpose and variable."""
    for user in (config.get("embedder"), config.get("chat_model")):
        # A chat model may be no more than a name.
        if isinstance(user, Mapping) and user.get("api_key"):
            yield user.get("provider") or _chat_provider(user.get("model")), user["api_key"]
    rerank = config.get("retrieval", {}).get("rerank") or {}
    if rerank.get("api_key"):
        yield RERANK, rerank["api_key"]


def _chat_provider(model: str | None) -> str:
    provider = provider_of_chat_model(model)
    return provider.name if provider else ""


def require_key(secret: SecretStr) -> None:
    """Refuse what cannot be a provider's key.

    Raises:
        ConfigurationError: it cannot be one; the message has the reason and does not quote it.
    """
    value = secret.get_secret_value()
    if not value:
        raise ConfigurationError("the key is empty", hint="paste it at the prompt, or pipe it in")
    if value.startswith("$"):
        raise ConfigurationError(
            "this is the name of a variable, not a key",
            hint="write keys by reference in tenants.yaml, as embedder.api_key: $NAME",
        )
    if len(value) > _LONGEST or not all("!" <= character <= "~" for character in value):
        raise ConfigurationError(
            "this cannot be a key: it is too long, or holds white space, control characters or"
            " letters that no header carries",
            hint="copy the key alone, as the provider shows it",
        )


def _last_four(secret: SecretStr) -> str:
    value = secret.get_secret_value()
    return value[-_SHOWN_CHARACTERS:] if len(value) >= _LEAST_SHOWN else ""


def _entry(key: StoredKey, keys: MasterKeys | None) -> KeyEntry:
    readable = keys is not None and keys.find(key.sealed.master_key_id) is not None
    return KeyEntry(
        tenant=key.ref.id,
        provider=key.provider,
        shown=f"…{key.last_four}",
        state="set" if readable else "unreadable",
        set_at=key.created_at,
        last_used_at=key.last_used_at,
        worked=key.worked,
    )
