"""Provider keys of projects and organizations: list, set, delete and test them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from pydantic import SecretStr

from rag_assets.api.guideline_responses import (
    CAMEL_CASE,
    KEY_CAMEL_CASE,
    KeySource,
    KeyState,
    KeyUse,
)
from rag_assets.billing.embedders import Embedders
from rag_assets.billing.key_entries import KeyEntry
from rag_assets.billing.key_ring import KeyRing
from rag_assets.billing.key_tests import KeyTest, KeyTests
from rag_assets.common.errors import (
    ConfigurationError,
    ConfiguredByOperator,
    InvalidRequest,
    NoProviderKey,
)
from rag_assets.models.config import AUTO
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.team_guidelines.projects import OpenProject


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key without its secret.

    Attributes:
        last_four: last four characters of the key; None for a short key and for the operator's key.
        worked: whether the provider accepted the key when it was last used.
        source: owner of the key; a project's own key takes precedence over its organization's key.
        readable: whether the installation can still decrypt the key.
    """

    __pydantic_config__ = KEY_CAMEL_CASE

    provider: str
    last_four: str | None
    set_at: datetime | None
    last_used_at: datetime | None
    worked: bool | None
    source: KeySource
    readable: bool


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a project or an organization, by provider."""

    __pydantic_config__ = CAMEL_CASE

    keys: tuple[KeyView, ...]


@dataclass(frozen=True, slots=True)
class KeyTested:
    """The outcome of one small call with a key.

    Attributes:
        worked: whether the provider answered with a vector.
        reason: why the call failed.
        latency_ms: milliseconds until the answer.
    """

    __pydantic_config__ = CAMEL_CASE

    worked: bool
    reason: str | None
    latency_ms: int


class GuidelineKeys:
    """Lists, sets, deletes and tests keys of projects and organizations."""

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._settings = embedders.settings
        self._ring = KeyRing(catalog, embedders.settings)

    def state(self, project: OpenProject) -> KeyState:
        """Return the key with which a project's documents are embedded."""
        provider = project.choice.embedder.provider
        entry = None if project.choice.key == "none needed" else self._find_entry(project)
        return KeyState(
            provider=provider,
            state=_build_key_use(project, entry),
            source=None if entry is None else _determine_source(entry),
            address=key_address(project.project_id, provider),
            worked=None if entry is None else entry.worked,
        )

    def _find_entry(self, project: OpenProject) -> KeyEntry | None:
        embedder = project.choice.embedder
        is_operators = embedder.api_key is not None
        # A variable for the provider "auto" applies to every provider.
        providers = {embedder.provider, AUTO, ""} if is_operators else {embedder.provider}
        for entry in self._ring.entries(project.record.id):
            if (
                entry.provider in providers
                and (_determine_source(entry) == "operator") == is_operators
            ):
                return entry
        return None

    def require(self, project: OpenProject) -> None:
        """Require a usable key for a project's documents.

        Raises:
            NoProviderKey: the key is missing or cannot be decrypted.
        """
        state = self.state(project)
        if state.state in {"missing", "unreadable"}:
            raise _missing_key_error(state)

    def list_for_project(self, project: OpenProject) -> Keys:
        """List the keys that a project may use, its own before its organization's."""
        entries = self._ring.entries(project.record.id)
        order = {"project": 0, "organization": 1, "operator": 2}
        shown = [_build_view(entry) for entry in entries]
        return Keys(tuple(sorted(shown, key=lambda key: (key.provider, order[key.source]))))

    def list_for_organization(self, organization_id: str) -> Keys:
        """List an organization's own keys."""
        return Keys(tuple(map(_build_view, self._ring.entries_of_organization(organization_id))))

    def put(self, owner: KeyOwner, provider: str, key: SecretStr) -> None:
        """Set a key, and retry the documents that lacked one.

        Raises:
            InvalidRequest: the key is malformed, or the provider does not use keys.
            ConfiguredByOperator: the operator has configured the key of this provider.
            TenantGone: the project was removed.
        """
        _require_provider(provider)
        if isinstance(owner, TenantRef):
            self._require_own(owner, provider)
        try:
            self._ring.set(owner, provider, key)
        except ConfigurationError as error:
            raise InvalidRequest(error.message, hint=error.hint) from None
        self._retry(owner)

    def delete(self, owner: KeyOwner, provider: str) -> bool:
        """Delete a key; return whether it was set."""
        _require_provider(provider)
        return self._ring.remove(owner, provider)

    def test(self, owner: KeyOwner, provider: str) -> KeyTested:
        """Make one small call with the key that an owner has set or uses.

        Raises:
            NoProviderKey, KeyUnreadable: there is no key to test.
            InvalidRequest: the provider has no embeddings.
        """
        _require_provider(provider)
        tests = KeyTests(self._catalog, self._settings)
        try:
            test: KeyTest = asyncio.run(tests.test(owner, provider))
        except NoProviderKey:
            raise NoProviderKey(
                f"no key is set for {provider}", hint="set a key before you test it"
            ) from None
        except ConfigurationError as error:
            raise InvalidRequest(error.message, hint=error.hint) from None
        return KeyTested(test.worked, test.reason, test.latency_ms)

    def _require_own(self, owner: TenantRef, provider: str) -> None:
        for entry in self._ring.entries(owner.id):
            if entry.provider == provider and _determine_source(entry) == "operator":
                raise ConfiguredByOperator(
                    f"the key for {provider} is managed by the operator and cannot be changed here",
                    hint="ask the operator to change the key",
                )

    def _retry(self, owner: KeyOwner) -> None:
        if isinstance(owner, TenantRef):
            self._catalog.quarantine.retry_transient_failures(owner)
            return
        for record in self._catalog.tenants.list_of_organization(owner.id):
            if record.state != "REMOVING":
                self._catalog.quarantine.retry_transient_failures(record.ref)


def key_address(project_id: str, provider: str) -> str:
    """Return the path of the endpoint that sets a project's key."""
    return f"/api/projects/{quote(project_id, safe='')}/keys/{provider}"


def _missing_key_error(state: KeyState) -> NoProviderKey:
    what = "cannot be read any more" if state.state == "unreadable" else "is missing"
    return NoProviderKey(
        f"the key for {state.provider} {what}",
        hint=f"set it: PUT {state.address}",
        provider=state.provider,
        address=state.address,
    )


def _build_key_use(project: OpenProject, entry: KeyEntry | None) -> KeyUse:
    if project.choice.key == "none needed":
        return "not-needed"
    if entry is None or entry.state in {"not set", "missing"}:
        return "missing"
    return "usable" if entry.state == "set" else "unreadable"


def _determine_source(entry: KeyEntry) -> KeySource:
    if entry.shown.startswith("$"):
        return "operator"
    return "project" if entry.organization is None else "organization"


def _build_view(entry: KeyEntry) -> KeyView:
    source = _determine_source(entry)
    return KeyView(
        provider=entry.provider,
        last_four=None if source == "operator" else entry.shown.removeprefix("…") or None,
        set_at=entry.set_at,
        last_used_at=entry.last_used_at,
        worked=entry.worked,
        source=source,
        readable=entry.state == "set",
    )


def _require_provider(provider: str) -> None:
    if provider not in WITH_KEYS:
        # The error does not repeat the name, because it may be a misplaced key.
        raise InvalidRequest(
            "no provider with this name accepts keys", hint=f"one of: {', '.join(WITH_KEYS)}"
        )
