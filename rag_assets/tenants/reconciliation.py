"""Reconciliation of the catalog's tenants with tenants.yaml and the lists that it names.

A tenant that was removed from its list is disabled, and keeps its data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.tenants.file import ListedTenants

FILE = "file"
"""The origin of tenants in tenants.yaml itself."""


class _TenantRecord(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def configured(self) -> Mapping[str, Any]: ...
    @property
    def configured_state(self) -> str: ...
    @property
    def home(self) -> UUID | None: ...


@dataclass(frozen=True, slots=True)
class TenantChanges:
    """The changes that bring the catalog in line with a list of tenants."""

    put: tuple[tuple[Mapping[str, Any], bool], ...]
    """Configurations of tenants to create or update, and whether each tenant is enabled."""
    disable: tuple[str, ...]
    """Ids of tenants that were removed from the list."""
    foreign: tuple[str, ...] = ()
    """Listed ids that another home folder lists with another configuration."""


def plan_tenants(
    listed: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, _TenantRecord],
    home: UUID,
    *,
    origin: str = FILE,
    over: Collection[str] = (),
    kept: Collection[str] = (),
) -> TenantChanges:
    """Compare a list with the catalog; tenants of another origin or home folder are left alone.

    Changes that applications made to the configuration from the file are ignored.

    Args:
        home: the home folder with the list; it disables only tenants that it listed itself.
        origin: the origin of the list's tenants.
        over: other origins; the list takes over their tenants by listing them.
        kept: ids that are not disabled, whether they are listed or not.
    """
    put, foreign = [], []
    for tenant_id, config in listed.items():
        enabled = config.get("enabled", True) is not False
        record = known.get(tenant_id)
        if record is not None and (
            record.state == "REMOVING" or record.origin not in {origin, *over}
        ):
            continue
        wanted = (config, "ACTIVE" if enabled else "DISABLED", origin)
        is_same = record is not None and wanted == (
            *(record.configured, record.configured_state, record.origin),
        )
        if record is None or record.home in {None, home}:
            if not is_same or record is None or record.home is None:
                put.append((config, enabled))
        elif not is_same:
            foreign.append(tenant_id)
    disable = [
        tenant_id
        for tenant_id, record in known.items()
        if record.origin == origin
        and record.home == home
        and record.configured_state == "ACTIVE"
        and tenant_id not in listed
        and tenant_id not in kept
    ]
    return TenantChanges(tuple(put), tuple(disable), tuple(foreign))


def split_conflicts(
    key: str,
    listed_tenants: ListedTenants,
    of_file: Collection[str],
    known: Mapping[str, _TenantRecord],
) -> tuple[dict[str, Mapping[str, Any]], list[RagAssetsError]]:
    """Return the tenants of a list whose ids are free, and the problems of the others.

    A tenant of tenants.yaml takes precedence over a tenant of another list. So does a tenant that
    was created over the API, or was once in tenants.yaml, because it may contain data that no list
    can restore.
    """
    usable: dict[str, Mapping[str, Any]] = {}
    problems = list(listed_tenants.problems)
    for id_, config in listed_tenants.configs.items():
        record = known.get(id_)
        if id_ in of_file:
            other, hint = (
                "tenants.yaml lists a tenant with the same id",
                "remove one of the two entries",
            )
        elif record is not None and record.origin != key:
            origin_text = (
                "was created over the API" if record.origin == "api" else "was in tenants.yaml"
            )
            other = f"a tenant with the same id {origin_text}"
            hint = f"rename the tenant in {key}, or run `rag-assets tenants remove {id_} --yes`"
        else:
            usable[id_] = config
            continue
        place = listed_tenants.places.get(id_, key)
        problems.append(
            ConfigurationError(f"{place}: {id_!r} was not created as a tenant: {other}", hint=hint)
        )
    return usable, problems
