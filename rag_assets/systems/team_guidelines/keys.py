"""Keys of projects and organizations: their state, and what of them is shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from pydantic import SecretStr

from rag_assets.api.guideline_responses import KeySource, KeyState, KeyUse
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
from rag_assets.models.config.embedder import AUTO
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.organizations import OrganizationRef
from rag_assets.storage.catalog.provider_keys import KeyOwner
from rag_assets.systems.team_guidelines.camel import CAMEL
from rag_assets.systems.team_guidelines.projects import OpenProject


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key as it is shown.

    Attributes:
        last_four: its last characters; None of a short one, and of the operator's.
        worked: whether the provider accepted it when it was last used.
        source: whose it is; a project's own is used before its organization's.
        readable: whether the installation can still decrypt it.
    """

    __pydantic_config__ = CAMEL

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

    __pydantic_config__ = CAMEL

    keys: tuple[KeyView, ...]


@dataclass(frozen=True, slots=True)
class KeyTested:
    """The outcome of a small call with a key.

    Attributes:
        worked: whether the provider answered with a vector.
        reason: why it did not.
        latency_ms: until it answered.
    """

    __pydantic_config__ = CAMEL

    worked: bool
    reason: str | None
    latency_ms: int


class GuidelineKeys:
    """Keys of projects and organizations.

    Args:
        catalog: stores them encrypted.
        embedders: of the installation.
    """

    def __init__(self, catalog: Catalog, embedders: Embedders) -> None:
        self._catalog = catalog
        self._settings = embedders.settings
        self._ring = KeyRing(catalog, embedders.settings)

    def state(self, project: OpenProject) -> KeyState:
        """The key that a project's documents are embedded with."""
        provider = project.choice.embedder.provider
        entry = None
        if project.choice.key != "none needed":
            by_operator = project.choice.embedder.api_key is not None
            # Of "auto" a variable is every provider's.
            names = {provider, AUTO, ""} if by_operator else {provider}
            entries = self._ring.entries(project.record.id)
            found = (
                each
                for each in entries
                if each.provider in names and (_source(each) == "operator") == by_operator
            )
            entry = next(found, None)
        return KeyState(
            provider=provider,
            state=_use(project, entry),
            source=None if entry is None else _source(entry),
            address=key_address(project.project_id, provider),
            worked=None if entry is None else entry.worked,
        )

    def require(self, project: OpenProject) -> None:
        """Require that a project's documents can be embedded with a key that it has.

        Raises:
            NoProviderKey: they cannot.
        """
        state = self.state(project)
        if state.state in {"missing", "unreadable"}:
            raise _lacking(state)

    def of_project(self, project: OpenProject) -> Keys:
        """The keys that a project may use, its own before its organization's."""
        entries = self._ring.entries(project.record.id)
        order = {"project": 0, "organization": 1, "operator": 2}
        shown = [_view(entry) for entry in entries]
        return Keys(tuple(sorted(shown, key=lambda key: (key.provider, order[key.source]))))

    def of_organization(self, organization_id: str) -> Keys:
        """An organization's own keys."""
        return Keys(tuple(map(_view, self._ring.entries_of_organization(organization_id))))

    def put(self, owner: KeyOwner, provider: str, key: SecretStr) -> None:
        """Set a key; what waited for one is tried again.

        Raises:
            InvalidRequest: it cannot be a key, or nothing is done with keys of that provider.
            ConfiguredByOperator: the operator has named another key for that provider.
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
        """Delete a key; returns whether there was one."""
        _require_provider(provider)
        return self._ring.remove(owner, provider)

    def test(self, owner: KeyOwner, provider: str) -> KeyTested:
        """Make one small call with the key that an owner has, or uses; it blocks.

        Raises:
            NoProviderKey, KeyUnreadable: there is no key to test.
            InvalidRequest: nothing is embedded with keys of that provider.
        """
        _require_provider(provider)
        tests = KeyTests(self._catalog, self._settings)
        try:
            done: KeyTest = asyncio.run(tests.test(owner, provider))
        except NoProviderKey:
            raise NoProviderKey(
                f"there is no key for {provider}", hint="set one before it is tested"
            ) from None
        except ConfigurationError as error:
            raise InvalidRequest(error.message, hint=error.hint) from None
        return KeyTested(done.worked, done.reason, done.latency_ms)

    def _require_own(self, owner: TenantRef, provider: str) -> None:
        for entry in self._ring.entries(owner.id):
            if entry.provider == provider and _source(entry) == "operator":
                raise ConfiguredByOperator(
                    f"the operator has named the key for {provider}", hint="ask the operator"
                )

    def _retry(self, owner: KeyOwner) -> None:
        if isinstance(owner, TenantRef):
            self._catalog.quarantine.retry_transient_failures(owner)
            return
        for record in self._catalog.tenants.of_organization(owner.id):
            if record.state != "REMOVING":
                self._catalog.quarantine.retry_transient_failures(record.ref)


def key_address(project_id: str, provider: str) -> str:
    """Where a project's key for a provider is set."""
    return f"/api/projects/{quote(project_id, safe='')}/keys/{provider}"


def organization_keys(organization_id: str) -> OrganizationRef:
    """An organization as the owner of keys."""
    return OrganizationRef(organization_id)


def _lacking(state: KeyState) -> NoProviderKey:
    what = "cannot be read any more" if state.state == "unreadable" else "is missing"
    return NoProviderKey(
        f"the key for {state.provider} {what}",
        hint=f"set it: PUT {state.address}",
        provider=state.provider,
        address=state.address,
    )


def _use(project: OpenProject, entry: KeyEntry | None) -> KeyUse:
    if project.choice.key == "none needed":
        return "not-needed"
    if entry is None or entry.state in {"not set", "missing"}:
        return "missing"
    return "usable" if entry.state == "set" else "unreadable"


def _source(entry: KeyEntry) -> KeySource:
    if entry.shown.startswith("$"):
        return "operator"
    return "project" if entry.organization is None else "organization"


def _view(entry: KeyEntry) -> KeyView:
    source = _source(entry)
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
        # Not repeated: it may be a key in the wrong place.
        raise InvalidRequest(
            "no provider of this name takes keys", hint=f"one of: {', '.join(WITH_KEYS)}"
        )
